package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

const (
	sqlLease = `INSERT INTO leases (source, holder, until) VALUES (?, ?, ?) ON CONFLICT (source) DO UPDATE` +
		` SET holder = excluded.holder, until = excluded.until WHERE holder = excluded.holder OR until <= ?`
	sqlRelease = `DELETE FROM leases WHERE source = ? AND holder = ?`
	sqlHolder  = `SELECT holder FROM leases WHERE source = ? AND until > ?`
)

// Lease implements audit.Writer. All users of the file share the clock of the machine.
func (s *Store) Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error) {
	now := s.now()
	res, err := s.db.ExecContext(ctx, sqlLease, source, holder, micros(now.Add(ttl)), micros(now))
	if err != nil {
		return false, fmt.Errorf("lease %s: %w", source, writeError(err))
	}
	n, err := res.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("lease %s: %w", source, err)
	}
	return n > 0, nil
}

// Release implements audit.Writer.
func (s *Store) Release(ctx context.Context, source, holder string) error {
	if _, err := s.db.ExecContext(ctx, sqlRelease, source, holder); err != nil {
		return fmt.Errorf("release %s: %w", source, writeError(err))
	}
	return nil
}

// Holder implements audit.Writer.
func (s *Store) Holder(ctx context.Context, source string) (string, error) {
	var holder string
	err := s.db.QueryRowContext(ctx, sqlHolder, source, micros(s.now())).Scan(&holder)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read the lease on %s: %w", source, err)
	}
	return holder, nil
}

func (s *Store) checkHolder(ctx context.Context, tx *sql.Tx, b *audit.Batch) error {
	if b.Holder == "" {
		return nil
	}
	now := micros(s.now())
	for _, p := range b.Positions {
		var holder string
		err := tx.QueryRowContext(ctx, sqlHolder, audit.ClusterOf(p.Source), now).Scan(&holder)
		switch {
		case err != nil && err != sql.ErrNoRows:
			return fmt.Errorf("read the lease on %s: %w", p.Source, err)
		case holder != b.Holder:
			return fmt.Errorf("%w: %s is not leased to %s", audit.ErrNotHolder, p.Source, b.Holder)
		}
	}
	return nil
}
