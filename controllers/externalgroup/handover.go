package externalgroup

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// maxHandoverDelay is the longest time for which an address stays with its former subject. It bounds the delay of
// taking an address from a subject because another one gets it.
const maxHandoverDelay = 3 * time.Second

// awaitsHandover reports whether all addresses that a subject loses become other subjects', and one of these does not
// have them in some member yet, or some member does not have a unit yet that refers to them. If they were removed now, they would be
// refused until then. While the address is in both groups, only connections pass that one of the two subjects is allowed and neither
// is denied, so nothing passes that is not allowed before or after the handover.
func (r *Reconciler) awaitsHandover(view *policycache.View, subject string) bool {
	if r.handovers.Exceeded(subject, r.Clock.Now(), maxHandoverDelay) {
		return false // The period ends with the write.
	}
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

// incomplete reports whether a reachable member does not have a subject's addresses yet, quarantined members excepted, which get no changes. A
// member may have further addresses, which wait for their own next subject.
func (r *Reconciler) incomplete(view *policycache.View, subject string) bool {
	rendered, err := r.render(view, subject)
	if err != nil {
		return false // The addresses will not be distributed.
	}
	quarantined := map[string]bool{}
	for _, c := range r.Fleet.Clusters() {
		quarantined[c.Name] = c.Quarantined
	}
	for i := range rendered {
		name, enough := rendered[i].Object.Name, map[string]bool{rendered[i].Revision: true}
		e, exists := r.Federated.Get(name)
		if exists && containsAll(e.TemplateSpec, rendered[i].Object.Spec) {
			enough[e.Meta.Annotations[federation.AnnotationRevision]] = true
		}
		for _, c := range r.placement(e) {
			seen := r.Fleet.Observe(c, name)
			if !quarantined[c] && seen.Reachable && (seen.Object == nil || !enough[seen.Object.Revision]) {
				return true
			}
		}
	}
	return false
}

// containsAll reports whether every address of a group is in another one.
func containsAll(outer, inner map[string]any) bool {
	return len(notIn(addressesIn(outer), addressesIn(inner))) == 0
}

// notIn returns the prefixes that no prefix of a list contains.
func notIn(list, prefixes []netip.Prefix) []netip.Prefix {
	had := map[netip.Prefix]bool{}
	for _, p := range list {
		had[p] = true
	}
	return slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool {
		for bits := p.Bits(); bits >= 0; bits-- {
			if around, err := p.Addr().Prefix(bits); err == nil && had[around] {
				return true
			}
		}
		return false
	})
}

// writesBeforeHandover returns the objects of a subject that have to be written while addresses wait for their next subject: with the
// addresses that it gains, and those that it will lose.
func (r *Reconciler) writesBeforeHandover(view *policycache.View, subject string) ([]*federation.Object, error) {
	g, ok := view.Group(subject)
	e, exists := r.Federated.Get(v1alpha1.ObjectPrefix + policy.UnitID(subject))
	if !ok || !exists {
		return nil, nil
	}
	former := addressesIn(e.TemplateSpec)
	g.Prefixes = append(former, notIn(former, g.Prefixes)...)
	slices.SortFunc(g.Prefixes, netip.Prefix.Compare)
	rendering, err := r.Render(g)
	if err != nil {
		return nil, fmt.Errorf("render the group of %s: %w", subject, err)
	}
	return r.writes(view, subject, rendering.Objects)
}
