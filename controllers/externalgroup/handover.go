package externalgroup

import (
	"errors"
	"math/big"
	"net/netip"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/policy"
)

// errHandover reports that the subject's addresses stay for a moment, because the subjects that get them are not ready.
var errHandover = errors.New("the addresses' new subject does not have them yet")

// maxHandoverDelay is the longest time for which an address stays with its former subject. It bounds the delay of
// taking an address from a subject because another one gets it.
const maxHandoverDelay = 3 * time.Second

// awaitsHandover reports whether all addresses that a subject loses become other subjects', and one of these does not
// have them in some member yet, or some member does not have a unit yet that refers to them. If they were removed now, they would be
// refused until then. While the address is in both groups, only connections pass that one of the two subjects is allowed and neither
// is denied, so nothing passes that is not allowed before or after the handover.
func (r *Reconciler) awaitsHandover(view *policycache.View, subject string) bool {
	e, ok := r.Federated.Get(v1alpha1.ObjectPrefix + policy.UnitID(subject))
	if !ok || len(e.Placement) == 0 || e.Resource() != subject {
		return r.inGrace(subject, false)
	}
	own, _ := view.Group(subject)
	kept, successors := map[netip.Prefix]bool{}, map[string]bool{}
	for _, p := range own.Prefixes {
		kept[p] = true
	}
	for _, p := range addressesIn(e.TemplateSpec) {
		if !kept[p] && !hasSuccessor(view, subject, p, successors) {
			return r.inGrace(subject, false)
		}
	}
	for successor := range successors {
		if r.incomplete(view, successor) || r.InUse != nil && !r.InUse(view, successor) {
			return r.inGrace(subject, true)
		}
	}
	return r.inGrace(subject, false)
}

// inGrace returns waits, but for no longer than maxHandoverDelay.
func (r *Reconciler) inGrace(subject string, waits bool) bool {
	return r.handovers.InGrace(subject, waits, r.Clock.Now(), maxHandoverDelay)
}

func addressesIn(spec map[string]any) []netip.Prefix {
	list, _ := spec["externalCIDRs"].([]any)
	out := make([]netip.Prefix, 0, len(list))
	for _, prefix := range list {
		text, _ := prefix.(string)
		if p, err := netip.ParsePrefix(text); err == nil { // An invalid prefix matches nothing.
			out = append(out, p)
		}
	}
	return out
}

// hasSuccessor reports whether every address of p now belongs to some registered subject. It adds the subjects other than
// this one to successors.
func hasSuccessor(view *policycache.View, subject string, p netip.Prefix, successors map[string]bool) bool {
	if p.IsSingleIP() {
		successor, ok := view.SubjectOfAddress(p.Addr())
		if ok && successor != subject {
			successors[successor] = true
		}
		return ok
	}
	covered := new(big.Int) // number of addresses; the prefixes of all subjects are disjoint
	for _, g := range view.ExternalGroups() {
		for _, q := range g.Prefixes {
			if !q.Overlaps(p) {
				continue
			}
			if covered.Add(covered, size(max(q.Bits(), p.Bits()), p)); g.Subject != subject {
				successors[g.Subject] = true
			}
		}
	}
	return covered.Cmp(size(p.Bits(), p)) == 0
}

// size returns how many addresses of p's family share a prefix of so many bits.
func size(bits int, p netip.Prefix) *big.Int {
	return new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-bits)) //nolint:gosec // not negative
}

// incomplete reports whether a member that answers does not have a subject's addresses yet.
func (r *Reconciler) incomplete(view *policycache.View, subject string) bool {
	objects, err := r.Of(view, subject)
	if err != nil {
		return false // The addresses will not be distributed.
	}
	for _, o := range objects {
		for _, c := range r.placement(o.Federated) {
			seen := r.Fleet.Observe(c, o.Name)
			if seen.Reachable && (seen.Object == nil || seen.Object.Revision != o.Revision) {
				return true
			}
		}
	}
	return false
}
