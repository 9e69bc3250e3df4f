package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/audit/flowstore"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/testenv"
)

// TestFlowStoreThatStartsLater: the portal starts without it, asks no more often than it should, and reads it once it is there.
func TestFlowStoreThatStartsLater(t *testing.T) {
	now, tried := time.Now(), 0
	away := errors.New("no server")
	r := &remoteFlows{now: func() time.Time { return now }, open: func(ctx context.Context) (flowstore.Reader, error) {
		if tried++; away != nil {
			return nil, away
		}
		return sqlite.Open(ctx, filepath.Join(t.TempDir(), "flows.db"))
	}}
	ask := func() error { _, err := r.LastFlow(t.Context()); return err }
	for range 3 {
		if err := ask(); !errors.Is(err, audit.ErrUnavailable) {
			t.Fatalf("it is away: %v", err)
		}
	}
	if tried != 1 {
		t.Errorf("it was tried %d times at once", tried)
	}
	away, now = nil, now.Add(reopenEvery)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.get(gone); err != nil {
		t.Errorf("who goes away does not make it one that is away: %v", err)
	}
	if err := ask(); err != nil || tried != 2 {
		t.Errorf("it is there: %v, tried %d times", err, tried)
	}
	if err := r.Totals(t.Context(), audit.Filter{}, func(audit.Total) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestFlowStoreInClickHouse: the portal reads from a current ClickHouse what was written there after it had started.
func TestFlowStoreInClickHouse(t *testing.T) {
	dsn := testenv.ClickHouse(t)
	file := filepath.Join(t.TempDir(), "address")
	if err := os.WriteFile(file, []byte(dsn+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	where, err := flowstore.Parse("@"+file, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	reader := openFlows(where)
	defer reader.Close()
	if _, err := reader.LastFlow(t.Context()); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("no collector has written yet: %v, want ErrUnavailable", err)
	}
	store, err := where.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	b := &audit.Batch{
		ID:      "1",
		Rollups: []audit.Rollup{{Bucket: audittest.T0, Edge: audittest.Edge(), Count: 3, FirstSeen: audittest.T0, LastSeen: audittest.T0}},
	}
	if err := store.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	page, err := reader.Connections(t.Context(), audit.ConnectionQuery{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Count != 3 {
		t.Errorf("Connections = %+v, %v; want what was written", page.Items, err)
	}
}
