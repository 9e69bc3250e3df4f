package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// RefusedHTTP is the refusal of a statement about requests in a member that cannot look at requests.
func RefusedHTTP(ref Ref, resource, why string) Refusal {
	return Refusal{Ref: ref, Reason: v1alpha1.RefusedUnsupported, Resource: resource, Message: fmt.Sprintf(
		"rules about requests (method, path) cannot be enforced there: %s; these requests are refused until that is mended, or ask for whole connections", why)}
}

// wall is what a member denies all addresses because of a unit, during one epoch.
type wall struct {
	epoch   int
	ports   []v1alpha1.Port
	by      []Ref
	refused []Refusal
}

type wallAt struct{ resource, member string }

// wallOf is the wall that a resource has in a member in Enforce.
func (s *Snapshot) wallOf(resource, member string, at time.Time) *wall {
	key, epoch := wallAt{resource, member}, s.epoch(at)
	if kept, ok := s.walled.Load(key); ok && kept.(*wall).epoch == epoch {
		return kept.(*wall)
	}
	w := &wall{epoch: epoch}
	c, ok := s.resources.of(resource)
	if ok && c.byCilium() && c.isPlacedIn(s, member) && s.EffectiveMode(resource, member, at) == v1alpha1.ModeEnforce {
		if u, ok := s.CompileResource(resource, at); ok {
			a := s.Apart(&u, s.Meshes(), []string{member}, func(string) bool { return true }, at)
			w.ports, w.by, w.refused = a.Denied[member], a.DeniedBy[member], a.RefusedIn[member]
		}
	}
	if _, ok := s.index.resources.find(resource); ok {
		s.walled.Store(key, w)
	}
	return w
}

// wallOff denies a source outside the fleet where the member has to deny all addresses.
func (s *Snapshot) wallOff(d *Decision, q *Query, x *effectiveView, written []Ref) {
	if !s.several || !q.Source.IsValid() || q.Cluster == "" || !d.Verdict.LetsThrough() {
		return
	}
	for _, r := range q.Resources {
		w := s.wallOf(r, q.Cluster, q.At)
		if !portsContain(w.ports, q.Protocol, q.Port) {
			continue
		}
		*d = Decision{Verdict: Denied, Statements: slices.Clone(w.by),
			Reason: "a denied subject has or may have pods in another cluster mesh, which come as addresses, so all addresses are denied the port"}
		for _, refused := range w.refused {
			if slices.Contains(written, refused.Ref) {
				x.leftOut = append(x.leftOut, refused)
			}
		}
		return
	}
}
