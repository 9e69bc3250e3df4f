package sqlite

import (
	"math"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// SQL for what the table folding says.
const (
	sqlFolded = "(SELECT folded FROM folding)"
	sqlNewest = "(SELECT newest FROM folding)"
)

// counted returns a query for the counts that a filter selects: edge, bucket, count, first_seen, last_seen, in no order. With
// hours, whole hours of the window that are folded come as one row of each edge, and only the rest by minutes. Edges can be limited to some.
func counted(f audit.Filter, hours bool, only ...int64) (string, []any) {
	hour := time.Hour.Microseconds()
	from, to := int64(0), int64(math.MaxInt64)
	since, until := f.Window()
	if !since.IsZero() {
		from = max(0, micros(since))
	}
	if !until.IsZero() {
		to = micros(until)
	}
	p := pieces{selective: selective(f) || len(only) > 0}
	p.edges.edges(f)
	in(&p.edges, "e.id", only)
	if !hours {
		p.minutes("max(?, (SELECT coalesce(min(bucket), 0) FROM rollups))", []any{from}, "?", to)
		return p.text, p.args
	}
	firstHour, lastHour := (from+hour-1)/hour*hour, to/hour*hour
	if from < firstHour {
		p.minutes("?", []any{from}, "?", min(to, firstHour))
	}
	if firstHour < lastHour {
		p.add("hours r", "r.bucket >= ? AND r.bucket < min(?, "+sqlFolded+")", firstHour, lastHour)
		p.minutes("max(?, min(?, "+sqlFolded+"))", []any{firstHour, lastHour}, "?", to)
	} else {
		p.minutes("?", []any{firstHour}, "?", to)
	}
	return p.text, p.args
}

// selective tells that few edges are expected.
func selective(f audit.Filter) bool { return len(f.Subjects)+len(f.Resources) > 0 }

// pieces are the parts of a window, each from the table that answers it best.
type pieces struct {
	// edges are the conditions on edges.
	edges where
	// selective: few edges are expected, so that each is looked up.
	selective bool

	text string
	args []any
}

func (p *pieces) add(from, cond string, args ...any) {
	if p.text != "" {
		p.text += " UNION ALL "
	}
	p.text += "SELECT r.edge, r.bucket, r.count, r.first_seen, r.last_seen FROM " + from + " WHERE " + cond
	p.args = append(p.args, args...)
	if len(p.edges.conds) > 0 {
		p.text += " AND r.edge IN (SELECT e.id FROM edges e" + p.edges.String() + ")"
		p.args = append(p.args, p.edges.args...)
	}
}

// minutes adds [lo, hi) of the table of minutes, which lies by time: few edges are looked up minute by minute.
func (p *pieces) minutes(lo string, loArgs []any, hi string, hiArg int64) {
	if !p.selective {
		p.add("rollups r", "r.bucket >= "+lo+" AND r.bucket < "+hi, append(loArgs, hiArg)...)
		return
	}
	width := audit.BucketWidth.Microseconds()
	// The window may end long after the newest minute.
	p.add("(WITH RECURSIVE b(lo, hi) AS (SELECT "+lo+", min("+hi+", "+sqlNewest+" + ?)), m(at) AS (SELECT lo FROM b WHERE lo < hi UNION ALL SELECT at + ? FROM m, b WHERE at + ? < hi)"+
		" SELECT at FROM m) m CROSS JOIN rollups r", "r.bucket = m.at", append(loArgs, hiArg, width, width, width)...)
}
