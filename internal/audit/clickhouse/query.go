package clickhouse

import (
	"fmt"
	"slices"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/sqlquery"
)

// The placeholders of ClickHouse have names and types, as {limit:UInt32}. The server binds their values, so no value is part of a text.

// addIn adds the condition that a column has one of the values. It adds none if there are no values.
func addIn[T any](c *sqlquery.Conditions, column, kind string, values []T) {
	if len(values) > 0 {
		c.Add(column+" IN {"+column+":Array("+kind+")}", driver.Named(column, values))
	}
}

func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(v)
	}
	return out
}

// disagree is the SQL equivalent of audit.Edge.Disagrees; a test compares the two.
const disagree = "(verdict = 'dropped' AND decision NOT IN ('denied', 'default-denied') OR verdict IN ('forwarded', 'audit') " +
	"AND decision IN ('denied', 'default-denied'))"

// edgeConditions returns the filter's conditions on edges.
func edgeConditions(f audit.Filter) sqlquery.Conditions {
	var c sqlquery.Conditions
	addIn(&c, "resource", "String", f.Resources)
	addIn(&c, "subject", "String", f.Subjects)
	addIn(&c, "cluster", "String", f.Clusters)
	addIn(&c, "action", "String", f.Actions)
	addIn(&c, "decision", "String", texts(f.Decisions))
	addIn(&c, "verdict", "String", texts(f.Verdicts))
	addIn(&c, "port", "UInt16", f.Ports)
	if f.Policy != "" {
		c.Add("policy = {policy:String}", driver.Named("policy", f.Policy))
	}
	if f.SID != "" {
		c.Add("sid = {sid:String}", driver.Named("sid", f.SID))
	}
	if f.Unattributed {
		c.Add("(subject = '' OR resource = '')")
	}
	if f.Disagree {
		c.Add(disagree)
	}
	if f.Text != "" {
		// The fields are joined by a character that the text of a query cannot contain.
		c.Add(
			"positionCaseInsensitive(concat(resource, char(0), subject, char(0), source, char(0), destination), {text:String}) > 0",
			driver.Named("text", f.Text),
		)
	}
	if f.Within != nil {
		c.Add(
			"(subject IN {within_subjects:Array(String)} OR resource IN {within_resources:Array(String)})",
			driver.Named(
				"within_subjects",
				append([]string{}, f.Within.Subjects...),
			),
			driver.Named("within_resources", append([]string{}, f.Within.Resources...)),
		)
	}
	return c
}

// addWindow adds the filter's bounds on a column of the type DateTime whose values are multiples of the width.
func addWindow(c *sqlquery.Conditions, f audit.Filter, column string, width time.Duration) {
	since, until := f.Window()
	if !since.IsZero() {
		c.Add(column+" >= toDateTime({since:Int64}, 'UTC')", driver.Named("since", since.Truncate(width).Unix()))
	}
	if !until.IsZero() {
		c.Add(column+" < toDateTime({until:Int64}, 'UTC')", driver.Named("until", until.Unix()))
	}
}

// selection is the conditions of a filter for the table of counts, and those of them that edges meet.
type selection struct {
	edges sqlquery.Conditions
	sqlquery.Conditions
}

// counts returns the conditions of a filter, and further ones, for the counts of roll-ups.
func counts(f audit.Filter, further ...string) selection {
	s := selection{edges: edgeConditions(f), Conditions: ofKind(kindRollup)}
	for _, condition := range further {
		s.Add(condition)
	}
	if !s.edges.IsEmpty() {
		s.Add("edge IN (SELECT id FROM edges" + s.edges.Where() + ")")
	}
	addWindow(&s.Conditions, f, "bucket", audit.BucketWidth)
	s.Bind(s.edges.Args()...)
	return s
}

// ofKind returns the condition for the entries of a kind.
func ofKind(kind int) sqlquery.Conditions { return sqlquery.Condition(fmt.Sprintf("kind = %d", kind)) }

// edgesJoin returns a join that adds the columns of the edge to the rows of t. An edge may have several rows.
func (s selection) edgesJoin(columns string) string {
	return " AS t SEMI LEFT JOIN (SELECT id, " + columns + " FROM edges" + s.edges.Where() + ") AS e ON e.id = t.edge"
}

type connectionsQuery struct {
	filter audit.Filter
	order  audit.ConnectionOrder
	after  *audit.Cursor
	limit  int
}

// toSQL returns edges by their IDs only, so that the names of other edges are not read.
func (q connectionsQuery) toSQL() sqlquery.Statement {
	s := counts(q.filter)
	column, direction, than := "seen", " DESC", "<"
	if q.order.ByCount() {
		column = "n"
	}
	if q.order.Ascending() {
		direction, than = "", ">"
	}
	text := "SELECT hex(edge), sum(count) AS n, min(first_seen), max(last_seen) AS seen FROM entries" + s.Where() + " GROUP BY edge"
	if q.after != nil {
		text += " HAVING (" + column + ", hex(edge)) " + than + " ({at:Int64}, {tie:String})"
		s.Bind(driver.Named("at", q.after.At), driver.Named("tie", q.after.Tie))
	}
	s.Bind(driver.Named("limit", uint32(q.limit)))
	return sqlquery.Statement{Text: text + " ORDER BY " + column + direction + ", hex(edge)" + direction + " LIMIT {limit:UInt32}", Args: s.Args()}
}

// namesQuery selects the edges with the given IDs.
type namesQuery struct{ ids []string }

func (q namesQuery) toSQL() sqlquery.Statement {
	return sqlquery.Statement{
		Text: "SELECT hex(id), " + edgeColumns + " FROM edges WHERE id IN (SELECT toFixedString(unhex(arrayJoin({ids:Array(String)})), 16)) LIMIT 1 BY id",
		Args: []any{driver.Named("ids", q.ids)},
	}
}

type totalsQuery struct{ filter audit.Filter }

func (q totalsQuery) toSQL() sqlquery.Statement {
	s := counts(q.filter)
	return sqlquery.Statement{
		Text: "SELECT " + edgeColumns + ", n, first, last, days FROM (SELECT edge, sum(count) AS n, min(first_seen) AS first, max(last_seen) AS last," +
			" arraySort(groupUniqArray(toUInt16(toDate(bucket)))) AS days FROM entries" + s.Where() + " GROUP BY edge)" + s.edgesJoin(edgeColumns) +
			" ORDER BY " + edgeOrder,
		Args: s.Args(),
	}
}

// edgeOrder is the order of audit.Reader's Totals, compared by bytes.
const edgeOrder = edgeColumns

type deniedQuery struct{ audit.DeniedQuery }

// toSQL requires that the query was validated.
func (q deniedQuery) toSQL() sqlquery.Statement {
	column := "subject"
	if q.By == audit.ByResource {
		column = "resource"
	}
	s := counts(q.Filter())
	return sqlquery.Statement{
		Text: "SELECT " + column + ", sum(n) FROM (SELECT edge, sum(count) AS n FROM entries" + s.Where() + " GROUP BY edge)" + s.edgesJoin(column) +
			" WHERE " + column + " <> '' GROUP BY " + column + " HAVING sum(n) > 0",
		Args: s.Args(),
	}
}

type lossesQuery struct {
	audit.LossQuery
	after *audit.Cursor
	limit int // 0 means unlimited
}

func (q lossesQuery) toSQL() sqlquery.Statement {
	c, sums := ofKind(kindLoss), overlapping(q.Since, q.Until)
	addIn(&c, "source", "String", q.Clusters)
	if q.after != nil {
		sums.Add("(ended < {at:Int64} OR ended = {at:Int64} AND tie > {tie:String})", driver.Named("at", q.after.At), driver.Named("tie", q.after.Tie))
	}
	text := "SELECT source, key, sum(count), min(first_seen) AS began, max(last_seen) AS ended, concat(source, char(0), key, char(0), " +
		"toString(toUnixTimestamp(bucket))) AS tie FROM entries" +
		c.Where() + " GROUP BY source, key, bucket" + sums.Having() + " ORDER BY ended DESC, tie"
	args := slices.Concat(c.Args(), sums.Args())
	if q.limit > 0 {
		return sqlquery.Statement{Text: text + " LIMIT {limit:UInt32}", Args: append(args, driver.Named("limit", uint32(q.limit)))}
	}
	return sqlquery.Statement{Text: text, Args: args}
}

type watchedQuery struct{ since, until time.Time }

func (q watchedQuery) toSQL() sqlquery.Statement {
	c, sums := ofKind(kindWatch), overlapping(q.since, q.until)
	return sqlquery.Statement{
		Text: "SELECT source, min(first_seen) AS began, max(last_seen) AS ended FROM entries" + c.Where() + " GROUP BY source, key" + sums.Having(),
		Args: sums.Args(),
	}
}

// overlapping returns the conditions for sums whose time from began to ended overlaps a window.
func overlapping(since, until time.Time) sqlquery.Conditions {
	var c sqlquery.Conditions
	if !since.IsZero() {
		c.Add("ended >= {since:Int64}", driver.Named("since", micros(since)))
	}
	if !until.IsZero() {
		c.Add("began < {until:Int64}", driver.Named("until", micros(until)))
	}
	return c
}
