package clickhouse

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/sqlquery"
)

const seriesStart = "intDiv(toInt64(toUnixTimestamp(bucket)), {step:Int64}) * {step:Int64} AS start"

// seriesQuery sums up the roll-ups of edges.
type seriesQuery struct {
	audit.SeriesQuery
	// conds are additional conditions on the roll-ups.
	conds []string
}

func (q seriesQuery) toSQL() sqlquery.Statement {
	s := counts(q.Filter, q.conds...)
	s.Bind(driver.Named("step", int64(q.Step/time.Second)))
	return sqlquery.Statement{
		Text: "SELECT start, decision, sum(n) FROM (SELECT edge, " + seriesStart + ", count AS n FROM entries" + s.Where() + ")" +
			s.edgesJoin("decision") + " GROUP BY start, decision HAVING sum(n) > 0 ORDER BY start, decision",
		Args: s.Args(),
	}
}

// minutesQuery sums up the sums by minute, for a coarse filter.
type minutesQuery struct{ audit.SeriesQuery }

// coarse reports whether the filter has only conditions that the sums by minute can answer, so that it matches many edges.
func coarse(f audit.Filter) bool {
	return len(f.Subjects)+len(f.Resources)+len(f.Actions)+len(f.Ports)+len(f.Policy)+len(f.SID)+len(f.Text) == 0 && !f.Unattributed && f.Within == nil
}

func (q minutesQuery) toSQL() sqlquery.Statement {
	known := audit.Filter{Decisions: q.Decisions, Verdicts: q.Verdicts, Disagree: q.Disagree}
	of, sums := edgeConditions(known), ofKind(kindMinute)
	addIn(&sums, "source", "String", q.Clusters)
	addWindow(&sums, q.Filter, "bucket", audit.BucketWidth)
	sums.Bind(driver.Named("step", int64(q.Step/time.Second)))
	return sqlquery.Statement{
		Text: "SELECT start, decision, sum(n) FROM (SELECT start, splitByChar(char(0), key) AS parts, parts[1] AS decision, parts[2] AS verdict, n FROM" +
			" (SELECT " + seriesStart + ", key, sum(count) AS n FROM entries" + sums.Where() + " GROUP BY start, key))" + of.Where() +
			" GROUP BY start, decision HAVING sum(n) > 0 ORDER BY start, decision",
		Args: slices.Concat(sums.Args(), of.Args()),
	}
}

// unsummed is the condition on roll-ups that are not contained in the sums by minute.
var unsummed = []string{"source = ''"}

// unsummedQuery returns a row if there are such roll-ups in the window.
type unsummedQuery struct{ filter audit.Filter }

func (q unsummedQuery) toSQL() sqlquery.Statement {
	s := counts(audit.Filter{Since: q.filter.Since, Until: q.filter.Until}, unsummed...)
	return sqlquery.Statement{Text: "SELECT 1 FROM entries" + s.Where() + " LIMIT 1", Args: s.Args()}
}

// Series implements audit.Reader.
func (q queries) Series(ctx context.Context, sq audit.SeriesQuery) ([]audit.Point, error) {
	if err := sq.Validate(); err != nil {
		return nil, err
	}
	if !coarse(sq.Filter) {
		return q.series(ctx, seriesQuery{SeriesQuery: sq}.toSQL())
	}
	out, err := q.series(ctx, minutesQuery{sq}.toSQL())
	if err != nil {
		return nil, err
	}
	older := false
	if err := q.each(ctx, "series", unsummedQuery{sq.Filter}.toSQL(), func(driverRows) error { older = true; return nil }); err != nil || !older {
		return out, err
	}
	rest, err := q.series(ctx, seriesQuery{sq, unsummed}.toSQL())
	return mergePoints(out, rest), err
}

func (q queries) series(ctx context.Context, s sqlquery.Statement) ([]audit.Point, error) {
	var out []audit.Point
	err := q.each(ctx, "series", s, func(rows driverRows) error {
		var p audit.Point
		var start int64
		if err := rows.Scan(&start, (*string)(&p.Decision), &p.Count); err != nil {
			return err
		}
		p.Start = time.Unix(start, 0).UTC()
		out = append(out, p)
		return nil
	})
	return out, err
}

// mergePoints adds up two series and sorts the result.
func mergePoints(a, b []audit.Point) []audit.Point {
	type at struct {
		start    time.Time
		decision policy.Verdict
	}
	sums := map[at]int64{}
	for _, p := range slices.Concat(a, b) {
		sums[at{p.Start, p.Decision}] += p.Count
	}
	out := make([]audit.Point, 0, len(sums))
	for _, k := range slices.SortedFunc(maps.Keys(sums), func(x, y at) int {
		return cmp.Or(x.start.Compare(y.start), cmp.Compare(x.decision, y.decision))
	}) {
		out = append(out, audit.Point{Start: k.start, Decision: k.decision, Count: sums[k]})
	}
	return out
}
