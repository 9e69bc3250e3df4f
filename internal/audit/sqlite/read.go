package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/sqlquery"
)

// queries implements audit.Reader on the database handle that db returns.
type queries struct {
	db func(context.Context) (*sql.DB, error)
}

// rowTie checks that the tie of a parsed cursor is the ID of a row.
func rowTie(c *audit.Cursor, err error) (*audit.Cursor, error) {
	if err != nil || c == nil {
		return nil, err
	}
	if _, err := strconv.ParseInt(c.Tie, 10, 64); err != nil {
		return nil, fmt.Errorf("%w: the cursor belongs to another list", audit.ErrInvalidQuery)
	}
	return c, nil
}

// Connections implements audit.Reader.
func (q queries) Connections(ctx context.Context, cq audit.ConnectionQuery) (audit.ConnectionPage, error) {
	var page audit.ConnectionPage
	if err := cq.Validate(); err != nil {
		return page, err
	}
	after, err := rowTie(audit.ParseConnectionCursor(cq))
	if err != nil {
		return page, err
	}
	filter, limit := cq.Filter, cq.EffectiveLimit()
	if after != nil {
		filter = after.Bound(filter)
	}
	query := connectionsQuery{filter: filter, order: cq.Order, after: after, limit: limit + 1}
	if cq.Order == audit.LastSeenFirst && !selective(filter) {
		found, done, err := q.newest(ctx, query)
		if err != nil || done {
			return pageOf(cq, found, after), err
		}
	}
	found, err := q.connections(ctx, query)
	return pageOf(cq, found, after), err
}

// found is a connection with the ID of its edge.
type found struct {
	audit.Connection
	id int64
}

// newest answers from the edges of the newest minutes, if those suffice for the page. This avoids summing up all edges to find
// the few that were seen last. It returns done false if they do not suffice.
func (q queries) newest(ctx context.Context, query connectionsQuery) (list []found, done bool, err error) {
	rowsWanted := 4*query.limit + 100
	seen := map[int64]bool{}
	n := 0
	err = q.each(ctx, "newest connections", newestQuery{query.filter, query.after, rowsWanted}.toSQL(), func(rows *sql.Rows) error {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		if n++; !seen[id] {
			seen[id] = true
			query.only = append(query.only, id)
		}
		return nil
	})
	if err != nil || len(query.only) == 0 {
		return nil, true, err
	}
	list, err = q.connections(ctx, query)
	return list, err != nil || len(list) == query.limit || n < rowsWanted, err
}

func (q queries) connections(ctx context.Context, query connectionsQuery) ([]found, error) {
	var out []found
	err := q.each(ctx, "connections", query.toSQL(), func(rows *sql.Rows) error {
		var c found
		var first, last int64
		if err := rows.Scan(append(edgeFields(&c.Edge), &c.Count, &first, &last, &c.id)...); err != nil {
			return err
		}
		c.FirstSeen, c.LastSeen = fromMicros(first), fromMicros(last)
		out = append(out, c)
		return nil
	})
	return out, err
}

// pageOf cuts a list that has one more item when there is another page.
func pageOf(q audit.ConnectionQuery, list []found, after *audit.Cursor) audit.ConnectionPage {
	var page audit.ConnectionPage
	for i, c := range list {
		if i == q.EffectiveLimit() {
			last := list[i-1]
			page.Next = q.NextCursor(after, list[0].Connection, last.Connection, strconv.FormatInt(last.id, 10)).String()
			break
		}
		page.Items = append(page.Items, c.Connection)
	}
	return page
}

// Totals implements audit.Reader.
func (q queries) Totals(ctx context.Context, f audit.Filter, each func(audit.Total) error) error {
	var failed error // of the callback: not the store's
	err := q.each(ctx, "totals", totalsQuery{f}.toSQL(), func(rows *sql.Rows) error {
		var t audit.Total
		var first, last int64
		var days string
		if err := rows.Scan(append(edgeFields(&t.Edge), &days, &t.Count, &first, &last)...); err != nil {
			return err
		}
		t.FirstSeen, t.LastSeen = fromMicros(first), fromMicros(last)
		for text := range strings.SplitSeq(days, ",") {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("read a day: %w", err)
			}
			t.Days = append(t.Days, time.Unix(n*int64(day/time.Second), 0).UTC())
		}
		slices.SortFunc(t.Days, time.Time.Compare)
		failed = each(t)
		return failed
	})
	if failed != nil {
		return failed
	}
	return err
}

// Series implements audit.Reader.
func (q queries) Series(ctx context.Context, sq audit.SeriesQuery) ([]audit.Point, error) {
	if err := sq.Validate(); err != nil {
		return nil, err
	}
	var out []audit.Point
	err := q.each(ctx, "series", seriesQuery{sq}.toSQL(), func(rows *sql.Rows) error {
		var p audit.Point
		var start int64
		if err := rows.Scan(&start, &p.Decision, &p.Count); err != nil {
			return err
		}
		p.Start = fromMicros(start)
		out = append(out, p)
		return nil
	})
	return out, err
}

// Flows implements audit.Reader.
func (q queries) Flows(ctx context.Context, fq audit.FlowQuery) (audit.FlowPage, error) {
	var page audit.FlowPage
	after, err := rowTie(audit.ParseCursor(fq.Cursor))
	if err != nil {
		return page, err
	}
	limit := fq.EffectiveLimit()
	var next audit.Cursor
	err = q.each(ctx, "flows", flowsQuery{fq.Filter, after, limit + 1}.toSQL(), func(rows *sql.Rows) error {
		var f audit.Flow
		var at, id int64
		var from, to string
		if err := rows.Scan(append(edgeFields(&f.Edge), &at, &f.Node, &from, &to, &f.SourcePort, &f.Count, &f.Reason, &id)...); err != nil {
			return err
		}
		if len(page.Items) == limit {
			page.Next = next.String()
			return nil
		}
		next = audit.Cursor{At: at, Tie: strconv.FormatInt(id, 10)}
		f.Time, f.SourceAddress, f.DestinationAddress = fromMicros(at), parseAddress(from), parseAddress(to)
		page.Items = append(page.Items, f)
		return nil
	})
	return page, err
}

// parseAddress parses the text that address returned; "" is the zero address.
func parseAddress(s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return a
}

// Denied implements audit.Reader.
func (q queries) Denied(ctx context.Context, dq audit.DeniedQuery) (map[string]int64, error) {
	if err := dq.Validate(); err != nil {
		return nil, err
	}
	out := map[string]int64{}
	err := q.each(ctx, "denials", deniedQuery{dq}.toSQL(), func(rows *sql.Rows) error {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return err
		}
		out[name] = n
		return nil
	})
	return out, err
}

// LastFlow implements audit.Reader.
func (q queries) LastFlow(ctx context.Context) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	err := q.each(ctx, "last flows", sqlquery.Statement{Text: "SELECT source, time FROM positions"}, func(rows *sql.Rows) error {
		var name string
		var at int64
		if err := rows.Scan(&name, &at); err != nil {
			return err
		}
		if cluster := audit.ClusterOf(name); fromMicros(at).After(out[cluster]) {
			out[cluster] = fromMicros(at)
		}
		return nil
	})
	return out, err
}

// each runs a query and calls row for each row. It returns every error as ErrUnavailable, except for the caller's own
// cancellation.
func (q queries) each(ctx context.Context, what string, s sqlquery.Statement, row func(*sql.Rows) error) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil && !errors.Is(err, audit.ErrUnavailable) {
			err = fmt.Errorf("%w: read %s: %w", audit.ErrUnavailable, what, err)
		}
	}()
	db, err := q.db(ctx)
	if err != nil {
		return err
	}
	s = sqlquery.Expand(s, false)
	rows, err := db.QueryContext(ctx, s.Text, s.Args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
