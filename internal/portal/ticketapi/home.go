package ticketapi

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// Maximum numbers of entries of each list on the home page.
const (
	homeWaiting  = 10
	homeUnderWay = 20
	homeExpiring = 20
	homeDenied   = 20
	// homeReviewsDue is the maximum number of resources whose review is due.
	homeReviewsDue = 20
	// homeEdges is the maximum number of edges that are read for one application. Several of them may be one row.
	homeEdges   = 200
	expiresSoon = 14 * 24 * time.Hour
	// homeTimeout is how long the page waits for everything that comes from the flow store.
	homeTimeout = 3 * time.Second
	// homeApplications is the maximum number of applications whose connections are read: those with the most denials.
	homeApplications = 5
)

// GetHome implements openapi.StrictServerInterface. The number of its queries does not depend on the person. What comes from the flow store is
// read at the same time as the rest, and left out as not known if it is not ready within homeTimeout.
func (a *API) GetHome(ctx context.Context, _ openapi.GetHomeRequestObject) (openapi.GetHomeResponseObject, error) {
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	owned, _ := c.Owned(who.ID)
	out := openapi.GetHome200JSONResponse{
		Waiting:  []openapi.Ticket{},
		Reviews:  []openapi.Ticket{},
		UnderWay: []openapi.Ticket{},
		Expiring: []openapi.Ticket{},
		Denied:   []openapi.DeniedConnection{},
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), homeTimeout)
	defer cancel()
	denied := inBackground(a.Log, func() denials { return a.deniedLately(limited, c, owned) })
	var disagreeing *section[disagreements]
	if who.Security || who.Auditor {
		disagreeing = inBackground(a.Log, func() disagreements { return a.disagreements(limited) })
	}
	ending, err := a.addTickets(ctx, &out, c, who, owned)
	if err != nil {
		return nil, err
	}
	uses := inBackground(a.Log, func() *[]openapi.ItemUse { return a.expiringUses(limited, ending, *out.ExpiringUntil) })
	if out.Stopped, err = a.stopped(ctx, c, who); err != nil {
		return nil, err
	}
	if out.ProposalReviewsDue, err = a.reviewsDue(ctx, c, who); err != nil {
		return nil, err
	}
	denied.wait(limited, denials{}).addTo(&out)
	if err := a.addRequested(ctx, &out, ending); err != nil {
		return nil, err
	}
	out.ExpiringUses = uses.wait(limited, nil)
	if disagreeing != nil {
		found := disagreeing.wait(limited, disagreements{})
		out.Disagreements, out.DisagreementsPartial = found.count, found.partial
	}
	return out, nil
}

// section is a part of the page that is read while others are. Its channel is closed without a value if reading it failed unexpectedly.
type section[T any] struct{ ready chan T }

// inBackground reads a section. A panic is logged, and the section is then not known: the server recovers only from those of the request's own
// goroutine.
func inBackground[T any](log *slog.Logger, read func() T) *section[T] {
	s := &section[T]{ready: make(chan T, 1)} // a section for which nobody waits any more ends, too
	go func() {
		defer close(s.ready)
		defer func() {
			if r := recover(); r != nil {
				log.Error("a section of the home page could not be read", "panic", r, "stack", string(debug.Stack()))
			}
		}()
		s.ready <- read()
	}()
	return s
}

// wait returns the section, or unknown if it is not ready when the context ends.
func (s *section[T]) wait(ctx context.Context, unknown T) T {
	received := func(x T, ok bool) T {
		if !ok {
			return unknown
		}
		return x
	}
	select {
	case x, ok := <-s.ready:
		return received(x, ok)
	case <-ctx.Done():
	}
	select {
	case x, ok := <-s.ready: // select chooses at random if both are ready
		return received(x, ok)
	default:
		return unknown
	}
}

// addTickets adds the lists of tickets with their counts. It returns the tickets with accesses that end soon.
func (a *API) addTickets(
	ctx context.Context,
	out *openapi.GetHome200JSONResponse,
	c *catalog.Catalog,
	who approval.Actor,
	owned []catalog.Entity,
) (ending []*approval.Ticket, err error) {
	waits, reviews := waiting(who), reviewing(who)
	waits.Limit, waits.Oldest, reviews.Limit, reviews.Oldest = homeWaiting, true, homeWaiting, true
	underWay := approval.Filter{
		Requester: who.ID, Limit: homeUnderWay,
		ItemStates: []approval.State{
			approval.StatePending, approval.StateApproved, approval.StateApplying, approval.StateFailed, approval.StateRevoking,
		},
	}
	// Without an application the filter would select everybody's access; see skip below.
	expiring := approval.Filter{
		Applications: views.Names(owned), Kinds: []approval.Kind{approval.KindGrant, approval.KindExtend}, ItemStates: granting,
		ExpiresBy: a.Now().Add(expiresSoon).UTC(), ByEnd: true, Limit: homeExpiring,
	}
	out.ExpiringUntil = &expiring.ExpiresBy
	// A list that is shorter than its limit needs no count.
	var counted []approval.Filter
	var counts []**int
	for _, part := range []struct {
		filter approval.Filter
		into   *[]openapi.Ticket
		count  **int
		skip   bool
	}{
		{waits, &out.Waiting, &out.WaitingCount, who.Auditor},
		{reviews, &out.Reviews, &out.ReviewsCount, who.Auditor},
		{underWay, &out.UnderWay, &out.UnderWayCount, false},
		{expiring, &out.Expiring, &out.ExpiringCount, len(owned) == 0},
	} {
		if part.skip {
			continue
		}
		part.filter.OmitEvents = true
		list, err := a.Tickets.Store.List(core.RequestContext(ctx), part.filter)
		if err != nil {
			return nil, err
		}
		if len(list) < part.filter.Limit {
			*part.count = new(len(list))
		} else {
			counted, counts = append(counted, part.filter), append(counts, part.count)
		}
		if part.into == &out.Expiring {
			ending = list
		}
		for _, t := range list {
			*part.into = append(*part.into, a.ticketRow(c, who, t))
		}
	}
	if len(counted) > 0 {
		numbers, err := a.Tickets.Store.Count(core.RequestContext(ctx), counted...)
		if err != nil {
			return nil, err
		}
		for i := range numbers {
			*counts[i] = &numbers[i]
		}
	}
	return ending, nil
}

// reviewsDue returns the caller's resources whose observed clients should have been reviewed again; nil if there are none.
func (a *API) reviewsDue(ctx context.Context, c *catalog.Catalog, who approval.Actor) (*[]openapi.ReviewDue, error) {
	_, resources := c.Owned(who.ID)
	if len(resources) == 0 {
		return nil, nil //nolint:nilnil // the field is absent
	}
	reviews, err := a.Rollout.Store.ProposalReviews(core.RequestContext(ctx), views.Names(resources)...)
	if err != nil {
		return nil, err
	}
	var out []openapi.ReviewDue
	for name, r := range reviews {
		if r.Due(a.Now()) {
			out = append(out, openapi.ReviewDue{Resource: views.Ref(c, name), NextReview: r.NextReview})
		}
	}
	if len(out) == 0 {
		return nil, nil //nolint:nilnil // the field is absent
	}
	slices.SortFunc(out, func(x, y openapi.ReviewDue) int {
		return cmp.Or(x.NextReview.Compare(y.NextReview), cmp.Compare(x.Resource.Title, y.Resource.Title))
	})
	return new(out[:min(len(out), homeReviewsDue)]), nil
}

// addRequested adds which refused connections, and which of the accesses that end, are requested already. The caller's own requests do not
// tell: the page has only some of them, and other owners request access, too.
func (a *API) addRequested(ctx context.Context, out *openapi.GetHome200JSONResponse, ending []*approval.Ticket) error {
	var claims []approval.Claim
	ofDenied := func(x openapi.DeniedConnection) approval.Claim {
		return approval.Claim{Application: core.Value(x.Application.Id), Resource: core.Value(x.Resource.Id), Action: core.Value(x.Action)}
	}
	for _, x := range out.Denied {
		claims = append(claims, ofDenied(x))
	}
	for _, t := range ending {
		for _, it := range t.Items {
			for _, action := range it.Actions {
				claims = append(claims, approval.Claim{Application: it.Application, Resource: it.Resource, Action: action})
			}
		}
	}
	if len(claims) == 0 {
		return nil
	}
	holders, err := a.Tickets.Store.Claimants(core.RequestContext(ctx), claims)
	if err != nil {
		return err
	}
	for i, x := range out.Denied {
		if n := holders[ofDenied(x)]; n != 0 {
			out.Denied[i].Ticket = new(approval.FormatID(n))
		}
	}
	var requested []openapi.RequestedAccess
	for _, t := range ending {
		for i := range t.Items {
			if n := otherHolder(holders, t, i); n != 0 {
				requested = append(requested, openapi.RequestedAccess{Ticket: approval.FormatID(t.Number), Item: i, RequestedIn: approval.FormatID(n)})
			}
		}
	}
	if len(requested) > 0 {
		out.ExpiringRequested = &requested
	}
	return nil
}

// otherHolder returns the ticket that holds a claim to an item's access, or 0. An access that is about to be given holds its own.
func otherHolder(holders map[approval.Claim]int64, t *approval.Ticket, i int) int64 {
	it := t.Items[i]
	for _, action := range it.Actions {
		if n := holders[approval.Claim{Application: it.Application, Resource: it.Resource, Action: action}]; n != 0 && n != t.Number {
			return n
		}
	}
	return 0
}

// disagreements is the number of edges with disagreements in the last day.
type disagreements struct {
	count *int // nil if it is not known
	// partial is true if there are more: counting all of them would take as long as reading them.
	partial *bool
}

// disagreements counts the edges with disagreements.
func (a *API) disagreements(ctx context.Context) disagreements {
	now := a.Now()
	page, err := a.Flows.Connections(
		ctx,
		audit.ConnectionQuery{Filter: audit.Filter{Since: now.Add(-views.DeniedWindow), Until: now, Disagree: true}, Limit: audit.MaxPage},
	)
	if err != nil {
		a.Log.Debug("disagreements could not be read", "error", err)
		return disagreements{}
	}
	out := disagreements{count: new(len(page.Items))}
	if page.Next != "" {
		out.partial = new(true)
	}
	return out
}

// stopped returns the resources of a person whose rollout the guard has stopped.
func (a *API) stopped(ctx context.Context, c *catalog.Catalog, who approval.Actor) (*[]openapi.CatalogRef, error) {
	states, err := a.Rollout.Store.States(core.RequestContext(ctx))
	if err != nil {
		return nil, err
	}
	var out []openapi.CatalogRef
	for _, name := range slices.Sorted(maps.Keys(states)) {
		if e, ok := c.ByName(name); ok && states[name].Guard.Stop != nil && views.MayInspect(c, who, e) {
			out = append(out, views.Ref(c, name))
		}
	}
	if out == nil {
		return nil, nil
	}
	return &out, nil
}

// denials are refused connections of the last day.
type denials struct {
	rows []openapi.DeniedConnection // newest first, at most homeDenied
	// count is the number of all rows of the applications whose connections were read. With partial there are more.
	count   int
	partial bool
	read    []string // the names of these applications, those with the most refusals first
	leftOut int      // applications with refused connections that are not among rows
	known   bool     // false if the flow store cannot be read
}

// addTo adds the refused connections to the page.
func (d denials) addTo(out *openapi.GetHome200JSONResponse) {
	out.FlowsAvailable = d.known
	if !d.known {
		return
	}
	out.Denied, out.DeniedCount, out.DeniedApplications = d.rows, &d.count, &d.read
	if d.partial {
		out.DeniedCountPartial = new(true)
	}
	if d.leftOut > 0 {
		out.DeniedLeftOut = &d.leftOut
	}
}

// deniedLately returns the refused connections of these applications.
func (a *API) deniedLately(ctx context.Context, c *catalog.Catalog, owned []catalog.Entity) denials {
	out, read, unknown := []openapi.DeniedConnection{}, []string{}, denials{}
	counts := a.Denials(ctx, audit.DeniedQuery{By: audit.BySubject})
	if counts == nil {
		return unknown
	}
	partial := false
	owned = slices.DeleteFunc(slices.Clone(owned), func(e catalog.Entity) bool { return counts[e.Name] == 0 })
	slices.SortFunc(owned, func(x, y catalog.Entity) int {
		return cmp.Or(cmp.Compare(counts[y.Name], counts[x.Name]), cmp.Compare(x.ID, y.ID))
	})
	for _, e := range owned[:min(len(owned), homeApplications)] {
		found, err := a.Flows.Connections(ctx, audit.ConnectionQuery{
			Filter: audit.Filter{
				Subjects:  []string{e.Name},
				Decisions: []policy.Verdict{policy.Denied, policy.DefaultDenied},
				Since:     a.Now().Add(-views.DeniedWindow),
			},
			Limit: homeEdges,
		})
		if err != nil {
			a.Log.Debug("connections could not be read", "error", err)
			return unknown
		}
		partial, read = partial || found.Next != "", append(read, e.Name)
		for _, f := range found.Items {
			if f.Count > 0 {
				out = joined(out, deniedOf(c, f))
			}
		}
	}
	slices.SortStableFunc(out, func(x, y openapi.DeniedConnection) int { return y.LastSeen.Compare(x.LastSeen) })
	count := len(out)
	out = out[:min(len(out), homeDenied)]
	shown := map[string]bool{}
	for _, x := range out {
		shown[x.Application.Name] = true
	}
	return denials{rows: out, count: count, partial: partial, read: read, leftOut: len(owned) - len(shown), known: true}
}

// joined adds a refusal to those with the same application, resource, port and decision. Members and statements are not
// distinguished, because they do not matter for a request.
func joined(list []openapi.DeniedConnection, x openapi.DeniedConnection) []openapi.DeniedConnection {
	i := slices.IndexFunc(list, func(y openapi.DeniedConnection) bool {
		return y.Application.Name == x.Application.Name && y.Resource.Name == x.Resource.Name && *y.Port == *x.Port && *y.Protocol == *x.Protocol &&
			*y.Decision == *x.Decision
	})
	if i < 0 {
		return append(list, x)
	}
	list[i].Count += x.Count
	if x.LastSeen.After(list[i].LastSeen) {
		list[i].LastSeen = x.LastSeen
	}
	return list
}

func deniedOf(c *catalog.Catalog, f audit.Connection) openapi.DeniedConnection {
	x := views.Connection(c, f)
	return openapi.DeniedConnection{
		Application: x.Subject,
		Resource:    x.Resource,
		Action:      x.Action,
		Port:        &x.Port,
		Protocol:    &x.Protocol,
		Decision:    &x.Decision,
		Count:       x.Count,
		LastSeen:    x.LastSeen,
	}
}
