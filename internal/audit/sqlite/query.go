package sqlite

import (
	"slices"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/sqlquery"
)

const edgeColumns = "e.resource, e.subject, e.cluster, e.source_cluster, e.source, e.destination, e.action, e.port, e.protocol, e.decision, e.verdict," +
	" e.policy, e.sid, e.other_subjects, e.other_resources"

// edgeFields returns the scan destinations for a row's edgeColumns.
func edgeFields(e *audit.Edge) []any {
	return []any{&e.Resource, &e.Subject, &e.Cluster, &e.SourceCluster, &e.Source, &e.Destination, &e.Action, &e.Port, &e.Protocol, &e.Decision, &e.Verdict,
		&e.Statement.Policy, &e.Statement.SID, &e.OtherSubjects, &e.OtherResources}
}

// disagree is the SQL equivalent of audit.Edge.Disagrees; a test compares the two.
const disagree = "(e.verdict = 'dropped' AND e.decision NOT IN ('denied', 'default-denied') OR e.verdict IN ('forwarded', 'audit') " +
	"AND e.decision IN ('denied', 'default-denied'))"

// edgeConditions returns the filter's conditions on edges. The table alias of edges is e.
func edgeConditions(f audit.Filter) sqlquery.Conditions {
	var c sqlquery.Conditions
	sqlquery.AddIn(&c, "e.resource", f.Resources)
	sqlquery.AddIn(&c, "e.subject", f.Subjects)
	sqlquery.AddIn(&c, "e.cluster", f.Clusters)
	sqlquery.AddIn(&c, "e.action", f.Actions)
	sqlquery.AddIn(&c, "e.decision", texts(f.Decisions))
	sqlquery.AddIn(&c, "e.verdict", texts(f.Verdicts))
	sqlquery.AddIn(&c, "e.port", f.Ports)
	if f.Policy != "" {
		c.Add("e.policy = ?", f.Policy)
	}
	if f.SID != "" {
		c.Add("e.sid = ?", f.SID)
	}
	if f.Unattributed {
		c.Add("(e.subject = '' OR e.resource = '')")
	}
	if f.Disagree {
		c.Add(disagree)
	}
	if f.Text != "" {
		// The fields are joined by a character that the text of a query cannot contain.
		c.Add("instr(lower(e.resource || char(0) || e.subject || char(0) || e.source || char(0) || e.destination), lower(?)) > 0", f.Text)
	}
	if f.Within != nil {
		c.Add("(e.subject IN ? OR e.resource IN ?)", f.Within.Subjects, f.Within.Resources)
	}
	return c
}

// addEdges adds the condition that the column has an edge that meets the conditions.
func addEdges(c *sqlquery.Conditions, column string, edges sqlquery.Conditions) {
	if !edges.IsEmpty() {
		c.Add(column+" IN (SELECT e.id FROM edges e"+edges.Where()+")", edges.Args()...)
	}
}

func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(v)
	}
	return out
}

// addWindow adds conditions for the bounds on a column of times.
func addWindow(c *sqlquery.Conditions, column string, since, until time.Time) {
	if !since.IsZero() {
		c.Add(column+" >= ?", micros(since))
	}
	if !until.IsZero() {
		c.Add(column+" < ?", micros(until))
	}
}

// newestQuery selects the newest rows of minutes, which belong to the edges that were seen last.
type newestQuery struct {
	filter audit.Filter
	after  *audit.Cursor
	limit  int
}

func (q newestQuery) toSQL() sqlquery.Statement {
	var c sqlquery.Conditions
	since, until := q.filter.Window()
	addWindow(&c, "r.bucket", since, until)
	if q.after != nil {
		c.Add("r.bucket <= ?", q.after.At)
		c.Add("r.last_seen <= ?", q.after.At)
	}
	addEdges(&c, "r.edge", edgeConditions(q.filter))
	return sqlquery.Statement{
		Text: "SELECT r.edge FROM rollups r" + c.Where() + " ORDER BY r.bucket DESC, r.last_seen DESC, r.edge DESC LIMIT ?",
		Args: append(c.Args(), q.limit),
	}
}

type connectionsQuery struct {
	filter audit.Filter
	// only restricts the query to these edges; empty means all of the filter.
	only  []int64
	order audit.ConnectionOrder
	after *audit.Cursor
	limit int
}

func (q connectionsQuery) toSQL() sqlquery.Statement {
	rows := countRows(q.filter, day, q.only...)
	column, direction, than := "seen", " DESC", "<"
	if q.order.ByCount() {
		column = "n"
	}
	if q.order.Ascending() {
		direction, than = "", ">"
	}
	var page sqlquery.Conditions
	if q.after != nil {
		page.Add("("+column+", edge) "+than+" (?, CAST(? AS INTEGER))", q.after.At, q.after.Tie)
	}
	return sqlquery.Statement{
		Text: "SELECT " + edgeColumns +
			", t.n, t.first, t.seen, e.id FROM (SELECT edge, sum(count) AS n, min(first_seen) AS first, max(last_seen) AS seen FROM (" +
			rows.Text + ") GROUP BY edge" +
			page.Having() + " ORDER BY " + column + direction + ", edge" + direction + " LIMIT ?) t JOIN edges e ON e.id = t.edge ORDER BY t." + column +
			direction + ", t.edge" + direction,
		Args: slices.Concat(rows.Args, page.Args(), []any{q.limit}),
	}
}

// totalsQuery selects one row per edge, with its days in a list. The roll-ups of each edge are summed up before anything is
// sorted, because there are hundreds of them per edge.
type totalsQuery struct{ filter audit.Filter }

func (q totalsQuery) toSQL() sqlquery.Statement {
	rows := countRows(q.filter, day)
	return sqlquery.Statement{
		Text: "SELECT " + edgeColumns + ", d.days, d.count, d.first_seen, d.last_seen FROM (SELECT edge, group_concat(DISTINCT bucket / ?) AS days," +
			" sum(count) AS count, min(first_seen) AS first_seen, max(last_seen) AS last_seen FROM (" + rows.Text + ") GROUP BY edge) d" +
			" JOIN edges e ON e.id = d.edge ORDER BY " + edgeColumns,
		Args: append([]any{day.Microseconds()}, rows.Args...),
	}
}

type seriesQuery struct{ audit.SeriesQuery }

func (q seriesQuery) toSQL() sqlquery.Statement {
	step := q.Step.Microseconds()
	if q.tallied() {
		var c sqlquery.Conditions
		sqlquery.AddIn(&c, "decision", texts(q.Decisions))
		since, until := q.Window()
		addWindow(&c, "bucket", since, until)
		return sqlquery.Statement{
			Text: "SELECT bucket / ? * ? AS start, decision, sum(count) FROM tallies" + c.Where() +
				" GROUP BY start, decision HAVING sum(count) > 0 ORDER BY start, decision",
			Args: append([]any{step, step}, c.Args()...),
		}
	}
	width := audit.BucketWidth
	switch {
	case q.Step%day == 0:
		width = day
	case q.Step%time.Hour == 0:
		width = time.Hour
	}
	rows := countRows(q.Filter, width)
	return sqlquery.Statement{
		Text: "SELECT t.start, e.decision, sum(t.n) FROM (SELECT edge, bucket / ? * ? AS start, sum(count) AS n FROM (" + rows.Text +
			") GROUP BY edge, start) t" +
			" JOIN edges e ON e.id = t.edge GROUP BY t.start, e.decision HAVING sum(t.n) > 0 ORDER BY t.start, e.decision",
		Args: append([]any{step, step}, rows.Args...),
	}
}

// tallied reports whether the filter has conditions on times and decisions only, which are counted in a table of their own.
func (q seriesQuery) tallied() bool {
	f := q.Filter
	f.Decisions = nil
	c := edgeConditions(f)
	return c.IsEmpty()
}

type deniedQuery struct{ audit.DeniedQuery }

// toSQL requires that the query was validated.
func (q deniedQuery) toSQL() sqlquery.Statement {
	column := "e.subject"
	if q.By == audit.ByResource {
		column = "e.resource"
	}
	rows := countRows(q.Filter(), day)
	return sqlquery.Statement{
		Text: "SELECT " + column + ", sum(t.n) FROM (SELECT edge, sum(count) AS n FROM (" + rows.Text + ") GROUP BY edge) t JOIN edges e ON e.id = t.edge" +
			" WHERE " + column + " <> '' GROUP BY " + column + " HAVING sum(t.n) > 0",
		Args: rows.Args,
	}
}

type flowsQuery struct {
	filter audit.Filter
	after  *audit.Cursor
	limit  int
}

func (q flowsQuery) toSQL() sqlquery.Statement {
	c := edgeConditions(q.filter)
	since, until := q.filter.Window()
	addWindow(&c, "f.time", since, until)
	if q.after != nil {
		c.Add("(f.time, f.id) < (?, CAST(? AS INTEGER))", q.after.At, q.after.Tie)
	}
	return sqlquery.Statement{
		Text: "SELECT " + edgeColumns + ", f.time, f.node, f.source_address, f.destination_address, f.source_port, f.count, f.reason, f.id" +
			" FROM flows f JOIN edges e ON e.id = f.edge" + c.Where() + " ORDER BY f.time DESC, f.id DESC LIMIT ?",
		Args: append(c.Args(), q.limit),
	}
}

type lossesQuery struct {
	audit.LossQuery
	after *audit.Cursor
	limit int
}

// lossTie is an SQL expression that orders losses that ended at the same time.
const lossTie = "cluster || char(0) || node || char(0) || reason || char(0) || bucket"

func (q lossesQuery) toSQL() sqlquery.Statement {
	c := overlapping(q.Since, q.Until)
	sqlquery.AddIn(&c, "cluster", q.Clusters)
	if q.after != nil {
		c.Add("(ended < ? OR ended = ? AND "+lossTie+" > ?)", q.after.At, q.after.At, q.after.Tie)
	}
	s := sqlquery.Statement{
		Text: "SELECT cluster, node, reason, count, began, ended, " + lossTie + " AS tie FROM losses" + c.Where() + " ORDER BY ended DESC, tie",
		Args: c.Args(),
	}
	if q.limit > 0 {
		s.Text, s.Args = s.Text+" LIMIT ?", append(s.Args, q.limit)
	}
	return s
}

// watchedQuery selects the watched spans that overlap a window.
type watchedQuery struct{ since, until time.Time }

func (q watchedQuery) toSQL() sqlquery.Statement {
	c := overlapping(q.since, q.until)
	return sqlquery.Statement{Text: "SELECT source, began, ended FROM watched" + c.Where(), Args: c.Args()}
}

// overlapping returns the conditions for rows whose time from began to ended overlaps a window.
func overlapping(since, until time.Time) sqlquery.Conditions {
	var c sqlquery.Conditions
	if !since.IsZero() {
		c.Add("ended >= ?", micros(since))
	}
	if !until.IsZero() {
		c.Add("began < ?", micros(until))
	}
	return c
}
