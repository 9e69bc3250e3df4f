package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/policy"
)

func TestToSQL(t *testing.T) {
	since := time.Date(2026, 11, 2, 10, 0, 59, 0, time.UTC)
	bucket := since.Truncate(time.Minute).UnixMicro()
	everything := audit.Filter{
		Since: since, Until: since, Subjects: []string{"s"}, Resources: []string{"r1", "r2"}, Clusters: []string{"m1"}, Actions: []string{"a"},
		Decisions: []policy.Word{policy.Denied, policy.Audited}, Verdicts: []audit.Verdict{audit.VerdictDropped}, Ports: []uint16{6379}, Policy: "p", SID: "sid",
		Unattributed: true, Disagree: true, Text: "t", Within: &audit.Scope{Subjects: []string{"s9"}},
	}
	const conds = "e.resource IN (?, ?) AND e.subject IN (?) AND e.cluster IN (?) AND e.action IN (?) AND e.decision IN (?, ?) AND e.verdict IN (?) AND e.port IN (?)" +
		" AND e.policy = ? AND e.sid = ? AND (e.subject = '' OR e.resource = '') AND " + disagree +
		" AND instr(lower(e.resource || char(0) || e.subject || char(0) || e.source || char(0) || e.destination), lower(?)) > 0 AND (e.subject IN (?) OR 0)"
	values := []any{"r1", "r2", "s", "m1", "a", "denied", "audited", "dropped", uint16(6379), "p", "sid", "t", "s9"}
	const connections = "SELECT " + edgeColumns + ", sum(r.count), min(r.first_seen), max(r.last_seen) AS seen, e.id FROM edges e JOIN rollups r ON r.edge = e.id"
	minute := time.Minute.Microseconds()
	for name, tc := range map[string]struct {
		reason string
		toSQL  func() (string, []any)
		text   string
		args   []any
	}{
		"Connections": {
			"no filter", connectionsQuery{limit: 101}.toSQL,
			connections + " GROUP BY e.id ORDER BY seen DESC, e.id DESC LIMIT ?", []any{101},
		},
		"AllFilters": {
			"every value is bound", connectionsQuery{filter: everything, limit: 3}.toSQL,
			connections + " WHERE " + conds + " AND r.bucket >= ? AND r.bucket < ? GROUP BY e.id ORDER BY seen DESC, e.id DESC LIMIT ?",
			append(append([]any{}, values...), bucket, bucket+minute, 3),
		},
		"NextPage": {
			"what was on the pages before is left out", connectionsQuery{after: &audit.Cursor{At: 5, Tie: "7"}, limit: 3}.toSQL,
			connections + " GROUP BY e.id HAVING (seen, e.id) < (?, CAST(? AS INTEGER)) ORDER BY seen DESC, e.id DESC LIMIT ?", []any{int64(5), "7", 3},
		},
		"Series": {
			"steps are worked out in the store", seriesQuery{audit.SeriesQuery{Filter: audit.Filter{Since: since}, Step: time.Minute}}.toSQL,
			"SELECT r.bucket / ? * ? AS start, e.decision, sum(r.count) FROM edges e JOIN rollups r ON r.edge = e.id WHERE r.bucket >= ? GROUP BY start, e.decision ORDER BY start, e.decision",
			[]any{minute, minute, bucket},
		},
		"DeniedBySubject": {
			"the name that is counted by must be there", deniedQuery{audit.DeniedQuery{By: audit.BySubject, Resource: "r", Since: since}}.toSQL,
			"SELECT e.subject, sum(r.count) FROM edges e JOIN rollups r ON r.edge = e.id WHERE e.subject <> '' AND e.resource IN (?) AND e.decision IN (?, ?) AND r.bucket >= ? GROUP BY e.subject",
			[]any{"r", "denied", "default-denied", bucket},
		},
		"DeniedByResource": {
			"without a time, all of it", deniedQuery{audit.DeniedQuery{By: audit.ByResource, Subject: "s"}}.toSQL,
			"SELECT e.resource, sum(r.count) FROM edges e JOIN rollups r ON r.edge = e.id WHERE e.resource <> '' AND e.subject IN (?) AND e.decision IN (?, ?) GROUP BY e.resource",
			[]any{"s", "denied", "default-denied"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, args := tc.toSQL()
			if diff := cmp.Diff(tc.text, text); diff != "" {
				t.Errorf("%s: text (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.args, args); diff != "" {
				t.Errorf("%s: arguments (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestQueriesUseIndexes(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "flows.db"))
	for name, f := range map[string]audit.Filter{
		"resource": {Resources: []string{"r"}, Since: audittest.T0}, "subject": {Subjects: []string{"s"}, Since: audittest.T0},
	} {
		text, args := connectionsQuery{filter: f, limit: 1}.toSQL()
		rows, err := s.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
		if err != nil {
			t.Fatalf("explain: %v", err)
		}
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(plan, "\n"); strings.Contains(all, "SCAN") {
			t.Errorf("a query by %s reads a whole table:\n%s", name, all)
		}
	}
}
