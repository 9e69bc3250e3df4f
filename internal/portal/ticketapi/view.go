package ticketapi

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/tracing"
)

// ticketView returns the full view of a ticket, with what the caller may see and do.
func (a *API) ticketView(ctx context.Context, t *approval.Ticket) (openapi.Ticket, error) {
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return openapi.Ticket{}, err
	}
	c := a.Catalog()
	out := a.ticketRow(c, who, t)
	sees := func(i int) bool { return views.SeesClients(c, who, t, i) }
	out.Events = eventsOf(c, t, sees)
	trace := tracing.ID(t.TraceParent)
	out.TraceId, out.TraceUrl = core.Optional(trace), a.Server.TracePage(trace)
	for i := range t.Items {
		it := &out.Items[i]
		it.Nodes = a.nodes(who, t, i)
		it.Statement = objectYAML(t.Kind, t.Items[i])
		lines := t.Items[i].Shown.Lines
		if !sees(i) {
			lines = approval.WithoutClients(lines)
		}
		if len(lines) > 0 {
			it.Lines = new(approval.LineMessages(lines))
		}
	}
	return out, nil
}

// ticketRow returns the row of a ticket in lists, with the current state of the members.
func (a *API) ticketRow(c *catalog.Catalog, who approval.Actor, t *approval.Ticket) openapi.Ticket {
	out := openapi.Ticket{
		Id:         t.ID(),
		Kind:       openapi.TicketKind(t.Kind),
		State:      openapi.TicketState(t.State()),
		Version:    t.Version,
		Requester:  views.Person(c, t.Requester),
		Reason:     t.Reason,
		BreakGlass: new(t.BreakGlass),
		Items:      []openapi.TicketItem{},
		Events:     []openapi.Event{},
		CreatedAt:  t.CreatedAt.UTC(),
		UpdatedAt:  t.UpdatedAt.UTC(),
	}
	for i := range t.Items {
		it := a.itemView(c, who, t, i)
		out.Items = append(out.Items, it)
		if t.Items[i].Adopt {
			out.Adopt = new(true)
		}
		if o := t.Items[i].Override; o != nil {
			out.Override = &openapi.Override{Reason: o.Reason}
		}
		out.Can = eitherMay(out.Can, it.Can)
		if out.Message == nil {
			out.Message = it.Message
		}
	}
	return out
}

func (a *API) itemView(c *catalog.Catalog, who approval.Actor, t *approval.Ticket, i int) openapi.TicketItem {
	it := t.Items[i]
	out := openapi.TicketItem{
		Position:  i,
		State:     openapi.TicketState(it.State),
		Steps:     stepsOf(c, who, it, undecided(it)),
		Clusters:  []openapi.ClusterState{},
		ExpiresAt: views.Time(it.End()),
		ApprovalPolicy: core.Optional(
			it.Approval,
		),
		Digest:  core.Optional(it.Shown.Digest),
		Message: core.OptionalMessage(it.Message),
		Target:  itemRef(it.Target),
		Can:     itemMay(c, who, t, i),
	}
	if it.ApplicationName != "" {
		out.Application = new(refOf(c, it.Application, it.ApplicationName))
	}
	if it.ResourceName != "" {
		out.Resource = new(refOf(c, it.Resource, it.ResourceName))
		out.Sensitivity = sensitivityOf(c, it.ResourceName)
	}
	if len(it.Actions) > 0 {
		out.Actions = &it.Actions
	}
	if it.Duration > 0 {
		out.DurationSeconds = new(int64(it.Duration.Seconds()))
	}
	out.Hours = views.Hours(it.Hours)
	if begin, outside := it.HoursBegin(a.Now()); outside && it.State == approval.StateEffective {
		out.Message = new(message.TicketOutsideHours(begin))
	}
	if it.Review != nil {
		out.Review = new(stepOf(c, who, it, *it.Review))
	}
	if t.Kind.Access() {
		out.Sid, out.Policy = core.Optional(it.SID), new(policyOf(it))
	}
	if s := it.Scope; s != nil {
		out.Scope = views.StatementScope(c, s)
	}
	if ch := it.Change; ch != nil {
		out.Policy = core.Optional(ch.Name)
		if kind := openapi.ObjectChangeKind(ch.Kind); kind.Valid() {
			out.Object = &openapi.ObjectChange{Kind: kind, Name: ch.Name, Verb: openapi.ObjectChangeVerb(ch.Verb)}
		}
		out.Workload = workloadChange(ch)
		out.Package = publishedPackage(ch)
		out.FromMode, out.ToMode = modeOf(ch.FromMode), modeOf(ch.ToMode)
	}
	if p := it.Package; p != nil {
		out.Package = &openapi.PackageRef{Name: p.Name, Version: p.Version}
		if p.HolderUpdate {
			out.Package.Given = new(true)
		}
	}
	if it.State.InProgress() {
		a.liveState(t, it, &out)
	}
	return out
}

// policyOf returns the name of the policy that has the statement of an item, or to which it is written.
func policyOf(it approval.Item) string {
	if it.Scope != nil {
		return cmp.Or(it.Policy, policy.StatementsPolicy)
	}
	return cmp.Or(it.Policy, policy.PolicyNameFor(it.ResourceName))
}

// workloadChange returns the registration in a change, or nil if the change is of another kind.
func workloadChange(c *approval.Change) *openapi.WorkloadChange {
	w, ok := c.Workload()
	if !ok {
		return nil
	}
	out := &openapi.WorkloadChange{Id: w.ID, Description: core.Optional(w.Description), Before: []string{}, After: w.Addresses}
	var before v1alpha1.ExternalWorkloadSpec
	if len(c.Before) > 0 && json.Unmarshal(c.Before, &before) == nil {
		out.Before = append(out.Before, before.Addresses...)
	}
	return out
}

// publishedPackage returns the version of an access package that a change publishes, or nil if the change is of another kind.
func publishedPackage(c *approval.Change) *openapi.PackageRef {
	if c.Kind != approval.ObjectAccessPackage {
		return nil
	}
	out := &openapi.PackageRef{Name: c.Name, Version: 1}
	if base, err := strconv.Atoi(c.Base); err == nil {
		out.Version = base + 1
	}
	if spec, err := accesspackage.ParseSpec(c.After); err == nil {
		out.Title = core.Optional(spec.Title)
		if n := len(spec.Holders); n > 0 {
			out.Holders = &n
		}
	}
	return out
}

// nodes returns on how many nodes the revision is enforced that the members of an item must have; nil if it is not known, or if the item
// is not in progress.
func (a *API) nodes(who approval.Actor, t *approval.Ticket, i int) *openapi.NodeSummary {
	it := t.Items[i]
	switch {
	case !it.State.InProgress() || it.ResourceName == "":
		return nil
	case t.Kind.Access():
		p, ok := a.Host.Cached(policyOf(it))
		if !ok {
			return nil
		}
		u, ok := approval.Unit(p, it.ResourceName)
		if !ok {
			return nil
		}
		return a.NodesOfUnit(who, &u)
	case it.Change != nil:
		return views.NodesOfResource(who, a.Host.Protection(it.ResourceName))
	}
	return nil
}

// liveState sets the current states of the members, which may be worse than when the item became effective.
func (a *API) liveState(t *approval.Ticket, it approval.Item, out *openapi.TicketItem) {
	var clusters []v1alpha1.ClusterState
	var counts v1alpha1.MemberCounts
	switch {
	case t.Kind.Access():
		p, ok := a.Host.Cached(*out.Policy)
		if !ok {
			return
		}
		if it.Scope != nil {
			clusters, counts = a.statesOfScope(p, it)
			break
		}
		u, ok := approval.Unit(p, it.ResourceName)
		if !ok {
			return
		}
		clusters, counts = a.MemberStates(&u), u.Counts()
	case it.ResourceName != "" && it.Change != nil:
		p := a.Host.Protection(it.ResourceName)
		if p == nil {
			return
		}
		clusters, counts = p.Status.States(), p.Status.Counts()
	default:
		return
	}
	out.Clusters, out.Members = views.ClusterStates(clusters), views.MemberCounts(counts, len(clusters))
	waiting := []string{}
	for _, c := range clusters {
		if c.State != v1alpha1.MemberRealized && (c.DesiredRevision != "" || it.State == approval.StateRevoking) {
			waiting = append(waiting, string(c.Name))
		}
	}
	out.WaitingFor = &waiting
}

// statesOfScope returns the worst state of each member over all units that contain the statement of an item.
func (a *API) statesOfScope(p *v1alpha1.AccessControlPolicy, it approval.Item) (clusters []v1alpha1.ClusterState, counts v1alpha1.MemberCounts) {
	for _, u := range p.Status.Units {
		if !slices.Contains(u.SIDs, it.SID) {
			continue
		}
		for _, c := range a.MemberStates(&u) {
			i := slices.IndexFunc(clusters, func(x v1alpha1.ClusterState) bool { return x.Name == c.Name })
			if i < 0 {
				clusters = append(clusters, c)
			} else if clusters[i].State == v1alpha1.MemberRealized {
				clusters[i] = c
			}
		}
	}
	return clusters, v1alpha1.CountMembers(clusters)
}

// undecided returns the steps of an item. Open steps list the people who can still decide them; one person fills one step.
func undecided(it approval.Item) []approval.Step {
	steps := slices.Clone(it.Steps)
	for i := range steps {
		if s := &it.Steps[i]; s.State == approval.StepCurrent || s.State == approval.StepWaiting {
			steps[i].Approvers = it.RemainingApprovers(s)
		}
	}
	return steps
}

func itemMay(c *catalog.Catalog, who approval.Actor, t *approval.Ticket, i int) openapi.ItemMay {
	m, it := approval.MayDoItem(c, who, t, i), t.Items[i]
	app, ok := c.ByName(it.ApplicationName)
	return openapi.ItemMay{Approve: m.Approve, Reject: m.Reject, Withdraw: m.Withdraw, Revoke: m.Revoke, Review: m.Review,
		Extend: !who.Auditor && t.Kind.Access() && it.State == approval.StateEffective && it.Duration > 0 &&
			(ok && c.Owns(who.ID, app) || it.Scope != nil && (who.Security || t.Requester == who.ID))}
}

func eitherMay(a, b openapi.ItemMay) openapi.ItemMay {
	return openapi.ItemMay{Approve: a.Approve || b.Approve, Reject: a.Reject || b.Reject, Withdraw: a.Withdraw || b.Withdraw, Revoke: a.Revoke || b.Revoke,
		Review: a.Review || b.Review, Extend: a.Extend || b.Extend}
}

func modeOf(m v1alpha1.Mode) *openapi.Mode {
	if m == "" {
		return nil
	}
	return new(openapi.Mode(m))
}

// refOf returns a reference with the approved name, even if the catalog has assigned the id to another entity since.
func refOf(c *catalog.Catalog, id, name string) openapi.CatalogRef {
	ref := views.Ref(c, name)
	if ref.Id == nil && id != "" {
		ref.Title = id
	}
	return ref
}

// mostPeople bounds the people that a step names.
const mostPeople = 100

func stepsOf(c *catalog.Catalog, who approval.Actor, it approval.Item, steps []approval.Step) []openapi.Step {
	out := make([]openapi.Step, 0, len(steps))
	for _, s := range steps {
		out = append(out, stepOf(c, who, it, s))
	}
	return out
}

// stepOf returns the view of a step of an item for a person who reads it.
func stepOf(c *catalog.Catalog, who approval.Actor, it approval.Item, s approval.Step) openapi.Step {
	out := openapi.Step{
		Name:           s.Name,
		State:          openapi.StepState(s.State),
		Approvers:      people(c, who.ID, s.Approvers),
		ApproversTotal: new(len(s.Approvers)),
		From:           expressions(s.From),
		Quorum:         max(1, s.Quorum),
		Votes:          []openapi.Vote{},
		Note:           core.OptionalMessage(s.Note),
		Deadline:       views.Time(s.Deadline),
	}
	for _, v := range s.Votes {
		x := openapi.Vote{Person: views.Person(c, v.Person), Approve: v.Approve, At: v.At.UTC(), Comment: core.Optional(v.Comment)}
		x.Through = core.Optional(v.Through)
		if v.OnBehalfOf != "" {
			x.OnBehalfOf = new(views.Person(c, v.OnBehalfOf))
		}
		out.Votes = append(out.Votes, x)
	}
	if s.Auto {
		out.Auto = new(true)
	}
	if s.Escalated {
		out.Escalated = new(true)
	}
	if s.OnTimeout != "" {
		out.OnTimeout = new(openapi.StepOnTimeout(s.OnTimeout))
	}
	if s.Auto || s.State != approval.StepWaiting && s.State != approval.StepCurrent {
		return out
	}
	if s.Timeout > 0 {
		out.TimeoutSeconds = new(int64(s.Timeout.Seconds()))
	}
	if s.Remind > 0 {
		out.RemindSeconds = new(int64(s.Remind.Seconds()))
	}
	if s.OnTimeout == v1alpha1.TimeoutEscalate {
		out.EscalateTo, out.EscalateTotal = new(people(c, who.ID, s.EscalateTo)), new(len(s.EscalateTo))
	}
	if !s.OnCall.IsZero() {
		l := it.Eligible(&s, who.OnCall)
		out.OnCall = &openapi.StepOnCall{Schedule: s.OnCall.Schedule, Tier: s.OnCall.Tier, People: people(c, who.ID, l.People), Fallback: l.Fallback,
			Message: core.OptionalMessage(l.Reason), ReadAt: views.Time(l.Duty.At), DeniedAt: views.Time(s.DeniedAt())}
	}
	return out
}

// expressions returns the view of approver expressions, nil if there are none.
func expressions(from []v1alpha1.Approver) *[]string {
	if len(from) == 0 {
		return nil
	}
	out := make([]string, len(from))
	for i, a := range from {
		out[i] = string(a)
	}
	return &out
}

// people returns the views of people; of too many the first ones, with the reader if they are among them.
func people(c *catalog.Catalog, reader string, ids []string) []openapi.Person {
	shown := ids[:min(len(ids), mostPeople)]
	if len(shown) < len(ids) && !slices.Contains(shown, reader) && slices.Contains(ids, reader) {
		shown = append(shown[:mostPeople-1:mostPeople-1], reader)
	}
	out := make([]openapi.Person, 0, len(shown))
	for _, id := range shown {
		out = append(out, views.Person(c, id))
	}
	return out
}

// eventsOf returns the timeline of a ticket. sees reports whether the lines of an item may name clients.
func eventsOf(c *catalog.Catalog, t *approval.Ticket, sees func(item int) bool) []openapi.Event {
	out := make([]openapi.Event, 0, len(t.Events))
	for _, e := range t.Events {
		if e.Kind == approval.EventPropagated {
			continue
		}
		x := openapi.Event{
			At:       e.At.UTC(),
			Kind:     eventKind(t, e),
			Step:     core.Optional(e.Step),
			Cluster:  core.Optional(e.Cluster),
			Revision: core.Optional(e.Revision),
			Through:  core.Optional(e.Through),
			Message:  core.OptionalMessage(e.Message),
		}
		if e.Item != approval.WholeTicket {
			x.Item = new(e.Item)
		}
		if lines := approval.EventLines(e.Kind, e.Comment); lines == nil {
			x.Comment = core.Optional(e.Comment)
		} else {
			if e.Item == approval.WholeTicket || !sees(e.Item) {
				lines = approval.WithoutClients(lines)
			}
			if len(lines) > 0 {
				x.Lines = new(approval.LineMessages(lines))
			}
		}
		if e.Actor != "" {
			x.Actor = new(views.Person(c, e.Actor))
		}
		if e.OnBehalfOf != "" {
			x.OnBehalfOf = new(views.Person(c, e.OnBehalfOf))
		}
		out = append(out, x)
	}
	return out
}

// eventKind returns the kind of an entry in the API.
func eventKind(t *approval.Ticket, e approval.Event) openapi.EventKind {
	switch e.Kind {
	case approval.EventReduced:
		return openapi.EventKindShrunk
	case approval.EventReviewed:
		if e.Item >= 0 && e.Item < len(t.Items) && t.Items[e.Item].Review != nil && t.Items[e.Item].Review.State == approval.StepRejected {
			return openapi.EventKindReviewRejected
		}
		return openapi.EventKindReviewConfirmed
	}
	return openapi.EventKind(e.Kind)
}

// objectYAML returns the statement that is or will be in the policy. For a change, it returns the spec of the object after it.
func objectYAML(kind approval.Kind, it approval.Item) *string {
	switch {
	case kind.Access():
		return views.YAML([]v1alpha1.Statement{approval.Statement(it)})
	case it.Change != nil && len(it.Change.After) > 0:
		return views.YAML(it.Change.After)
	}
	return nil
}
