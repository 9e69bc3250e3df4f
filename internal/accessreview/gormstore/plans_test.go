package gormstore

import (
	"database/sql"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/sqlquery"
)

// TestPagesReadIndexes checks that the counts of a review are read in the order of an index, without sorting all of its lines, and that
// a page of the lines with a recommendation reads no others. SQLite plans without figures, so that the plan is the one in operation.
func TestPagesReadIndexes(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t))
	for name, tc := range map[string]struct {
		query sqlquery.Statement
		index string
	}{
		"counts": {counts(nil, []int64{1}), "COVERING INDEX review_lines_count (review=?)"},
		"recommended": {
			page(accessreview.LineFilter{Campaign: 1, Limit: 101, States: []accessreview.LineState{accessreview.LineOpen},
				Recommendations: []accessreview.Decision{accessreview.Keep}}, false),
			"COVERING INDEX review_lines_recommended (review=? AND state=? AND recommendation=?)",
		},
		"all": {page(accessreview.LineFilter{Campaign: 1, Limit: 101, After: accessreview.Position{Campaign: 1, Number: 7}}, false), "(review=? AND line>?)"},
	} {
		var plan []string
		if err := db.ReadOne(t.Context(), func(tx *gorm.DB) error {
			return database.Rows(tx, func(rows *sql.Rows) error {
				var id, parent, unused int
				var detail string
				err := rows.Scan(&id, &parent, &unused, &detail)
				plan = append(plan, detail)
				return err
			}, "EXPLAIN QUERY PLAN "+tc.query.Text, tc.query.Args...)
		}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := strings.Join(plan, "; ")
		if !strings.Contains(text, tc.index) || name == "counts" && strings.Contains(text, "TEMP B-TREE") {
			t.Errorf("%s: the plan is %q, want the index %q", name, text, tc.index)
		}
	}
}
