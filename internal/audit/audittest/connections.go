package audittest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

func connectionsFilter(t *testing.T, s audit.Store) {
	allowed := Edge()
	denied := Edge(func(e *audit.Edge) {
		e.Subject, e.Decision, e.Verdict, e.Statement = "trnv1:rsc:trip-com:iam:sa:app/889", policy.DefaultDenied, audit.VerdictDropped, policy.Ref{}
	})
	other := Edge(func(e *audit.Edge) { e.Resource = "trnv1:rsc:trip-com:redis:clusters:b" })
	outside := Edge(func(e *audit.Edge) { e.Subject, e.Source, e.SourceCluster = "", "203.0.113.0/24", "" })
	mustAppend(t, s, &audit.Batch{ID: "1", Rollups: []audit.Rollup{rollup(0, 1, allowed), rollup(1, 2, denied), rollup(2, 3, other), rollup(3, 4, outside)}})
	for name, tc := range map[string]struct {
		reason string
		filter audit.Filter
		want   []audit.Connection
	}{
		"Resource": {
			reason: "every client of the resource, also the one without a name",
			filter: audit.Filter{Resources: []string{allowed.Resource}},
			want:   []audit.Connection{connection(4, 3, 3, outside), connection(2, 1, 1, denied), connection(1, 0, 0, allowed)},
		},
		"Resources": {
			reason: "several names are alternatives",
			filter: audit.Filter{Resources: []string{other.Resource, "none"}},
			want:   []audit.Connection{connection(3, 2, 2, other)},
		},
		"Subject": {
			reason: "everything that the application connects to",
			filter: audit.Filter{Subjects: []string{allowed.Subject}},
			want:   []audit.Connection{connection(3, 2, 2, other), connection(1, 0, 0, allowed)},
		},
		"Decisions": {
			reason: "several words are alternatives",
			filter: audit.Filter{Decisions: []policy.Verdict{policy.Denied, policy.DefaultDenied}},
			want:   []audit.Connection{connection(2, 1, 1, denied)},
		},
		"Since": {
			reason: "a bucket counts whole, so that the minute that has begun is not lost",
			filter: audit.Filter{Since: T0.Add(2*time.Minute + 59*time.Second)},
			want:   []audit.Connection{connection(4, 3, 3, outside), connection(3, 2, 2, other)},
		},
		"Until": {
			reason: "a minute that the end lies in counts whole, one that it begins does not",
			filter: audit.Filter{Since: T0.Add(time.Minute), Until: T0.Add(2*time.Minute + time.Second)},
			want:   []audit.Connection{connection(3, 2, 2, other), connection(2, 1, 1, denied)},
		},
		"Clusters": {reason: "the destination's cluster", filter: audit.Filter{Clusters: []string{"m2"}}},
		"Actions":  {reason: "by the action's name", filter: audit.Filter{Actions: []string{"redis:admin"}}},
		"Ports":    {reason: "by the destination's port", filter: audit.Filter{Ports: []uint16{6380, 65535}}},
		"Verdicts": {
			reason: "what the dataplane did", filter: audit.Filter{Verdicts: []audit.Verdict{audit.VerdictDropped}},
			want: []audit.Connection{connection(2, 1, 1, denied)},
		},
		"Statement": {reason: "policy and statement narrow each other", filter: audit.Filter{Policy: "p", SID: "other"}},
		"SID": {
			reason: "what one statement decided", filter: audit.Filter{Policy: "p", SID: "s", Resources: []string{other.Resource}},
			want: []audit.Connection{connection(3, 2, 2, other)},
		},
		"Unattributed": {reason: "an endpoint has no name", filter: audit.Filter{Unattributed: true}, want: []audit.Connection{connection(4, 3, 3, outside)}},
		"Text": {
			reason: "a part of any name, whatever its case", filter: audit.Filter{Text: "APP/889"},
			want: []audit.Connection{connection(2, 1, 1, denied)},
		},
		"TextOfSource": {
			reason: "what stands for a name is searched too", filter: audit.Filter{Text: "0.113.0/"},
			want: []audit.Connection{connection(4, 3, 3, outside)},
		},
		"TextIsPlain": {reason: "no character of the text is a wildcard", filter: audit.Filter{Text: "app_8%"}},
		"Within": {
			reason: "either end in the scope is enough",
			filter: audit.Filter{Within: &audit.Scope{Subjects: []string{denied.Subject}, Resources: []string{other.Resource}}},
			want:   []audit.Connection{connection(3, 2, 2, other), connection(2, 1, 1, denied)},
		},
		"WithinNothing": {reason: "an empty scope selects nothing", filter: audit.Filter{Within: &audit.Scope{}}},
		"WithinNarrows": {
			reason: "a scope never widens a filter",
			filter: audit.Filter{Subjects: []string{allowed.Subject}, Within: &audit.Scope{Subjects: []string{denied.Subject}}},
		},
		"Both": {
			reason: "filters narrow each other",
			filter: audit.Filter{Subjects: []string{allowed.Subject}, Resources: []string{other.Resource}, Decisions: []policy.Verdict{policy.Denied}},
		},
		"Hostile": {
			reason: "a value is never part of the query's text",
			filter: audit.Filter{Resources: []string{`' OR 1=1 --`, `\' OR 1=1 --`, "{a:String}", "?", "@p1", "$1"}, Text: `%' OR 1=1 --`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			wantConnections(t, s, audit.ConnectionQuery{Filter: tc.filter}, tc.want...)
		})
	}
}

func connectionsOrderAndLimit(t *testing.T, s audit.Store) {
	b := &audit.Batch{ID: "1"}
	for i := range audit.DefaultPage + 5 {
		b.Rollups = append(b.Rollups, rollup(i, 1, Edge(func(e *audit.Edge) { e.Subject = fmt.Sprintf("trnv1:rsc:trip-com:iam:sa:app/%d", i) })))
	}
	mustAppend(t, s, b)
	got, err := s.Connections(t.Context(), audit.ConnectionQuery{})
	if err != nil {
		t.Fatalf("Connections: %v", err)
	}
	if len(got.Items) != audit.DefaultPage {
		t.Errorf("got %d connections without a limit, want %d", len(got.Items), audit.DefaultPage)
	}
	got, err = s.Connections(t.Context(), audit.ConnectionQuery{Limit: 3})
	if err != nil {
		t.Fatalf("Connections: %v", err)
	}
	if len(got.Items) != 3 {
		t.Fatalf("got %d connections with a limit of 3", len(got.Items))
	}
	for i, c := range got.Items {
		if want := fmt.Sprintf("trnv1:rsc:trip-com:iam:sa:app/%d", audit.DefaultPage+4-i); c.Subject != want {
			t.Errorf("connection %d: got subject %s, want %s (newest first)", i, c.Subject, want)
		}
	}
}

func deniedCounts(t *testing.T, s audit.Store) {
	deny := func(subject, resource string, w policy.Verdict) audit.Edge {
		return Edge(func(e *audit.Edge) { e.Subject, e.Resource, e.Decision = subject, resource, w })
	}
	mustAppend(t, s, &audit.Batch{ID: "1", Rollups: []audit.Rollup{
		rollup(0, 100, deny("s1", "r1", policy.Denied)),
		rollup(
			5,
			1,
			deny("s1", "r1", policy.Denied),
		),
		rollup(6, 2, deny("s1", "r1", policy.DefaultDenied)),
		rollup(5, 4, deny("s1", "r2", policy.DefaultDenied)),
		rollup(5, 8, deny("s2", "r1", policy.DefaultDenied)),
		rollup(5, 16, deny("s1", "r1", policy.Audited)),
		rollup(5, 32, deny("", "r1", policy.Denied)),
	}})
	since := T0.Add(5 * time.Minute)
	for name, tc := range map[string]struct {
		reason string
		query  audit.DeniedQuery
		want   map[string]int64
	}{
		"BySubject":  {"edges without a subject are omitted", audit.DeniedQuery{By: audit.BySubject, Since: since}, map[string]int64{"s1": 7, "s2": 8}},
		"ByResource": {"audited is not denied", audit.DeniedQuery{By: audit.ByResource, Since: since}, map[string]int64{"r1": 43, "r2": 4}},
		"SubjectsOfResource": {
			"filtered by the resource", audit.DeniedQuery{By: audit.BySubject, Resource: "r1", Since: since},
			map[string]int64{"s1": 3, "s2": 8},
		},
		"ResourcesOfSubject": {"filtered by the subject", audit.DeniedQuery{By: audit.ByResource, Subject: "s1"}, map[string]int64{"r1": 103, "r2": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Denied(t.Context(), tc.query)
			if err != nil {
				t.Fatalf("Denied: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: Denied (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := s.Denied(t.Context(), audit.DeniedQuery{By: "cluster; DROP TABLE edges"}); !errors.Is(err, audit.ErrInvalidQuery) {
		t.Errorf("Denied by an unknown name: %v, want ErrInvalidQuery", err)
	}
}

func connectionsDisagree(t *testing.T, s audit.Store) {
	b := &audit.Batch{ID: "1"}
	want := map[audit.Edge]bool{}
	for i, w := range []policy.Verdict{policy.Allowed, policy.Denied, policy.DefaultDenied, policy.Audited, policy.Unmanaged} {
		for _, v := range []audit.Verdict{audit.VerdictForwarded, audit.VerdictDropped, audit.VerdictAudit, audit.VerdictUnknown} {
			e := Edge(func(e *audit.Edge) { e.Decision, e.Verdict = w, v })
			b.Rollups = append(b.Rollups, rollup(i, 1, e))
			if e.Disagrees() {
				want[e] = true
			}
		}
	}
	mustAppend(t, s, b)
	page, err := s.Connections(t.Context(), audit.ConnectionQuery{Filter: audit.Filter{Disagree: true}})
	if err != nil {
		t.Fatalf("Connections: %v", err)
	}
	got := map[audit.Edge]bool{}
	for _, c := range page.Items {
		got[c.Edge] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("connections that disagree (-want +got):\n%s", diff)
	}
}

func connectionsPages(t *testing.T, s audit.Store) {
	edge := func(i int) audit.Edge { return Edge(func(e *audit.Edge) { e.Subject = fmt.Sprint(i) }) }
	const edges = 23
	b := &audit.Batch{ID: "1"}
	for i := range edges {
		b.Rollups = append(b.Rollups, rollup(i/5, 1, edge(i))) // several have the same time
	}
	mustAppend(t, s, b)
	got := map[string]int{}
	last := T0.Add(time.Hour)
	q := audit.ConnectionQuery{Limit: 4}
	for n := 0; ; n++ {
		page, err := s.Connections(t.Context(), q)
		if err != nil {
			t.Fatalf("Connections: %v", err)
		}
		for _, c := range page.Items {
			got[c.Subject]++
			if c.LastSeen.After(last) || c.Count != 1 {
				t.Errorf("page %d: got %+v after one last seen at %v", n, c, last)
			}
			last = c.LastSeen
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
		// While the pages are read, every edge is seen again, and a new edge appears.
		again := &audit.Batch{ID: fmt.Sprint("again", n), Rollups: []audit.Rollup{rollup(100+n, 1, edge(edges+n))}}
		for i := range edges {
			again.Rollups = append(again.Rollups, rollup(100+n, 1, edge(i)))
		}
		mustAppend(t, s, again)
	}
	for i := range edges {
		if n := got[fmt.Sprint(i)]; n != 1 {
			t.Errorf("got edge %d on %d pages, want 1", i, n)
		}
	}
	if len(got) != edges {
		t.Errorf("got %d edges on all pages, want the %d that existed when the first page was read", len(got), edges)
	}
	for _, cursor := range []string{"bad", audit.Cursor{At: 1, Tie: "m1\x00n\x00ring"}.String()} {
		if _, err := s.Connections(t.Context(), audit.ConnectionQuery{Cursor: cursor}); !errors.Is(err, audit.ErrInvalidQuery) {
			t.Errorf("Connections with the cursor %q: %v, want ErrInvalidQuery", cursor, err)
		}
	}
}

// connectionsOrders checks that the pages of each order contain every edge once, also if edges have equal values and are observed again
// while the pages are read.
func connectionsOrders(t *testing.T, s audit.Store) {
	const edges = 23
	until := T0.Add(90 * time.Minute)
	b := &audit.Batch{ID: "1"}
	for i := range edges {
		e := Edge(func(e *audit.Edge) { e.Subject = fmt.Sprintf("%02d", i) })
		b.Rollups = append(b.Rollups, rollup(i/4, int64(i*7%5), e), rollup(30+i%6, 2, e), rollup(95, 100, e))
	}
	mustAppend(t, s, b)
	for _, tc := range []struct {
		order audit.ConnectionOrder
		value func(audit.Connection) int64
	}{
		{audit.LastSeenFirst, func(c audit.Connection) int64 { return -c.LastSeen.Unix() }},
		{audit.LastSeenLast, func(c audit.Connection) int64 { return c.LastSeen.Unix() }},
		{audit.MostFirst, func(c audit.Connection) int64 { return -c.Count }},
		{audit.FewestFirst, func(c audit.Connection) int64 { return c.Count }},
	} {
		for _, filter := range []audit.Filter{
			{Resources: []string{Edge().Resource}}, {Resources: []string{Edge().Resource}, Decisions: []policy.Verdict{Edge().Decision}},
		} {
			filter.Since, filter.Until = T0, until
			var all []audit.Connection
			q := audit.ConnectionQuery{Filter: filter, Order: tc.order, Limit: 5}
			for n := 0; n == 0 || q.Cursor != ""; n++ {
				page, err := s.Connections(t.Context(), q)
				if err != nil {
					t.Fatalf("Connections by %q: %v", tc.order, err)
				}
				all, q.Cursor = append(all, page.Items...), page.Next
				if n == 0 { // a later page has a later end of the window, as if it were asked for now
					q.Until = until.Add(time.Hour)
				}
			}
			seen := map[string]bool{}
			for i, c := range all {
				if seen[c.Subject] = true; i > 0 && tc.value(c) < tc.value(all[i-1]) {
					t.Errorf("by %q: %+v comes after %+v", tc.order, c, all[i-1])
				}
				if n := subjectNumber(c.Subject); c.Count != int64(n*7%5)+2 {
					t.Errorf("by %q: edge %d has the count %d", tc.order, n, c.Count)
				}
			}
			if len(all) != edges || len(seen) != edges {
				t.Errorf("by %q: %d connections of %d edges, want %d", tc.order, len(all), len(seen), edges)
			}
		}
	}
	filter := audit.Filter{Resources: []string{Edge().Resource}, Until: until}
	page, err := s.Connections(t.Context(), audit.ConnectionQuery{Filter: filter, Order: audit.MostFirst, Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]audit.ConnectionQuery{
		"a cursor of another order":     {Filter: filter, Order: audit.FewestFirst, Cursor: page.Next},
		"a cursor, but no order":        {Filter: filter, Cursor: page.Next},
		"an unknown order":              {Filter: filter, Order: "count; DROP TABLE edges"},
		"an order of an endless window": {Filter: audit.Filter{Resources: filter.Resources}, Order: audit.MostFirst},
		"an order of all connections":   {Filter: audit.Filter{Until: until}, Order: audit.MostFirst},
	} {
		if _, err := s.Connections(t.Context(), q); !errors.Is(err, audit.ErrInvalidQuery) {
			t.Errorf("%s: %v, want ErrInvalidQuery", name, err)
		}
	}
}

func subjectNumber(subject string) (n int) {
	_, _ = fmt.Sscanf(subject, "%d", &n)
	return n
}
