package host_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// A job that waited when a backup was made is not done again from the restored database.
func TestARestoredDatabaseGrantsNothingAgain(t *testing.T) {
	h := newHost(t, portaltest.APIServer(t, true))
	ctx := t.Context()
	writer := func(db *database.DB) *host.Writer {
		w := h.Writer()
		w.Ledger = ledgerstore.NewReader(db)
		return w
	}
	line := func(db *database.DB, action string) {
		t.Helper()
		if err := db.Write(ctx, func(tx *gorm.DB) error {
			return ledgerstore.Append(tx, ledger.Entry{At: time.Unix(1700000000, 0), Actor: "bob", Action: action, Object: "T-1"})
		}); err != nil {
			t.Fatal(err)
		}
	}
	put := func(w *host.Writer, policy string) error {
		_, err := w.Put(ctx, policy, portaltest.BobsCluster, []v1alpha1.Statement{statement("t-1-1", portaltest.BobsCluster)}, yes)
		return err
	}
	drop := func(w *host.Writer, sid string) {
		t.Helper()
		if _, err := w.Drop(ctx, "p", portaltest.BobsCluster, []string{sid}, yes); err != nil {
			t.Fatal(err)
		}
	}
	dsn := databasetest.SQLite(t)
	db := databasetest.Open(t, dsn)
	line(db, "ticket.approved")
	backup := filepath.Join(t.TempDir(), "backup.db")
	copied, err := sql.Open("sqlite", strings.TrimPrefix(dsn, "sqlite:")) // the driver that database registers
	if err != nil {
		t.Fatal(err)
	}
	if _, err := copied.ExecContext(ctx, "VACUUM INTO ?", backup); err != nil {
		t.Fatal(err)
	}
	if err := copied.Close(); err != nil {
		t.Fatal(err)
	}
	if err := put(writer(db), "p"); err != nil {
		t.Fatal(err)
	}
	line(db, "ticket.revoked")
	drop(writer(db), "t-1-1")

	restored := databasetest.Open(t, "sqlite:"+backup)
	refusedNow := func(reason string) {
		t.Helper()
		var refused *approval.RefusedError
		if err := put(writer(restored), "p"); !errors.As(err, &refused) || !strings.Contains(refused.Message.Text, "older than policy p") {
			t.Errorf("%s: %v", reason, err)
		}
		if got := sids(t, h, "p"); len(got) != 0 {
			t.Errorf("%s: the policy has %v", reason, got)
		}
	}
	refusedNow("what was revoked after the backup is not granted again")
	drop(writer(restored), "t-9-1")
	refusedNow("taking away is allowed, and does not open the way")
	line(restored, "ticket.submitted")
	line(restored, "ticket.submitted")
	refusedNow("neither do new lines of the same number")
	if err := put(writer(db), "p"); err != nil {
		t.Errorf("the database that goes on is not fenced off: %v", err)
	}
	drop(writer(db), "t-1-1")
	if err := put(writer(restored), "new"); err != nil {
		t.Errorf("a policy that no newer database wrote is open: %v", err)
	}
	p, err := h.Live(ctx, "p")
	if err != nil {
		t.Fatal(err)
	}
	p = p.DeepCopy()
	delete(p.Annotations, "acp.io/portal-ledger")
	if err := h.Writer().Client.Update(ctx, p); err != nil {
		t.Fatal(err)
	}
	if err := put(writer(restored), "p"); err != nil {
		t.Errorf("an administrator opens it: %v", err)
	}
}
