package historyapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accesshistory"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

// ListModeHistory implements openapi.StrictServerInterface. It is for people who may see the connections of the resource.
func (a *API) ListModeHistory(ctx context.Context, r openapi.ListModeHistoryRequestObject) (openapi.ListModeHistoryResponseObject, error) {
	e, err := a.InspectableResource(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	table, err := core.WantsCSV(r.Params.Format)
	if err != nil {
		return nil, err
	}
	in, err := a.Input()
	if err != nil {
		return nil, err
	}
	reader := accesshistory.Reader{Tickets: a.Tickets.Store, Ledger: a.Ledger}
	history, err := reader.Modes(core.RequestContext(ctx), e, in, a.Now())
	if err != nil {
		return nil, err
	}
	list := openapi.ModeHistory{Items: []openapi.ModeChange{}, Cut: history.Cut, RecordsBegin: views.Time(history.Begin)}
	for i := range history.Changes {
		list.Items = append(list.Items, modeChange(a.Catalog(), &history.Changes[i]))
	}
	if table {
		return newModesTable(e, &list), nil
	}
	return openapi.ListModeHistory200JSONResponse(list), nil
}

func modeChange(c *catalog.Catalog, m *accesshistory.ModeChange) openapi.ModeChange {
	x := openapi.ModeChange{At: m.At.UTC(), Kind: openapi.ModeChangeKind(m.Kind), EffectiveAt: views.Time(m.Effective), Until: views.Time(m.Until),
		Reason: core.Optional(m.Reason), Object: core.Optional(m.Object)}
	if m.From != "" {
		x.From = new(openapi.Mode(m.From))
	}
	if m.To != "" {
		x.To = new(openapi.Mode(m.To))
	}
	if len(m.Clusters) > 0 {
		x.ClusterModes = new(clusterModes(m.Clusters))
	}
	switch {
	case m.Kind == accesshistory.ModeOutside:
		x.OutsideBy = core.Optional(m.Actor)
	case m.Actor == rollout.GuardName:
		x.ByGuard = new(true)
	case m.Actor != "":
		x.By = new(views.Person(c, m.Actor))
	}
	if m.Ticket != nil {
		x.Ticket = new(m.Ticket.ID())
	}
	return x
}

// clusterModes returns the views of the modes of single members.
func clusterModes(modes []v1alpha1.ClusterMode) []openapi.PastClusterMode {
	out := make([]openapi.PastClusterMode, 0, len(modes))
	for _, m := range modes {
		out = append(out, openapi.PastClusterMode{Cluster: string(m.Cluster), Mode: openapi.Mode(m.Mode)})
	}
	return out
}

// modesTable is the answer as CSV.
type modesTable struct {
	core.Table[openapi.ModeChange]
}

// VisitListModeHistoryResponse implements openapi.ListModeHistoryResponseObject.
func (t *modesTable) VisitListModeHistoryResponse(w http.ResponseWriter) error { return t.Write(w) }

func newModesTable(e catalog.Entity, list *openapi.ModeHistory) *modesTable {
	return &modesTable{core.Table[openapi.ModeChange]{Name: "modes-" + e.ID + ".csv", Columns: modeColumns(e), Rows: list.Items}}
}

// modeColumns returns the columns of the changes of a resource's mode.
func modeColumns(e catalog.Entity) []core.Column[openapi.ModeChange] {
	type change = openapi.ModeChange
	return []core.Column[change]{
		{Name: "resource", Value: func(change) string { return e.Name }},
		{Name: "at", Value: func(x change) string { return instant(&x.At) }},
		{Name: "kind", Value: func(x change) string { return string(x.Kind) }},
		{Name: "from", Value: func(x change) string { return string(core.Value(x.From)) }},
		{Name: "to", Value: func(x change) string { return string(core.Value(x.To)) }},
		{Name: "other modes", Value: func(x change) string {
			var others []string
			for _, m := range core.Value(x.ClusterModes) {
				others = append(others, m.Cluster+"="+string(m.Mode))
			}
			return strings.Join(others, " ")
		}},
		{Name: "effective at", Value: func(x change) string { return instant(x.EffectiveAt) }},
		{Name: "until", Value: func(x change) string { return instant(x.Until) }},
		{Name: "by", Value: func(x change) string {
			switch {
			case x.By != nil:
				return x.By.Id
			case core.Value(x.ByGuard):
				return rollout.GuardName
			}
			return core.Value(x.OutsideBy)
		}},
		{Name: "reason", Value: func(x change) string { return core.Value(x.Reason) }},
		{Name: "ticket", Value: func(x change) string { return core.Value(x.Ticket) }},
		{Name: "object", Value: func(x change) string { return core.Value(x.Object) }},
	}
}
