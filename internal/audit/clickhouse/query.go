package clickhouse

import (
	"fmt"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/acp-io/acp/internal/audit"
)

// statement is the text of a query with its arguments. The server binds the arguments, so no value is part of the text.
type statement struct {
	text string
	args []any
}

// where collects conditions with their arguments.
type where struct {
	conds []string
	args  []any
}

func (w *where) add(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
}

func (w *where) bind(name string, value any) { w.args = append(w.args, driver.Named(name, value)) }

func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

func in[T any](w *where, column, kind string, values []T) {
	if len(values) > 0 {
		w.add(column+" IN {"+column+":Array("+kind+")}", driver.Named(column, values))
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
const disagree = "(verdict = 'dropped' AND decision NOT IN ('denied', 'default-denied') OR verdict IN ('forwarded', 'audit') AND decision IN ('denied', 'default-denied'))"

// edges adds the filter's conditions on edges.
func (w *where) edges(f audit.Filter) {
	in(w, "resource", "String", f.Resources)
	in(w, "subject", "String", f.Subjects)
	in(w, "cluster", "String", f.Clusters)
	in(w, "action", "String", f.Actions)
	in(w, "decision", "String", texts(f.Decisions))
	in(w, "verdict", "String", texts(f.Verdicts))
	in(w, "port", "UInt16", f.Ports)
	if f.Policy != "" {
		w.add("policy = {policy:String}", driver.Named("policy", f.Policy))
	}
	if f.SID != "" {
		w.add("sid = {sid:String}", driver.Named("sid", f.SID))
	}
	if f.Unattributed {
		w.add("(subject = '' OR resource = '')")
	}
	if f.Disagree {
		w.add(disagree)
	}
	if f.Text != "" {
		// The fields are joined by a character that the text of a query cannot contain.
		w.add("positionCaseInsensitive(concat(resource, char(0), subject, char(0), source, char(0), destination), {text:String}) > 0", driver.Named("text", f.Text))
	}
	if f.Within != nil {
		w.add("(subject IN {within_subjects:Array(String)} OR resource IN {within_resources:Array(String)})",
			driver.Named("within_subjects", append([]string{}, f.Within.Subjects...)), driver.Named("within_resources", append([]string{}, f.Within.Resources...)))
	}
}

// window adds the filter's bounds on a column of the type DateTime whose values are multiples of the width.
func (w *where) window(f audit.Filter, column string, width time.Duration) {
	since, until := f.Window()
	if !since.IsZero() {
		w.add(column+" >= toDateTime({since:Int64}, 'UTC')", driver.Named("since", since.Truncate(width).Unix()))
	}
	if !until.IsZero() {
		w.add(column+" < toDateTime({until:Int64}, 'UTC')", driver.Named("until", until.Unix()))
	}
}

// selection is the conditions of a filter for the table of counts or of flows.
type selection struct {
	// edgeConds is a subquery on the table edges, without its column list and its closing bracket.
	edgeConds string
	where     where
}

// selectBy returns the conditions of the filter, see window.
func selectBy(f audit.Filter, column string, width time.Duration, conds ...string) selection {
	var e, w where
	e.edges(f)
	for _, c := range conds {
		w.add(c)
	}
	if len(e.conds) > 0 {
		w.add("edge IN (SELECT id FROM edges" + e.String() + ")")
	}
	w.window(f, column, width)
	w.args = append(w.args, e.args...)
	return selection{e.String(), w}
}

func counts(f audit.Filter, conds ...string) selection {
	return selectBy(f, "bucket", audit.BucketWidth, append([]string{fmt.Sprintf("kind = %d", kindRollup)}, conds...)...)
}

// edgesJoin returns a join that adds the columns of the edge to the rows of t. An edge may have several rows.
func (s selection) edgesJoin(columns string) string {
	return " AS t SEMI LEFT JOIN (SELECT id, " + columns + " FROM edges" + s.edgeConds + ") AS e ON e.id = t.edge"
}

type connectionsQuery struct {
	filter audit.Filter
	after  *audit.Cursor
	limit  int
}

// toSQL returns edges by their IDs only, so that the names of other edges are not read.
func (q connectionsQuery) toSQL() statement {
	s := counts(q.filter)
	text := "SELECT hex(edge), sum(count), min(first_seen), max(last_seen) AS seen FROM entries" + s.where.String() + " GROUP BY edge"
	if q.after != nil {
		text += " HAVING (seen, hex(edge)) < ({at:Int64}, {tie:String})"
		s.where.bind("at", q.after.At)
		s.where.bind("tie", q.after.Tie)
	}
	s.where.bind("limit", uint32(q.limit))
	return statement{text + " ORDER BY seen DESC, hex(edge) DESC LIMIT {limit:UInt32}", s.where.args}
}

// namesQuery selects the edges with the given IDs.
type namesQuery struct{ ids []string }

func (q namesQuery) toSQL() statement {
	return statement{"SELECT hex(id), " + edgeColumns + " FROM edges WHERE id IN (SELECT toFixedString(unhex(arrayJoin({ids:Array(String)})), 16)) LIMIT 1 BY id",
		[]any{driver.Named("ids", q.ids)}}
}

type totalsQuery struct{ filter audit.Filter }

func (q totalsQuery) toSQL() statement {
	s := counts(q.filter)
	return statement{"SELECT " + edgeColumns + ", n, first, last, days FROM (SELECT edge, sum(count) AS n, min(first_seen) AS first, max(last_seen) AS last," +
		" arraySort(groupUniqArray(toUInt16(toDate(bucket)))) AS days FROM entries" + s.where.String() + " GROUP BY edge)" + s.edgesJoin(edgeColumns) +
		" ORDER BY " + edgeOrder, s.where.args}
}

// edgeOrder is the order of audit.Reader's Totals, compared by bytes.
const edgeOrder = edgeColumns

type deniedQuery struct{ audit.DeniedQuery }

// toSQL requires that the query was validated.
func (q deniedQuery) toSQL() statement {
	column := "subject"
	if q.By == audit.ByResource {
		column = "resource"
	}
	s := counts(q.Filter())
	return statement{"SELECT " + column + ", sum(n) FROM (SELECT edge, sum(count) AS n FROM entries" + s.where.String() + " GROUP BY edge)" + s.edgesJoin(column) +
		" WHERE " + column + " <> '' GROUP BY " + column + " HAVING sum(n) > 0", s.where.args}
}

type lossesQuery struct {
	audit.LossQuery
	after *audit.Cursor
	limit int // 0 means unlimited
}

func (q lossesQuery) toSQL() statement {
	var w, h where
	w.add(fmt.Sprintf("kind = %d", kindLoss))
	in(&w, "source", "String", q.Clusters)
	if !q.Since.IsZero() {
		h.add("ended >= {since:Int64}", driver.Named("since", micros(q.Since)))
	}
	if !q.Until.IsZero() {
		h.add("began < {until:Int64}", driver.Named("until", micros(q.Until)))
	}
	if q.after != nil {
		h.add("(ended < {at:Int64} OR ended = {at:Int64} AND tie > {tie:String})", driver.Named("at", q.after.At), driver.Named("tie", q.after.Tie))
	}
	text := "SELECT source, key, sum(count), min(first_seen) AS began, max(last_seen) AS ended, concat(source, char(0), key, char(0), toString(toUnixTimestamp(bucket))) AS tie FROM entries" +
		w.String() + " GROUP BY source, key, bucket"
	if len(h.conds) > 0 {
		text += " HAVING " + strings.Join(h.conds, " AND ")
	}
	text += " ORDER BY ended DESC, tie"
	args := append(w.args, h.args...)
	if q.limit > 0 {
		return statement{text + " LIMIT {limit:UInt32}", append(args, driver.Named("limit", uint32(q.limit)))}
	}
	return statement{text, args}
}

type watchedQuery struct{ since, until time.Time }

func (q watchedQuery) toSQL() statement {
	var h where
	if !q.since.IsZero() {
		h.add("ended >= {since:Int64}", driver.Named("since", micros(q.since)))
	}
	if !q.until.IsZero() {
		h.add("began < {until:Int64}", driver.Named("until", micros(q.until)))
	}
	text := fmt.Sprintf("SELECT source, min(first_seen) AS began, max(last_seen) AS ended FROM entries WHERE kind = %d GROUP BY source, key", kindWatch)
	if len(h.conds) > 0 {
		text += " HAVING " + strings.Join(h.conds, " AND ")
	}
	return statement{text, h.args}
}
