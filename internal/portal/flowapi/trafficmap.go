package flowapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// maxTrafficLinks is the maximum number of links of a traffic map.
const maxTrafficLinks = 20_000

// GetTrafficMap implements openapi.StrictServerInterface.
func (a *API) GetTrafficMap(ctx context.Context, r openapi.GetTrafficMapRequestObject) (openapi.GetTrafficMapResponseObject, error) {
	p := r.Params
	table, err := core.WantsCSV(p.Format)
	if err != nil {
		return nil, err
	}
	f, err := a.filterUpTo(
		core.Caller(ctx),
		openapi.ListFlowsParams{Since: p.Since, Until: p.Until, Subject: p.Subject, Resource: p.Resource, Cluster: p.Cluster, Q: p.Q},
		views.MaxTotalsWindow,
	)
	if err != nil {
		return nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	out := openapi.TrafficMap{Since: f.Since, Until: f.Until, Nodes: []openapi.TrafficNode{}, Links: []openapi.TrafficLink{}, Teams: []openapi.OwnerRef{}}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	edges, cut := governance.Edges(snap, a.Now(), func(e *governance.Edge) bool { return e.Effect == policy.Allow })
	traffic := governance.NewTraffic(edges, a.Now())
	err = a.Flows.Totals(limited, f, func(x audit.Total) error {
		traffic.Add(x)
		return nil
	})
	if err == nil {
		out.LastFlow, err = a.newestFlow(limited)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		out.Message, err = new(message.FlowsTooSlow()), audit.ErrUnavailable
	}
	if out.Available, err = a.readable(err); err != nil {
		return nil, err
	}
	if out.Available {
		// Without flows, every statement would look unused.
		links, further := traffic.Links(grantFilter(f))
		out.Cut = cut || further
		a.drawTraffic(&out, snap, links)
	}
	if table {
		return newTrafficTable(&out), nil
	}
	return openapi.GetTrafficMap200JSONResponse(out), nil
}

// grantFilter returns the condition for unused statements: they match the names and the text of the filter, and the caller may see them
// because of an exact name that the caller owns, or of a resource of the caller that a wildcard covers.
func grantFilter(f audit.Filter) func(*governance.Edge) bool {
	part := strings.ToLower(f.Text)
	var subjects, resources map[string]bool
	if f.Within != nil {
		subjects, resources = setOf(f.Within.Subjects), setOf(f.Within.Resources)
	}
	return func(e *governance.Edge) bool {
		switch {
		case part != "" && !strings.Contains(strings.ToLower(e.Subject), part) && !strings.Contains(strings.ToLower(e.Resource), part),
			len(f.Subjects) > 0 && !coversAny(e.Subject, f.Subjects), len(f.Resources) > 0 && !coversAny(e.Resource, f.Resources):
			return false
		}
		return f.Within == nil || subjects[e.Subject] || resources[e.Resource] || e.Wildcard && coversAny(e.Resource, f.Within.Resources)
	}
}

func setOf(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}

// coversAny reports whether an end as written equals or covers one of the names.
func coversAny(written string, names []string) bool {
	for _, n := range names {
		if governance.Covers(written, n) {
			return true
		}
	}
	return false
}

// drawTraffic adds the links and their ends to the map.
func (a *API) drawTraffic(out *openapi.TrafficMap, snap *policy.Snapshot, links []governance.TrafficLink) {
	out.Total, out.Cut = len(links), out.Cut || len(links) > maxTrafficLinks
	d := trafficDrawer{c: a.Catalog(), snap: snap, out: out, nodes: map[string]int{}, teams: map[catalog.Owner]int{}}
	for i := range links[:min(len(links), maxTrafficLinks)] {
		l := &links[i]
		x := openapi.TrafficLink{From: d.subject(l), To: d.resource(l), LastSeen: views.Time(l.LastSeen), LastUsed: views.Time(l.LastUsed)}
		for decision, n := range l.Seen {
			switch decision {
			case policy.Allowed:
				x.Allowed = &n
			case policy.Audited:
				x.Audited = &n
			case policy.Unmanaged:
				x.Unmanaged = &n
			case policy.DefaultDenied:
				x.DefaultDenied = &n
			case policy.Denied:
				x.Denied = &n
			}
		}
		if l.Disagrees {
			x.Disagrees = new(true)
		}
		if g := l.Grant; g != nil {
			x.Granted, x.Policy, x.Sid, x.NotAfter = new(true), &g.Ref.Policy, &g.Ref.SID, views.Time(g.NotAfter)
			x.Ticket = views.StatementTicket(g.Ref, g.Resource)
		}
		out.Links = append(out.Links, x)
	}
}

// trafficDrawer collects the ends of the links of a traffic map, each once on its side.
type trafficDrawer struct {
	c     *catalog.Catalog
	snap  *policy.Snapshot
	out   *openapi.TrafficMap
	nodes map[string]int
	teams map[catalog.Owner]int
}

func (d *trafficDrawer) subject(l *governance.TrafficLink) int {
	kind := openapi.TrafficNodeKindUnnamed
	if l.Subject != "" {
		kind = openapi.TrafficNodeKind(governance.KindOfSubject(d.snap, l.Subject))
	}
	return d.node("s", l.Subject, l.Source, kind)
}

func (d *trafficDrawer) resource(l *governance.TrafficLink) int {
	kind := openapi.TrafficNodeKindResource
	switch {
	case l.Resource == "":
		kind = openapi.TrafficNodeKindUnnamed
	case strings.HasSuffix(l.Resource, "*"):
		kind = openapi.TrafficNodeKindWildcard
	}
	return d.node("r", l.Resource, l.Destination, kind)
}

// node returns the place of an end. Without a name it has the description as its title.
func (d *trafficDrawer) node(side, name, description string, kind openapi.TrafficNodeKind) int {
	key := side + "\x00" + name + "\x00" + description
	if i, ok := d.nodes[key]; ok {
		return i
	}
	n := openapi.TrafficNode{Title: description, Kind: kind}
	if name != "" {
		ref := views.Ref(d.c, name)
		n.Name, n.Title, n.Id = name, ref.Title, ref.Id
	}
	if e, ok := d.c.ByName(name); ok && len(e.Owners) > 0 {
		n.Team = new(d.team(e.Owners[0]))
	}
	i := len(d.out.Nodes)
	d.nodes[key] = i
	d.out.Nodes = append(d.out.Nodes, n)
	return i
}

func (d *trafficDrawer) team(o catalog.Owner) int {
	i, ok := d.teams[o]
	if !ok {
		i = len(d.out.Teams)
		d.teams[o] = i
		d.out.Teams = append(d.out.Teams, openapi.OwnerRef{Kind: openapi.OwnerRefKind(o.Kind), Id: o.ID, DisplayName: d.c.OwnerName(o)})
	}
	return i
}

// trafficTable is a traffic map as CSV, with one row for each link.
type trafficTable struct {
	core.Table[*openapi.TrafficLink]
}

// VisitGetTrafficMapResponse implements openapi.GetTrafficMapResponseObject.
func (t *trafficTable) VisitGetTrafficMapResponse(w http.ResponseWriter) error { return t.Write(w) }

// newTrafficTable returns the table of a map.
func newTrafficTable(m *openapi.TrafficMap) *trafficTable {
	out := &trafficTable{core.Table[*openapi.TrafficLink]{
		Name:    "traffic-map-" + m.Until.UTC().Format("20060102-1504") + ".csv",
		Columns: trafficColumns(m),
	}}
	for i := range m.Links {
		out.Rows = append(out.Rows, &m.Links[i])
	}
	return out
}

// trafficColumns returns the columns of the links of a map. A count is empty if nothing was seen, and 0 if only earlier connections are still
// open.
func trafficColumns(m *openapi.TrafficMap) []core.Column[*openapi.TrafficLink] {
	type link = *openapi.TrafficLink
	from, to := func(l link) openapi.TrafficNode { return m.Nodes[l.From] }, func(l link) openapi.TrafficNode { return m.Nodes[l.To] }
	team := func(n openapi.TrafficNode) string {
		if n.Team == nil {
			return ""
		}
		return m.Teams[*n.Team].DisplayName
	}
	count := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	instant := func(at *time.Time) string {
		if at == nil {
			return ""
		}
		return at.Format(time.RFC3339)
	}
	return []core.Column[link]{
		{Name: "application", Value: func(l link) string { return from(l).Name }},
		{Name: "application title", Value: func(l link) string { return from(l).Title }},
		{Name: "application team", Value: func(l link) string { return team(from(l)) }},
		{Name: "resource", Value: func(l link) string { return to(l).Name }},
		{Name: "resource title", Value: func(l link) string { return to(l).Title }},
		{Name: "resource team", Value: func(l link) string { return team(to(l)) }},
		{Name: "allowed", Value: func(l link) string { return count(l.Allowed) }},
		{Name: "audited", Value: func(l link) string { return count(l.Audited) }},
		{Name: "unmanaged", Value: func(l link) string { return count(l.Unmanaged) }},
		{Name: "default denied", Value: func(l link) string { return count(l.DefaultDenied) }},
		{Name: "denied", Value: func(l link) string { return count(l.Denied) }},
		{Name: "last seen", Value: func(l link) string { return instant(l.LastSeen) }},
		{Name: "granted", Value: func(l link) string { return strconv.FormatBool(core.Value(l.Granted)) }},
		{Name: "last used", Value: func(l link) string { return instant(l.LastUsed) }},
		{Name: "until", Value: func(l link) string { return instant(l.NotAfter) }},
		{Name: "policy", Value: func(l link) string { return core.Value(l.Policy) }},
		{Name: "statement", Value: func(l link) string { return core.Value(l.Sid) }},
		{Name: "ticket", Value: func(l link) string { return core.Value(l.Ticket) }},
	}
}
