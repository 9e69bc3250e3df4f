package sqlite

import (
	"math"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/sqlquery"
)

// sqlFolded, sqlDaysFolded and sqlNewest are subqueries for the values of the table folding.
const (
	sqlFolded     = "(SELECT folded FROM folding)"
	sqlDaysFolded = "(SELECT days_folded FROM folding)"
	sqlNewest     = "(SELECT newest FROM folding)"
)

// countRows returns a query for the counts that a filter selects: edge, bucket, count, first_seen, last_seen, in no order. Each
// row is the sum of a time span of at most the given width: a minute, an hour or a day. Folded days and hours that are completely in the
// window yield one row per edge, and the rest yields rows per minute. The argument only restricts the edges.
func countRows(f audit.Filter, width time.Duration, only ...int64) sqlquery.Statement {
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
	if width < time.Hour {
		p.minutes("max(?, (SELECT coalesce(min(bucket), 0) FROM rollups))", []any{from}, to)
		return p.query
	}
	firstHour, lastHour := nextStart(from, time.Hour), startOf(to, time.Hour)
	if from < firstHour {
		p.minutes("?", []any{from}, min(to, firstHour))
	}
	if firstHour < lastHour {
		p.hours(firstHour, lastHour, width)
		p.minutes("max(?, min(?, "+sqlFolded+"))", []any{firstHour, lastHour}, to)
	} else {
		p.minutes("?", []any{firstHour}, to)
	}
	return p.query
}

// nextStart returns the start of the first hour or UTC day that begins at a time or later.
func nextStart(at int64, width time.Duration) int64 { return startOf(at+width.Microseconds()-1, width) }

// selective reports whether the filter is expected to match few edges.
func selective(f audit.Filter) bool { return len(f.Subjects)+len(f.Resources) > 0 }

// windowQuery is a query over a window that is divided among the tables rollups, hours and days.
type windowQuery struct {
	// edges holds the conditions on edges.
	edges sqlquery.Conditions
	// selective is true if few edges are expected, so that each of them is looked up.
	selective bool

	query sqlquery.Statement
}

// hours adds the folded hours from one hour up to another. If the width is a day, whole folded days are read from the table days.
func (q *windowQuery) hours(first, last int64, width time.Duration) {
	firstDay, lastDay := nextStart(first, day), startOf(last, day)
	if width < day || firstDay >= lastDay {
		q.sums("hours", "r.bucket >= ? AND r.bucket < min(?, "+sqlFolded+")", first, last)
		return
	}
	if first < firstDay {
		q.sums("hours", "r.bucket >= ? AND r.bucket < min(?, "+sqlFolded+")", first, firstDay)
	}
	q.sums("days", "r.bucket >= ? AND r.bucket < min(?, "+sqlDaysFolded+")", firstDay, lastDay)
	q.sums("hours", "r.bucket >= max(?, min(?, "+sqlDaysFolded+")) AND r.bucket < min(?, "+sqlFolded+")", firstDay, lastDay, last)
}

// sums adds rows of a table that is ordered by edge and time. The times of each edge are looked up, because the table is much longer than
// most windows.
func (q *windowQuery) sums(table, condition string, args ...any) {
	if q.edges.IsEmpty() {
		condition = "r.edge IN (SELECT id FROM edges) AND " + condition
	}
	q.add(table+" r", condition, args...)
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
