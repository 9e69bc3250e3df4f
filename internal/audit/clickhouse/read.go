package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	chdriver "github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/sqlquery"
)

type driverRows = chdriver.Rows

// queries implements audit.Reader on a connection.
type queries struct{ conn driver.Conn }

// Connections implements audit.Reader.
func (q queries) Connections(ctx context.Context, cq audit.ConnectionQuery) (audit.ConnectionPage, error) {
	var page audit.ConnectionPage
	if err := cq.Validate(); err != nil {
		return page, err
	}
	after, err := audit.ParseConnectionCursor(cq)
	if after, err = cursorOfList(after, err, func(tie string) bool { return len(tie) == 2*len(edgeID{}) }); err != nil {
		return page, err
	}
	filter, limit := cq.Filter, cq.EffectiveLimit()
	if after != nil {
		filter = after.Bound(filter)
	}
	var ids []string
	err = q.each(ctx, "connections", connectionsQuery{filter, cq.Order, after, limit + 1}.toSQL(), func(rows driverRows) error {
		var c audit.Connection
		var id string
		var first, last int64
		if err := rows.Scan(&id, &c.Count, &first, &last); err != nil {
			return err
		}
		if len(page.Items) == limit {
			page.Next = cq.NextCursor(after, page.Items[0], page.Items[limit-1], ids[limit-1]).String()
			return nil
		}
		c.FirstSeen, c.LastSeen = fromMicros(first), fromMicros(last)
		page.Items, ids = append(page.Items, c), append(ids, id)
		return nil
	})
	if err != nil {
		return audit.ConnectionPage{}, err
	}
	names, err := q.names(ctx, ids)
	for i, id := range ids {
		page.Items[i].Edge = names[id]
	}
	return page, err
}

// names reads the edges with the given IDs.
func (q queries) names(ctx context.Context, ids []string) (map[string]audit.Edge, error) {
	out := make(map[string]audit.Edge, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	err := q.each(ctx, "edges", namesQuery{ids}.toSQL(), func(rows driverRows) error {
		var id string
		var e audit.Edge
		if err := rows.Scan(append([]any{&id}, edgeFields(&e)...)...); err != nil {
			return err
		}
		out[id] = e
		return nil
	})
	return out, err
}

// Totals implements audit.Reader.
func (q queries) Totals(ctx context.Context, f audit.Filter, each func(audit.Total) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error // the error of the callback, which is not an error of the store
	err := q.each(ctx, "totals", totalsQuery{f}.toSQL(), func(rows driverRows) error {
		var t audit.Total
		var first, last int64
		var days []uint16
		if err := rows.Scan(append(edgeFields(&t.Edge), &t.Count, &first, &last, &days)...); err != nil {
			return err
		}
		t.FirstSeen, t.LastSeen = fromMicros(first), fromMicros(last)
		t.Days = make([]time.Time, len(days))
		for i, d := range days {
			t.Days[i] = dayNumber(d).time()
		}
		failed = each(t)
		return failed
	})
	if failed != nil {
		return failed
	}
	return err
}

// Denied implements audit.Reader.
func (q queries) Denied(ctx context.Context, dq audit.DeniedQuery) (map[string]int64, error) {
	if err := dq.Validate(); err != nil {
		return nil, err
	}
	out := map[string]int64{}
	err := q.each(ctx, "denials", deniedQuery{dq}.toSQL(), func(rows driverRows) error {
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
	text := fmt.Sprintf("SELECT source, max(last_seen) FROM entries WHERE kind = %d GROUP BY source", kindPosition)
	err := q.each(ctx, "last flows", sqlquery.Statement{Text: text}, func(rows driverRows) error {
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

// Resume implements audit.Writer.
func (q queries) Resume(ctx context.Context, source string) (audit.Resume, error) {
	var r audit.Resume
	var forget int64
	named := []any{driver.Named("source", source)}
	text := fmt.Sprintf("SELECT kind, max(last_seen) FROM entries WHERE kind IN (%d, %d) AND source = {source:String} GROUP BY kind", kindPosition, kindForget)
	err := q.each(ctx, "resume position of "+source, sqlquery.Statement{Text: text, Args: named}, func(rows driverRows) error {
		var kind uint8
		var at int64
		if err := rows.Scan(&kind, &at); err != nil {
			return err
		}
		if kind == kindForget {
			forget = at
		} else {
			r.Position = fromMicros(at)
		}
		return nil
	})
	if err != nil || r.Position.IsZero() {
		return audit.Resume{}, err
	}
	text = fmt.Sprintf("SELECT payload FROM entries WHERE kind = %d AND source = {source:String} AND last_seen >= {forget:Int64} LIMIT 1 BY key", kindSeen)
	err = q.each(
		ctx,
		"seen events of "+source,
		sqlquery.Statement{Text: text, Args: append(named, driver.Named("forget", forget))},
		func(rows driverRows) error {
			var payload string
			if err := rows.Scan(&payload); err != nil {
				return err
			}
			r.Seen = unpackSeen(r.Seen, source, payload, forget)
			return nil
		},
	)
	return r, err
}

// cursor parses a cursor, and rejects one of another list.
func cursor(text string, ok func(tie string) bool) (*audit.Cursor, error) {
	c, err := audit.ParseCursor(text)
	return cursorOfList(c, err, ok)
}

// cursorOfList rejects a parsed cursor whose tie does not satisfy ok because it belongs to another list.
func cursorOfList(c *audit.Cursor, err error, ok func(tie string) bool) (*audit.Cursor, error) {
	if err != nil || c == nil {
		return nil, err
	}
	if !ok(c.Tie) {
		return nil, fmt.Errorf("%w: the cursor belongs to another list", audit.ErrInvalidQuery)
	}
	return c, nil
}

// each runs a query and calls row for each row. It returns every error as ErrUnavailable, except for the caller's own
// cancellation.
func (q queries) each(ctx context.Context, what string, s sqlquery.Statement, row func(driverRows) error) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil && !errors.Is(err, audit.ErrUnavailable) {
			err = fmt.Errorf("%w: read %s: %w", audit.ErrUnavailable, what, err)
		}
	}()
	rows, err := q.conn.Query(ctx, s.Text, s.Args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
