package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/sqlquery"
)

func TestToSQL(t *testing.T) {
	every, after := audittest.EveryFilter(), &audit.Cursor{At: 5, Tie: "7"}
	statements := map[string]audittest.Statement{}
	for name, q := range map[string]interface{ toSQL() sqlquery.Statement }{
		"connections":                      connectionsQuery{limit: 101},
		"connections by everything":        connectionsQuery{filter: every, limit: 3},
		"connections, the next page":       connectionsQuery{after: after, limit: 3},
		"connections by count":             connectionsQuery{filter: every, order: audit.MostFirst, limit: 3},
		"connections by count, next page":  connectionsQuery{order: audit.MostFirst, after: after, limit: 3},
		"connections seen last, next page": connectionsQuery{order: audit.LastSeenLast, after: after, limit: 3},
		"connections within an hour": connectionsQuery{
			filter: audit.Filter{Since: audittest.T0.Add(time.Minute), Until: audittest.T0.Add(2 * time.Minute)}, limit: 3,
		},
		"newest, the next page": newestQuery{every, after, 3},
		"connections of edges":  connectionsQuery{only: []int64{8, 9}, limit: 3},
		"denied by subject":     deniedQuery{audit.DeniedQuery{By: audit.BySubject, Resource: "value-r", Since: audittest.T0}},
		"denied by resource":    deniedQuery{audit.DeniedQuery{By: audit.ByResource, Subject: "value-s"}},
		"flows by everything":   flowsQuery{filter: every, after: after, limit: 3},
		"losses": lossesQuery{
			LossQuery: audit.LossQuery{Since: audittest.T0, Until: audittest.T0, Clusters: []string{"value-c"}}, after: after, limit: 3,
		},
		"series by everything": seriesQuery{audit.SeriesQuery{Filter: every, Step: time.Minute}},
		"series by hours":      seriesQuery{audit.SeriesQuery{Filter: every, Step: time.Hour}},
		"series of all": seriesQuery{
			audit.SeriesQuery{Filter: audit.Filter{Since: audittest.T0, Decisions: []policy.Verdict{"value-d"}}, Step: time.Minute},
		},
		"totals by everything": totalsQuery{every},
	} {
		query := sqlquery.Expand(q.toSQL(), false)
		s := audittest.Statement{Text: query.Text}
		for _, a := range query.Args {
			s.Args = append(s.Args, fmt.Sprint(a))
		}
		statements[name] = s
	}
	audittest.BindsValues(t, statements)
	audittest.Golden(t, "testdata/statements.txt", statements)
}

// TestQueriesUseIndexes verifies that queries by names look up their edges, and that no query reads the minutes, hours and days outside of its window.
func TestQueriesUseIndexes(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "flows.db"))
	year := func(f audit.Filter) audit.Filter {
		f.Since, f.Until = audittest.T0.Add(-365*day), audittest.T0.Add(time.Minute)
		return f
	}
	byResource, bySubject := audit.Filter{Resources: []string{"r"}, Since: audittest.T0}, audit.Filter{Subjects: []string{"s"}, Since: audittest.T0}
	for name, tc := range map[string]struct {
		query interface{ toSQL() sqlquery.Statement }
		// every is set if the query is about all edges.
		every bool
	}{
		"connections of a resource":         {query: connectionsQuery{filter: byResource, limit: 1}},
		"connections of a subject":          {query: connectionsQuery{filter: bySubject, limit: 1}},
		"last uses of a resource in a year": {query: totalsQuery{year(byResource)}},
		"last uses of a subject in a year":  {query: totalsQuery{year(bySubject)}},
		"totals of a year":                  {query: totalsQuery{year(audit.Filter{})}, every: true},
		"denied in a year":                  {query: totalsQuery{year(audit.Filter{Decisions: []policy.Verdict{policy.Denied}})}, every: true},
		"totals of some hours": {
			query: totalsQuery{audit.Filter{Since: audittest.T0, Until: audittest.T0.Add(5 * time.Hour)}}, every: true,
		},
	} {
		query := sqlquery.Expand(tc.query.toSQL(), false)
		plan := planOf(t, s, query)
		for _, step := range plan {
			if strings.HasPrefix(step+" ", "SCAN r ") || !tc.every && strings.HasPrefix(step+" ", "SCAN e ") {
				t.Errorf("%s scans a whole table:\n%s", name, strings.Join(plan, "\n"))
			}
		}
		const lookUp = "SEARCH r USING PRIMARY KEY (edge=? AND bucket>? AND bucket<?)"
		if strings.Contains(query.Text, "hours r") && !slices.Contains(plan, lookUp) {
			t.Errorf("%s does not look up the hours of each edge:\n%s", name, strings.Join(plan, "\n"))
		}
	}
}

func planOf(t *testing.T, s *Store, query sqlquery.Statement) (plan []string) {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query.Text, query.Args...)
	if err != nil {
		t.Fatalf("explain: %v", err)
	}
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
	return plan
}
