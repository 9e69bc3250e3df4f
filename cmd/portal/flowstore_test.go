package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

func TestFlowStoreAddress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "address")
	if err := os.WriteFile(file, []byte("clickhouse://acp:hush@127.0.0.1:9000/flows\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{"sqlite:x.db": "", "clickhouse://acp@127.0.0.1:9000/flows": "", "@" + file: "",
		"sqlite:": "give it as", "mysql:x": "give it as", "": "give it as", "clickhouse://h:9000": "needs a host and a database", "@" + file + "x": "read the address"} {
		_, err := parseFlowStore(address)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// TestFlowStoreThatComesLater: the portal starts without it, asks no more often than it should, and reads it once it is there.
func TestFlowStoreThatComesLater(t *testing.T) {
	now, tried := time.Now(), 0
	away := errors.New("no server")
	r := &remoteFlows{now: func() time.Time { return now }, open: func(ctx context.Context) (closingReader, error) {
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
