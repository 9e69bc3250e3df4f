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
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// ListPastAccess implements openapi.StrictServerInterface. A caller who may see the present access of a resource may also see its past
// access, with the same rows.
func (a *API) ListPastAccess(ctx context.Context, r openapi.ListPastAccessRequestObject) (openapi.ListPastAccessResponseObject, error) {
	who, c := core.Caller(ctx), a.Catalog()
	e, err := views.EntityOrNotFound(c.Resource(r.Id))
	if err != nil {
		return nil, err
	}
	table, err := core.WantsCSV(r.Params.Format)
	if err != nil {
		return nil, err
	}
	at, err := a.past(r.Params.At)
	if err != nil {
		return nil, err
	}
	records, err := a.records(ctx, e, at)
	if err != nil {
		return nil, err
	}
	answer := records.WhoCould(at)
	all := views.MayInspect(c, who, e)
	if !all {
		answer.Lines = slices.DeleteFunc(answer.Lines, func(l accesshistory.Line) bool { return !views.OwnsApplication(c, who, l.Subject) })
	}
	actor, err := a.Tickets.Actor(core.RequestContext(ctx), who)
	if err != nil {
		return nil, err
	}
	list := openapi.PastAccessList{At: at, Items: []openapi.PastAccess{}, Gaps: gapViews(answer.Gaps, all), Onboarded: answer.Onboarded,
		ModeKnown: answer.ModeKnown,
		Open:      answer.Open(), Limited: !all, RecordsBegin: views.Time(records.Begin)}
	if answer.ModeKnown {
		list.Mode = new(openapi.Mode(answer.Mode))
		list.ClusterModes = new(clusterModes(answer.ClusterModes))
		if answer.Audit != nil {
			list.TemporaryAuditUntil = views.Time(answer.Audit.Until.Time)
		}
	}
	within := a.FlowScope(who)
	if all {
		within = nil
	}
	lastUsed, problem := a.lastUses(ctx, e.Name, answer.Lines, within)
	if !problem.IsZero() {
		list.UsesMessage = &problem
	}
	for i := range answer.Lines {
		x := pastAccess(c, actor, &answer.Lines[i])
		x.LastUsed = views.Time(lastUsed[i])
		list.Items = append(list.Items, x)
	}
	if table {
		return newPastAccessTable(e, &list), nil
	}
	return openapi.ListPastAccess200JSONResponse(list), nil
}

// gapViews returns the views of gaps, each text once.
func gapViews(gaps []accesshistory.Gap, named bool) []openapi.HistoryGap {
	out := []openapi.HistoryGap{}
	for _, g := range gaps {
		if g.Kind == accesshistory.GapFailed && !named {
			continue // rows of the caller's own applications are marked; the tickets of others are not named
		}
		m := gapMessage(g, named)
		if slices.ContainsFunc(out, func(x openapi.HistoryGap) bool { return x.Message.Same(m) }) {
			continue
		}
		x := openapi.HistoryGap{Kind: openapi.HistoryGapKind(g.Kind), At: views.Time(g.At), Message: m}
		if named {
			x.Object = core.Optional(g.Object)
		}
		out = append(out, x)
	}
	return out
}

func pastAccess(c *catalog.Catalog, who approval.Actor, l *accesshistory.Line) openapi.PastAccess {
	x := openapi.PastAccess{Effect: openapi.PastAccessEffect(l.Effect), Subject: views.Ref(c, l.Subject), Resource: views.Ref(c, l.Resource),
		Actions: append([]string{}, l.Actions...), Policy: l.Ref.Policy, Sid: l.Ref.SID, Counting: l.Counting, Uncertain: l.Uncertain,
		NotBefore: views.Time(l.NotBefore), NotAfter: views.Time(l.NotAfter), Hours: views.Hours(l.Hours)}
	if l.Decided {
		x.Reached = new(append([]string{}, l.Reached...))
	}
	if t := l.Ticket; t != nil {
		may := approval.MayDoItem(c, who, t, l.Item)
		x.Ticket, x.TicketItem, x.TicketVisible = new(t.ID()), new(l.Item), new(may.See)
		x.Since = views.Time(views.GrantedAt(t, l.Item))
		if may.See {
			x.Reason, x.Requester = core.Optional(t.Reason), new(views.Person(c, t.Requester))
		}
	}
	return x
}

// pastAccessTable is the answer as CSV.
type pastAccessTable struct{ core.Table[pastRow] }

// VisitListPastAccessResponse implements openapi.ListPastAccessResponseObject.
func (t *pastAccessTable) VisitListPastAccessResponse(w http.ResponseWriter) error { return t.Write(w) }

// pastRow is a row of the table: an access, or a note.
type pastRow struct {
	access *openapi.PastAccess // nil for a note
	// kind and note are those of a note.
	kind, note string
}

// newPastAccessTable returns the table of an answer. Its first rows say what the records do not cover, so that an exported table never looks
// complete if it is not.
func newPastAccessTable(e catalog.Entity, list *openapi.PastAccessList) *pastAccessTable {
	at := list.At.UTC().Format(time.RFC3339)
	out := &pastAccessTable{core.Table[pastRow]{
		Name:    "access-" + e.ID + "-" + strings.ReplaceAll(at, ":", "") + ".csv",
		Columns: pastColumns(e, list, at),
	}}
	note := func(kind, text string) { out.Rows = append(out.Rows, pastRow{kind: kind, note: text}) }
	for _, g := range list.Gaps {
		note("gap", g.Message.Text)
	}
	if list.Open {
		note("open", "No connection was refused in this mode, whatever the statements said.")
	}
	if list.Limited {
		note("limited", "Only rows of the caller's own applications.")
	}
	if list.UsesMessage != nil {
		note("uses", list.UsesMessage.Text)
	}
	for i := range list.Items {
		out.Rows = append(out.Rows, pastRow{access: &list.Items[i]})
	}
	return out
}

// pastColumns returns the columns of the accesses and the notes about a resource at an instant.
func pastColumns(e catalog.Entity, list *openapi.PastAccessList, at string) []core.Column[pastRow] {
	mode := "unknown"
	if list.ModeKnown {
		mode = string(*list.Mode)
	}
	// either returns the value of an access, or the text for a note.
	either := func(value func(*openapi.PastAccess) string, ofNote func(pastRow) string) func(pastRow) string {
		return func(r pastRow) string {
			if r.access == nil {
				return ofNote(r)
			}
			return value(r.access)
		}
	}
	access := func(value func(*openapi.PastAccess) string) func(pastRow) string {
		return either(value, func(pastRow) string { return "" })
	}
	return []core.Column[pastRow]{
		{Name: "kind", Value: either(func(*openapi.PastAccess) string { return "access" }, func(r pastRow) string { return r.kind })},
		{Name: "at", Value: func(pastRow) string { return at }},
		{Name: "mode", Value: func(pastRow) string { return mode }},
		{Name: "subject", Value: access(func(x *openapi.PastAccess) string { return x.Subject.Name })},
		{Name: "subject title", Value: access(func(x *openapi.PastAccess) string { return x.Subject.Title })},
		{Name: "resource", Value: either(func(x *openapi.PastAccess) string { return x.Resource.Name }, func(pastRow) string { return e.Name })},
		{Name: "effect", Value: access(func(x *openapi.PastAccess) string { return string(x.Effect) })},
		{Name: "actions", Value: access(func(x *openapi.PastAccess) string { return strings.Join(x.Actions, " ") })},
		{Name: "let through", Value: access(func(x *openapi.PastAccess) string {
			if x.Reached == nil {
				return "not decided"
			}
			return strings.Join(*x.Reached, " ")
		})},
		{Name: "uncertain", Value: access(func(x *openapi.PastAccess) string { return strconv.FormatBool(x.Uncertain) })},
		{Name: "ticket", Value: access(func(x *openapi.PastAccess) string { return core.Value(x.Ticket) })},
		{Name: "requester", Value: access(func(x *openapi.PastAccess) string {
			if x.Requester == nil {
				return ""
			}
			return x.Requester.Id
		})},
		{Name: "reason", Value: access(func(x *openapi.PastAccess) string { return core.Value(x.Reason) })},
		{Name: "since", Value: access(func(x *openapi.PastAccess) string { return instant(x.Since) })},
		{Name: "ends at", Value: access(func(x *openapi.PastAccess) string { return instant(x.NotAfter) })},
		{Name: "last used", Value: access(func(x *openapi.PastAccess) string {
			if x.LastUsed == nil {
				return "unknown"
			}
			return instant(x.LastUsed)
		})},
		{Name: "policy", Value: access(func(x *openapi.PastAccess) string { return x.Policy })},
		{Name: "sid", Value: access(func(x *openapi.PastAccess) string { return x.Sid })},
		{Name: "note", Value: func(r pastRow) string { return r.note }},
	}
}
