package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pressly/goose/v3"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
)

// restarting is a store whose collector restarts before each batch and each deletion.
type restarting struct {
	path string

	mu sync.RWMutex
	*Store
}

func (r *restarting) restart(ctx context.Context) error {
	if err := r.Close(); err != nil {
		return err
	}
	s, err := Open(ctx, r.path)
	if err == nil {
		r.Store = s
	}
	return err
}

func (r *restarting) Append(ctx context.Context, b *audit.Batch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.restart(ctx); err != nil {
		return err
	}
	return r.Store.Append(ctx, b)
}

func (r *restarting) Prune(ctx context.Context, keep audit.Retention) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.restart(ctx); err != nil {
		return 0, err
	}
	return r.Store.Prune(ctx, keep)
}

func (r *restarting) Connections(ctx context.Context, q audit.ConnectionQuery) (audit.ConnectionPage, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.Store.Connections(ctx, q)
}

func TestConformanceWithRestarts(t *testing.T) {
	audittest.Run(t, func(t *testing.T) audit.Store {
		path := filepath.Join(t.TempDir(), "flows.db")
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		r := &restarting{path: path, Store: s}
		t.Cleanup(func() {
			if err := r.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		return r
	})
}

var today = audittest.T0.Truncate(day)

// daily returns a batch with one roll-up per edge and hour of some days, the first of which has the given number.
func daily(id string, first, days int) *audit.Batch {
	b := &audit.Batch{ID: id}
	for hour := range days * 24 {
		for i := range 3 {
			at := today.Add(time.Duration(first*24+hour)*time.Hour + time.Duration(i)*time.Minute)
			b.Rollups = append(b.Rollups, audit.Rollup{
				Bucket: at, Edge: audittest.Edge(func(e *audit.Edge) { e.Subject = fmt.Sprint("app/", i) }), Count: int64(1 + i), FirstSeen: at, LastSeen: at,
			})
		}
	}
	return b
}

func mustAppend(t *testing.T, s *Store, b *audit.Batch) {
	t.Helper()
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatalf("Append(%s): %v", b.ID, err)
	}
}

// foldedDays returns the number of days since today up to which days are folded. It fails the test if their sums are not those of the hours.
func foldedDays(t *testing.T, s *Store) int {
	t.Helper()
	var folded, hours int64
	if err := s.db.QueryRowContext(t.Context(), "SELECT days_folded, folded FROM folding").Scan(&folded, &hours); err != nil {
		t.Fatal(err)
	}
	if folded > hours || folded%day.Microseconds() != 0 {
		t.Errorf("the days are folded up to %d and the hours up to %d, want whole days that are not later", folded, hours)
	}
	const want = "SELECT edge, bucket / 86400000000 * 86400000000 AS d, sum(count), min(first_seen), max(last_seen) FROM hours" +
		" WHERE bucket < (SELECT days_folded FROM folding) GROUP BY edge, d"
	const got = "SELECT edge, bucket, count, first_seen, last_seen FROM days"
	for what, text := range map[string]string{"missing or wrong": want + " EXCEPT " + got, "too many": got + " EXCEPT " + want} {
		var n int
		if err := s.db.QueryRowContext(t.Context(), "SELECT count(*) FROM ("+text+")").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			t.Errorf("%d rows of days are %s", n, what)
		}
	}
	return int((folded - micros(today)) / day.Microseconds())
}

// TestDaysAreFolded verifies that each batch sums up one day at most, that late roll-ups are added to the days, and that days are deleted with
// their hours.
func TestDaysAreFolded(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "flows.db"))
	for i := range 4 {
		mustAppend(t, s, daily(fmt.Sprint(i), i, 1))
	}
	for i, last := 0, foldedDays(t, s); last < 3; i++ {
		if i > 40 {
			t.Fatalf("the days are folded up to %d after %d batches, want 3", last, i)
		}
		mustAppend(t, s, batchAt(fmt.Sprint("later", i), today.Add(4*day-time.Minute)))
		got := foldedDays(t, s)
		if got < last || got > last+1 {
			t.Errorf("one batch folded the days %d to %d, want one at most", last, got)
		}
		last = got
	}
	mustAppend(t, s, batchAt("late", today.Add(-day), today.Add(day+time.Hour), today.Add(day+2*time.Hour), today.Add(2*day-time.Minute)))
	if got := foldedDays(t, s); got != 3 {
		t.Errorf("the days are folded up to %d after late roll-ups, want 3", got)
	}
	if _, err := s.Prune(t.Context(), audit.Retention{Rollups: today.Add(2 * day)}); err != nil {
		t.Fatalf("Prune: %v", err)
	}
	var oldest int64
	if err := s.db.QueryRowContext(t.Context(), "SELECT min(bucket) FROM days").Scan(&oldest); err != nil {
		t.Fatal(err)
	}
	if foldedDays(t, s); oldest != micros(today.Add(2*day)) {
		t.Errorf("the oldest day is %s after pruning, want the third", fromMicros(oldest))
	}
}

func batchAt(id string, times ...time.Time) *audit.Batch {
	b := &audit.Batch{ID: id}
	for _, at := range times {
		b.Rollups = append(b.Rollups, audit.Rollup{Bucket: at, Edge: audittest.Edge(), Count: 1, FirstSeen: at, LastSeen: at})
	}
	return b
}

// TestFoldingFailsWithTheBatch verifies that nothing of a batch is stored if its late rows, or the day that it folds, cannot be written.
func TestFoldingFailsWithTheBatch(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, column string
		last           *audit.Batch
	}{
		"Day":  {"the batch ends a day", "NEW.bucket = " + fmt.Sprint(micros(today.Add(day))), daily("last", 3, 1)},
		"Late": {"the batch has a roll-up of a folded day", "NEW.bucket = " + fmt.Sprint(micros(today)), batchAt("last", today.Add(time.Hour))},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "flows.db"))
			mustAppend(t, s, daily("first", 0, 2))
			for i := 0; foldedDays(t, s) < 1; i++ {
				mustAppend(t, s, batchAt(fmt.Sprint(i), today.Add(2*day-time.Minute)))
			}
			// The last batch then folds the last hours of the second day, and the day.
			for i := range 8 {
				mustAppend(t, s, batchAt(fmt.Sprint("more", i), today.Add(2*day-time.Minute)))
			}
			execute(t, s.db, "CREATE TRIGGER fail BEFORE INSERT ON days WHEN "+tc.column+" BEGIN SELECT RAISE(ABORT, 'no space'); END")
			before := totalsOf(t, s, audit.Filter{})
			if err := s.Append(t.Context(), tc.last); err == nil || !strings.Contains(err.Error(), "no space") {
				t.Fatalf("%s: Append: %v, want the error of the table days", tc.reason, err)
			}
			if diff := cmp.Diff(before, totalsOf(t, s, audit.Filter{})); diff != "" {
				t.Errorf("%s: the failed batch changed the totals (-before +after):\n%s", tc.reason, diff)
			}
			foldedDays(t, s)
			execute(t, s.db, "DROP TRIGGER fail")
			mustAppend(t, s, tc.last)
			foldedDays(t, s)
			var want, got int64
			for _, r := range tc.last.Rollups {
				want += r.Count
			}
			for i, after := range totalsOf(t, s, audit.Filter{}) {
				got += after.Count - before[i].Count
			}
			if got != want {
				t.Errorf("%s: the repeated batch added %d, want %d", tc.reason, got, want)
			}
		})
	}
}

func execute(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func totalsOf(t *testing.T, r audit.Reader, f audit.Filter) (out []audit.Total) {
	t.Helper()
	if err := r.Totals(t.Context(), f, func(x audit.Total) error { out = append(out, x); return nil }); err != nil {
		t.Fatalf("Totals(%+v): %v", f, err)
	}
	return out
}

// TestMigrationToDays opens files of the version before, with roll-ups of several days. The next batches fold the days one by one, and the totals
// are the same all the time.
func TestMigrationToDays(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// hours is the number of hours since today up to which hours are folded, and pruned the number of days that are deleted.
		hours, pruned int
		empty         bool
	}{
		"All":     {reason: "every hour that has ended is folded", hours: 5*24 - 2},
		"Behind":  {reason: "hours are folded up to the middle of a day", hours: 2*24 + 7},
		"Pruned":  {reason: "the first days were deleted", hours: 5*24 - 2, pruned: 2},
		"Ahead":   {reason: "days were deleted before their hours were folded", hours: 7, pruned: 2},
		"Nothing": {reason: "the file is new", empty: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "flows.db")
			old := ofVersion4(t, path)
			reference := open(t, filepath.Join(t.TempDir(), "flows.db"))
			if !tc.empty {
				all := daily("all", 0, 5)
				mustAppend(t, reference, all)
				fillVersion4(t, old, reference, today.Add(time.Duration(tc.hours)*time.Hour))
			}
			cut := today.Add(time.Duration(tc.pruned) * day)
			if _, err := reference.Prune(t.Context(), audit.Retention{Rollups: cut}); err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{"rollups", "hours", "tallies"} {
				execute(t, old, "DELETE FROM "+table+" WHERE bucket < ?", micros(cut))
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			check := func(s *Store) {
				t.Helper()
				for _, f := range []audit.Filter{
					{}, {Since: today}, {Since: today.Add(day + 90*time.Minute), Until: today.Add(4*day + 61*time.Minute)}, {Until: today.Add(3 * day)},
				} {
					if diff := cmp.Diff(totalsOf(t, reference, f), totalsOf(t, s, f), cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("%s: Totals(%+v) (-want +got):\n%s", tc.reason, f, diff)
					}
				}
			}
			last := -1
			for i := range 60 {
				s, err := Open(t.Context(), path)
				if err != nil {
					t.Fatalf("%s: Open: %v", tc.reason, err)
				}
				check(s)
				got := foldedDays(t, s)
				if i > 0 && last >= 0 && got > last+1 && !tc.empty && last >= tc.pruned {
					t.Errorf("%s: one batch folded the days %d to %d, want one at most", tc.reason, last, got)
				}
				last = got
				// A roll-up of the last hour, and a late one of a day that may be folded or not.
				b := batchAt(fmt.Sprint("more", i), today.Add(5*day-time.Minute), today.Add(2*day+time.Duration(i)*time.Minute))
				mustAppend(t, s, b)
				mustAppend(t, reference, b)
				check(s)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if last != 4 {
				t.Errorf("%s: the days are folded up to %d, want 4", tc.reason, last)
			}
		})
	}
}

// ofVersion4 creates a file with the schema before days.
func ofVersion4(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, "rwc", "journal_mode(wal)"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 4); err != nil {
		t.Fatalf("migrate to version 4: %v", err)
	}
	return db
}

// fillVersion4 copies the edges and minutes of a store into a file of version 4, and folds its hours up to a time.
func fillVersion4(t *testing.T, old *sql.DB, from *Store, folded time.Time) {
	t.Helper()
	old.SetMaxOpenConns(1)
	execute(t, old, "ATTACH ? AS source", from.path)
	for _, table := range []string{"edges", "rollups", "tallies"} {
		execute(t, old, "INSERT INTO main."+table+" SELECT * FROM source."+table)
	}
	execute(t, old, "DETACH source")
	execute(t, old, "INSERT INTO hours SELECT edge, bucket / 3600000000 * 3600000000 AS hour, sum(count), min(first_seen), max(last_seen) FROM rollups"+
		" WHERE bucket < ? GROUP BY edge, hour", micros(folded))
	execute(t, old, "UPDATE folding SET folded = ?, newest = (SELECT max(bucket) FROM rollups)", micros(folded))
}
