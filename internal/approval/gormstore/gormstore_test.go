package gormstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/ledger"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	approvaltest.Run(t, func(t *testing.T) approval.Store { return open(t, filepath.Join(t.TempDir(), "acp.db")) })
}

func TestOpenRefuses(t *testing.T) {
	newer := filepath.Join(t.TempDir(), "newer.db")
	s := open(t, newer)
	if err := s.w.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)").Error; err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSQLite(t.Context(), newer); !errors.Is(err, approval.ErrNewerSchema) {
		t.Errorf("a newer schema is refused, got %v", err)
	}
	text := filepath.Join(t.TempDir(), "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSQLite(t.Context(), text); err == nil {
		t.Error("a file that is no database is refused")
	}
	if _, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "no", "acp.db")); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a missing folder is named, got %v", err)
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b%20?.db")
	s, err := OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Create(t.Context(), approvaltest.Ticket("a", "r", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := open(t, path).Get(t.Context(), made.Number); err != nil || got.Reason != made.Reason {
		t.Errorf("read again: %+v, %v", got, err)
	}
}

func TestUnwritableStoreLosesNothing(t *testing.T) {
	for name, tc := range map[string]struct{ reason, pragma, want string }{
		"read-only": {"SQLite refuses writes", "PRAGMA query_only=1", "read-only"},
		"full":      {"no page may be added", "PRAGMA max_page_count=1", "full"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "acp.db"))
			made, err := s.Create(t.Context(), approvaltest.Ticket("a", "r", ""))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.w.Exec(tc.pragma).Error; err != nil {
				t.Fatal(err)
			}
			comment := strings.Repeat("long ", 40000)
			_, err = s.Update(t.Context(), made.Number, func(x *approval.Ticket) error {
				return x.Vote(0, approval.Vote{Person: "carol", Approve: true, Comment: comment, At: approvaltest.Start})
			})
			var e *approval.Error
			if !errors.As(err, &e) || e.Code != approval.CodeStoreUnavailable || !strings.Contains(e.Detail, tc.want) {
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
	s := open(t, filepath.Join(t.TempDir(), "acp.db"))
	made, err := s.Create(t.Context(), approvaltest.Ticket("a", "r", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), made.Number, func(x *approval.Ticket) error {
		return x.Vote(0, approval.Vote{Person: "carol", Approve: true, Comment: "<ok>", At: approvaltest.Start})
	}); err != nil {
		t.Fatal(err)
	}
	if n, _, err := ledger.Verify(s.Ledger(t.Context())); err != nil || n != 2 {
		t.Fatalf("two decisions, two lines: %d, %v", n, err)
	}
	if err := s.w.Exec(`UPDATE ledger SET text = replace(text, 'carol', 'mallory') WHERE seq = 2`).Error; err != nil {
		t.Fatal(err)
	}
	var broken *ledger.BrokenError
	if _, _, err := ledger.Verify(s.Ledger(t.Context())); !errors.As(err, &broken) || broken.Seq != 2 {
		t.Errorf("tampering is found at its line, got %v", err)
	}
}

func TestSessions(t *testing.T) {
	ctx := context.Background()
	x := open(t, filepath.Join(t.TempDir(), "acp.db")).Sessions()
	for token, end := range map[string]time.Duration{"live": time.Hour, "dead": -time.Second} {
		if err := x.CommitCtx(ctx, token, []byte(token), time.Now().Add(end)); err != nil {
			t.Fatal(err)
		}
	}
	if data, ok, err := x.FindCtx(ctx, "live"); err != nil || !ok || string(data) != "live" {
		t.Errorf("live: %q %v %v", data, ok, err)
	}
	if _, ok, err := x.FindCtx(ctx, "dead"); err != nil || ok {
		t.Errorf("an expired session is none: %v %v", ok, err)
	}
	if err := x.Prune(ctx); err != nil {
		t.Fatal(err)
	}
	var n int64
	if err := x.s.r.Model(&sessionRow{}).Count(&n).Error; err != nil || n != 1 {
		t.Errorf("pruned to %d, %v", n, err)
	}
	if err := x.DeleteCtx(ctx, "live"); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := x.FindCtx(ctx, "live"); ok {
		t.Error("a deleted session is gone")
	}
}
