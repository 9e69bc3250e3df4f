package ticketapi

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	// useSources is the maximum number of pairs of members that are returned with a use.
	useSources = 5
	// maxAffectedClients bounds the names that are kept to count the clients of a class.
	maxAffectedClients = 10_000
)

// observedFacts adds the facts that come from flows to the items of a page. After an error the facts are incomplete.
func (fr *factsReader) observedFacts(ctx context.Context, page []*factItem) error {
	byResource := map[string][]*factItem{}
	var resources []string
	for _, f := range page {
		if f.ResourceName == "" || !f.rights.clients {
			continue
		}
		if byResource[f.ResourceName] == nil {
			resources = append(resources, f.ResourceName)
		}
		byResource[f.ResourceName] = append(byResource[f.ResourceName], f)
	}
	fleet := insight.FleetOf(fr.api.Host.Members())
	watched := sync.OnceValues(func() (*insight.Watch, error) { return insight.Watched(ctx, fr.api.Flows, fr.since, fr.until, nil) })
	if len(resources) > 0 { // no names would mean all
		watch, err := watched()
		if err != nil {
			return err
		}
		observed, err := observedClients(ctx, fr.api.Flows, fr.catalog, resources, fr.since, fr.until)
		if err != nil {
			return err
		}
		for name, items := range byResource {
			x := observed[name]
			x.Watched = watchOf(watch.ReliabilityOf(fleet, fr.snap, name, fr.since))
			for _, f := range items {
				f.out.Observed = &x
			}
		}
	}
	for _, f := range page {
		if !f.since.IsZero() {
			use, err := fr.useOf(ctx, fleet, f)
			if err != nil {
				return err
			}
			f.out.Use = use
		}
		if len(f.affected) > 0 {
			n, err := countClients(ctx, fr.api.Flows, f.affected, fr.since, fr.until)
			if err != nil {
				return err
			}
			f.out.Affected.Clients = &n
		}
		if err := fr.observedScope(ctx, watched, f); err != nil {
			return err
		}
	}
	return nil
}

// observedScope adds the facts that come from flows to an item about a statement or a registration of clients.
func (fr *factsReader) observedScope(ctx context.Context, watched func() (*insight.Watch, error), f *factItem) error {
	if f.scope != nil && len(f.scope.examined) > 0 { // no names would mean all
		watch, err := watched()
		if err != nil {
			return err
		}
		if f.out.Statement.Observed, err = fr.coveredClients(ctx, watch, f); err != nil {
			return err
		}
	}
	if f.scope != nil && f.rights.any() && f.State == approval.StatePending {
		effect, err := fr.statementEffect(ctx, f)
		if err != nil {
			return err
		}
		f.out.Statement.Effect = effect
	}
	if f.workload != nil && len(f.workload.reached) > 0 && len(f.workload.added.ranges) > 0 {
		watch, err := watched()
		if err != nil {
			return err
		}
		if f.out.Workload.Observed, err = fr.addressUse(ctx, watch, f.workload); err != nil {
			return err
		}
	}
	return nil
}

// observedClients returns the clients of resources in a window. The store returns the edges of a resource together, and of these the edges of a
// subject, so only the listed clients are kept in memory.
func observedClients(
	ctx context.Context,
	flows audit.Reader,
	c *catalog.Catalog,
	resources []string,
	since, until time.Time,
) (map[string]openapi.ObservedFacts, error) {
	out := map[string]openapi.ObservedFacts{}
	for _, name := range resources {
		out[name] = openapi.ObservedFacts{Items: []openapi.ObservedClient{}}
	}
	var resource, subject string
	var current openapi.ObservedClient
	flush := func() {
		if subject == "" {
			return
		}
		x := out[resource]
		x.Total++
		current.Subject = views.Ref(c, subject)
		x.Items = append(x.Items, current)
		slices.SortStableFunc(x.Items, byConnections)
		x.Items = x.Items[:min(len(x.Items), factNames)]
		out[resource] = x
		subject, current = "", openapi.ObservedClient{}
	}
	err := flows.Totals(ctx, audit.Filter{Resources: resources, Since: since, Until: until}, func(t audit.Total) error {
		if t.Resource != resource || t.Subject != subject {
			flush()
			resource, subject = t.Resource, t.Subject
		}
		if t.Subject == "" {
			x := out[t.Resource]
			x.Unnamed += t.Count
			out[t.Resource] = x
			return nil
		}
		if t.Decision.LetsThrough() {
			current.Count += t.Count
		} else {
			current.Refused += t.Count
		}
		if at := t.LastSeen.UTC(); at.After(current.LastSeen) {
			current.LastSeen = at
		}
		return nil
	})
	flush()
	return out, err
}

// useOf returns the use of the access of an item since it was granted: the connections of the application to the resource by one of the
// actions. A workload with several names counts if the application is one of them.
func (fr *factsReader) useOf(ctx context.Context, fleet insight.Fleet, f *factItem) (*openapi.UseFacts, error) {
	watch, err := insight.Watched(ctx, fr.api.Flows, f.since, fr.until, nil)
	if err != nil {
		return nil, err
	}
	reliable := watch.ReliabilityOf(fleet, fr.snap, f.ResourceName, f.since)
	out := &openapi.UseFacts{Since: f.since.UTC(), State: openapi.UseFactsStateUnknown, From: []openapi.UseSource{}, Watched: watchOf(reliable)}
	var last time.Time
	sources := map[[2]string]*openapi.UseSource{} // of members, of which there are few
	err = fr.api.Flows.Totals(ctx, audit.Filter{Resources: []string{f.ResourceName}, Since: f.since, Until: fr.until}, func(t audit.Total) error {
		if t.Subject != f.ApplicationName && !hasName(t.OtherSubjects, f.ApplicationName) || !gives(f.Actions, t.Action) {
			return nil
		}
		if !t.Decision.LetsThrough() {
			out.Refused += t.Count
			return nil
		}
		at := t.LastSeen.UTC()
		out.Count += t.Count
		if at.After(last) {
			last = at
		}
		key := [2]string{t.SourceCluster, t.Cluster}
		s := sources[key]
		if s == nil {
			s = &openapi.UseSource{From: t.SourceCluster, To: t.Cluster}
			sources[key] = s
		}
		s.Count += t.Count
		if at.After(s.LastUsed) {
			s.LastUsed = at
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		out.From = append(out.From, *s)
	}
	slices.SortFunc(out.From, func(x, y openapi.UseSource) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), strings.Compare(x.From, y.From), strings.Compare(x.To, y.To))
	})
	out.Total, out.From = len(out.From), out.From[:min(len(out.From), useSources)]
	out.LastUsed = views.Time(last)
	switch {
	case out.LastUsed != nil:
		out.State = openapi.UseFactsStateUsed
	case reliable.Enough:
		out.State = openapi.UseFactsStateUnused
	}
	return out, nil
}

// gives reports whether the actions of an item contain that of a connection. Connections whose action is not known may be of any action.
func gives(actions []string, action string) bool {
	return action == "" || len(actions) == 0 || slices.Contains(actions, action) || slices.ContainsFunc(actions, func(a string) bool {
		prefix, wild := strings.CutSuffix(a, "*")
		return wild && strings.HasPrefix(action, prefix)
	})
}

// countClients returns the number of named clients of resources in a window, at most maxAffectedClients.
func countClients(ctx context.Context, flows audit.Reader, resources []string, since, until time.Time) (int, error) {
	clients := map[string]bool{}
	err := flows.Totals(ctx, audit.Filter{Resources: resources, Since: since, Until: until}, func(t audit.Total) error {
		if t.Subject != "" && len(clients) < maxAffectedClients {
			clients[t.Subject] = true
		}
		return nil
	})
	return len(clients), err
}

// watchOf returns the view of how completely a resource was watched. Percentages are rounded so that they do not look better than they are.
func watchOf(r insight.Reliability) openapi.WatchFacts {
	percent, lost := math.Floor(r.Watched*1000)/10, math.Ceil(r.Lost*1000)/10
	return openapi.WatchFacts{Enough: r.Enough, Percent: float32(percent), LostPercent: float32(lost), Member: core.Optional(r.Member)}
}
