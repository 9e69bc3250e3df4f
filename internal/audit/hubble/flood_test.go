package hubble

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/rollup"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

// ingesterOfLeastLimits returns an ingester with the limits of one of very many members, which are the least that a member gets.
func ingesterOfLeastLimits(t *testing.T, sink Sink) *ingester {
	t.Helper()
	cfg := config("unused", newMemorySink())
	cfg.Sink, cfg.RawFlows, cfg.Members = sink, RawFlowsAll, 1<<20
	return ingesterOf(t, &cfg, audit.Resume{})
}

// liveHeap returns the number of bytes of the heap that are in use.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFlood sends a flood in which addresses, ports, labels and connections are all new, while the store is unavailable. Memory
// stays bounded, and every connection is counted or recorded as lost.
func TestFlood(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	away := true
	unsure := &unreliableStore{Writer: store, fail: func() (bool, bool) { return away, false }}
	const keys = 2000
	totals, err := rollup.New(rollup.Config{Store: unsure, Log: slog.New(slog.DiscardHandler), Now: clock, FlushKeys: 500, MaxKeys: keys, MaxFlows: 1000})
	if err != nil {
		t.Fatal(err)
	}
	in := ingesterOfLeastLimits(t, totals)
	before := liveHeap()
	const flows = 60_000
	for i := range flows {
		take(in, verdict(i, func(f *flowpb.Flow) {
			f.Time = timestamppb.New(t0.Add(-time.Minute + time.Duration(i)*time.Millisecond))
			f.L4.GetTCP().DestinationPort = uint32(i % 60_000)
			f.Source.Labels = append(f.Source.Labels, fmt.Sprintf("k8s:pod-%d=x", i))
			if i%3 == 0 {
				f.Source.Labels, f.IP.Source = []string{"reserved:world"}, fmt.Sprintf("%d.%d.%d.1", 11+i>>16, i>>8&255, i&255)
			}
		}))
		if i%10_000 == 0 {
			if err := totals.Flush(t.Context()); !errors.Is(err, errLostAnswer) {
				t.Fatalf("Flush: %v", err)
			}
		}
	}
	after := liveHeap()
	for what, n := range map[string][2]int{
		"events to be known again": {in.seen.n, in.seen.limit}, "connections": {len(in.connections.young) + len(in.connections.old), in.connections.limit + 2},
		"endpoints": {len(in.endpoints.byEncoding), in.endpoints.limit}, "rulings": {len(in.decider.caches[0].decisions), in.decider.limit},
	} {
		if n[0] > n[1] {
			t.Errorf("got %d %s, want at most %d", n[0], what, n[1])
		}
	}
	const most = 64 << 20
	if grown := after - before; grown > most {
		t.Errorf("got a heap that grew by %d MiB, want at most %d", grown>>20, most>>20)
	}
	away = false
	if err := totals.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var counted, lost int64
	if err := store.Totals(t.Context(), audit.Filter{}, func(x audit.Total) error { counted += x.Count; return nil }); err != nil {
		t.Fatal(err)
	}
	page, err := store.Losses(t.Context(), audit.LossQuery{Limit: audit.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range page.Items {
		if l.Reason != audit.LossStore {
			t.Errorf("unexpected loss: %+v", l)
		}
		lost += l.Count
	}
	if counted+lost != flows || lost == 0 {
		t.Errorf("got %d counted and %d lost, want all %d accounted for, and some lost", counted, lost, flows)
	}
}
