package portal

import (
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

func personOf(c *catalog.Catalog, id string) openapi.Person {
	p, ok := c.Person(id)
	if !ok { // the person left; the record stays
		return openapi.Person{Id: id, DisplayName: id}
	}
	return openapi.Person{Id: id, DisplayName: p.DisplayName, Title: core.Optional(p.Title), Email: core.Optional(p.Email)}
}

func ownersOf(c *catalog.Catalog, e catalog.Entity) []openapi.OwnerRef {
	out := make([]openapi.OwnerRef, 0, len(e.Owners))
	for _, o := range e.Owners {
		out = append(out, openapi.OwnerRef{Kind: openapi.OwnerRefKind(o.Kind), Id: o.ID, DisplayName: c.OwnerName(o)})
	}
	return out
}

func catalogRef(c *catalog.Catalog, name string) openapi.CatalogRef {
	if e, ok := c.ByName(name); ok {
		return openapi.CatalogRef{Id: new(e.ID), Name: name, Title: e.Title} // not &e.ID, which would keep a copy of e in memory
	}
	return openapi.CatalogRef{Name: name, Title: name}
}

func applicationOf(c *catalog.Catalog, who approval.Actor, e catalog.Entity, denied map[string]int64) openapi.Application {
	out := openapi.Application{Id: e.ID, Name: e.Name, Title: e.Title, Description: core.Optional(e.Description), Owners: ownersOf(c, e),
		Environment: core.Optional(e.Environment), Mine: c.Owns(who.ID, e)}
	if mayInspect(c, who, e) {
		out.Denied24h = count(denied, e.Name)
	}
	return out
}

func (a *api) resourceOf(c *catalog.Catalog, who approval.Actor, e catalog.Entity, denied map[string]int64) openapi.Resource {
	out := openapi.Resource{Id: e.ID, Name: e.Name, Title: e.Title, Description: core.Optional(e.Description), Owners: ownersOf(c, e),
		Environment: core.Optional(e.Environment), Mine: c.Owns(who.ID, e), Sensitivity: openapi.Sensitivity(e.Sensitivity), Actions: []openapi.ActionInfo{},
		Protection: a.protection(c, who, e, a.Host.Protection(e.Name))}
	if mayInspect(c, who, e) {
		out.Denied24h = count(denied, e.Name)
	}
	if s, ok := a.Host.Snapshot(); ok {
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

func protectionOf(p *v1alpha1.ProtectedResource) *openapi.Protection {
	if p == nil {
		return nil
	}
	out := &openapi.Protection{Mode: openapi.Mode(p.Spec.Mode), EffectiveMode: openapi.Mode(p.Status.EffectiveMode), Revision: core.Optional(p.Status.Revision),
		Statements: int(p.Status.Statements)}
	states := p.Status.States()
	out.Clusters, out.Members = clustersOf(states), countsOf(p.Status.Counts(), len(states))
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

// countsOf returns the counts of the members, with the number of listed ones; nil if there are no members.
func countsOf(n v1alpha1.MemberCounts, listed int) *openapi.MemberCounts {
	if n.Total == 0 {
		return nil
	}
	states := map[string]int{}
	for state, count := range map[v1alpha1.MemberState]int32{v1alpha1.MemberRealized: n.Realized, v1alpha1.MemberPending: n.Pending, v1alpha1.MemberDrifted: n.Drifted,
		v1alpha1.MemberUnreachable: n.Unreachable, v1alpha1.MemberLeaked: n.Leaked, v1alpha1.MemberOverridden: n.Overridden, v1alpha1.MemberQuarantined: n.Quarantined,
		v1alpha1.MemberDowngraded: n.Downgraded} {
		if count > 0 {
			states[string(state)] = int(count)
		}
	}
	return &openapi.MemberCounts{Total: int(n.Total), Targeted: int(n.Targeted), Waiting: int(n.Waiting), Listed: listed, States: &states}
}

// statesOf returns the members of a policy's unit. Where the policy's status has no room for them, the resource's own status lists them,
// if it is about the same revision.
func (a *api) statesOf(u *v1alpha1.PolicyUnit) []v1alpha1.ClusterState {
	if u.Unlisted() > 0 {
		if p := a.Host.Protection(string(u.Resource)); p != nil && p.Status.Revision == u.Revision && p.Status.Unlisted() == 0 {
			return p.Status.States()
		}
	}
	return u.States()
}

func clustersOf(in []v1alpha1.ClusterState) []openapi.ClusterState {
	out := make([]openapi.ClusterState, 0, len(in))
	for _, c := range in {
		x := openapi.ClusterState{Cluster: string(c.Name), State: openapi.ClusterStateState(c.State), DesiredRevision: core.Optional(c.DesiredRevision),
			ObservedRevision: core.Optional(c.ObservedRevision), Propagated: new(c.Propagated), Message: core.OptionalMessage(message.Restore(c.Message, c.MessageCode, c.MessageParams))}
		if c.Mode != "" {
			x.Mode = new(openapi.Mode(c.Mode))
		}
		if c.Since != nil {
			x.Since = new(c.Since.UTC())
		}
		out = append(out, x)
	}
	return out
}

func connectionOf(c *catalog.Catalog, f audit.Connection) openapi.Connection {
	end := func(name, other string) openapi.CatalogRef {
		if name == "" { // no class covers it, so the observed text is shown
			return openapi.CatalogRef{Title: other}
		}
		return catalogRef(c, name)
	}
	out := openapi.Connection{Cluster: f.Cluster, SourceCluster: core.Optional(f.SourceCluster), Subject: end(f.Subject, f.Source), Resource: end(f.Resource, f.Destination),
		Action: core.Optional(f.Action), Port: int(f.Port), Protocol: string(f.Protocol), Decision: openapi.Decision(f.Decision), Verdict: openapi.ConnectionVerdict(f.Verdict),
		Policy: core.Optional(f.Statement.Policy), Sid: core.Optional(f.Statement.SID), Count: f.Count, FirstSeen: f.FirstSeen.UTC(), LastSeen: f.LastSeen.UTC()}
	if f.Disagrees() {
		out.Disagrees = new(true)
	}
	if n, ok := ticketOf(f.Statement, f.Resource); ok {
		out.Ticket = new(approval.FormatID(n))
	}
	return out
}
