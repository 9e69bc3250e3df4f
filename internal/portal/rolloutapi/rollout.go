package rolloutapi

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

const (
	listRollout = "rollout"
	// maxAssessed is the maximum number of resources in Audit whose flows are read for their stage. The stage of further ones is
	// determined without flows.
	maxAssessed = 1000
	// boardTimeout is how long a board waits for flows.
	boardTimeout = 10 * time.Second
)

// ListRollout implements openapi.StrictServerInterface.
func (a *API) ListRollout(ctx context.Context, r openapi.ListRolloutRequestObject) (openapi.ListRolloutResponseObject, error) {
	c, who := a.Catalog(), core.Caller(ctx)
	if _, err := a.Snapshot(); err != nil {
		return nil, err
	}
	part := strings.ToLower(core.Value(r.Params.Q))
	var own []catalog.Entity
	for _, e := range c.Resources() {
		if views.MayInspect(c, who, e) && a.ClassOf(e.Name) != "" && a.ResourceMatches(e, r.Params.Class, r.Params.Owner) &&
			strings.Contains(strings.ToLower(e.ID+"\n"+e.Title+"\n"+e.Name), part) {
			own = append(own, e)
		}
	}
	sort, err := core.ParseSort(r.Params.Sort, "id", "-stage")
	if err != nil {
		return nil, err
	}
	wanted := map[rollout.Stage]bool{}
	for _, s := range core.Value(r.Params.Stage) {
		if !s.Valid() {
			return nil, core.InvalidParameter("stage", message.FieldOneOf([]string{"observe", "initial", "refine", "announced", "enforce"}))
		}
		wanted[rollout.Stage(s)] = true
	}
	b, err := a.board(ctx, own)
	if err != nil {
		return nil, err
	}
	out := openapi.ListRollout200JSONResponse{Items: []openapi.RolloutCard{}, Stages: map[string]int{}, Threshold: &a.Insight.Threshold,
		WindowSeconds: new(int64(a.EvidenceWindow.Seconds()))}
	for _, s := range rollout.Stages() {
		out.Stages[string(s)] = 0
	}
	var all []catalog.Entity
	stageOf := func(e catalog.Entity) rollout.Stage { return rollout.StageOf(b.inputs[e.Name]) }
	for _, e := range own {
		stage := stageOf(e)
		out.Stages[string(stage)]++
		if len(wanted) == 0 || wanted[stage] {
			all = append(all, e)
		}
	}
	rows := core.Rows[catalog.Entity]{All: all, ID: func(e catalog.Entity) string { return e.ID }}
	rows.Keys = map[string]func(catalog.Entity) string{
		"stage": func(e catalog.Entity) string { return strconv.Itoa(slices.Index(rollout.Stages(), stageOf(e))) },
	}
	shown, next, err := core.SortedPage(listRollout, sort, rows, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	if err := a.assess(ctx, &b, shown); err != nil {
		return nil, err
	}
	open, err := a.openRequests(ctx, shown)
	if err != nil {
		return nil, err
	}
	for _, e := range shown {
		out.Items = append(out.Items, a.card(c, who, e, b.inputs[e.Name], open[e.ID]))
	}
	out.NextCursor, out.FlowsAvailable = next, b.flows
	return out, nil
}

// board contains the data from which the stages of resources are derived.
type board struct {
	inputs map[string]rollout.Input
	flows  bool // they can be read
}

// board returns the data for the stages of resources. Flows are read only for resources in Audit; the stages of others do not
// depend on them.
func (a *API) board(ctx context.Context, resources []catalog.Entity) (board, error) {
	b := board{inputs: map[string]rollout.Input{}, flows: true}
	states, err := a.Rollout.Store.States(core.RequestContext(ctx), views.Names(resources)...)
	if err != nil {
		return b, err
	}
	if len(resources) == 0 { // no names would mean all
		states = nil
	}
	now := a.Now()
	var undecided []catalog.Entity
	for _, e := range resources {
		in := rollout.Input{Protection: a.Host.Protection(e.Name), State: states[e.Name], Now: now}
		b.inputs[e.Name] = in
		if rollout.StageOf(in) == rollout.StageInitial && len(undecided) < maxAssessed {
			undecided = append(undecided, e)
		}
	}
	err = a.assess(ctx, &b, undecided)
	return b, err
}

// assess adds the evidence from flows. If flows cannot be read, the result says so, which is not an error.
func (a *API) assess(ctx context.Context, b *board, resources []catalog.Entity) error {
	if len(resources) == 0 || !b.flows {
		return nil
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), boardTimeout)
	defer cancel()
	found, err := a.Insight.Assess(limited, views.Names(resources)...)
	for name, x := range found {
		in := b.inputs[name]
		in.Assessment = &x
		b.inputs[name] = in
	}
	if err != nil {
		if ctx := core.RequestContext(ctx); ctx.Err() != nil {
			return ctx.Err()
		}
		a.Log.Debug("resources could not be assessed", "error", err)
		b.flows = false
	}
	return nil
}

// openRequests returns the open tickets about the modes of resources, by catalog id. For a single resource it includes those that
// keep clients; for many, all waiting grants would have to be read.
func (a *API) openRequests(ctx context.Context, resources []catalog.Entity) (map[string]*approval.Ticket, error) {
	out := map[string]*approval.Ticket{}
	if len(resources) == 0 {
		return out, nil
	}
	f := approval.Filter{Kinds: []approval.Kind{approval.KindMode, approval.KindOnboard, approval.KindOffboard},
		ItemStates: []approval.State{approval.StatePending, approval.StateApproved, approval.StateApplying}}
	if len(resources) == 1 {
		f.Resource, f.Kinds = resources[0].ID, append(f.Kinds, approval.KindGrant)
	}
	list, err := a.Tickets.Store.List(core.RequestContext(ctx), f)
	for _, t := range list {
		for _, it := range t.Items {
			if out[it.Resource] == nil && (t.Kind != approval.KindGrant || it.Adopt) {
				out[it.Resource] = t
			}
		}
	}
	return out, err
}

// GetRollout implements openapi.StrictServerInterface.
func (a *API) GetRollout(ctx context.Context, r openapi.GetRolloutRequestObject) (openapi.GetRolloutResponseObject, error) {
	e, err := a.InspectableResource(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	if _, err := a.Snapshot(); err != nil {
		return nil, err
	}
	these := []catalog.Entity{e}
	b, err := a.board(ctx, these)
	if err != nil {
		return nil, err
	}
	if err := a.assess(ctx, &b, these); err != nil {
		return nil, err
	}
	open, err := a.openRequests(ctx, these)
	if err != nil {
		return nil, err
	}
	out := a.card(a.Catalog(), core.Caller(ctx), e, b.inputs[e.Name], open[e.ID])
	if b.flows {
		if score, at, err := a.Insight.Evidence(core.RequestContext(ctx), e.Name); err == nil {
			out.Evidence = new(a.Score(score, at))
		}
	}
	return openapi.GetRollout200JSONResponse(out), nil
}

// card returns a card of the board.
func (a *API) card(c *catalog.Catalog, who approval.Actor, e catalog.Entity, in rollout.Input, under *approval.Ticket) openapi.RolloutCard {
	may := rollout.MayChange(c, who, e)
	hint := rollout.HintOf(in)
	out := openapi.RolloutCard{
		Resource:    views.Ref(c, e.Name),
		Class:       core.Optional(a.ClassOf(e.Name)),
		Owners:      views.Owners(c, e),
		Sensitivity: openapi.Sensitivity(e.Sensitivity),
		Environment: core.Optional(
			e.Environment,
		),
		Stage:     openapi.RolloutStage(rollout.StageOf(in)),
		Missing:   rollout.Missing(in),
		Mode:      openapi.ModeObserve,
		Clusters:  []openapi.ClusterState{},
		Onboarded: new(in.Protection != nil),
		Guard:     guardOf(in.State),
		Threshold: &a.Insight.Threshold,
		Hint:      &openapi.RolloutHint{Code: openapi.RolloutHintCode(hint.Code), Message: hint.Message},
	}
	if hint.Next != "" {
		out.Hint.Next = new(openapi.RolloutStage(hint.Next))
	}
	if p := views.Protection(in.Protection); p != nil {
		out.Mode, out.EffectiveMode, out.Clusters, out.Members = p.Mode, &p.EffectiveMode, p.Clusters, p.Members
		out.TemporaryAudit = a.TemporaryAudit(c, in.Protection)
	}
	out.Waves = a.waves(c, who, e, in.Protection)
	if x := in.Assessment; x != nil {
		out.Score, out.Enough, out.Clients, out.Newcomers, out.Unattributed = &x.Value, &x.Enough, len(x.Clients), len(x.Newcomers), &x.Unattributed
	}
	if n := in.State.Announcement; n != nil {
		out.Announcement = &openapi.Announcement{At: n.At.UTC(), By: views.Person(c, n.By), Message: n.Message, Recipients: n.Notified}
	}
	if under != nil && approval.MayDo(c, who, under).See {
		out.Ticket = new(under.ID())
	}
	out.Can.Announce, out.Can.Advance, out.Can.Guard = may && in.Protection != nil && !in.State.Unreadable, may, may && !in.State.Unreadable
	out.Can.Toggle, out.Can.Override = may && in.Protection != nil, may && who.Security
	return out
}

// guardOf returns the view of the guard in a state. One that is not known does not count as enabled.
func guardOf(state rollout.State) openapi.Guard {
	g := state.Guard
	out := openapi.Guard{Enabled: !g.Off && !state.Unreadable, Reopens: g.Reopens, Limit: g.DenialLimit(), WindowSeconds: int64(g.DenialWindow().Seconds())}
	if s := g.Stop; s != nil {
		out.StoppedAt, out.Cluster, out.Count, out.Reason = views.Time(s.At), core.Optional(s.Cluster), &s.Count, core.OptionalMessage(s.Reason.Message)
	}
	return out
}

// PutRolloutGuard implements openapi.StrictServerInterface.
func (a *API) PutRolloutGuard(ctx context.Context, r openapi.PutRolloutGuardRequestObject) (openapi.PutRolloutGuardResponseObject, error) {
	e, err := views.EntityOrNotFound(a.Catalog().Resource(r.Id))
	if err != nil {
		return nil, err
	}
	want := rollout.Set{Enabled: r.Body.Enabled, Reopens: r.Body.Reopens, Limit: r.Body.Limit, Arm: core.Value(r.Body.Arm), Reason: r.Body.Reason}
	if s := r.Body.WindowSeconds; s != nil {
		if *s < 0 || *s > int64(rollout.MaxGuardWindow/time.Second) { // before the conversion to a duration, which could overflow
			return nil, core.InvalidField("windowSeconds", message.FieldRange(60, 86400))
		}
		want.Window = new(time.Duration(*s) * time.Second)
	}
	g, err := a.Rollout.SetGuard(core.RequestContext(ctx), core.Caller(ctx), e, want)
	return openapi.PutRolloutGuard200JSONResponse(guardOf(rollout.State{Guard: g})), err
}

// resourcesNamed returns the resources of a bulk request, each once.
func resourcesNamed(ids []string, most int) ([]string, error) {
	if len(ids) < 1 || len(ids) > most {
		return nil, core.InvalidField("resources", message.FieldSomeResources(most))
	}
	for i, id := range ids {
		if len(id) > 128 || slices.Contains(ids[:i], id) {
			return nil, core.InvalidField("resources", message.FieldEachResourceOnce())
		}
	}
	return ids, nil
}
