package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"os"
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
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d MB", info.Size()>>20)
	r, err := OpenReader(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	audittest.PrintTotalsOfYear(b, "sqlite", r, fleet, begin, end, *benchYearPages)
}

// fillYear writes the tables as a collector would leave them: every edge has one roll-up in each hour. Minutes are written only where they
// are read, at both ends.
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
		begun := time.Now()
		exec(ctx, b, db, "WITH RECURSIVE t(at) AS (SELECT ? UNION ALL SELECT at + ? FROM t WHERE at + ? < ?) INSERT INTO "+table+
			" SELECT "+offset+", 3, at + e.id, at + 3599000000 - e.id FROM edges e CROSS JOIN t WHERE true ON CONFLICT DO NOTHING",
			micros(from), width.Microseconds(), width.Microseconds(), micros(to))
		b.Logf("%s: filled in %s", table, time.Since(begun).Round(time.Second))
	}
	const minutes = "at + e.id % 60 * 60000000, e.id"
	fill("hours", begin.Truncate(time.Hour), folded, time.Hour, "e.id, at")
	fill("rollups", begin.Truncate(time.Hour), begin.Add(day), time.Hour, minutes)
	fill("rollups", folded.Add(-day), end, time.Hour, minutes)
	exec(ctx, b, db, "UPDATE folding SET folded = ?, newest = ?", micros(folded), micros(end))
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}

func exec(ctx context.Context, tb testing.TB, db *sql.DB, text string, args ...any) {
	tb.Helper()
	if _, err := db.ExecContext(ctx, text, args...); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
}
