package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// queries answers audit.Reader on whatever handle db returns.
type queries struct {
	db func(context.Context) (*sql.DB, error)
}

// Connections implements audit.Reader.
func (q queries) Connections(ctx context.Context, cq audit.ConnectionQuery) ([]audit.Connection, error) {
	text, args := connectionsQuery(cq).toSQL()
	var out []audit.Connection
	err := q.each(ctx, "connections", text, args, func(rows *sql.Rows) error {
		var c audit.Connection
		var first, last int64
		if err := rows.Scan(&c.Cluster, &c.SourceCluster, &c.Subject, &c.Resource, &c.Source, &c.Destination, &c.Action, &c.Port, &c.Protocol,
			&c.Decision, &c.Verdict, &c.Statement.Policy, &c.Statement.SID, &c.Count, &first, &last); err != nil {
			return err
		}
		c.FirstSeen, c.LastSeen = fromMicros(first), fromMicros(last)
		out = append(out, c)
		return nil
	})
	return out, err
}

// Denied implements audit.Reader.
func (q queries) Denied(ctx context.Context, dq audit.DeniedQuery) (map[string]int64, error) {
	text, args, err := deniedQuery(dq).toSQL()
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	err = q.each(ctx, "denials", text, args, func(rows *sql.Rows) error {
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
	err := q.each(ctx, "last flows", "SELECT source, time FROM positions", nil, func(rows *sql.Rows) error {
		var name string
		var at int64
		if err := rows.Scan(&name, &at); err != nil {
			return err
		}
		out[name] = fromMicros(at)
		return nil
	})
	return out, err
}

// Losses implements audit.Reader.
func (q queries) Losses(ctx context.Context, since time.Time) ([]audit.Loss, error) {
	var out []audit.Loss
	err := q.each(ctx, "losses", "SELECT cluster, node, reason, count, began, ended FROM losses WHERE ended >= ? ORDER BY ended DESC, cluster, node, reason",
		[]any{micros(since)}, func(rows *sql.Rows) error {
			var l audit.Loss
			var from, to int64
			if err := rows.Scan(&l.Cluster, &l.Node, &l.Reason, &l.Count, &from, &to); err != nil {
				return err
			}
			l.From, l.To = fromMicros(from), fromMicros(to)
			out = append(out, l)
			return nil
		})
	return out, err
}

// each runs a query and hands over row by row. Whatever goes wrong is ErrUnavailable, but for the caller's own cancellation.
func (q queries) each(ctx context.Context, what, text string, args []any, row func(*sql.Rows) error) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil && !errors.Is(err, audit.ErrUnavailable) {
			err = fmt.Errorf("%w: read %s: %w", audit.ErrUnavailable, what, err)
		}
	}()
	db, err := q.db(ctx)
	if err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, text, args...)
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
