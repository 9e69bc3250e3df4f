package flowapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	listFlows  = "flows"
	listRaw    = "raw-flows"
	listLosses = "losses"
	// listLossesWithoutNodes returns losses without the names of nodes.
	listLossesWithoutNodes = "some-losses"
)

// connectionOrders contains the orders of connections by the value of the parameter.
var connectionOrders = map[string]audit.ConnectionOrder{"-seen": audit.LastSeenFirst, "seen": audit.LastSeenLast, "-count": audit.MostFirst,
	"count": audit.FewestFirst}

// ListFlows implements openapi.StrictServerInterface.
func (a *API) ListFlows(ctx context.Context, r openapi.ListFlowsRequestObject) (openapi.ListFlowsResponseObject, error) {
	f, err := a.filter(core.Caller(ctx), r.Params)
	if err != nil {
		return nil, err
	}
	sort, err := core.ParseSort(r.Params.Sort, "-seen", "seen", "-count", "count")
	if err != nil {
		return nil, err
	}
	q := audit.ConnectionQuery{Filter: f, Order: connectionOrders[sort.String()]}
	if q.Order != audit.LastSeenFirst && len(f.Subjects)+len(f.Resources) == 0 {
		return nil, core.InvalidParameter("sort", message.FieldSortNeedsName())
	}
	if q.Limit, err = core.PageSize(r.Params.Limit); err != nil {
		return nil, err
	}
	if q.Cursor, err = core.DecodeCursor(sort.List(listFlows), r.Params.Cursor); err != nil {
		return nil, err
	}
	out := openapi.ListFlows200JSONResponse{Items: []openapi.Connection{}, Since: f.Since, Until: f.Until}
	c, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	page, err := a.Flows.Connections(c, q)
	if err == nil {
		out.LastFlow, err = a.newestFlow(c)
	}
	if out.Available, err = a.readable(err); err != nil || !out.Available {
		return out, err
	}
	if out.Items, err = a.connectionViews(ctx, page.Items); err != nil {
		return nil, err
	}
	if page.Next != "" {
		out.NextCursor = core.EncodeCursor(sort.List(listFlows), page.Next)
	}
	return out, nil
}

// readable distinguishes an unavailable store, which the page reports, from an error in the query.
func (a *API) readable(err error) (bool, error) {
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, audit.ErrUnavailable):
		a.Log.Debug("flows could not be read", "error", err)
		return false, nil
	case errors.Is(err, audit.ErrInvalidQuery):
		return false, core.NewProblem(http.StatusBadRequest, "invalid", message.FlowsQuestionUnanswerable())
	}
	return false, err
}

// ListFlowSeries implements openapi.StrictServerInterface.
func (a *API) ListFlowSeries(ctx context.Context, r openapi.ListFlowSeriesRequestObject) (openapi.ListFlowSeriesResponseObject, error) {
	p := r.Params
	f, err := a.filter(
		core.Caller(ctx),
		openapi.ListFlowsParams{Since: p.Since, Until: p.Until, Subject: p.Subject, Resource: p.Resource, Cluster: p.Cluster, Decision: p.Decision,
			Verdict: p.Verdict, Action: p.Action, Port: p.Port, Policy: p.Policy, Sid: p.Sid, Unattributed: p.Unattributed, Disagree: p.Disagree, Q: p.Q},
	)
	if err != nil {
		return nil, err
	}
	step, err := seriesStep(p.StepSeconds, f.Until.Sub(f.Since))
	if err != nil {
		return nil, err
	}
	since, until := f.Window()
	out := openapi.ListFlowSeries200JSONResponse{Since: since.Truncate(step), Until: until, StepSeconds: int(step.Seconds()), Points: []openapi.FlowPoint{}}
	c, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	points, err := a.Flows.Series(c, audit.SeriesQuery{Filter: f, Step: step})
	if out.Available, err = a.readable(err); err != nil {
		return nil, err
	}
	for _, x := range points {
		out.Points = append(out.Points, openapi.FlowPoint{Start: x.Start.UTC(), Decision: openapi.Decision(x.Decision), Count: x.Count})
	}
	return out, nil
}

// ListRawFlows implements openapi.StrictServerInterface.
func (a *API) ListRawFlows(ctx context.Context, r openapi.ListRawFlowsRequestObject) (openapi.ListRawFlowsResponseObject, error) {
	p := r.Params
	f, err := a.filter(
		core.Caller(ctx),
		openapi.ListFlowsParams{Since: p.Since, Until: p.Until, Subject: p.Subject, Resource: p.Resource, Cluster: p.Cluster, Decision: p.Decision,
			Verdict: p.Verdict, Action: p.Action, Port: p.Port, Policy: p.Policy, Sid: p.Sid, Unattributed: p.Unattributed, Disagree: p.Disagree, Q: p.Q},
	)
	if err != nil {
		return nil, err
	}
	q := audit.FlowQuery{Filter: f}
	if q.Limit, err = core.PageSize(r.Params.Limit); err != nil {
		return nil, err
	}
	if q.Cursor, err = core.DecodeCursor(listRaw, r.Params.Cursor); err != nil {
		return nil, err
	}
	out := openapi.ListRawFlows200JSONResponse{Items: []openapi.RawFlow{}, Since: f.Since, Until: f.Until}
	c, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	page, err := a.Flows.Flows(c, q)
	if out.Available, err = a.readable(err); err != nil {
		return nil, err
	}
	who := core.Caller(ctx)
	for _, x := range page.Items {
		if !who.Security && !who.Auditor {
			x.Node = "" // what nodes there are is not for everybody
		}
		out.Items = append(out.Items, a.rawFlowOf(x))
	}
	if page.Next != "" {
		out.NextCursor = core.EncodeCursor(listRaw, page.Next)
	}
	return out, nil
}

// ListFlowLosses implements openapi.StrictServerInterface. Everybody who reads flows may know that some are missing. Only the
// security team and auditors see the names of nodes.
func (a *API) ListFlowLosses(ctx context.Context, r openapi.ListFlowLossesRequestObject) (openapi.ListFlowLossesResponseObject, error) {
	since, until, err := a.Window(r.Params.Since, r.Params.Until, views.DeniedWindow)
	if err != nil {
		return nil, err
	}
	q := audit.LossQuery{Since: since, Until: until, Clusters: core.Value(r.Params.Cluster)}
	if err := checkValues("cluster", q.Clusters); err != nil {
		return nil, err
	}
	n, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	who, skip := core.Caller(ctx), int64(0)
	all := who.Security || who.Auditor
	if q.Limit = n; all {
		q.Cursor, err = core.DecodeCursor(listLosses, r.Params.Cursor)
	} else { // a place in the store's order has a node's name in it
		q.Limit = audit.MaxPage
		skip, err = core.DecodeNumberCursor(listLossesWithoutNodes, r.Params.Cursor)
	}
	if err != nil {
		return nil, err
	}
	out := openapi.ListFlowLosses200JSONResponse{Items: []openapi.FlowLoss{}, Since: since, Until: until}
	c, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	page, err := a.Flows.Losses(c, q)
	if out.Available, err = a.readable(err); err != nil {
		return nil, err
	}
	found := page.Items[min(skip, int64(len(page.Items))):]
	for _, l := range found[:min(n, len(found))] {
		x := openapi.FlowLoss{Cluster: l.Cluster, Reason: string(l.Reason), Count: l.Count, From: l.From.UTC(), To: l.To.UTC()}
		if all {
			x.Node = core.Optional(l.Node)
		}
		out.Items = append(out.Items, x)
	}
	switch {
	case all && page.Next != "":
		out.NextCursor = core.EncodeCursor(listLosses, page.Next)
	case !all && n < len(found):
		out.NextCursor = core.EncodeNumberCursor(listLossesWithoutNodes, skip+int64(n))
	}
	return out, nil
}

// ListFlowCoverage implements openapi.StrictServerInterface.
func (a *API) ListFlowCoverage(ctx context.Context, r openapi.ListFlowCoverageRequestObject) (openapi.ListFlowCoverageResponseObject, error) {
	since, until, err := a.Window(r.Params.Since, r.Params.Until, a.EvidenceWindow)
	if err != nil {
		return nil, err
	}
	out := openapi.ListFlowCoverage200JSONResponse{Items: []openapi.FlowCoverage{}, Since: since, Until: until}
	c, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	covered, err := a.Flows.Coverage(c, since, until)
	if err == nil {
		last, e := a.Flows.LastFlow(c)
		out.LastFlow, err = &last, e
	}
	if out.Available, err = a.readable(err); err != nil {
		return nil, err
	}
	for _, x := range covered {
		out.Items = append(out.Items, openapi.FlowCoverage{Cluster: x.Cluster, Day: openapi_types.Date{Time: x.Day.UTC()}, Lost: x.Lost,
			WatchedSeconds: int64(x.Watched.Seconds()), GapSeconds: int64(x.GapTime.Seconds())})
	}
	slices.SortFunc(out.Items, func(x, y openapi.FlowCoverage) int {
		if n := strings.Compare(x.Cluster, y.Cluster); n != 0 {
			return n
		}
		return x.Day.Compare(y.Day.Time)
	})
	return out, nil
}
