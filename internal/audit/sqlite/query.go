package sqlite

import (
	"fmt"
	"strings"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// where collects conditions with their bound arguments.
type where struct {
	conds []string
	args  []any
}

func (w *where) add(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
}

func (w *where) in(column string, values []policy.Word) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = string(v)
	}
	w.add(column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")", args...)
}

func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

type connectionsQuery audit.ConnectionQuery

func (q connectionsQuery) toSQL() (string, []any) {
	var w where
	if q.Resource != "" {
		w.add("e.resource = ?", q.Resource)
	}
	if q.Subject != "" {
		w.add("e.subject = ?", q.Subject)
	}
	w.in("e.decision", q.Decisions)
	if !q.Since.IsZero() {
		w.add("r.bucket >= ?", micros(q.Since.Truncate(audit.BucketWidth)))
	}
	return "SELECT e.cluster, e.source_cluster, e.subject, e.resource, e.source, e.destination, e.action, e.port, e.protocol, e.decision, e.verdict, e.policy, e.sid," +
		" sum(r.count), min(r.first_seen), max(r.last_seen)" +
		" FROM edges e JOIN rollups r ON r.edge = e.id" + w.String() +
		" GROUP BY e.id ORDER BY max(r.last_seen) DESC, e.id LIMIT ?", append(w.args, audit.ConnectionQuery(q).Limited())
}

type deniedQuery audit.DeniedQuery

// toSQL returns audit.ErrInvalidQuery for a grouping that does not exist.
func (q deniedQuery) toSQL() (string, []any, error) {
	var column string
	switch q.By {
	case audit.BySubject:
		column = "e.subject"
	case audit.ByResource:
		column = "e.resource"
	default:
		return "", nil, fmt.Errorf("%w: denials can be counted by %q or %q, not by %q", audit.ErrInvalidQuery, audit.BySubject, audit.ByResource, q.By)
	}
	var w where
	w.add(column + " <> ''")
	if q.Resource != "" {
		w.add("e.resource = ?", q.Resource)
	}
	if q.Subject != "" {
		w.add("e.subject = ?", q.Subject)
	}
	w.in("e.decision", []policy.Word{policy.Denied, policy.DefaultDenied})
	if !q.Since.IsZero() {
		w.add("r.bucket >= ?", micros(q.Since.Truncate(audit.BucketWidth)))
	}
	return "SELECT " + column + ", sum(r.count) FROM edges e JOIN rollups r ON r.edge = e.id" + w.String() + " GROUP BY " + column, w.args, nil
}
