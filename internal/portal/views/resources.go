package views

import (
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/rollout"
)

// ProtectionFor returns the protection of a resource with what the caller may do, or nil if it is not onboarded.
func (d *Data) ProtectionFor(c *catalog.Catalog, who approval.Actor, e catalog.Entity, p *v1alpha1.ProtectedResource) *openapi.Protection {
	out := Protection(p)
	if out == nil {
		return nil
	}
	out.Nodes = NodesOfResource(who, p)
	out.CanToggle = new(rollout.MayChange(c, who, e))
	out.ResourceVersion = core.Optional(p.ResourceVersion)
	out.TemporaryAudit = d.TemporaryAudit(c, p)
	return out
}

// TemporaryAudit returns the temporary audit of a resource, or nil if it has none.
func (d *Data) TemporaryAudit(c *catalog.Catalog, p *v1alpha1.ProtectedResource) *openapi.TemporaryAudit {
	t := p.Spec.TemporaryAudit
	if t == nil {
		return nil
	}
	return &openapi.TemporaryAudit{
		Until:  t.Until.UTC(),
		Reason: t.Reason,
		By:     Person(c, t.By),
		Active: rollout.InTemporaryAudit(p.Spec, d.Now()),
		Guard:  new(t.By == rollout.GuardName),
	}
}

// Resource returns the view of a resource for a person. The denials are by resource name; nil if they are not known.
func (d *Data) Resource(c *catalog.Catalog, who approval.Actor, e catalog.Entity, denied map[string]int64) openapi.Resource {
	out := openapi.Resource{Id: e.ID, Name: e.Name, Title: e.Title, Description: core.Optional(e.Description), Owners: Owners(c, e),
		Environment: core.Optional(e.Environment), Mine: c.Owns(who.ID, e), Sensitivity: openapi.Sensitivity(e.Sensitivity), Actions: []openapi.ActionInfo{},
		Protection: d.ProtectionFor(c, who, e, d.Host.Protection(e.Name))}
	if MayInspect(c, who, e) {
		out.Denied24h = DenialCount(denied, e.Name)
	}
	if s, ok := d.Host.Snapshot(); ok {
		if class, ok := s.ResourceClassOf(e.Name); ok {
			out.Class = &class.Name
			for _, act := range class.Spec.Actions {
				out.Actions = append(out.Actions, openapi.ActionInfo{Name: act.Name, Ports: portsOf(act.Ports)})
			}
		}
	}
	return out
}

func portsOf(ports []v1alpha1.Port) []string {
	out := make([]string, 0, len(ports))
	for _, p := range ports {
		proto := p.Protocol
		if proto == "" {
			proto = v1alpha1.ProtocolTCP
		}
		if p.EndPort != nil && *p.EndPort != p.Port {
			out = append(out, fmt.Sprintf("%d-%d/%s", p.Port, *p.EndPort, proto))
		} else {
			out = append(out, fmt.Sprintf("%d/%s", p.Port, proto))
		}
	}
	return out
}

// Protection returns the protection of a resource as its status reports it, or nil if it is not onboarded.
func Protection(p *v1alpha1.ProtectedResource) *openapi.Protection {
	if p == nil {
		return nil
	}
	out := &openapi.Protection{Mode: openapi.Mode(p.Spec.Mode), EffectiveMode: openapi.Mode(p.Status.EffectiveMode), Revision: core.Optional(p.Status.Revision),
		Statements: int(p.Status.Statements)}
	states := p.Status.States()
	out.Clusters, out.Members = ClusterStates(states), MemberCounts(p.Status.Counts(), len(states))
	if out.EffectiveMode == "" { // the adapter has not processed it yet
		out.EffectiveMode = out.Mode
	}
	for _, cond := range p.Status.Conditions {
		if cond.Type == v1alpha1.ConditionRealized {
			out.Realized = cond.Status == "True" && p.Status.ObservedGeneration >= p.Generation
			if !out.Realized {
				out.Message = core.OptionalMessage(governance.NotRealized(states, cond.Message))
			}
		}
	}
	return out
}
