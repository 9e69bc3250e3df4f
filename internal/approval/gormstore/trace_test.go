package gormstore

import (
	"testing"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/database/databasetest"
)

// The position in the trace is stored with the ticket and is never changed by a transition. A program of before, which does not
// name the column, creates tickets beside this one.
func TestTraceParentIsStored(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		x := approvaltest.Ticket("a", "r", "")
		const position = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		x.TraceParent = position
		made, err := New(db).Create(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(db).Update(t.Context(), made.Number, func(x *approval.Ticket) error {
			x.TraceParent = "another"
			return approve(x, "carol")
		}); err != nil {
			t.Fatal(err)
		}
		if got, err := New(db).Get(t.Context(), made.Number); err != nil || got.TraceParent != position {
			t.Errorf("%q, %v", got.TraceParent, err)
		}
		if err := exec(
			t,
			db,
			"INSERT INTO tickets (number, kind, state, version, requester, reason, idempotency_key, break_glass, created_at, updated_at) "+
				"VALUES (7, 'grant', 'pending', 1, 'alice', 'r', NULL, false, 0, 0)",
		); err != nil {
			t.Fatal(err)
		}
		if got, err := New(db).Get(t.Context(), 7); err != nil || got.TraceParent != "" {
			t.Errorf("a ticket of the program of before: %v, %v", got, err)
		}
	})
}
