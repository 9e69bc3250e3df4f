package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

const day = 24 * time.Hour

// Prune implements audit.Writer. It does not delete positions, because they prevent double counting.
func (s *Store) Prune(ctx context.Context, r audit.Retention) (int64, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("prune flow store: begin: %w", writeError(err))
	}
	defer func() { _ = tx.Rollback() }() // has no effect after a commit
	var total int64
	for _, p := range []struct {
		what, text string
		before     time.Time
	}{
		{"roll-ups", `DELETE FROM rollups WHERE bucket < ?`, r.Rollups},
		{"hours", `DELETE FROM hours WHERE bucket < ?`, r.Rollups},
		{"days", `DELETE FROM days WHERE bucket < ?`, r.Rollups},
		{"tallies", `DELETE FROM tallies WHERE bucket < ?`, r.Rollups},
		{"flows", `DELETE FROM flows WHERE time < ?`, r.Flows},
		{"losses", `DELETE FROM losses WHERE ended < ?`, r.Losses},
		{"watched spans", `DELETE FROM watched WHERE ended < ?`, r.Losses},
	} {
		if p.before.IsZero() {
			continue
		}
		res, err := tx.ExecContext(ctx, p.text, micros(p.before.UTC().Truncate(day)))
		if err != nil {
			return 0, fmt.Errorf("prune flow store: %s: %w", p.what, writeError(err))
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, fmt.Errorf("prune flow store: count %s: %w", p.what, err)
		}
		total += n
	}
	// The counts of days, and those of minutes before the folded time, are in the hours as well.
	const orphans = `DELETE FROM edges WHERE NOT EXISTS (SELECT 1 FROM hours WHERE hours.edge = edges.id) AND NOT EXISTS (SELECT 1 FROM flows ` +
		`WHERE flows.edge = edges.id)` +
		` AND id NOT IN (SELECT edge FROM rollups WHERE bucket >= (SELECT folded FROM folding))`
	if _, err := tx.ExecContext(ctx, orphans); err != nil {
		return 0, fmt.Errorf("prune flow store: edges: %w", writeError(err))
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("prune flow store: commit: %w", writeError(err))
	}
	s.edges.clear()
	return total, nil
}
