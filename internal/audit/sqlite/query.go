package sqlite

import (
	"strings"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

const edgeColumns = "e.resource, e.subject, e.cluster, e.source_cluster, e.source, e.destination, e.action, e.port, e.protocol, e.decision, e.verdict," +
	" e.policy, e.sid, e.other_subjects, e.other_resources"

// edgeFields returns the scan destinations for a row's edgeColumns.
func edgeFields(e *audit.Edge) []any {
	return []any{&e.Resource, &e.Subject, &e.Cluster, &e.SourceCluster, &e.Source, &e.Destination, &e.Action, &e.Port, &e.Protocol, &e.Decision, &e.Verdict,
		&e.Statement.Policy, &e.Statement.SID, &e.OtherSubjects, &e.OtherResources}
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

func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

func in[T any](w *where, column string, values []T) {
	if len(values) > 0 {
		w.add(inList(column, len(values)), anys(values)...)
	}
}

func inList(column string, n int) string {
	if n == 0 {
		return "0"
	}
	return column + " IN (?" + strings.Repeat(", ?", n-1) + ")"
}

func anys[T any](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// disagree is the SQL equivalent of audit.Edge.Disagrees; a test compares the two.
const disagree = "(e.verdict = 'dropped' AND e.decision NOT IN ('denied', 'default-denied') OR e.verdict IN ('forwarded', 'audit') AND e.decision IN ('denied', 'default-denied'))"

// edges adds the filter's conditions on edges. The table alias of edges is e.
func (w *where) edges(f audit.Filter) {
	in(w, "e.resource", f.Resources)
	in(w, "e.subject", f.Subjects)
	in(w, "e.cluster", f.Clusters)
	in(w, "e.action", f.Actions)
	in(w, "e.decision", texts(f.Decisions))
	in(w, "e.verdict", texts(f.Verdicts))
	in(w, "e.port", f.Ports)
	if f.Policy != "" {
		w.add("e.policy = ?", f.Policy)
	}
	if f.SID != "" {
		w.add("e.sid = ?", f.SID)
	}
	if f.Unattributed {
		w.add("(e.subject = '' OR e.resource = '')")
	}
	if f.Disagree {
		w.add(disagree)
	}
	if f.Text != "" {
		// The fields are joined by a character that the text of a query cannot contain.
		w.add("instr(lower(e.resource || char(0) || e.subject || char(0) || e.source || char(0) || e.destination), lower(?)) > 0", f.Text)
	}
	if f.Within != nil {
		w.add("("+inList("e.subject", len(f.Within.Subjects))+" OR "+inList("e.resource", len(f.Within.Resources))+")",
			append(anys(f.Within.Subjects), anys(f.Within.Resources)...)...)
	}
}

func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(v)
	}
	return out
}

// window adds conditions for the bounds on a column of times.
func (w *where) window(column string, since, until time.Time) {
	if !since.IsZero() {
		w.add(column+" >= ?", micros(since))
	}
	if !until.IsZero() {
		w.add(column+" < ?", micros(until))
	}
}

// newestQuery selects the newest rows of minutes, which belong to the edges that were seen last.
type newestQuery struct {
	filter audit.Filter
	after  *audit.Cursor
	limit  int
}

func (q newestQuery) toSQL() (string, []any) {
	var w, e where
	since, until := q.filter.Window()
	w.window("r.bucket", since, until)
	if q.after != nil {
		w.add("r.bucket <= ?", q.after.At)
		w.add("r.last_seen <= ?", q.after.At)
	}
	if e.edges(q.filter); len(e.conds) > 0 {
		w.add("r.edge IN (SELECT e.id FROM edges e"+e.String()+")", e.args...)
	}
	return "SELECT r.edge FROM rollups r" + w.String() + " ORDER BY r.bucket DESC, r.last_seen DESC, r.edge DESC LIMIT ?", append(w.args, q.limit)
}

type connectionsQuery struct {
	filter audit.Filter
	// only restricts the query to these edges; empty means all of the filter.
	only  []int64
	after *audit.Cursor
	limit int
}

func (q connectionsQuery) toSQL() (string, []any) {
	rows, args := countRows(q.filter, true, q.only...)
	text := "SELECT " + edgeColumns + ", t.n, t.first, t.seen, e.id FROM (SELECT edge, sum(count) AS n, min(first_seen) AS first, max(last_seen) AS seen FROM (" + rows + ") GROUP BY edge"
	if q.after != nil {
		text += " HAVING (seen, edge) < (?, CAST(? AS INTEGER))"
		args = append(args, q.after.At, q.after.Tie)
	}
	return text + " ORDER BY seen DESC, edge DESC LIMIT ?) t JOIN edges e ON e.id = t.edge ORDER BY t.seen DESC, t.edge DESC", append(args, q.limit)
}

// totalsQuery selects one row per edge, with its days in a list. The roll-ups of each edge are summed up before anything is
// sorted, because there are hundreds of them per edge.
type totalsQuery struct{ filter audit.Filter }

func (q totalsQuery) toSQL() (string, []any) {
	rows, args := countRows(q.filter, true)
	return "SELECT " + edgeColumns + ", d.days, d.count, d.first_seen, d.last_seen FROM (SELECT edge, group_concat(DISTINCT bucket / ?) AS days," +
		" sum(count) AS count, min(first_seen) AS first_seen, max(last_seen) AS last_seen FROM (" + rows + ") GROUP BY edge) d" +
		" JOIN edges e ON e.id = d.edge ORDER BY " + edgeColumns, append([]any{day.Microseconds()}, args...)
}

type seriesQuery struct{ audit.SeriesQuery }

func (q seriesQuery) toSQL() (string, []any) {
	step := q.Step.Microseconds()
	if q.tallied() {
		var w where
		in(&w, "decision", texts(q.Decisions))
		since, until := q.Window()
		w.window("bucket", since, until)
		return "SELECT bucket / ? * ? AS start, decision, sum(count) FROM tallies" + w.String() + " GROUP BY start, decision HAVING sum(count) > 0 ORDER BY start, decision",
			append([]any{step, step}, w.args...)
	}
	rows, args := countRows(q.Filter, q.Step%time.Hour == 0)
	return "SELECT t.start, e.decision, sum(t.n) FROM (SELECT edge, bucket / ? * ? AS start, sum(count) AS n FROM (" + rows + ") GROUP BY edge, start) t" +
		" JOIN edges e ON e.id = t.edge GROUP BY t.start, e.decision HAVING sum(t.n) > 0 ORDER BY t.start, e.decision", append([]any{step, step}, args...)
}

// tallied reports whether the filter has conditions on times and decisions only, which are counted in a table of their own.
func (q seriesQuery) tallied() bool {
	f := q.Filter
	f.Decisions = nil
	var w where
	w.edges(f)
	return len(w.conds) == 0
}

type deniedQuery struct{ audit.DeniedQuery }

// toSQL requires that the query was validated.
func (q deniedQuery) toSQL() (string, []any) {
	column := "e.subject"
	if q.By == audit.ByResource {
		column = "e.resource"
	}
	rows, args := countRows(q.Filter(), true)
	return "SELECT " + column + ", sum(t.n) FROM (SELECT edge, sum(count) AS n FROM (" + rows + ") GROUP BY edge) t JOIN edges e ON e.id = t.edge WHERE " + column + " <> '' GROUP BY " + column + " HAVING sum(t.n) > 0", args
}

type flowsQuery struct {
	filter audit.Filter
	after  *audit.Cursor
	limit  int
}

func (q flowsQuery) toSQL() (string, []any) {
	var w where
	w.edges(q.filter)
	since, until := q.filter.Window()
	w.window("f.time", since, until)
	if q.after != nil {
		w.add("(f.time, f.id) < (?, CAST(? AS INTEGER))", q.after.At, q.after.Tie)
	}
	return "SELECT " + edgeColumns + ", f.time, f.node, f.source_address, f.destination_address, f.source_port, f.count, f.reason, f.id" +
		" FROM flows f JOIN edges e ON e.id = f.edge" + w.String() + " ORDER BY f.time DESC, f.id DESC LIMIT ?", append(w.args, q.limit)
}

type lossesQuery struct {
	audit.LossQuery
	after *audit.Cursor
	limit int
}

// lossTie is an SQL expression that orders losses that ended at the same time.
const lossTie = "cluster || char(0) || node || char(0) || reason || char(0) || bucket"

func (q lossesQuery) toSQL() (string, []any) {
	var w where
	if !q.Since.IsZero() {
		w.add("ended >= ?", micros(q.Since))
	}
	if !q.Until.IsZero() {
		w.add("began < ?", micros(q.Until))
	}
	in(&w, "cluster", q.Clusters)
	if q.after != nil {
		w.add("(ended < ? OR ended = ? AND "+lossTie+" > ?)", q.after.At, q.after.At, q.after.Tie)
	}
	text := "SELECT cluster, node, reason, count, began, ended, " + lossTie + " AS tie FROM losses" + w.String() + " ORDER BY ended DESC, tie"
	if q.limit == 0 {
		return text, w.args
	}
	return text + " LIMIT ?", append(w.args, q.limit)
}
