package ticketapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/change"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	// impactLines is the maximum number of lines of each list.
	impactLines = 200
	// maxReplayed is the maximum number of resources that are replayed. A class may have thousands.
	maxReplayed = 200
)

// PreviewImpact implements openapi.StrictServerInterface.
func (a *API) PreviewImpact(ctx context.Context, r openapi.PreviewImpactRequestObject) (openapi.PreviewImpactResponseObject, error) {
	w, err := a.replayWindow(r.Params.Since, r.Params.Until)
	if err != nil {
		return nil, err
	}
	req, err := a.request(core.Caller(ctx), r.Body)
	if err != nil {
		return nil, err
	}
	plan, err := a.Tickets.Plan(core.RequestContext(ctx), core.Caller(ctx), req)
	if err != nil {
		return nil, err
	}
	var items []approval.Item
	for i, p := range plan.Items {
		// Items that only the evidence or the guard refuses are replayed, because people decide by the result whether to wait.
		switch approval.CodeOf(p.Err) {
		case "", approval.CodeEvidence, approval.CodeGuard:
			x := previewed(p, a.Now())
			x.SID = fmt.Sprintf("t-new-%d", i+1)
			items = append(items, x)
		}
	}
	out, err := a.impact(ctx, plan.Kind, items, decidesNone, w)
	return openapi.PreviewImpact200JSONResponse(out), err
}

// GetTicketImpact implements openapi.StrictServerInterface.
func (a *API) GetTicketImpact(ctx context.Context, r openapi.GetTicketImpactRequestObject) (openapi.GetTicketImpactResponseObject, error) {
	n, ok := approval.ParseID(r.Id)
	if !ok {
		return nil, approval.NotFound()
	}
	w, err := a.replayWindow(r.Params.Since, r.Params.Until)
	if err != nil {
		return nil, err
	}
	t, err := a.Tickets.Get(core.RequestContext(ctx), core.Caller(ctx), n)
	if err != nil {
		return nil, err
	}
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	kind, items := t.Kind, slices.Clone(t.Items)
	if what := core.Value(r.Params.Change); what == openapi.GetTicketImpactParamsChangeRevoke {
		if !kind.Access() {
			return nil, core.NewProblem(409, "conflict", message.ImpactGrantOnly())
		}
		kind = approval.KindRevoke
		for i := range items {
			items[i].Target = &approval.Target{Ticket: t.Number, Item: i}
		}
	} else if what != "" && !what.Valid() {
		return nil, core.InvalidParameter("change", message.FieldOneOf([]string{"ticket", "revoke"}))
	}
	out, err := a.impact(ctx, kind, items, func(i int) bool { return approval.DecidesItem(who, t, i) }, w)
	return openapi.GetTicketImpact200JSONResponse(out), err
}

// impact replays the window with and without the items. The approvers of an item see what concerns its resources until it is decided, because
// the replay is of current flows, which need not concern earlier approvers. Others see only what they own. decides reports whether the caller
// is an approver of an item that waits for its decision.
func (a *API) impact(ctx context.Context, kind approval.Kind, items []approval.Item, decides func(item int) bool, w window) (openapi.Impact, error) {
	out := emptyImpact(w)
	base, err := a.Snapshot()
	if err != nil {
		return out, err
	}
	in, err := a.Input()
	if err != nil {
		return out, err
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	found, err := a.replayed(limited, base, in, kind, items, w)
	if err != nil {
		return out, notReplayed(ctx, err, &out)
	}
	c, who := a.Catalog(), core.Caller(ctx)
	var seen []approval.Item
	for i, it := range items {
		if decides(i) || views.MayInspectName(c, who, it.ResourceName) {
			seen = append(seen, it)
		}
	}
	a.impactOf(who, found, decidedResources(base, in, kind, items, decides), len(seen) == len(items), &out)
	a.closing(limited, seen, &out)
	return out, nil
}

// decidedResources returns a function that reports whether an item that the caller decides concerns a resource.
func decidedResources(
	base *policy.Snapshot, in policy.Input, kind approval.Kind, items []approval.Item, decides func(item int) bool,
) func(resource string) bool {
	names, all := map[string]bool{}, true
	for i, it := range items {
		switch {
		case !decides(i):
			all = false
		case it.ResourceName != "":
			names[it.ResourceName] = true
		}
	}
	if all && len(items) > 0 {
		return func(string) bool { return true }
	}
	for i, it := range items {
		if decides(i) && it.ResourceName == "" { // it names no resource, so that its resources are those that it changes
			_, _, changed := change.Snapshots(base, in, kind, []approval.Item{it})
			for _, name := range changed {
				names[name] = true
			}
		}
	}
	return func(resource string) bool { return names[resource] }
}

// window is the period of the connections that are replayed.
type window struct {
	since, until time.Time
	// chosen reports whether the caller chose it: otherwise it is the evidence window up to now.
	chosen bool
}

// replayWindow returns the period that a caller has chosen, or the evidence window.
func (a *API) replayWindow(since, until *time.Time) (window, error) {
	now := a.Now().UTC()
	if since == nil && until == nil {
		return window{since: now.Add(-a.EvidenceWindow), until: now}, nil
	}
	from, to, err := a.Window(since, until, a.EvidenceWindow)
	return window{from, to, true}, err
}

func emptyImpact(w window) openapi.Impact {
	return openapi.Impact{
		Since:        w.since,
		Until:        w.until,
		NewlyAllowed: []openapi.ImpactLine{},
		NewlyDenied:  []openapi.ImpactLine{},
		Uncertain:    []openapi.ImpactUncertain{},
	}
}

// notReplayed says in an impact why there is no replay. It returns errors that are none of the flow store.
func notReplayed(ctx context.Context, err error, out *openapi.Impact) error {
	switch {
	case errors.Is(err, audit.ErrUnavailable):
		out.Message = new(message.FlowsUnavailable())
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		out.Message = new(message.ImpactReplayTooSlow())
	default:
		return err
	}
	return nil
}

// closing adds the evidence of resources that would be enforced.
func (a *API) closing(ctx context.Context, items []approval.Item, out *openapi.Impact) {
	var list []openapi.ResourceScore
	for _, it := range items {
		if it.ResourceName == "" || !approval.Closes(it.Change) {
			continue
		}
		score, at, err := a.Insight.Evidence(ctx, it.ResourceName)
		if err != nil {
			a.Log.Debug("the evidence could not be computed", "error", err)
			continue
		}
		list = append(list, openapi.ResourceScore{Resource: views.Ref(a.Catalog(), it.ResourceName), Score: a.Score(score, at)})
	}
	if list != nil {
		out.Evidence = &list
	}
}

// replayed replays the window with and without the items, unless an equal replay is in the cache.
func (a *API) replayed(
	ctx context.Context,
	base *policy.Snapshot,
	in policy.Input,
	kind approval.Kind,
	items []approval.Item,
	w window,
) (insight.Impact, error) {
	digest, err := replayDigest(kind, items, w)
	if err != nil {
		return insight.Impact{}, err
	}
	return a.replays.get(base, digest, a.Now(), func() (insight.Impact, error) {
		before, after, resources := change.Snapshots(base, in, kind, items)
		return a.replay(ctx, before, after, resources, w)
	})
}

// replay decides the flows of resources in the window by two snapshots.
func (a *API) replay(ctx context.Context, before, after *policy.Snapshot, resources []string, w window) (insight.Impact, error) {
	cut := len(resources) > maxReplayed
	resources = resources[:min(len(resources), maxReplayed)]
	if len(resources) == 0 { // no names would mean all
		return insight.Impact{Since: w.since, Until: w.until}, nil
	}
	found, err := insight.Replay(
		ctx,
		a.Flows,
		insight.ReplayInput{
			Before:    before,
			After:     after,
			Fleet:     insight.FleetOf(a.Host.Members()),
			Resources: resources,
			Since:     w.since,
			Until:     w.until,
			At:        a.Now().UTC(),
			MaxLines:  impactLines,
		},
	)
	if err != nil {
		return found, err
	}
	found.Truncated = found.Truncated || cut
	return found, nil
}

// impactOf returns the part of a replay that a person may see: the lines of what they own, and those of the resources about which they
// decide. whole reports whether they may see all connections of the resources in question.
func (a *API) impactOf(who approval.Actor, x insight.Impact, decides func(resource string) bool, whole bool, out *openapi.Impact) {
	c := a.Catalog()
	hidden := false
	lines := func(in []insight.ImpactLine) []openapi.ImpactLine {
		list := []openapi.ImpactLine{}
		for _, l := range in {
			if !decides(l.Resource) && !views.MayInspectName(c, who, l.Resource) && !views.OwnsApplication(c, who, l.Subject) {
				hidden = true
				continue
			}
			list = append(list, a.impactLineOf(c, l))
		}
		return list
	}
	total := func(t insight.ImpactTotal) openapi.ImpactTotal {
		return openapi.ImpactTotal{Connections: t.Connections, Clients: t.Clients}
	}
	otherwise := lines(x.ReasonChanged)
	out.Available, out.Since, out.Until, out.Unchanged, out.Truncated = true, x.Since.UTC(), x.Until.UTC(), x.Unchanged, x.Truncated
	out.NewlyAllowed, out.NewlyDenied, out.Otherwise = lines(x.NewlyAllowed), lines(x.NewlyDenied), &otherwise
	out.Allowed, out.Denied, out.OtherwiseTotal = total(x.Allowed), total(x.Denied), new(total(x.ReasonChangedTotal))
	for _, u := range x.Uncertain {
		if u.Resource != "" && !decides(u.Resource) && !views.MayInspectName(c, who, u.Resource) {
			hidden = true
			continue // it names a source
		}
		out.Uncertain = append(out.Uncertain, openapi.ImpactUncertain{Cluster: u.Cluster, From: u.From.UTC(), To: u.To.UTC(), Reason: u.Reason})
	}
	if hidden || !whole { // numbers of others' connections are theirs, too
		out.Allowed, out.Denied, out.OtherwiseTotal, out.Unchanged = totalOf(out.NewlyAllowed), totalOf(out.NewlyDenied), new(totalOf(otherwise)), 0
	}
	if hidden {
		out.Message = new(message.ImpactPartsHidden())
	}
}

func totalOf(lines []openapi.ImpactLine) openapi.ImpactTotal {
	var t openapi.ImpactTotal
	clients := map[string]bool{}
	for _, l := range lines {
		t.Connections += l.Count
		clients[l.Subject.Name] = true
	}
	t.Clients = len(clients)
	return t
}

func (a *API) impactLineOf(c *catalog.Catalog, l insight.ImpactLine) openapi.ImpactLine {
	x := views.Connection(
		c,
		audit.Connection{
			Edge: audit.Edge{
				Cluster:     l.Cluster,
				Subject:     l.Subject,
				Source:      l.Source,
				Resource:    l.Resource,
				Destination: l.Destination,
				Action:      l.Action,
				Port:        l.Port,
				Protocol:    l.Protocol,
			},
		},
	)
	out := openapi.ImpactLine{
		Cluster:   core.Optional(l.Cluster),
		Subject:   x.Subject,
		Resource:  x.Resource,
		Action:    x.Action,
		Port:      x.Port,
		Protocol:  x.Protocol,
		Count:     l.Count,
		FirstSeen: l.First.UTC(),
		LastSeen:  l.Last.UTC(),
		Before:    openapi.Decision(l.Before),
		After:     openapi.Decision(l.After),
	}
	if app, ok := views.ApplicationNamed(c, l.Subject); ok {
		out.Owners = new(views.Owners(c, app))
	}
	return out
}
