package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
)

var (
	benchYearEdges = flag.Int("bench.yearEdges", 10_000, "edges of the measurement of a year, each with traffic in every hour")
	benchYearDays  = flag.Int("bench.yearDays", 365, "days of the measurement of a year")
	benchYearPages = flag.Int("bench.yearPages", 20, "how often the totals of one resource and of one subject are asked for")
)

// BenchmarkStoreYear measures totals of a year of continuous traffic.
func BenchmarkStoreYear(b *testing.B) {
	path := filepath.Join(b.TempDir(), "flows.db")
	fleet := audittest.NewFleet(*benchYearEdges)
	end := audittest.T0.Add(37 * time.Minute) // neither an hour nor a day begins then
	begin := end.Add(-time.Duration(*benchYearDays) * day)
	fillYear(b, path, fleet, begin, end)
	foldDay(b, path, fleet, end)
	r, err := OpenReader(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	audittest.PrintTotalsOfYear(b, "sqlite", r, fleet, begin, end, *benchYearPages)
}

// foldDay measures a batch with one roll-up that sums up a day.
func foldDay(b *testing.B, path string, fleet *audittest.Fleet, end time.Time) {
	b.Helper()
	s, err := Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	last := audit.Rollup{Bucket: end.Add(-audit.BucketWidth), Edge: fleet.Edges[0], Count: 1, FirstSeen: end, LastSeen: end}
	if err := s.Append(b.Context(), &audit.Batch{ID: "last", Rollups: []audit.Rollup{last}}); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begun)
	var folded int64
	if err := errors.Join(s.db.QueryRowContext(b.Context(), "SELECT days_folded FROM folding").Scan(&folded), s.Close()); err != nil {
		b.Fatal(err)
	}
	if want := startOf(micros(end), day); folded != want {
		b.Fatalf("the days are folded up to %s, want %s", fromMicros(folded), fromMicros(want))
	}
	fmt.Printf("bench sqlite_fold_day %d ms\n", took.Milliseconds())
}

// fillYear writes the tables as a collector would leave them: every edge has one roll-up in each hour. Minutes are written only where they
// are read, at both ends. The last day is not summed up. It logs the size of a
// row of each table. The rows are written in the order of the tables, so that their pages are full.
func fillYear(b *testing.B, path string, fleet *audittest.Fleet, begin, end time.Time) {
	b.Helper()
	ctx := b.Context()
	s, err := Open(ctx, path)
	if err != nil {
		b.Fatal(err)
	}
	first := &audit.Batch{ID: "first"}
	for _, e := range fleet.Edges {
		first.Rollups = append(first.Rollups, audit.Rollup{Bucket: begin.Truncate(time.Hour), Edge: e, Count: 1, FirstSeen: begin, LastSeen: begin})
	}
	if err := errors.Join(s.Append(ctx, first), s.Close()); err != nil {
		b.Fatal(err)
	}
	// Without a journal, the rows are written once.
	db, err := sql.Open("sqlite", dsn(path, "rw", "journal_mode(off)", "synchronous(off)"))
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	folded := end.Add(-foldDelay).Truncate(time.Hour)
	fill := func(table string, from, to time.Time, width time.Duration, offset string) {
		b.Helper()
		had, before := number(b, db, "SELECT count(*) FROM "+table), number(b, db, countPages)
		begun := time.Now()
		exec(ctx, b, db, "WITH RECURSIVE t(at) AS (SELECT ? UNION ALL SELECT at + ? FROM t WHERE at + ? < ?) INSERT INTO "+table+
			" SELECT "+offset+", 3, at + e.id, at + 3599000000 - e.id FROM edges e CROSS JOIN t WHERE true ON CONFLICT DO NOTHING",
			micros(from), width.Microseconds(), width.Microseconds(), micros(to))
		rows := number(b, db, "SELECT count(*) FROM "+table) - had
		b.Logf("%s: %d rows, filled in %s, %.1f bytes per row", table, rows, time.Since(begun).Round(time.Second),
			float64(number(b, db, countPages)-before)*pageSize/float64(rows))
	}
	const minutes = "at + e.id % 60 * 60000000, e.id"
	fill("hours", begin.Truncate(time.Hour), folded, time.Hour, "e.id, at")
	fill("rollups", begin.Truncate(time.Hour), begin.Add(day), time.Hour, minutes)
	fill("rollups", folded.Add(-day), end, time.Hour, minutes)
	daysFolded := fromMicros(startOf(micros(end), day)).Add(-day)
	fill("days", begin.Truncate(day), daysFolded, day, "e.id, at")
	exec(ctx, b, db, "UPDATE folding SET folded = ?, days_folded = ?, newest = ?", micros(folded), micros(daysFolded), micros(end))
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}

// pageSize is the default size of a page of SQLite's, and countPages the query for the number of pages of a file.
const (
	pageSize   = 4096
	countPages = "PRAGMA page_count"
)

func number(b *testing.B, db *sql.DB, query string) (n int64) {
	b.Helper()
	if err := db.QueryRowContext(b.Context(), query).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

func exec(ctx context.Context, tb testing.TB, db *sql.DB, text string, args ...any) {
	tb.Helper()
	if _, err := db.ExecContext(ctx, text, args...); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
}
