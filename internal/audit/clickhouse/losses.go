package clickhouse

import (
	"context"
	"strings"
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
	return q.each(ctx, "losses", lq.toSQL(), func(rows driverRows) error {
		var l audit.Loss
		var key, tie string
		var from, to int64
		if err := rows.Scan(&l.Cluster, &key, &l.Count, &from, &to, &tie); err != nil {
			return err
		}
		node, reason, _ := strings.Cut(key, "\x00")
		l.Node, l.Reason, l.From, l.To = node, audit.LossReason(reason), fromMicros(from), fromMicros(to)
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
	err := q.each(ctx, "watched spans", watchedQuery{since, until}.toSQL(), func(rows driverRows) error {
		var w audit.WatchedSpan
		var from, to int64
		if err := rows.Scan(&w.Source, &from, &to); err != nil {
			return err
		}
		w.From, w.To = fromMicros(from), fromMicros(to)
		watched = append(watched, w)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return audit.ComputeCoverage(since, until, watched, losses), nil
}
