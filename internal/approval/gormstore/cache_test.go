package gormstore

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
)

// A replica that has cached a ticket returns the changes that another one has made since.
func TestListsAreNeverBehind(t *testing.T) {
	stores := replicas(t, 2)
	for _, app := range []string{"a", "b", "c"} {
		if _, err := stores[0].Create(t.Context(), approvaltest.Ticket(app, "r", "")); err != nil {
			t.Fatal(err)
		}
	}
	page := func(s *Store) []*approval.Ticket {
		t.Helper()
		out, err := s.List(t.Context(), approval.Filter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for round, who := range []string{"", "carol", "bob"} {
		if who != "" {
			if _, err := stores[0].Update(t.Context(), 2, func(x *approval.Ticket) error { return approve(x, who) }); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time from the cache
			got := page(stores[1])
			if len(got) != 3 || got[1].Number != 2 {
				t.Fatalf("the page has %d tickets", len(got))
			}
			want, err := stores[0].Get(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got[1], cmpopts.IgnoreUnexported(approval.Ticket{}), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("round %d: (-stored +listed)\n%s", round, d)
			}
			got[1].Events = append(got[1].Events, approval.Event{Comment: "not stored"})
			got[1].Reason = "not stored"
		}
	}
}
