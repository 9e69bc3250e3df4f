package historyapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/accesshistory"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// ListAccessPeriods implements openapi.StrictServerInterface. It is for people who may see the access of the application or of the resource.
func (a *API) ListAccessPeriods(ctx context.Context, r openapi.ListAccessPeriodsRequestObject) (openapi.ListAccessPeriodsResponseObject, error) {
	who, c := core.Caller(ctx), a.Catalog()
	e, err := views.EntityOrNotFound(c.Resource(r.Id))
	if err != nil {
		return nil, err
	}
	table, err := core.WantsCSV(r.Params.Format)
	if err != nil {
		return nil, err
	}
	app, err := views.EntityOrNotFound(c.Application(r.Params.Application))
	if err != nil {
		return nil, err
	}
	all := views.MayInspect(c, who, e)
	if !all && !views.MayInspect(c, who, app) {
		return nil, &approval.Error{Code: approval.CodeForbidden, Message: message.AccessResourceUsers()}
	}
	records, err := a.records(ctx, e, time.Time{})
	if err != nil {
		return nil, err
	}
	actor, err := a.Tickets.Actor(core.RequestContext(ctx), who)
	if err != nil {
		return nil, err
	}
	periods, cut, err := records.Periods(core.RequestContext(ctx), app.Name)
	if err != nil {
		return nil, err
	}
	list := openapi.AccessPeriodList{Items: []openapi.AccessPeriod{}, Cut: cut, RecordsBegin: views.Time(records.Begin)}
	for i := range slices.Backward(periods) {
		list.Items = append(list.Items, periodView(c, actor, &periods[i], all))
	}
	if table {
		return newPeriodsTable(e, app, &list), nil
	}
	return openapi.ListAccessPeriods200JSONResponse(list), nil
}

func periodView(c *catalog.Catalog, who approval.Actor, p *accesshistory.Period, named bool) openapi.AccessPeriod {
	x := openapi.AccessPeriod{From: p.From.UTC(), To: views.Time(p.To), Reach: openapi.AccessPeriodReach(p.Reach), ModeKnown: p.ModeKnown,
		Reached: append([]string{}, p.Reached...), Uncertain: p.Uncertain, Tickets: []openapi.PeriodTicket{},
		Began: causeViews(c, who, p.Began, named), Ended: causeViews(c, who, p.Ended, named)}
	if p.ModeKnown {
		x.Mode = new(openapi.Mode(p.Mode))
	}
	for _, l := range p.Lines {
		if l.Ticket != nil {
			x.Tickets = append(x.Tickets, openapi.PeriodTicket{Ticket: l.Ticket.ID(), Visible: approval.MayDoItem(c, who, l.Ticket, l.Item).See})
		}
	}
	return x
}

func causeViews(c *catalog.Catalog, who approval.Actor, causes []accesshistory.Cause, named bool) []openapi.AccessPeriodCause {
	out := make([]openapi.AccessPeriodCause, 0, len(causes))
	for _, cause := range causes {
		x := openapi.AccessPeriodCause{Kind: openapi.AccessPeriodCauseKind(cause.Kind)}
		if cause.Ticket != nil {
			x.Ticket, x.TicketVisible = new(cause.Ticket.ID()), new(approval.MayDoItem(c, who, cause.Ticket, cause.Item).See)
		}
		if named {
			x.Object = core.Optional(cause.Object)
		}
		out = append(out, x)
	}
	return out
}

// periodsTable is the answer as CSV. A row without a period, the last one, says that earlier periods are not known.
type periodsTable struct {
	core.Table[*openapi.AccessPeriod]
}

// VisitListAccessPeriodsResponse implements openapi.ListAccessPeriodsResponseObject.
func (t *periodsTable) VisitListAccessPeriodsResponse(w http.ResponseWriter) error { return t.Write(w) }

func newPeriodsTable(e, app catalog.Entity, list *openapi.AccessPeriodList) *periodsTable {
	out := &periodsTable{core.Table[*openapi.AccessPeriod]{Name: "periods-" + app.ID + "-" + e.ID + ".csv", Columns: periodColumns(e, app)}}
	for i := range list.Items {
		out.Rows = append(out.Rows, &list.Items[i])
	}
	out.Rows = append(out.Rows, nil)
	return out
}

// periodColumns returns the columns of the periods of an application's access to a resource.
func periodColumns(e, app catalog.Entity) []core.Column[*openapi.AccessPeriod] {
	type period = *openapi.AccessPeriod
	// known returns the value of a period, and nothing for the earlier ones.
	known := func(value func(period) string) func(period) string {
		return func(x period) string {
			if x == nil {
				return ""
			}
			return value(x)
		}
	}
	causes := func(list []openapi.AccessPeriodCause) string {
		var words []string
		for _, x := range list {
			words = append(words, strings.TrimSpace(string(x.Kind)+" "+core.Value(x.Ticket)+core.Value(x.Object)))
		}
		return strings.Join(words, "; ")
	}
	return []core.Column[period]{
		{Name: "application", Value: func(period) string { return app.Name }},
		{Name: "resource", Value: func(period) string { return e.Name }},
		{Name: "from", Value: known(func(x period) string { return instant(&x.From) })},
		{Name: "to", Value: known(func(x period) string { return instant(x.To) })},
		{Name: "reach", Value: func(x period) string {
			if x == nil {
				return string(accesshistory.ReachUnknown)
			}
			return string(x.Reach)
		}},
		{Name: "mode", Value: known(func(x period) string {
			if x.Mode == nil {
				return "unknown"
			}
			return string(*x.Mode)
		})},
		{Name: "let through", Value: known(func(x period) string { return strings.Join(x.Reached, " ") })},
		{Name: "certain", Value: known(func(x period) string { return strconv.FormatBool(!x.Uncertain) })},
		{Name: "tickets", Value: known(func(x period) string {
			var tickets []string
			for _, t := range x.Tickets {
				tickets = append(tickets, t.Ticket)
			}
			return strings.Join(tickets, " ")
		})},
		{Name: "began by", Value: known(func(x period) string { return causes(x.Began) })},
		{Name: "ended by", Value: known(func(x period) string { return causes(x.Ended) })},
		{Name: "note", Value: func(x period) string {
			if x == nil {
				return "Earlier periods are not known."
			}
			return ""
		}},
	}
}
