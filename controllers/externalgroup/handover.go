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

// errHandsOver: the subject's addresses stay for a moment, because those who get them are not ready.
var errHandsOver = errors.New("the addresses' new subject does not have them yet")

// handoverPatience is how long an address stays its former subject's at most. It bounds how much later an address is taken
// from a subject because another one gets it.
const handoverPatience = 3 * time.Second

// handsOver tells that all addresses that a subject loses become other subjects', and that one of these does not have them
// in some member yet. Taken away now, they would be nobody's until then, and refused. While an address is in both groups,
// what passes is allowed to one of the two and denied to neither: it passed before, or passes after.
func (r *Reconciler) handsOver(view *policycache.View, subject string) bool {
	e, ok := r.Federated.Get(v1alpha1.ObjectPrefix + policy.UnitID(subject))
	if !ok || len(e.Placement) == 0 || e.Resource() != subject {
		return r.patient(subject, false)
	}
	own, _ := view.Group(subject)
	kept, heirs := map[netip.Prefix]bool{}, map[string]bool{}
	for _, p := range own.Prefixes {
		kept[p] = true
	}
	for _, p := range addressesIn(e.TemplateSpec) {
		if !kept[p] && !inherited(view, subject, p, heirs) {
			return r.patient(subject, false)
		}
	}
	for heir := range heirs {
		if r.expects(view, heir) {
			return r.patient(subject, true)
		}
	}
	return r.patient(subject, false)
}

// patient is waits, but for not longer than handoverPatience.
func (r *Reconciler) patient(subject string, waits bool) bool {
	return r.handing.InGrace(subject, waits, r.Clock.Now(), handoverPatience)
}

func addressesIn(spec map[string]any) []netip.Prefix {
	list, _ := spec["externalCIDRs"].([]any)
	out := make([]netip.Prefix, 0, len(list))
	for _, one := range list {
		text, _ := one.(string)
		if p, err := netip.ParsePrefix(text); err == nil { // nobody has what is none
			out = append(out, p)
		}
	}
	return out
}

// inherited tells whether all of a prefix is still the subject's own or other subjects', which are added to heirs.
func inherited(view *policycache.View, subject string, p netip.Prefix, heirs map[string]bool) bool {
	if p.IsSingleIP() {
		heir, ok := view.SubjectOfAddress(p.Addr())
		if ok && heir != subject {
			heirs[heir] = true
		}
		return ok
	}
	covered := new(big.Int) // addresses; the prefixes of all subjects are disjoint
	for _, g := range view.ExternalGroups() {
		for _, q := range g.Prefixes {
			if !q.Overlaps(p) {
				continue
			}
			if covered.Add(covered, size(max(q.Bits(), p.Bits()), p)); g.Subject != subject {
				heirs[g.Subject] = true
			}
		}
	}
	return covered.Cmp(size(p.Bits(), p)) == 0
}

// size is how many addresses of p's family have so many bits in common.
func size(bits int, p netip.Prefix) *big.Int {
	return new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-bits)) //nolint:gosec // not negative
}

// expects tells whether a subject's addresses are on their way to a member that answers.
func (r *Reconciler) expects(view *policycache.View, subject string) bool {
	objects, err := r.Of(view, subject)
	if err != nil {
		return false // they will not come
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
