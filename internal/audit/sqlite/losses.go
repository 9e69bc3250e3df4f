package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// Losses implements audit.Reader.
func (q queries) Losses(ctx context.Context, lq audit.LossQuery) (audit.LossPage, error) {
	p, err := audit.NewLossPager(lq)
	if err != nil {
		return audit.LossPage{}, err
	}
	err = q.losses(ctx, lossesQuery{lq, p.After, p.Limit()}, p.Add)
	return p.Page(), err
}

func (q queries) losses(ctx context.Context, lq lossesQuery, each func(audit.Loss, string)) error {
	return q.each(ctx, "losses", lq.toSQL(), func(rows *sql.Rows) error {
		var l audit.Loss
		var from, to int64
		var tie string
		if err := rows.Scan(&l.Cluster, &l.Node, &l.Reason, &l.Count, &from, &to, &tie); err != nil {
			return err
		}
		l.From, l.To = fromMicros(from), fromMicros(to)
		each(l, tie)
		return nil
	})
}

// Coverage implements audit.Reader.
func (q queries) Coverage(ctx context.Context, since, until time.Time) ([]audit.Coverage, error) {
	var losses []audit.Loss
	if err := q.losses(
		ctx,
		lossesQuery{LossQuery: audit.LossQuery{Since: since, Until: until}},
		func(l audit.Loss, _ string) { losses = append(losses, l) },
	); err != nil {
		return nil, err
	}
	var watched []audit.WatchedSpan
	err := q.each(ctx, "watched spans", watchedQuery{since, until}.toSQL(), func(rows *sql.Rows) error {
		var x audit.WatchedSpan
		var from, to int64
		if err := rows.Scan(&x.Source, &from, &to); err != nil {
			return err
		}
		x.From, x.To = fromMicros(from), fromMicros(to)
		watched = append(watched, x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return audit.ComputeCoverage(since, until, watched, losses), nil
}
