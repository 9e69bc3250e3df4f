package clickhouse

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/testenv"
)

// TestManyFlows verifies that many flows are written in several inserts with one attempt number.
func TestManyFlows(t *testing.T) {
	s := open(t, testenv.ClickHouse(t))
	const n = 2*flowsPerInsert + 1
	if err := s.Append(t.Context(), &audit.Batch{ID: "1", Flows: audittest.NewFleet(1000).Flows(audittest.T0, time.Minute, n)}); err != nil {
		t.Fatal(err)
	}
	var rows, attempts, unnamed uint64
	if err := s.conn.QueryRow(t.Context(), "SELECT count(), uniqExact(batch), countIf(edge NOT IN (SELECT id FROM edges)) FROM flows").
		Scan(&rows, &attempts, &unnamed); err != nil {
		t.Fatal(err)
	}
	if rows != n || attempts != 1 || unnamed != 0 {
		t.Errorf("got %d flows of %d attempts and %d without an edge; want %d of 1, 0", rows, attempts, unnamed, n)
	}
}

// TestFlowsOfManyDays verifies that a batch whose flows lie on more days than the server accepts in one insert is stored, also one
// with times that its types do not have: a batch that is rejected would be retried forever, and none after it would be stored.
func TestFlowsOfManyDays(t *testing.T) {
	s := open(t, testenv.ClickHouse(t))
	const days = 101
	e := audittest.Edge()
	b := &audit.Batch{ID: "1"}
	for i := range 2 * days {
		b.Flows = append(b.Flows, audit.Flow{Time: day(-(i * 7) % days), Edge: e, SourcePort: uint16(i), Count: 1})
	}
	first := b.Flows[1].Time
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if !b.Flows[1].Time.Equal(first) {
		t.Errorf("the order of the batch's flows was changed")
	}
	if got := len(flowsIn(t, s, audit.Filter{})); got != 2*days {
		t.Errorf("got %d flows, want %d", got, 2*days)
	}
	var parts uint64
	if err := s.conn.QueryRow(t.Context(), "SELECT count() FROM system.parts WHERE database = currentDatabase() AND table = 'flows' AND level = 0").
		Scan(&parts); err != nil {
		t.Fatal(err)
	}
	if parts > days+days/daysPerInsert {
		t.Errorf("got %d parts for %d days, want each day in one insert", parts, days)
	}
	end := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	odd := &audit.Batch{ID: "2", Losses: []audit.Loss{{Cluster: "m1", Reason: audit.LossRing, Count: 1, From: day(0), To: end}}}
	for _, year := range []int{1, 1900, 1969, 2200, 9999} {
		at := time.Date(year, 7, 1, 0, 0, 0, 0, time.UTC)
		odd.Flows = append(odd.Flows, audit.Flow{Time: at, Edge: e, Count: 1})
		odd.Rollups = append(odd.Rollups, audit.Rollup{Bucket: at, Edge: e, Count: 1, FirstSeen: at, LastSeen: at})
	}
	if err := s.Append(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	if got := len(flowsIn(t, s, audit.Filter{Since: day(-200), Until: day(200)})); got != 2*days {
		t.Errorf("got %d flows in the days of the first batch, want %d: the others are at the limits of the types", got, 2*days)
	}
	var newest time.Time
	if err := s.conn.QueryRow(t.Context(), "SELECT max(written) FROM entries").Scan(&newest); err != nil {
		t.Fatal(err)
	}
	if want := dayNumber(math.MaxUint16).time(); !newest.Equal(want) {
		t.Errorf("got the partition %v for a batch with an entry of the year 9999, want the last one, %v, which is pruned after its flows", newest, want)
	}
}

// flowsIn returns all flows that match the filter.
func flowsIn(t *testing.T, s *Store, f audit.Filter) (out []audit.Flow) {
	t.Helper()
	for q := (audit.FlowQuery{Filter: f, Limit: audit.MaxPage}); ; {
		page, err := s.Flows(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, page.Items...)
		if q.Cursor = page.Next; q.Cursor == "" {
			return out
		}
	}
}

// TestUpgrade verifies that an upgrade keeps the data of a store of the first schema version.
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
	old := &Store{queries: queries{conn: conn}, options: o, now: time.Now, edges: newKnownEdges(), spans: map[string]audit.WatchedSpan{}}
	e := audittest.Edge()
	if err := old.Append(
		t.Context(),
		&audit.Batch{ID: "1", Rollups: []audit.Rollup{{Bucket: day(0), Edge: e, Count: 1, FirstSeen: day(0), LastSeen: day(0)}}},
	); err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec(t.Context(), fmt.Sprintf(`INSERT INTO flows (slot, edge, micros, node, source_port, count, reason, batch)
		SELECT toStartOfHour(bucket), edge, 1500, 'n1', 40001, 1, 'because', (SELECT toUInt64(first_seen) FROM entries WHERE kind = %d)
		FROM entries WHERE kind = %d`, kindBatch, kindRollup)); err != nil {
		t.Fatal(err)
	}
	s := open(t, dsn)
	have, err := s.version(t.Context())
	if err != nil || have != len(migrations) {
		t.Fatalf("got schema version %d, %v; want %d", have, err, len(migrations))
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

func TestSlotOf(t *testing.T) {
	hour := audittest.T0.Unix()
	for name, tc := range map[string]struct {
		reason   string
		at, want int64
	}{
		"Hour":   {"the slot of an older program begins with a slot of one second", hour, hour},
		"First":  {"the rest of the first slot of an hour is a slot", hour + 1, hour + 1},
		"Within": {"the slot lasts until the next one begins", hour + 599, hour + 1},
		"Second": {"the others begin at multiples of the width", hour + 600, hour + 600},
		"Last":   {"the last slot ends with the hour", hour + 3599, hour + 3000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := slotOf(tc.at); got != tc.want {
				t.Errorf("slotOf(%d) = %d, want %d: %s", tc.at-hour, got-hour, tc.want-hour, tc.reason)
			}
		})
	}
}

func TestBackwards(t *testing.T) {
	hour := audittest.T0.Unix()
	at := func(minutes int64) int64 { return (hour + 60*minutes) * 1_000_000 }
	for name, tc := range map[string]struct {
		reason   string
		from, to int64
		begins   []int64
		want     [][2]int64
	}{
		"Nothing": {"a window after all flows", at(60), at(30), []int64{at(10)}, nil},
		"Begins": {"the first ranges as given, then wider ones, without a gap", at(-70), at(12), []int64{at(11), at(10)},
			[][2]int64{{at(11), at(12)}, {at(10), at(11)}, {at(0), at(10)}, {at(-40), at(0)}, {at(-70), at(-40)}}},
		"Passed": {"a beginning that is not earlier is skipped", at(0), at(12), []int64{at(15), at(5), at(10)}, [][2]int64{{at(5), at(12)}, {at(0), at(5)}}},
		"Far":    {"a few ranges reach far back", at(-60 * 24 * 30), at(10), []int64{at(0)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got [][2]int64
			if err := backwards(tc.from, tc.to, tc.begins, slotWidth, func(from, to int64) (bool, error) {
				got = append(got, [2]int64{from, to})
				return true, nil
			}); err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if i > 0 && got[i][1] != got[i-1][0] || got[i][0] >= got[i][1] {
					t.Errorf("slice %d is %v after %v", i, got[i], got[max(i-1, 0)])
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" && tc.want != nil {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if n := len(got); tc.from < tc.to && (got[0][1] != tc.to || got[n-1][0] != tc.from || n > 9) || tc.from >= tc.to && n > 0 {
				t.Errorf("%s: got %d ranges: %v", tc.reason, n, got)
			}
		})
	}
}

// TestFlowsOfBothPrograms covers the time while collectors are updated one by one: the older program groups flows by hour.
func TestFlowsOfBothPrograms(t *testing.T) {
	s := open(t, testenv.ClickHouse(t))
	var want []audit.Flow
	e := audittest.Edge()
	add := func(id string, offset time.Duration) {
		b := &audit.Batch{ID: id}
		for i := range 6 * 24 {
			b.Flows = append(
				b.Flows,
				audit.Flow{Time: audittest.T0.Add(time.Duration(i)*5*time.Minute + offset), Node: id, Edge: e, SourcePort: uint16(i), Count: 1},
			)
		}
		want = append(want, b.Flows...)
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	add("older", 0)
	for _, text := range []string{
		`INSERT INTO flows (slot, edge, destination_address, source_address, micros, node, source_port, count, reason, batch)
			SELECT toStartOfHour(slot) AS hour, edge, destination_address, source_address,
				toUInt32(toUnixTimestamp(slot) - toUnixTimestamp(hour)) * 1000000 + micros, 'hours', source_port, count, reason, batch FROM flows`,
		"ALTER TABLE flows DELETE WHERE node = 'older' SETTINGS mutations_sync = 2",
	} {
		if err := s.conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for i := range want {
		want[i].Node = "hours"
	}
	add("newer", time.Second/2)
	slices.SortFunc(want, func(a, b audit.Flow) int { return b.Time.Compare(a.Time) })
	for _, limit := range []int{1, 7, 1000} {
		for name, f := range map[string]audit.Filter{
			"all": {}, "a window": {Since: audittest.T0.Add(67 * time.Minute), Until: audittest.T0.Add(421 * time.Minute)},
		} {
			var got []audit.Flow
			for q := (audit.FlowQuery{Filter: f, Limit: limit}); ; {
				page, err := s.Flows(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, page.Items...)
				if q.Cursor = page.Next; q.Cursor == "" || limit == 1 && len(got) == 40 {
					break
				}
			}
			of := slices.DeleteFunc(slices.Clone(want), func(x audit.Flow) bool {
				return !f.Since.IsZero() && (x.Time.Before(f.Since) || !x.Time.Before(f.Until))
			})
			if limit == 1 {
				of = of[:40]
			}
			if diff := cmp.Diff(of, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("%s in pages of %d (-want +got):\n%s", name, limit, diff)
			}
		}
	}
}
