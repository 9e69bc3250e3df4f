package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// rememberedBatches is the number of batch IDs that are kept. A batch is retried directly after it failed, so a few would be
// enough.
const rememberedBatches = 1000

const (
	sqlBatch       = `INSERT INTO batches (id) VALUES (?) ON CONFLICT DO NOTHING`
	sqlForgetBatch = `DELETE FROM batches WHERE seq <= (SELECT max(seq) FROM batches) - ?`
	sqlAddFlow     = `INSERT INTO flows (time, edge, node, source_address, destination_address, source_port, count, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	sqlAddLoss     = `INSERT INTO losses (cluster, node, reason, bucket, count, began, ended) VALUES (?, ?, ?, ?, ?, ?, ?)` +
		` ON CONFLICT (cluster, node, reason, bucket) DO UPDATE SET count = count + excluded.count,` +
		` began = min(began, excluded.began), ended = max(ended, excluded.ended)`
	sqlPosition   = `INSERT INTO positions (source, time) VALUES (?, ?) ON CONFLICT (source) DO UPDATE SET time = max(time, excluded.time)`
	sqlTouching   = `SELECT began, ended FROM watched WHERE source = ? AND began <= ? AND ended >= ?`
	sqlForgetSpan = `DELETE FROM watched WHERE source = ? AND began <= ? AND ended >= ?`
	sqlAddSpan    = `INSERT INTO watched (source, began, ended) VALUES (?, ?, ?)`
)

// Append implements audit.Writer. It writes the batch in one transaction.
func (s *Store) Append(ctx context.Context, b *audit.Batch) error {
	if b.ID == "" {
		return fmt.Errorf("append to flow store: the batch has no id")
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("append to flow store: begin: %w", writeError(err))
	}
	defer func() { _ = tx.Rollback() }() // has no effect after a commit
	isNew, err := claim(ctx, tx, b.ID)
	if err != nil {
		return fmt.Errorf("append to flow store: claim batch: %w", writeError(err))
	}
	if !isNew {
		return nil
	}
	if err := s.checkHolder(ctx, tx, b); err != nil {
		return fmt.Errorf("append to flow store: %w", err)
	}
	ids := s.edges.in(tx)
	defer ids.close()
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"roll-ups", func() error { return addRollups(ctx, tx, b, ids) }},
		{"flows", func() error { return addFlows(ctx, tx, b, ids) }},
		{"losses", func() error { return addLosses(ctx, tx, b) }},
		{"positions", func() error { return addPositions(ctx, tx, b) }},
		{"watched spans", func() error { return addWatched(ctx, tx, b) }},
	} {
		if err := step.run(); err != nil {
			return fmt.Errorf("append to flow store: %s: %w", step.name, writeError(err))
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("append to flow store: commit: %w", writeError(err))
	}
	ids.commit()
	return nil
}

func claim(ctx context.Context, tx *sql.Tx, id string) (bool, error) {
	res, err := tx.ExecContext(ctx, sqlBatch, id)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 {
		return false, err
	}
	_, err = tx.ExecContext(ctx, sqlForgetBatch, rememberedBatches)
	return true, err
}

func addFlows(ctx context.Context, tx *sql.Tx, b *audit.Batch, ids *edgeIDs) error {
	if len(b.Flows) == 0 {
		return nil
	}
	add, err := tx.PrepareContext(ctx, sqlAddFlow)
	if err != nil {
		return err
	}
	defer add.Close()
	for i := range b.Flows {
		f := &b.Flows[i]
		id, err := ids.of(ctx, &f.Edge)
		if err != nil {
			return err
		}
		if _, err := add.ExecContext(
			ctx,
			micros(f.Time),
			id,
			f.Node,
			address(f.SourceAddress),
			address(f.DestinationAddress),
			int64(f.SourcePort),
			f.Count,
			f.Reason,
		); err != nil {
			return err
		}
	}
	return nil
}

func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// addWatched adds the watched spans, and merges each with the stored spans that it touches.
func addWatched(ctx context.Context, tx *sql.Tx, b *audit.Batch) error {
	for _, w := range b.Watched {
		began, ended := micros(w.From), micros(w.To)
		if ended < began {
			continue
		}
		touched := []any{w.Source, ended, began}
		var first, last sql.NullInt64
		if err := tx.QueryRowContext(ctx, `SELECT min(began), max(ended) FROM (`+sqlTouching+`)`, touched...).Scan(&first, &last); err != nil {
			return err
		}
		if first.Valid {
			began, ended = min(began, first.Int64), max(ended, last.Int64)
			if _, err := tx.ExecContext(ctx, sqlForgetSpan, touched...); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, sqlAddSpan, w.Source, began, ended); err != nil {
			return err
		}
	}
	return nil
}

func addLosses(ctx context.Context, tx *sql.Tx, b *audit.Batch) error {
	for _, l := range b.Losses {
		bucket := micros(l.To.Truncate(audit.BucketWidth))
		if _, err := tx.ExecContext(ctx, sqlAddLoss, l.Cluster, l.Node, string(l.Reason), bucket, l.Count, micros(l.From), micros(l.To)); err != nil {
			return err
		}
	}
	return nil
}

func addPositions(ctx context.Context, tx *sql.Tx, b *audit.Batch) error {
	for _, p := range b.Positions {
		if _, err := tx.ExecContext(ctx, sqlPosition, p.Source, micros(p.Time)); err != nil {
			return err
		}
	}
	return addSeen(ctx, tx, b)
}

// micros returns the time in microseconds, which is finer than the precision of any dataplane's clocks.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }
