package clickhouse

import (
	"os"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/testenv"
)

func options(t testing.TB, dsn string) Options {
	t.Helper()
	o, err := ParseDSN(dsn, os.ReadFile)
	if err != nil {
		t.Fatalf("ParseDSN: %v", err)
	}
	o.claimWait = 300 * time.Millisecond // a claim that takes longer is withdrawn
	return o
}

func open(t testing.TB, dsn string) *Store {
	t.Helper()
	s, err := Open(t.Context(), options(t, dsn))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	audittest.Run(t, func(t *testing.T) audit.Store { return open(t, testenv.ClickHouse(t)) })
}
