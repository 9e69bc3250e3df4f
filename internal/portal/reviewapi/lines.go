package reviewapi

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	listLines   = "review-lines"
	listMyLines = "my-review-lines"
)

// texts converts the values of a parameter, all of which must be valid.
func texts[To ~string, From interface {
	~string
	Valid() bool
}](name string, in *[]From) ([]To, error) {
	var out []To
	for _, x := range core.Value(in) {
		if !x.Valid() {
			return nil, core.InvalidParameter(name, message.FieldUnknown())
		}
		out = append(out, To(x))
	}
	return out, nil
}

// ListReviewLines implements openapi.StrictServerInterface.
func (a *API) ListReviewLines(ctx context.Context, r openapi.ListReviewLinesRequestObject) (openapi.ListReviewLinesResponseObject, error) {
	limit, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	x, people, err := a.review(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	// The lines of a review are numbered by their recommendations.
	sort, err := core.ParseSort(r.Params.Sort, "recommendation", "-recommendation")
	if err != nil {
		return nil, err
	}
	list := sort.List(listLines + r.Id)
	after, err := core.DecodeNumberCursor(list, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	f := accessreview.LineFilter{Campaign: x.ID, Reviewers: people, Text: core.Value(r.Params.Q), Descending: sort.Descending, Limit: limit + 1}
	if core.Value(r.Params.Mine) {
		who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
		if err != nil {
			return nil, err
		}
		f.Reviewers = append([]string{who.ID}, who.StandsFor...)
	}
	if f.States, err = texts[accessreview.LineState]("state", r.Params.State); err != nil {
		return nil, err
	}
	if f.Outcomes, err = texts[accessreview.Outcome]("outcome", r.Params.Outcome); err != nil {
		return nil, err
	}
	if f.Recommendations, err = texts[accessreview.Decision]("recommendation", r.Params.Recommendation); err != nil {
		return nil, err
	}
	if after > 0 {
		f.After = accessreview.Position{Campaign: x.ID, Number: int(after)}
	}
	lines, err := a.Store.Lines(core.RequestContext(ctx), f)
	if err != nil {
		return nil, err
	}
	out := openapi.ListReviewLines200JSONResponse{}
	if len(lines) > limit {
		lines = lines[:limit]
		out.NextCursor = core.EncodeNumberCursor(list, int64(lines[limit-1].Number))
	}
	out.Items, err = a.lines(ctx, lines, x)
	return out, err
}

// lines returns the views of lines. Campaigns that are not given are read.
func (a *API) lines(ctx context.Context, lines []accessreview.Line, known ...accessreview.Campaign) ([]openapi.ReviewLine, error) {
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	c, now := a.Catalog(), a.Now()
	campaigns := map[int64]accessreview.Campaign{}
	for _, x := range known {
		campaigns[x.ID] = x
	}
	out := make([]openapi.ReviewLine, len(lines))
	for i := range lines {
		x, ok := campaigns[lines[i].Campaign]
		if !ok {
			if x, err = a.Store.Campaign(core.RequestContext(ctx), lines[i].Campaign); err != nil {
				return nil, err
			}
			campaigns[x.ID] = x
		}
		out[i] = a.line(c, who, x, &lines[i], now)
	}
	return out, nil
}

// ListMyReviewLines implements openapi.StrictServerInterface.
func (a *API) ListMyReviewLines(ctx context.Context, r openapi.ListMyReviewLinesRequestObject) (openapi.ListMyReviewLinesResponseObject, error) {
	limit, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	after, err := position(r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	out := openapi.ListMyReviewLines200JSONResponse{Items: []openapi.ReviewLine{}, Total: new(0)}
	if who.Auditor {
		return out, nil
	}
	people, now := append([]string{who.ID}, who.StandsFor...), a.Now()
	open, err := a.Store.Campaigns(
		core.RequestContext(ctx),
		accessreview.CampaignFilter{States: []accessreview.State{accessreview.StateOpen}, Reviewers: people},
	)
	if err != nil {
		return nil, err
	}
	var lines []accessreview.Line
	for _, x := range open {
		if !x.Deciding(now) {
			continue
		}
		waiting, err := a.Store.Count(core.RequestContext(ctx), people, x.ID)
		if err != nil {
			return nil, err
		}
		*out.Total += waiting[x.ID].Open
		if after.Campaign != 0 && x.ID > after.Campaign || len(lines) > limit {
			continue
		}
		f := accessreview.LineFilter{Campaign: x.ID, Reviewers: people, States: []accessreview.LineState{accessreview.LineOpen}, Limit: limit + 1 - len(lines)}
		if x.ID == after.Campaign {
			f.After = after
		}
		found, err := a.Store.Lines(core.RequestContext(ctx), f)
		if err != nil {
			return nil, err
		}
		lines = append(lines, found...)
	}
	if len(lines) > limit {
		lines = lines[:limit]
		last := lines[limit-1]
		out.NextCursor = core.EncodeCursor(listMyLines, last.Ref())
	}
	out.Items, err = a.lines(ctx, lines, open...)
	return out, err
}

// position returns the position in a cursor of ListMyReviewLines.
func position(cursor *string) (accessreview.Position, error) {
	place, err := core.DecodeCursor(listMyLines, cursor)
	if place == "" || err != nil {
		return accessreview.Position{}, err
	}
	id, number, ok := accessreview.ParseRef(place)
	if !ok || !strings.HasSuffix(place, "/"+strconv.Itoa(number)) {
		return accessreview.Position{}, core.InvalidCursor()
	}
	return accessreview.Position{Campaign: id, Number: number}, nil
}

// DecideReviewLines implements openapi.StrictServerInterface.
func (a *API) DecideReviewLines(ctx context.Context, r openapi.DecideReviewLinesRequestObject) (openapi.DecideReviewLinesResponseObject, error) {
	n, ok := accessreview.ParseID(r.Id)
	if !ok {
		return nil, notFound()
	}
	if k := len(r.Body.Decisions); k < 1 || k > accessreview.MaxChoices {
		return nil, core.InvalidField("decisions", message.ReviewTooManyChoices(accessreview.MaxChoices))
	}
	choices := make([]accessreview.Choice, 0, len(r.Body.Decisions))
	for i, d := range r.Body.Decisions {
		if d.Line < 1 {
			return nil, core.InvalidField(fmt.Sprintf("decisions[%d].line", i), message.FieldUnknown())
		}
		choices = append(choices, accessreview.Choice{Line: d.Line, Version: d.Version, Decision: accessreview.Decision(d.Decision), Days: core.Value(d.Days),
			Comment: core.Value(d.Comment)})
	}
	if err := core.ExtendWriteDeadline(ctx, core.BulkTimeout); err != nil {
		return nil, err
	}
	results, err := a.Reviews.Decide(core.RequestContext(ctx), core.Caller(ctx), n, choices)
	if err != nil {
		return nil, err
	}
	x, _, err := a.review(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	c, now := a.Catalog(), a.Now()
	var out openapi.DecideReviewLines200JSONResponse
	out.Items = make([]struct {
		Current *openapi.ReviewLine `json:"current,omitempty"`
		Line    int                 `json:"line"`
		Ok      bool                `json:"ok"`
		Problem *openapi.Problem    `json:"problem,omitempty"`
	}, len(results))
	for i := range results {
		o, res := &out.Items[i], &results[i]
		o.Line, o.Ok = res.Line.Number, res.Err == nil
		if res.Err != nil {
			o.Problem = new(a.Server.ProblemOf(core.GinContext(ctx), res.Err))
		}
		if res.Line.Version > 0 && a.Reviews.Shows(who, &res.Line) {
			o.Current = new(a.line(c, who, x, &res.Line, now))
		}
	}
	return out, nil
}
