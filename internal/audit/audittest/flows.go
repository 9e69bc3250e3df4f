package audittest

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

func flow(minute int, e audit.Edge) audit.Flow {
	return audit.Flow{
		Time: T0.Add(time.Duration(minute)*time.Minute + 1500*time.Microsecond), Node: "n1", Edge: e, Count: 1, Reason: "because",
		SourceAddress: netip.MustParseAddr("10.5.0.7"), DestinationAddress: netip.MustParseAddr("2001:db8::9"), SourcePort: 40001,
	}
}

var sameAddress = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func wantFlows(t *testing.T, s audit.Store, q audit.FlowQuery, want ...audit.Flow) {
	t.Helper()
	got, err := s.Flows(t.Context(), q)
	if err != nil {
		t.Fatalf("Flows: %v", err)
	}
	if diff := cmp.Diff(want, got.Items, cmpopts.EquateEmpty(), sameAddress); diff != "" {
		t.Errorf("Flows(%+v) (-want +got):\n%s", q, diff)
	}
}

func flowsFilterAndPage(t *testing.T, s audit.Store) {
	e := Edge()
	denied := Edge(func(e *audit.Edge) {
		e.Decision, e.Verdict, e.OtherSubjects, e.OtherResources = policy.Denied, audit.VerdictForwarded, "s1 s2", "r1"
	})
	plain := flow(3, e) // a source that reports few fields
	plain.SourceAddress, plain.DestinationAddress, plain.SourcePort, plain.Node, plain.Reason = netip.Addr{}, netip.Addr{}, 0, "", ""
	twice := flow(1, e)
	mustAppend(t, s, &audit.Batch{ID: "1", Flows: []audit.Flow{flow(0, e), twice, twice, flow(2, denied), plain}})
	wantConnections(t, s, audit.ConnectionQuery{}) // raw flows are not counted as connections
	wantFlows(t, s, audit.FlowQuery{}, plain, flow(2, denied), twice, twice, flow(0, e))
	wantFlows(t, s, audit.FlowQuery{Filter: audit.Filter{Disagree: true}}, flow(2, denied))
	wantFlows(t, s, audit.FlowQuery{Filter: audit.Filter{Since: T0.Add(time.Minute + time.Second), Until: T0.Add(time.Minute + time.Second)}}, twice, twice)
	wantFlows(t, s, audit.FlowQuery{Filter: audit.Filter{Within: &audit.Scope{}}})
	var got []audit.Flow
	q := audit.FlowQuery{Limit: 1}
	for {
		page, err := s.Flows(t.Context(), q)
		if err != nil {
			t.Fatalf("Flows: %v", err)
		}
		if len(page.Items) > 1 {
			t.Fatalf("got %d flows on a page of one", len(page.Items))
		}
		got = append(got, page.Items...)
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if diff := cmp.Diff([]audit.Flow{plain, flow(2, denied), twice, twice, flow(0, e)}, got, sameAddress); diff != "" {
		t.Errorf("all pages of flows (-want +got):\n%s", diff)
	}
	for _, cursor := range []string{"bad", audit.Cursor{At: 1, Tie: "m1\x00n\x00ring"}.String()} {
		if _, err := s.Flows(t.Context(), audit.FlowQuery{Cursor: cursor}); !errors.Is(err, audit.ErrInvalidQuery) {
			t.Errorf("Flows with the cursor %q: %v, want ErrInvalidQuery", cursor, err)
		}
	}
}
