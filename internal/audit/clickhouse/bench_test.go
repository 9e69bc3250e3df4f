package clickhouse

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
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
	rate := func(t time.Duration) float64 { return float64(*benchFlows) / t.Seconds() }
	var prepared, inserted, asynchronous time.Duration
	for i := range batches {
		flows := fleet.Flows(audittest.T0.Add(time.Duration(i)*span), span, benchBatch)
		begun := time.Now()
		blocks := bare.blocks(flows, fmt.Sprint(i))
		prepared += time.Since(begun)
		inserted += bare.insert(b, blocks, false)
		asynchronous += bare.insert(b, blocks, true)
	}
	b.Logf("bare table: %.0f rows/s, with asynchronous inserts %.0f; the preparation of the columns, on one processor: %.0f", rate(inserted),
		rate(asynchronous), rate(prepared))
	fmt.Printf("bench clickhouse_vs_bare %.2f x\n", inserted.Seconds()/ours.Seconds())
	fmt.Printf("bench clickhouse_bare_rows_per_s %.0f rows/s\n", rate(inserted))
	fmt.Printf("bench clickhouse_bare_async_rows_per_s %.0f rows/s\n", rate(asynchronous))
	fmt.Printf("bench clickhouse_prepared_rows_per_s %.0f rows/s\n", rate(prepared))
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

// blocks returns the columns of flows, with as many rows each as the store inserts at a time.
func (t bareTable) blocks(flows []audit.Flow, batch string) (out []*flowColumns) {
	for part := range slices.Chunk(flows, flowsPerInsert) {
		out = append(out, flowsOf(part, map[edgeID]datedEdge{}, batch))
	}
	return out
}

// insert inserts blocks, with as many inserts under way as the store has, and returns how long the server took. With asynchronous inserts, the
// server collects the rows in memory, and answers once they are stored.
func (t bareTable) insert(b *testing.B, blocks []*flowColumns, asynchronous bool) time.Duration {
	b.Helper()
	text := strings.Replace(flowsInsert, "INTO flows", "INTO bare", 1)
	begun := time.Now()
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(maxConcurrentInserts)
	for _, block := range blocks {
		g.Go(func() error {
			if !asynchronous {
				return t.s.insert(ctx, text, "", block.columns()...)
			}
			batch, err := t.s.conn.PrepareBatch(driver.Context(ctx, driver.WithSettings(driver.Settings{"async_insert": 1, "wait_for_async_insert": 1})), text)
			if err != nil {
				return err
			}
			for i, c := range block.columns() {
				if err := batch.Column(i).Append(c); err != nil {
					return err
				}
			}
			return batch.Send()
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
