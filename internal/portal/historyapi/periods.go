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
		return &periodsTable{periodTable(e, app, &list)}, nil
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

// periodsTable is the answer as CSV.
type periodsTable struct{ core.Table }

// VisitListAccessPeriodsResponse implements openapi.ListAccessPeriodsResponseObject.
func (t *periodsTable) VisitListAccessPeriodsResponse(w http.ResponseWriter) error { return t.Write(w) }

func periodTable(e, app catalog.Entity, list *openapi.AccessPeriodList) core.Table {
	out := core.Table{Name: "periods-" + app.ID + "-" + e.ID + ".csv", Columns: []string{
		"application", "resource", "from", "to", "reach", "mode", "let through",
		"certain", "tickets", "began by", "ended by", "note",
	}}
	causes := func(list []openapi.AccessPeriodCause) string {
		var words []string
		for _, x := range list {
			words = append(words, strings.TrimSpace(string(x.Kind)+" "+core.Value(x.Ticket)+core.Value(x.Object)))
		}
		return strings.Join(words, "; ")
	}
	for _, x := range list.Items {
		mode := "unknown"
		if x.Mode != nil {
			mode = string(*x.Mode)
		}
		var tickets []string
		for _, t := range x.Tickets {
			tickets = append(tickets, t.Ticket)
		}
		out.Rows = append(out.Rows, []string{app.Name, e.Name, instant(&x.From), instant(x.To), string(x.Reach), mode, strings.Join(x.Reached, " "),
			strconv.FormatBool(!x.Uncertain), strings.Join(tickets, " "), causes(x.Began), causes(x.Ended), ""})
	}
	earlier := make([]string, len(out.Columns))
	earlier[0], earlier[1], earlier[4], earlier[len(earlier)-1] = app.Name, e.Name, string(accesshistory.ReachUnknown), "Earlier periods are not known."
	out.Rows = append(out.Rows, earlier)
	return out
}
