package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// rememberedBatches is how many batch identities are kept. A batch is appended again only directly after it failed, so
// a few would do.
const rememberedBatches = 1000

const (
	sqlBatch       = `INSERT INTO batches (id) VALUES (?) ON CONFLICT DO NOTHING`
	sqlForgetBatch = `DELETE FROM batches WHERE seq <= (SELECT max(seq) FROM batches) - ?`
	sqlFindEdge    = `SELECT id FROM edges WHERE resource = ? AND subject = ? AND cluster = ? AND source_cluster = ? AND source = ? AND destination = ?` +
		` AND action = ? AND port = ? AND protocol = ? AND decision = ? AND verdict = ? AND policy = ? AND sid = ?`
	sqlAddEdge = `INSERT INTO edges (resource, subject, cluster, source_cluster, source, destination, action, port, protocol, decision, verdict, policy, sid)` +
		` VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlAddRollup = `INSERT INTO rollups (edge, bucket, count, first_seen, last_seen) VALUES (?, ?, ?, ?, ?)` +
		` ON CONFLICT (edge, bucket) DO UPDATE SET count = count + excluded.count,` +
		` first_seen = min(first_seen, excluded.first_seen), last_seen = max(last_seen, excluded.last_seen)`
	sqlAddLoss = `INSERT INTO losses (cluster, node, reason, bucket, count, began, ended) VALUES (?, ?, ?, ?, ?, ?, ?)` +
		` ON CONFLICT (cluster, node, reason, bucket) DO UPDATE SET count = count + excluded.count,` +
		` began = min(began, excluded.began), ended = max(ended, excluded.ended)`
	sqlPosition   = `INSERT INTO positions (source, time) VALUES (?, ?) ON CONFLICT (source) DO UPDATE SET time = max(time, excluded.time)`
	sqlSeen       = `INSERT INTO seen (source, time, id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	sqlForgetSeen = `DELETE FROM seen WHERE source = ? AND time < ?`
)

// Append implements audit.Writer in one transaction.
func (s *Store) Append(ctx context.Context, b *audit.Batch) error {
	if b.ID == "" {
		return fmt.Errorf("append to flow store: the batch has no id")
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("append to flow store: begin: %w", writeError(err))
	}
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	isNew, err := claim(ctx, tx, b.ID)
	if err != nil {
		return fmt.Errorf("append to flow store: claim batch: %w", writeError(err))
	}
	if !isNew {
		return nil
	}
	for _, step := range []struct {
		name string
		run  func(context.Context, *sql.Tx, *audit.Batch) error
	}{
		{"roll-ups", addRollups},
		{"losses", addLosses},
		{"positions", addPositions},
	} {
		if err := step.run(ctx, tx, b); err != nil {
			return fmt.Errorf("append to flow store: %s: %w", step.name, writeError(err))
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("append to flow store: commit: %w", writeError(err))
	}
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

func addRollups(ctx context.Context, tx *sql.Tx, b *audit.Batch) error {
	if len(b.Rollups) == 0 {
		return nil
	}
	find, err := tx.PrepareContext(ctx, sqlFindEdge)
	if err != nil {
		return err
	}
	defer find.Close()
	add, err := tx.PrepareContext(ctx, sqlAddRollup)
	if err != nil {
		return err
	}
	defer add.Close()
	for i := range b.Rollups {
		r := &b.Rollups[i]
		id, err := edgeID(ctx, tx, find, r.Edge)
		if err != nil {
			return err
		}
		if _, err := add.ExecContext(ctx, id, micros(r.Bucket), r.Count, micros(r.FirstSeen), micros(r.LastSeen)); err != nil {
			return err
		}
	}
	return nil
}

func edgeID(ctx context.Context, tx *sql.Tx, find *sql.Stmt, e audit.Edge) (int64, error) {
	args := []any{
		e.Resource, e.Subject, e.Cluster, e.SourceCluster, e.Source, e.Destination, e.Action, int64(e.Port), string(e.Protocol),
		string(e.Decision), string(e.Verdict), e.Statement.Policy, e.Statement.SID,
	}
	var id int64
	switch err := find.QueryRowContext(ctx, args...).Scan(&id); err {
	case nil:
		return id, nil
	case sql.ErrNoRows:
	default:
		return 0, err
	}
	res, err := tx.ExecContext(ctx, sqlAddEdge, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
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
	if len(b.Seen) > 0 {
		add, err := tx.PrepareContext(ctx, sqlSeen)
		if err != nil {
			return err
		}
		defer add.Close()
		for _, e := range b.Seen {
			// The column is signed: the bits are kept, not the number.
			if _, err := add.ExecContext(ctx, e.Source, micros(e.Time), int64(e.ID)); err != nil {
				return err
			}
		}
	}
	for source, before := range b.ForgetSeen {
		if _, err := tx.ExecContext(ctx, sqlForgetSeen, source, micros(before)); err != nil {
			return err
		}
	}
	return nil
}

// Resume implements audit.Writer.
func (s *Store) Resume(ctx context.Context, source string) (audit.Resume, error) {
	var r audit.Resume
	var at int64
	switch err := s.db.QueryRowContext(ctx, `SELECT time FROM positions WHERE source = ?`, source).Scan(&at); err {
	case nil:
		r.Position = fromMicros(at)
	case sql.ErrNoRows:
		return r, nil
	default:
		return r, fmt.Errorf("read resume position of %s: %w", source, err)
	}
	rows, err := s.db.QueryContext(ctx, `SELECT time, id FROM seen WHERE source = ? ORDER BY time, id`, source)
	if err != nil {
		return r, fmt.Errorf("read seen events of %s: %w", source, err)
	}
	defer rows.Close()
	for rows.Next() {
		var at, id int64
		if err := rows.Scan(&at, &id); err != nil {
			return r, fmt.Errorf("read seen events of %s: %w", source, err)
		}
		r.Seen = append(r.Seen, audit.Seen{Source: source, Time: fromMicros(at), ID: uint64(id)})
	}
	if err := rows.Err(); err != nil {
		return r, fmt.Errorf("read seen events of %s: %w", source, err)
	}
	return r, nil
}

// Prune implements audit.Writer. Positions stay: they are what protects from counting twice.
func (s *Store) Prune(ctx context.Context, before time.Time) (int64, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("prune flow store: begin: %w", writeError(err))
	}
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	limit := micros(before)
	res, err := tx.ExecContext(ctx, `DELETE FROM rollups WHERE bucket < ?`, limit)
	if err != nil {
		return 0, fmt.Errorf("prune flow store: roll-ups: %w", writeError(err))
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("prune flow store: count: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM edges WHERE NOT EXISTS (SELECT 1 FROM rollups WHERE rollups.edge = edges.id)`); err != nil {
		return 0, fmt.Errorf("prune flow store: edges: %w", writeError(err))
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM losses WHERE ended < ?`, limit); err != nil {
		return 0, fmt.Errorf("prune flow store: losses: %w", writeError(err))
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("prune flow store: commit: %w", writeError(err))
	}
	return n, nil
}

// micros keeps microseconds, which is finer than any dataplane's clocks agree.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }
