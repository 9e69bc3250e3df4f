package gormstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/testenv"
)

func open(t *testing.T) (*Store, *database.DB) {
	t.Helper()
	db := databasetest.Open(t, databasetest.SQLite(t))
	return New(db), db
}

func TestConformance(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": databasetest.SQLite, "postgres": testenv.Postgres} {
		t.Run(name, func(t *testing.T) {
			approvaltest.Run(t, func(t *testing.T) approvaltest.Store { return New(databasetest.Open(t, dsn(t))) })
		})
	}
}

func TestUnwritableStoreLosesNothing(t *testing.T) {
	for name, tc := range map[string]struct{ reason, pragma, want string }{
		"read-only": {"SQLite refuses writes", "PRAGMA query_only=1", "read-only"},
		"full":      {"no page may be added", "PRAGMA max_page_count=1", "full"},
	} {
		t.Run(name, func(t *testing.T) {
			s, db := open(t)
			made, err := s.Create(t.Context(), approvaltest.Ticket("a", "r", ""))
			if err != nil {
				t.Fatal(err)
			}
			if err := exec(t, db, tc.pragma); err != nil {
				t.Fatal(err)
			}
			comment := strings.Repeat("long ", 40000)
			_, err = s.Update(t.Context(), made.Number, func(x *approval.Ticket) error {
				return x.Vote(0, approval.Vote{Person: "carol", Approve: true, Comment: comment, At: approvaltest.Start})
			})
			var e *approval.Error
			if !errors.As(err, &e) || e.Code != approval.CodeStoreUnavailable || !strings.Contains(e.Message.Text, tc.want) {
				t.Fatalf("%s: want %s with %q, got %v", tc.reason, approval.CodeStoreUnavailable, tc.want, err)
			}
			got, err := s.Get(t.Context(), made.Number)
			if err != nil || got.Version != 1 || len(got.Events) != 1 {
				t.Errorf("nothing is lost or half done: %+v, %v", got, err)
			}
		})
	}
}

func TestLedgerIsWrittenWithTheTransition(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) { testLedger(t, databasetest.Open(t, dsn)) })
}

func testLedger(t *testing.T, db *database.DB) {
	s := New(db)
	made, err := s.Create(t.Context(), approvaltest.Ticket("a", "r", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), made.Number, func(x *approval.Ticket) error {
		return x.Vote(0, approval.Vote{Person: "carol", Approve: true, Comment: "<ok>", At: approvaltest.Start})
	}); err != nil {
		t.Fatal(err)
	}
	if n, _, err := ledger.Verify(ledgerstore.NewReader(s.db).Lines(t.Context(), 1)); err != nil || n != 2 {
		t.Fatalf("two decisions, two lines: %d, %v", n, err)
	}
	if err := exec(t, db, `UPDATE ledger SET text = replace(text, 'carol', 'mallory') WHERE seq = 2`); err != nil {
		t.Fatal(err)
	}
	var broken *ledger.BrokenError
	if _, _, err := ledger.Verify(ledgerstore.NewReader(s.db).Lines(t.Context(), 1)); !errors.As(err, &broken) || broken.Seq != 2 {
		t.Errorf("tampering is found at its line, got %v", err)
	}
}

func exec(t *testing.T, db *database.DB, sql string) error {
	t.Helper()
	return db.Write(t.Context(), func(tx *gorm.DB) error { return tx.Exec(sql).Error })
}

// TestEscalationOfEarlierTickets: earlier versions stored people to whom a step could be escalated from the submission on.
func TestEscalationOfEarlierTickets(t *testing.T) {
	s, db := open(t)
	x := approvaltest.Ticket("a", "r", "")
	x.Items[0].Steps[0].Timeout, x.Items[0].Steps[0].OnTimeout, x.Items[0].Steps[0].EscalateTo = time.Hour, v1alpha1.TimeoutEscalate, []string{"zoe"}
	x.Items[0].Steps[0].Deadline = approvaltest.Start.Add(time.Hour)
	x, err := s.Create(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	if err := exec(t, db, fmt.Sprintf("INSERT INTO concerns (ticket, item, person, role) VALUES (%d, 0, 'zoe', 'named')", x.Number)); err != nil {
		t.Fatal(err)
	}
	x, err = s.Update(t.Context(), x.Number, func(x *approval.Ticket) error {
		x.Tick(approvaltest.Start.Add(2 * time.Hour))
		return nil
	})
	if err != nil || !x.Items[0].Steps[0].Escalated {
		t.Errorf("%v: %+v", err, x)
	}
}
