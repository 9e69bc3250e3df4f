package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/acp-io/acp/internal/audit"
)

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
	seen, err := s.seen(ctx, source)
	if err != nil {
		return r, fmt.Errorf("read seen events of %s: %w", source, err)
	}
	r.Seen = seen
	return r, nil
}
