package clickhouse

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/testenv"
)

// TestManyFlows go in several inserts, and are one attempt.
func TestManyFlows(t *testing.T) {
	s := open(t, testenv.ClickHouse(t))
	const n = 2*flowsOfInsert + 1
	if err := s.Append(t.Context(), &audit.Batch{ID: "1", Flows: audittest.NewFleet(1000).Flows(audittest.T0, time.Minute, n)}); err != nil {
		t.Fatal(err)
	}
	var rows, attempts, unnamed uint64
	if err := s.conn.QueryRow(t.Context(), "SELECT count(), uniqExact(batch), countIf(edge NOT IN (SELECT id FROM edges)) FROM flows").Scan(&rows, &attempts, &unnamed); err != nil {
		t.Fatal(err)
	}
	if rows != n || attempts != 1 || unnamed != 0 {
		t.Errorf("%d flows of %d attempts, %d without their edge; want %d of 1, 0", rows, attempts, unnamed, n)
	}
}

// TestUpgrade keeps what a store of the first version has.
func TestUpgrade(t *testing.T) {
	dsn := testenv.ClickHouse(t)
	o := options(t, dsn)
	conn, err := connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range append([]string{versionsTable, leasesTable}, migrations[0]...) {
		if err := conn.Exec(t.Context(), o.statement(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Exec(t.Context(), "INSERT INTO schema_versions (version) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	old := &Store{queries: queries{conn: conn}, options: o, now: time.Now, edges: newKnownEdges(), spans: map[string]audit.Watch{}}
	e := audittest.Edge()
	if err := old.Append(t.Context(), &audit.Batch{ID: "1", Rollups: []audit.Rollup{{Bucket: day(0), Edge: e, Count: 1, FirstSeen: day(0), LastSeen: day(0)}}}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec(t.Context(), fmt.Sprintf(`INSERT INTO flows (slot, edge, micros, node, source_port, count, reason, batch)
		SELECT toStartOfHour(bucket), edge, 1500, 'n1', 40001, 1, 'because', (SELECT toUInt64(first_seen) FROM entries WHERE kind = %d) FROM entries WHERE kind = %d`, kindBatch, kindRollup)); err != nil {
		t.Fatal(err)
	}
	s := open(t, dsn)
	have, err := s.version(t.Context())
	if err != nil || have != len(migrations) {
		t.Fatalf("the schema has version %d, %v; want %d", have, err, len(migrations))
	}
	want := audit.Flow{Time: day(0).Truncate(time.Hour).Add(1500 * time.Microsecond), Node: "n1", Edge: e, SourcePort: 40001, Count: 1, Reason: "because"}
	if err := s.Append(t.Context(), &audit.Batch{ID: "2", Flows: []audit.Flow{want}}); err != nil {
		t.Fatal(err)
	}
	page, err := s.Flows(t.Context(), audit.FlowQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]audit.Flow{want, want}, page.Items, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("flows after the upgrade (-want +got):\n%s", diff)
	}
}
