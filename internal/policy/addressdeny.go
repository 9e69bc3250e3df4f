package policy

import (
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// RefusedHTTP returns the refusal of a statement about HTTP requests in a member that cannot filter requests.
func RefusedHTTP(ref Ref, resource string, why message.Message) Refusal {
	return Refusal{Ref: ref, Reason: v1alpha1.RefusedUnsupported, Resource: resource, Message: message.RefusalRequests(why)}
}

// addressDeny describes on which ports a member denies all addresses because of a unit, during one epoch.
type addressDeny struct {
	epoch   epoch
	ports   []v1alpha1.Port
	by      []Ref
	refused []Refusal
}

type addressDenyKey struct {
	resource, member string
	// supposed reports whether the resource is treated as in Enforce.
	supposed bool
}

// addressDenyOf returns the denied addresses of a resource in a member, if it is in Enforce there or supposed to be.
func (s *Snapshot) addressDenyOf(resource, member string, at time.Time, supposed bool) *addressDeny {
	key, epoch := addressDenyKey{resource, member, supposed}, s.epoch(at)
	if kept, ok := s.addressDenies.Load(key); ok && kept.(*addressDeny).epoch == epoch {
		return kept.(*addressDeny)
	}
	w := &addressDeny{epoch: epoch}
	c, ok := s.resources.of(resource)
	if ok && c.byCilium() && (supposed || c.isPlacedIn(s, member) && s.EffectiveMode(resource, member, at) == v1alpha1.ModeEnforce) {
		u, compiled := s.CompileResource(resource, at)
		if supposed && !compiled {
			u, compiled = newUnit(resource, c), true
			s.fill(&u, c, s.statementsFor(resource), s.overriders(resource, "", c, at, []string{resource}), at, []string{resource})
		}
		if compiled {
			a := s.CrossMeshLimits(&u, s.Meshes(), []string{member}, func(string) bool { return true }, at)
			w.ports, w.by, w.refused = a.Denied[member], a.DeniedBy[member], a.RefusedIn[member]
		}
	}
	if _, ok := s.index.resources.find(resource); ok {
		s.addressDenies.Store(key, w)
	}
	return w
}

// applyAddressDeny denies a source outside the fleet if the member denies all addresses. The supposed resources are
// treated as in Enforce.
func (s *Snapshot) applyAddressDeny(d *Decision, q *Query, x *effectiveView, written []Ref, supposed []string) {
	if !s.several || !q.Source.IsValid() || q.Cluster == "" || !d.Verdict.LetsThrough() {
		return
	}
	for _, r := range q.Resources {
		w := s.addressDenyOf(r, q.Cluster, q.At, supposed != nil)
		if !portsContain(w.ports, q.Protocol, q.Port) {
			continue
		}
		*d = Decision{Verdict: Denied, Statements: slices.Clone(w.by),
			Reason: ReasonAddressesDenied}
		for _, refused := range w.refused {
			if slices.Contains(written, refused.Ref) {
				x.leftOut = append(x.leftOut, refused)
			}
		}
		return
	}
}
