package clickhouse

import (
	"errors"
	"testing"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/testenv"
)

func TestOpenReader(t *testing.T) {
	dsn := testenv.ClickHouse(t)
	r, err := OpenReader(t.Context(), options(t, dsn))
	if err != nil {
		t.Fatalf("OpenReader: %v", err)
	}
	defer r.Close()
	if _, err := r.Connections(t.Context(), audit.ConnectionQuery{}); !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("a database without a schema: %v, want ErrUnavailable", err)
	}
	s := open(t, dsn)
	b := &audit.Batch{
		ID:      "1",
		Rollups: []audit.Rollup{{Bucket: audittest.T0, Edge: audittest.Edge(), Count: 3, FirstSeen: audittest.T0, LastSeen: audittest.T0}},
	}
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	page, err := r.Connections(t.Context(), audit.ConnectionQuery{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Count != 3 {
		t.Errorf("got Connections = %+v, %v; want the edge that was written", page.Items, err)
	}
}
