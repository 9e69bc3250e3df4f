package ticketapi

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// workloadScope is what a registration of clients is about while its facts are collected.
type workloadScope struct {
	// added are the ranges of addresses that become those of the application.
	added scopeNames
	// reached are the names of the resources that the application reaches, the most sensitive first, at most maxReplayed.
	reached []string
	// more reports whether there are more of them, which are not searched for connections.
	more bool
}

// workloadFacts adds the facts about a registration of clients: what its new addresses reach already, and which resources are searched for
// connections from them. What the application reaches, which they would reach, is in ItemFacts.Reached.
func (fr *factsReader) workloadFacts(f *factItem) error {
	before, err := registeredAddresses(f.Change.Before)
	if err != nil {
		return err
	}
	after, err := registeredAddresses(f.Change.After)
	if err != nil {
		return err
	}
	in := func(all []string) func(string) bool { return func(x string) bool { return slices.Contains(all, x) } }
	out := &openapi.WorkloadFacts{
		Added:   append([]string{}, slices.DeleteFunc(slices.Clone(after), in(before))...),
		Removed: append([]string{}, slices.DeleteFunc(slices.Clone(before), in(after))...),
	}
	f.out.Workload = out
	if !f.rights.change {
		f.hide(openapi.ItemFactsHiddenAddresses)
		return nil
	}
	w := &workloadScope{added: scopeNames{ranges: prefixesOf(out.Added)}}
	f.workload = w
	out.ByAddress = reachedOf(fr.catalog, grantsByAddress(fr.snap, w.added.ranges, fr.until), fr.until)
	var names []string
	for _, g := range fr.snap.WhatCanReach(f.ApplicationName, fr.until) {
		if inForce(g, fr.until) {
			names = append(names, g.Resource)
		}
	}
	slices.Sort(names)
	for _, r := range coveredResources(fr.catalog, fr.snap, slices.Compact(names)) {
		if w.more = len(w.reached) == maxReplayed; w.more {
			break
		}
		w.reached = append(w.reached, r.ref.Name)
	}
	return nil
}

// registeredAddresses returns the addresses in the spec of an ExternalWorkload; none if there is no spec.
func registeredAddresses(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var spec v1alpha1.ExternalWorkloadSpec
	err := json.Unmarshal(raw, &spec)
	return spec.Addresses, err
}

// grantsByAddress returns the grants about anyone, and about ranges of addresses that overlap with some addresses.
func grantsByAddress(snap *policy.Snapshot, addresses []netip.Prefix, now time.Time) []policy.Grant {
	found := map[string]bool{}
	for _, s := range snap.Statements() {
		for _, subject := range s.Statement.Subjects {
			name := string(subject)
			if _, ok := found[name]; ok {
				continue
			}
			written := newScopeNames([]string{name})
			found[name] = slices.ContainsFunc(addresses, func(p netip.Prefix) bool { return slices.ContainsFunc(written.ranges, p.Overlaps) })
		}
	}
	out := snap.WhatCanReach(anyone, now)
	for name, overlaps := range found {
		if overlaps {
			out = append(out, snap.WhatCanReach(name, now)...) // with those about anyone again, which reachedOf merges
		}
	}
	return out
}

// addressUse returns the connections from new addresses of a registration in a window. They have no name until now, and are recorded by
// ranges, so it is often not known whether one came from an added address.
func (fr *factsReader) addressUse(ctx context.Context, watch *insight.Watch, w *workloadScope) (*openapi.AddressUse, error) {
	out := &openapi.AddressUse{Examined: len(w.reached),
		Watched: watchOf(watch.WorstOf(insight.FleetOf(fr.api.Host.Members()), fr.snap, w.reached, fr.since))}
	if w.more { // a connection to one of the others is not found
		out.Watched.Enough = false
	}
	var last time.Time
	filter := audit.Filter{Resources: w.reached, Unattributed: true, Since: fr.since, Until: fr.until}
	err := fr.api.Flows.Totals(ctx, filter, func(t audit.Total) error {
		if t.Subject != "" {
			return nil
		}
		switch w.added.matchesSource(t.Source) {
		case outside:
			return nil
		case unsure:
			out.Uncertain += t.Count
			return nil
		}
		if t.Decision.LetsThrough() {
			out.Count += t.Count
		} else {
			out.Refused += t.Count
		}
		if t.LastSeen.After(last) {
			last = t.LastSeen
		}
		return nil
	})
	out.LastSeen = views.Time(last)
	return out, err
}
