package sqlite

import (
	"math"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/sqlquery"
)

// sqlFolded and sqlNewest are subqueries for the values of the table folding.
const (
	sqlFolded = "(SELECT folded FROM folding)"
	sqlNewest = "(SELECT newest FROM folding)"
)

// countRows returns a query for the counts that a filter selects: edge, bucket, count, first_seen, last_seen, in no order. If
// hours is true, whole folded hours of the window yield one row per edge, and the rest yields rows per minute. The argument only
// restricts the edges.
func countRows(f audit.Filter, hours bool, only ...int64) sqlquery.Statement {
	hour := time.Hour.Microseconds()
	from, to := int64(0), int64(math.MaxInt64)
	since, until := f.Window()
	if !since.IsZero() {
		from = max(0, micros(since))
	}
	if !until.IsZero() {
		to = micros(until)
	}
	p := windowQuery{edges: edgeConditions(f), selective: selective(f) || len(only) > 0}
	sqlquery.AddIn(&p.edges, "e.id", only)
	if !hours {
		p.minutes("max(?, (SELECT coalesce(min(bucket), 0) FROM rollups))", []any{from}, to)
		return p.query
	}
	firstHour, lastHour := (from+hour-1)/hour*hour, to/hour*hour
	if from < firstHour {
		p.minutes("?", []any{from}, min(to, firstHour))
	}
	if firstHour < lastHour {
		p.add("hours r", "r.bucket >= ? AND r.bucket < min(?, "+sqlFolded+")", firstHour, lastHour)
		p.minutes("max(?, min(?, "+sqlFolded+"))", []any{firstHour, lastHour}, to)
	} else {
		p.minutes("?", []any{firstHour}, to)
	}
	return p.query
}

// selective reports whether the filter is expected to match few edges.
func selective(f audit.Filter) bool { return len(f.Subjects)+len(f.Resources) > 0 }

// windowQuery is a query over a window that is divided among the tables rollups and hours.
type windowQuery struct {
	// edges holds the conditions on edges.
	edges sqlquery.Conditions
	// selective is true if few edges are expected, so that each of them is looked up.
	selective bool

	query sqlquery.Statement
}

func (q *windowQuery) add(from, condition string, args ...any) {
	if q.query.Text != "" {
		q.query.Text += " UNION ALL "
	}
	c := sqlquery.Condition(condition, args...)
	addEdges(&c, "r.edge", q.edges)
	q.query.Text += "SELECT r.edge, r.bucket, r.count, r.first_seen, r.last_seen FROM " + from + c.Where()
	q.query.Args = append(q.query.Args, c.Args()...)
}

// minutes adds the range [lo, hi) of the table rollups, which is ordered by time. Few edges are looked up minute by minute.
func (q *windowQuery) minutes(lo string, loArgs []any, hi int64) {
	if !q.selective {
		q.add("rollups r", "r.bucket >= "+lo+" AND r.bucket < ?", append(loArgs, hi)...)
		return
	}
	width := audit.BucketWidth.Microseconds()
	// The window may end long after the newest minute.
	q.add(
		"(WITH RECURSIVE b(lo, hi) AS (SELECT "+lo+", min(?, "+sqlNewest+" + ?)),"+
			" m(at) AS (SELECT lo FROM b WHERE lo < hi UNION ALL SELECT at + ? FROM m, b WHERE at + ? < hi)"+
			" SELECT at FROM m) m CROSS JOIN rollups r",
		"r.bucket = m.at",
		append(loArgs, hi, width, width, width)...)
}
