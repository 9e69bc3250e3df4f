package clickhouse

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

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
	ours := took
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
	bare := newBareTable(b, s)
	took = 0
	for i := range batches {
		took += bare.insert(b, fleet.Flows(audittest.T0.Add(time.Duration(i)*span), span, benchBatch), fmt.Sprint(i))
	}
	b.Logf("bare table: %.0f rows/s", float64(*benchFlows)/took.Seconds())
	fmt.Printf("bench clickhouse_vs_bare %.2f x\n", took.Seconds()/ours.Seconds())
}

// bareTable is a table with the columns, codecs and order of the raw flows, and without edges, roll-ups and deduplication: what any
// program has to insert to keep the same rows.
type bareTable struct{ s *Store }

func newBareTable(b *testing.B, s *Store) bareTable {
	b.Helper()
	if err := s.conn.Exec(b.Context(), "CREATE TABLE bare AS flows ENGINE = MergeTree PARTITION BY toDate(slot) "+
		"ORDER BY (slot, edge, destination_address, source_address, micros)"); err != nil {
		b.Fatal(err)
	}
	return bareTable{s}
}

// insert inserts flows as the store does, with as many rows at a time and as many inserts under way, and returns how long the server took:
// the columns are made before.
func (t bareTable) insert(b *testing.B, flows []audit.Flow, batch string) time.Duration {
	b.Helper()
	var blocks []*flowColumns
	for part := range slices.Chunk(flows, flowsPerInsert) {
		blocks = append(blocks, flowsOf(part, map[edgeID]datedEdge{}, batch))
	}
	begun := time.Now()
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(maxConcurrentInserts)
	for _, block := range blocks {
		g.Go(func() error {
			return t.s.insert(ctx, strings.Replace(flowsInsert, "INTO flows", "INTO bare", 1), "", block.columns()...)
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
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
