package clickhouse

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/testenv"
)

const (
	benchEdges = 50_000
	benchBatch = 500_000
	benchSpan  = 30 * time.Minute
)

var (
	benchFlows   = flag.Int("bench.flows", 10_000_000, "raw flows of the measurement")
	benchRollups = flag.Int("bench.rollups", 2_000_000, "roll-ups of the measurement")
	benchPages   = flag.Int("bench.pages", 100, "how often each page is asked for")
)

// BenchmarkStore fills a store with the flows of some hours, and reads pages.
func BenchmarkStore(b *testing.B) {
	s := open(b, testenv.ClickHouse(b))
	s.now = func() time.Time { return audittest.T0 } // like a collector that keeps up, which writes an edge once a day
	fleet := audittest.NewFleet(benchEdges)
	ctx := b.Context()
	var took time.Duration
	batches := *benchFlows / benchBatch
	span := benchSpan / time.Duration(batches)
	minutes := int(benchSpan / time.Minute)
	for i := range batches {
		from := audittest.T0.Add(time.Duration(i) * span)
		x := &audit.Batch{ID: fmt.Sprint(i), Flows: fleet.Flows(from, span, benchBatch)}
		begun := time.Now()
		if err := s.Append(ctx, x); err != nil {
			b.Fatal(err)
		}
		took += time.Since(begun)
	}
	fmt.Printf("bench clickhouse_rows_per_s %.0f rows/s\n", float64(*benchFlows)/took.Seconds())
	took = 0
	for m := range minutes {
		x := &audit.Batch{ID: fmt.Sprint("minute", m), Rollups: fleet.Rollups(audittest.T0.Add(time.Duration(m)*time.Minute), *benchRollups/minutes)}
		begun := time.Now()
		if err := s.Append(ctx, x); err != nil {
			b.Fatal(err)
		}
		took += time.Since(begun)
	}
	b.Logf("roll-ups: %.0f rows/s in batches of %d", float64(*benchRollups)/took.Seconds(), *benchRollups/minutes)
	for _, table := range []string{"flows", "entries"} {
		if err := s.conn.Exec(ctx, "OPTIMIZE TABLE "+table+" FINAL"); err != nil {
			b.Fatal(err)
		}
		var bytes, rows uint64
		if err := s.conn.QueryRow(ctx,
			"SELECT sum(data_compressed_bytes), sum(rows) FROM system.parts WHERE database = currentDatabase() AND table = '"+table+"' AND active").
			Scan(&bytes, &rows); err != nil {
			b.Fatal(err)
		}
		if table == "flows" {
			fmt.Printf("bench clickhouse_bytes_per_row %.2f bytes\n", float64(bytes)/float64(rows))
		}
		b.Logf("%s: %d rows, %.2f bytes/row", table, rows, float64(bytes)/float64(rows))
		logColumns(b, s, table)
	}
	audittest.PrintPages(b, "flows_page_p99_clickhouse", audittest.Pages(ctx, b, s, fleet, audittest.T0, audittest.T0.Add(benchSpan), *benchPages))
}

func logColumns(b *testing.B, s *Store, table string) {
	rows, err := s.conn.Query(
		b.Context(),
		"SELECT name, data_compressed_bytes FROM system.columns WHERE database = currentDatabase() AND table = '"+table+"' ORDER BY 2 DESC LIMIT 6",
	)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n uint64
		if err := rows.Scan(&name, &n); err != nil {
			b.Fatal(err)
		}
		b.Logf("  %-20s %d bytes", name, n)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
}
