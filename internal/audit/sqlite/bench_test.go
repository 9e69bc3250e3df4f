package sqlite

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
)

var (
	benchRollups = flag.Int("bench.rollups", 2_000_000, "roll-ups of the measurement")
	benchPages   = flag.Int("bench.pages", 100, "how often each page is asked for")
)

const (
	benchEdges = 20_000
	benchFlows = 20_000
)

// BenchmarkStore fills a store minute by minute, including the folding of hours, and reads pages while nothing is written.
func BenchmarkStore(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "flows.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	fleet := audittest.NewFleet(benchEdges)
	minutes := *benchRollups / benchEdges * 4 // a quarter of the edges occurs in a minute
	var took time.Duration
	for m := range minutes {
		x := &audit.Batch{ID: fmt.Sprint(m), Rollups: fleet.Rollups(audittest.T0.Add(time.Duration(m)*time.Minute), benchEdges/4)}
		begun := time.Now()
		if err := s.Append(b.Context(), x); err != nil {
			b.Fatal(err)
		}
		took += time.Since(begun)
	}
	fmt.Printf("bench sqlite_rollup_rows_per_s %.0f rows/s\n", float64(*benchRollups)/took.Seconds())
	until := audittest.T0.Add(time.Duration(minutes) * time.Minute)
	if err := s.Append(b.Context(), &audit.Batch{ID: "flows", Flows: fleet.Flows(until.Add(-time.Hour), time.Hour, benchFlows)}); err != nil {
		b.Fatal(err)
	}
	audittest.PrintPages(b, "flows_page_p99_sqlite", audittest.Pages(b.Context(), b, s, fleet, audittest.T0, until, *benchPages))
}
