package portal

import (
	"errors"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
)

func asApproval(err error) *approval.Error {
	var e *approval.Error
	errors.As(err, &e)
	return e
}

// ticketOf maps a ticket with the live state of the members.
func (a *api) ticketOf(c *catalog.Catalog, who approval.Actor, t *approval.Ticket) openapi.Ticket {
	may, first := approval.MayDo(c, who, t), t.Items[0]
	out := openapi.Ticket{Id: t.ID(), Kind: openapi.TicketKind(t.Kind), State: openapi.TicketState(t.State()), Version: t.Version, Requester: personOf(c, t.Requester),
		Reason: t.Reason, ExpiresAt: when(first.ExpiresAt), Items: []openapi.TicketItem{}, Steps: stepsOf(c, first.Steps), Events: eventsOf(c, t.Events),
		Clusters: []openapi.ClusterState{}, Statement: statementYAML(t), Message: optional(first.Message), CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC()}
	if first.Duration > 0 {
		out.DurationSeconds = new(int64(first.Duration.Seconds()))
	}
	out.Can.Approve, out.Can.Reject, out.Can.Withdraw, out.Can.Revoke = may.Approve, may.Reject, may.Withdraw, may.Revoke
	for _, it := range t.Items {
		out.Items = append(out.Items, openapi.TicketItem{Application: refOf(c, it.Application, it.ApplicationName), Resource: refOf(c, it.Resource, it.ResourceName),
			Actions: it.Actions, Sid: it.SID})
	}
	out.Policy = new(policy.PolicyNameFor(first.ResourceName))
	if t.State().Open() {
		a.liveState(t, &out)
	}
	return out
}

// liveState shows the members as the adapter sees them now, which may be worse than when the ticket became effective.
func (a *api) liveState(t *approval.Ticket, out *openapi.Ticket) {
	p, ok := a.Host.Cached(*out.Policy)
	if !ok {
		return
	}
	u, ok := approval.Unit(p, t.Items[0].ResourceName)
	if !ok {
		return
	}
	out.Clusters = clustersOf(u.Clusters)
	waiting := []string{}
	for _, c := range u.Clusters {
		if c.State != v1alpha1.MemberRealized && (c.DesiredRevision != "" || t.State() == approval.StateRevoking) {
			waiting = append(waiting, string(c.Name))
		}
	}
	out.WaitingFor = &waiting
}

// refOf keeps the name that was approved even if the catalog gave the id to something else since.
func refOf(c *catalog.Catalog, id, name string) openapi.CatalogRef {
	ref := catalogRef(c, name)
	if ref.Id == nil {
		ref.Title = id
	}
	return ref
}

func stepsOf(c *catalog.Catalog, steps []approval.Step) []openapi.Step {
	out := make([]openapi.Step, 0, len(steps))
	for _, s := range steps {
		x := openapi.Step{Name: s.Name, State: openapi.StepState(s.State), Approvers: []openapi.Person{}, Note: optional(s.Note)}
		for _, p := range s.Approvers {
			x.Approvers = append(x.Approvers, personOf(c, p))
		}
		if n := len(s.Votes); n > 0 {
			last := s.Votes[n-1]
			x.DecidedBy, x.DecidedAt, x.Comment = new(personOf(c, last.Person)), when(last.At), optional(last.Comment)
		}
		out = append(out, x)
	}
	return out
}

func eventsOf(c *catalog.Catalog, events []approval.Event) []openapi.Event {
	out := make([]openapi.Event, 0, len(events))
	for _, e := range events {
		x := openapi.Event{At: e.At.UTC(), Kind: openapi.EventKind(e.Kind), Step: optional(e.Step), Cluster: optional(e.Cluster), Revision: optional(e.Revision), Comment: optional(e.Comment)}
		if e.Actor != "" {
			x.Actor = new(personOf(c, e.Actor))
		}
		out = append(out, x)
	}
	return out
}

// statementYAML is what is, or will be, in the policy.
func statementYAML(t *approval.Ticket) *string {
	list := make([]v1alpha1.Statement, 0, len(t.Items))
	for _, it := range t.Items {
		list = append(list, approval.Statement(it))
	}
	text, err := yaml.Marshal(list)
	if err != nil {
		return nil
	}
	return new(string(text))
}
