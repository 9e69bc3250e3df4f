package reviewapi

import (
	"context"
	"time"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	listReviews = "reviews"
	day         = 24 * time.Hour
	// defaultGraceDays is the default of NewAccessReview.graceDays.
	defaultGraceDays = 14
)

// ListReviews implements openapi.StrictServerInterface.
func (a *API) ListReviews(ctx context.Context, r openapi.ListReviewsRequestObject) (openapi.ListReviewsResponseObject, error) {
	limit, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	before, err := core.DecodeNumberCursor(listReviews, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	people, err := a.Reviews.Reviewers(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	list, err := a.Store.Campaigns(core.RequestContext(ctx), accessreview.CampaignFilter{Reviewers: people, Before: before, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	out := openapi.ListReviews200JSONResponse{Items: []openapi.AccessReview{}}
	if len(list) > limit {
		list = list[:limit]
		out.NextCursor = core.EncodeNumberCursor(listReviews, list[limit-1].ID)
	}
	counts, err := a.counts(ctx, people, list...)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		out.Items = append(out.Items, a.view(ctx, c, counts[c.ID]))
	}
	return out, nil
}

// counts returns the counts of campaigns; those of the lines of people, unless people is nil because the caller sees all.
func (a *API) counts(ctx context.Context, people []string, list ...accessreview.Campaign) (map[int64]accessreview.Counts, error) {
	out, ids := map[int64]accessreview.Counts{}, []int64{}
	for _, c := range list {
		if people == nil && c.Final != nil {
			out[c.ID] = *c.Final
			continue
		}
		ids = append(ids, c.ID)
	}
	found, err := a.Store.Count(core.RequestContext(ctx), people, ids...)
	for id, n := range found {
		out[id] = n
	}
	return out, err
}

// input returns the campaign of a request.
func input(b *openapi.NewAccessReview) (in accessreview.Input, err error) {
	in = accessreview.Input{Name: b.Name, Silence: accessreview.Silence(b.Silence), Deadline: b.Deadline, WindowDays: core.Value(b.WindowDays),
		Grace: defaultGraceDays * day}
	if in.RemindEvery, err = daysOf("remindEveryDays", core.Value(b.RemindEveryDays), 1, accessreview.MaxLength); err != nil {
		return in, err
	}
	if b.GraceDays != nil {
		if in.Grace, err = daysOf("graceDays", *b.GraceDays, 1, accessreview.MaxGrace); err != nil {
			return in, err
		}
	}
	for _, r := range core.Value(b.Reviewers) {
		in.Rules = append(in.Rules, accessreview.Rule(r))
	}
	if s := b.Scope; s != nil {
		in.Scope = accessreview.Scope{Classes: core.Value(s.Classes), Teams: core.Value(s.Teams)}
		if in.Scope.OlderThan, err = daysOf("scope.olderThanDays", core.Value(s.OlderThanDays), 0, accessreview.MaxOlderThan); err != nil {
			return in, err
		}
		for _, x := range core.Value(s.Sensitivities) {
			in.Scope.Sensitivities = append(in.Scope.Sensitivities, catalog.Sensitivity(x))
		}
	}
	return in, nil
}

// daysOf converts a number of days, whose maximum is checked before the conversion, because it could overflow. The service decides whether 0,
// which means none, is accepted; least is only for the error.
func daysOf(path string, n, least int, most time.Duration) (time.Duration, error) {
	if n < 0 || n > int(most/day) {
		return 0, core.InvalidField(path, message.FieldRange(least, int(most/day)))
	}
	return time.Duration(n) * day, nil
}

// CreateReview implements openapi.StrictServerInterface.
func (a *API) CreateReview(ctx context.Context, r openapi.CreateReviewRequestObject) (openapi.CreateReviewResponseObject, error) {
	in, err := input(r.Body)
	if err != nil {
		return nil, err
	}
	c, err := a.Reviews.Create(core.RequestContext(ctx), core.Caller(ctx), in)
	if err != nil {
		return nil, err
	}
	return openapi.CreateReview201JSONResponse(a.view(ctx, c, accessreview.Counts{})), nil
}

// PreviewReview implements openapi.StrictServerInterface.
func (a *API) PreviewReview(ctx context.Context, r openapi.PreviewReviewRequestObject) (openapi.PreviewReviewResponseObject, error) {
	in, err := input(r.Body)
	if err != nil {
		return nil, err
	}
	p, err := a.Reviews.Preview(core.RequestContext(ctx), core.Caller(ctx), in)
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	out := openapi.PreviewReview200JSONResponse{Accesses: p.Accesses, Permanent: p.Permanent, Reviewers: p.Reviewers, Unreviewed: p.Unreviewed,
		Rules: map[string]int{}, Sensitivities: map[string]int{}}
	if p.Busiest != "" {
		out.Busiest, out.BusiestHas = new(views.Person(c, p.Busiest)), &p.BusiestHas
	}
	for r, n := range p.ByRule {
		out.Rules[string(r)] = n
	}
	for s, n := range p.Sensitivity {
		out.Sensitivities[string(s)] = n
	}
	out.Examples = make([]struct {
		Application *openapi.CatalogRef     `json:"application,omitempty"`
		Resource    *openapi.CatalogRef     `json:"resource,omitempty"`
		Reviewers   []openapi.Person        `json:"reviewers"`
		Scope       *openapi.StatementScope `json:"scope,omitempty"`
		Since       time.Time               `json:"since"`
	}, len(p.Examples))
	for i, e := range p.Examples {
		x := &out.Examples[i]
		x.Application, x.Resource, x.Scope = ends(c, e.ApplicationName, e.ResourceName, e.Scope)
		x.Since, x.Reviewers = e.Since.UTC(), people(c, e.Reviewers)
	}
	return out, nil
}

// ends returns the application and the resource of a grant, or the scope of a statement.
func ends(
	c *catalog.Catalog,
	application, resource string,
	scope *approval.StatementScope,
) (*openapi.CatalogRef, *openapi.CatalogRef, *openapi.StatementScope) {
	if scope != nil {
		return nil, nil, views.StatementScope(c, scope)
	}
	return new(views.Ref(c, application)), new(views.Ref(c, resource)), nil
}

// GetReview implements openapi.StrictServerInterface.
func (a *API) GetReview(ctx context.Context, r openapi.GetReviewRequestObject) (openapi.GetReviewResponseObject, error) {
	c, who, err := a.review(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	counts, err := a.counts(ctx, who, c)
	if err != nil {
		return nil, err
	}
	return openapi.GetReview200JSONResponse(a.view(ctx, c, counts[c.ID])), nil
}

// EndReview implements openapi.StrictServerInterface.
func (a *API) EndReview(ctx context.Context, r openapi.EndReviewRequestObject) (openapi.EndReviewResponseObject, error) {
	n, ok := accessreview.ParseID(r.Id)
	if !ok {
		return nil, notFound()
	}
	c, err := a.Reviews.End(core.RequestContext(ctx), core.Caller(ctx), n, r.Body.Reason)
	if err != nil {
		return nil, err
	}
	counts, err := a.counts(ctx, nil, c)
	if err != nil {
		return nil, err
	}
	return openapi.EndReview200JSONResponse(a.view(ctx, c, counts[c.ID])), nil
}

func people(c *catalog.Catalog, ids []string) []openapi.Person {
	out := make([]openapi.Person, len(ids))
	for i, id := range ids {
		out[i] = views.Person(c, id)
	}
	return out
}

func person(c *catalog.Catalog, id string) *openapi.Person {
	if id == "" {
		return nil
	}
	return new(views.Person(c, id))
}

// days returns a whole number of days, or nil for none.
func days(d time.Duration) *int {
	if d == 0 {
		return nil
	}
	return new(int(d / day))
}

func optional[T any](list []T) *[]T {
	if len(list) == 0 {
		return nil
	}
	return &list
}

// view returns the view of a campaign with its counts.
func (a *API) view(ctx context.Context, x accessreview.Campaign, n accessreview.Counts) openapi.AccessReview {
	c, who := a.Catalog(), core.Caller(ctx)
	out := openapi.AccessReview{
		Id: accessreview.FormatID(x.ID), Name: x.Name, State: openapi.ReviewState(x.State), CreatedBy: views.Person(c, x.CreatedBy), CreatedAt: x.CreatedAt,
		OpenedAt: views.Time(x.OpenedAt), ClosedAt: views.Time(x.ClosedAt), EndedAt: views.Time(x.EndedAt), EndedBy: person(c, x.EndedBy),
		EndReason: core.Optional(x.EndReason), Reviewers: []string{}, Silence: openapi.ReviewSilence(x.Silence),
		GraceDays: days(x.Grace), Deadline: x.Deadline.UTC(),
		WindowDays: x.WindowDays, RemindEveryDays: days(x.RemindEvery), NextReminder: views.Time(x.NextReminder), Deciding: x.Deciding(a.Now()),
		Counts: openapi.ReviewCounts{Total: n.Total, Open: n.Open, Applying: n.Applying, Kept: n.Kept, Shortened: n.Shortened, Revoked: n.Revoked,
			Ended: n.Ended, Skipped: n.Skipped, Silent: n.Silent, Recommended: map[string]int{"keep": n.RecommendKeep, "shorten": n.RecommendShorten,
				"revoke": n.RecommendRevoke, "none": n.RecommendNone}},
		CanEnd:    who.Security && !who.Auditor && x.State != accessreview.StateClosed && x.EndedAt.IsZero(),
		CanExport: who.Security || who.Auditor,
		Scope:     openapi.ReviewScope{Classes: optional(x.Scope.Classes), Teams: optional(x.Scope.Teams), OlderThanDays: days(x.Scope.OlderThan)},
	}
	for _, s := range x.Scope.Sensitivities {
		out.Scope.Sensitivities = new(append(core.Value(out.Scope.Sensitivities), openapi.Sensitivity(s)))
	}
	if !x.EndMessage.IsZero() {
		out.EndMessage = &x.EndMessage
	}
	for _, r := range x.Rules {
		out.Reviewers = append(out.Reviewers, string(r))
	}
	if x.State == accessreview.StatePreparing && x.Unreadable {
		out.FlowsUnreadable = new(true)
	}
	return out
}

// line returns the view of a line of a campaign.
func (a *API) line(c *catalog.Catalog, who approval.Actor, x accessreview.Campaign, l *accessreview.Line, now time.Time) openapi.ReviewLine {
	e := l.Evidence
	out := openapi.ReviewLine{
		Review:         accessreview.FormatID(l.Campaign),
		ReviewName:     x.Name,
		Deadline:       x.Deadline.UTC(),
		Line:           l.Number,
		Version:        l.Version,
		State:          openapi.ReviewLineState(l.State),
		OutcomeAt:      views.Time(l.OutcomeAt),
		Class:          core.Optional(l.Class),
		Actions:        append([]string{}, l.Actions...),
		Since:          l.Since.UTC(),
		End:            views.Time(l.End),
		ChangedAt:      views.Time(l.Changed),
		Ticket:         approval.FormatID(l.Target.Ticket),
		TicketItem:     &l.Target.Item,
		Reviewers:      people(c, l.Reviewers),
		Rule:           string(l.Rule),
		Recommendation: openapi.ReviewRecommendation(l.Recommendation),
		DecidedBy:      person(c, l.DecidedBy),
		OnBehalfOf:     person(c, l.OnBehalfOf),
		DecidedAt:      views.Time(l.DecidedAt),
		Comment:        core.Optional(l.Comment),
		Until:          views.Time(l.Until),
		Evidence:       openapi.ReviewEvidence{At: views.Time(e.At), Days: e.Days, LastUsed: views.Time(e.LastUsed), Count: e.Count, Watched: e.Watched},
		CanDecide:      x.Deciding(now) && a.Reviews.MayDecide(who, l),
	}
	out.Application, out.Resource, out.Scope = ends(c, l.ApplicationName, l.ResourceName, l.Scope)
	if l.Outcome != "" {
		out.Outcome = new(openapi.ReviewOutcome(l.Outcome))
	}
	if l.Decision != "" {
		out.Decision = new(openapi.ReviewDecision(l.Decision))
	}
	if l.Sensitivity != "" {
		out.Sensitivity = new(openapi.Sensitivity(l.Sensitivity))
	}
	if l.Silent {
		out.Silent = new(true)
	}
	if e.Refused {
		out.Evidence.Refused = new(true)
	}
	if e.Uncertain {
		out.Evidence.Uncertain = new(true)
	}
	if !e.At.IsZero() {
		out.Evidence.WatchedPercent, out.Evidence.LostPercent = new(float32(e.WatchedPercent)), new(float32(e.LostPercent))
		out.Evidence.Member = core.Optional(e.Member)
	}
	return out
}
