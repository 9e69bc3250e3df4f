package ticketapi

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// statementScope is what the names of an item about a statement cover while its facts are collected.
type statementScope struct {
	subjects, resources *scopeNames
	// covered are the names of the covered resources, the most sensitive first, and examined those of them whose connections are counted.
	covered, examined []string
	// hidden reports whether some are covered whose connections the caller may not see.
	hidden bool
	// registered are the addresses of applications outside of the fleet. It is nil if the statement has no range of addresses.
	registered map[string][]netip.Prefix
}

// statementRights returns what a person who does not decide an item may see of the facts about its statement: the connections of the resources
// that they own, and earlier statements if they own all that the statement covers on one of its sides.
func statementRights(c *catalog.Catalog, who approval.Actor, scope *approval.StatementScope) factRights {
	r := factRights{part: scope.OwnedInPart(c, who.ID)}
	if !r.part {
		return r
	}
	r.clients, r.reached = scope.OwnsResources(c, who.ID), scope.OwnsSubjects(c, who.ID)
	r.pair = r.clients || r.reached
	return r
}

// statementFacts adds the facts about a statement that need no flows.
func (fr *factsReader) statementFacts(ctx context.Context, f *factItem) error {
	in, err := fr.api.Input()
	if err != nil {
		return err
	}
	s := &statementScope{subjects: newScopeNames(f.Scope.Subjects), resources: newScopeNames(f.Scope.Resources)}
	if len(s.subjects.ranges) > 0 {
		s.registered = addressesOf(in)
	}
	f.scope = s
	resources := coveredResources(fr.catalog, fr.snap, f.Scope.Resources)
	f.out.Statement = &openapi.StatementFacts{Resources: fr.resourceFacts(s.resources, resources), Subjects: subjectFacts(fr.catalog, f.Scope, s)}
	hidden := false
	for _, r := range resources {
		s.covered = append(s.covered, r.ref.Name)
		switch {
		case !f.rights.change && !views.MayInspectName(fr.catalog, fr.caller, r.ref.Name):
			hidden = true
		case len(s.examined) < maxReplayed:
			s.examined = append(s.examined, r.ref.Name)
		}
	}
	if s.hidden = hidden; hidden {
		f.hide(openapi.ItemFactsHiddenObserved)
	}
	if !f.rights.pair {
		f.hide(openapi.ItemFactsHiddenEarlier)
		return nil
	}
	return fr.earlierStatements(ctx, f)
}

// coveredResource is a resource with what sorts it.
type coveredResource struct {
	ref         openapi.CatalogRef
	sensitivity *openapi.Sensitivity
}

// coveredResources returns the resources of the catalog, and those that are onboarded without being in it, that names cover: the most sensitive
// first.
func coveredResources(c *catalog.Catalog, snap *policy.Snapshot, written []string) []coveredResource {
	var out []coveredResource
	found := map[string]bool{}
	add := func(name string) {
		if !found[name] {
			found[name] = true
			out = append(out, coveredResource{views.Ref(c, name), sensitivityOf(c, name)})
		}
	}
	for e := range approval.ResourcesCoveredBy(c, written) {
		add(e.Name)
	}
	names := newScopeNames(written)
	for _, name := range snap.ProtectedResources() {
		if names.covers(name) {
			add(name)
		}
	}
	slices.SortFunc(out, func(x, y coveredResource) int {
		return cmp.Or(sensitivityRank[core.Value(y.sensitivity)]-sensitivityRank[core.Value(x.sensitivity)], byTitle(x.ref, y.ref))
	})
	return out
}

// resourceFacts returns the view of the resources that a statement covers.
func (fr *factsReader) resourceFacts(names *scopeNames, covered []coveredResource) openapi.CoveredResources {
	out := openapi.CoveredResources{Total: len(covered), Later: names.names.CoverLater(), Items: []openapi.CoveredResource{}}
	for _, r := range covered {
		countSensitivity(&out.Sensitivities, r.sensitivity)
		if !fr.snap.IsProtected(r.ref.Name) {
			out.NotOnboarded++
		}
	}
	for _, r := range covered[:min(len(covered), factNames)] {
		x := openapi.CoveredResource{Resource: r.ref, Sensitivity: r.sensitivity, Owners: []openapi.OwnerRef{}}
		if e, ok := fr.catalog.ByName(r.ref.Name); ok {
			x.Owners = views.Owners(fr.catalog, e)
		}
		if p := fr.api.Host.Protection(r.ref.Name); p != nil {
			x.Mode = modeOf(p.Spec.Mode)
		}
		out.Items = append(out.Items, x)
	}
	return out
}

func countSensitivity(n *openapi.SensitivityCounts, s *openapi.Sensitivity) {
	switch core.Value(s) {
	case openapi.SensitivityHigh:
		n.High++
	case openapi.SensitivityMedium:
		n.Medium++
	case openapi.SensitivityLow:
		n.Low++
	default:
		n.Unknown++
	}
}

// subjectFacts returns the view of the clients that a statement is about.
func subjectFacts(c *catalog.Catalog, scope *approval.StatementScope, s *statementScope) openapi.CoveredSubjects {
	out := openapi.CoveredSubjects{Anyone: s.subjects.anyone, Later: s.subjects.names.CoverLater(), Addresses: []string{}}
	var covered, registered []openapi.CatalogRef
	for e := range scope.CoveredApplications(c) {
		covered = append(covered, views.Ref(c, e.Name))
	}
	for name, addresses := range s.registered {
		if s.subjects.within(addresses...) != outside {
			registered = append(registered, views.Ref(c, name))
		}
	}
	for _, p := range s.subjects.ranges {
		out.Addresses = append(out.Addresses, p.String())
	}
	out.Applications, out.Registered = nameFacts(covered), nameFacts(registered)
	return out
}

// nameFacts returns the first names by their titles, and the number of all.
func nameFacts(refs []openapi.CatalogRef) openapi.NameFacts {
	slices.SortFunc(refs, byTitle)
	return openapi.NameFacts{Total: len(refs), Items: append([]openapi.CatalogRef{}, refs[:min(len(refs), factNames)]...)}
}

// earlierStatements adds those of the last earlierRead statements before a ticket that overlap with the statement of an item: of some resource
// and some client both may be about.
func (fr *factsReader) earlierStatements(ctx context.Context, f *factItem) error {
	list, err := fr.api.Tickets.Store.List(core.RequestContext(ctx), approval.Filter{Kinds: []approval.Kind{approval.KindStatement},
		After: approval.Cursor{Number: fr.ticket.Number}, Limit: earlierRead + 1, OmitEvents: true})
	if err != nil {
		return err
	}
	out := &openapi.EarlierFacts{Items: []openapi.EarlierTicket{}, More: len(list) > earlierRead}
	for _, t := range list[:min(len(list), earlierRead)] {
		i := slices.IndexFunc(t.Items, func(it approval.Item) bool {
			return it.Scope != nil && f.scope.resources.overlaps(newScopeNames(it.Scope.Resources)) &&
				f.scope.subjects.overlaps(newScopeNames(it.Scope.Subjects))
		})
		if i < 0 {
			continue
		}
		if out.Total++; len(out.Items) < earlierShown {
			out.Items = append(out.Items, earlierTicket(fr.catalog, fr.caller, t, i))
		}
	}
	f.out.Earlier = out
	return nil
}

// clientUse is the use of the resources of a statement by one client.
type clientUse struct {
	count, refused int64
	lastSeen       time.Time
}

// coveredClients returns the clients within the subjects of a statement that were observed at its resources in a window. At most
// maxAffectedClients of them are kept in memory.
func (fr *factsReader) coveredClients(ctx context.Context, watch *insight.Watch, f *factItem) (*openapi.CoveredClients, error) {
	s := f.scope
	out := &openapi.CoveredClients{Resources: len(s.covered), Examined: len(s.examined), Items: []openapi.ObservedClient{},
		Watched: watchOf(watch.WorstOf(insight.FleetOf(fr.api.Host.Members()), fr.snap, s.examined, fr.since))}
	clients := map[string]*clientUse{}
	err := fr.api.Flows.Totals(ctx, audit.Filter{Resources: s.examined, Since: fr.since, Until: fr.until}, func(t audit.Total) error {
		if !gives(f.Actions, t.Action) {
			return nil
		}
		switch s.subjects.matches(&t.Edge, s.registered) {
		case unsure:
			out.Uncertain += t.Count
			return nil
		case outside:
			return nil
		}
		if t.Subject == "" {
			out.Unnamed += t.Count
			return nil
		}
		use := clients[t.Subject]
		if use == nil {
			if len(clients) == maxAffectedClients {
				out.More = true
				return nil
			}
			use = &clientUse{}
			clients[t.Subject] = use
		}
		if t.Decision.LetsThrough() {
			use.count += t.Count
		} else {
			use.refused += t.Count
		}
		if t.LastSeen.After(use.lastSeen) {
			use.lastSeen = t.LastSeen
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Total = len(clients)
	for name, use := range clients {
		out.Items = append(
			out.Items,
			openapi.ObservedClient{Subject: views.Ref(fr.catalog, name), Count: use.count, Refused: use.refused, LastSeen: use.lastSeen.UTC()},
		)
	}
	slices.SortFunc(out.Items, byConnections)
	out.Items = slices.Clone(out.Items[:min(len(out.Items), factNames)])
	return out, nil
}

// byConnections orders clients by their connections, descending.
func byConnections(x, y openapi.ObservedClient) int {
	return cmp.Or(cmp.Compare(y.Count+y.Refused, x.Count+x.Refused), byTitle(x.Subject, y.Subject))
}

// statementEffect returns what an item about a statement changes for the connections of a window, with the same replay as the impact of the
// item. It adds to what is hidden if a part of it is about neither a resource nor an application that the caller owns.
func (fr *factsReader) statementEffect(ctx context.Context, f *factItem) (*openapi.EffectFacts, error) {
	in, err := fr.api.Input()
	if err != nil {
		return nil, err
	}
	w := window{since: fr.since, until: fr.until}
	found, err := fr.api.replayed(ctx, fr.snap, in, f.kind, []approval.Item{*f.Item}, w)
	if err != nil {
		return nil, err
	}
	impact := emptyImpact(w)
	fr.api.impactOf(fr.caller, found, func(string) bool { return f.rights.change }, !f.scope.hidden, &impact)
	if impact.Message != nil {
		f.hide(openapi.ItemFactsHiddenObserved)
	}
	return &openapi.EffectFacts{
		LetsIn:    changedClients(impact.Allowed, impact.NewlyAllowed),
		CutsOff:   changedClients(impact.Denied, impact.NewlyDenied),
		Otherwise: changedClients(core.Value(impact.OtherwiseTotal), core.Value(impact.Otherwise)),
		Unknown:   len(impact.Uncertain),
		Truncated: impact.Truncated,
	}, nil
}

// changedClients sums up lines of an impact, which are ordered by their connections, by their clients.
func changedClients(total openapi.ImpactTotal, lines []openapi.ImpactLine) openapi.ChangedClients {
	type client struct {
		openapi.ChangedClient
		resources map[string]bool
	}
	clients := map[string]*client{}
	for _, l := range lines {
		key := l.Subject.Name + "\n" + l.Subject.Title // a source without a name has only a title
		x := clients[key]
		if x == nil {
			x = &client{openapi.ChangedClient{Subject: l.Subject, Before: l.Before}, map[string]bool{}}
			clients[key] = x
		}
		x.Count += l.Count
		x.resources[l.Resource.Name+"\n"+l.Resource.Title] = true
		if l.LastSeen.After(x.LastSeen) {
			x.LastSeen = l.LastSeen
		}
	}
	out := openapi.ChangedClients{Connections: total.Connections, Clients: total.Clients, Items: []openapi.ChangedClient{}}
	for _, x := range clients {
		x.Resources = len(x.resources)
		out.Items = append(out.Items, x.ChangedClient)
	}
	slices.SortFunc(out.Items, func(x, y openapi.ChangedClient) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), byTitle(x.Subject, y.Subject))
	})
	out.Items = slices.Clone(out.Items[:min(len(out.Items), factNames)])
	return out
}
