package gormstore

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
)

// Stats returns the number of tickets by state, the number of jobs that are not done, and the instant since which the
// oldest of them has been due, which is zero if there is none.
func (s *Store) Stats(ctx context.Context) (tickets map[string]int64, jobs int64, oldest time.Time, err error) {
	tickets = map[string]int64{}
	err = s.read(ctx, func(tx *gorm.DB) error {
		if err := database.Rows(tx, func(rows *sql.Rows) error {
			var state string
			var n int64
			err := rows.Scan(&state, &n)
			tickets[state] = n
			return err
		}, "SELECT state, COUNT(*) FROM tickets GROUP BY state"); err != nil {
			return err
		}
		// A job that was never postponed has been due since its ticket changed.
		return database.Rows(tx, func(rows *sql.Rows) error {
			var since int64
			err := rows.Scan(&jobs, &since)
			oldest = database.Instant(since)
			return err
		}, `SELECT COUNT(*), COALESCE(MIN(CASE WHEN run_after > 0 THEN run_after ELSE (SELECT updated_at FROM tickets `+
			`WHERE number = outbox.ticket) END), 0) FROM outbox`)
	})
	return tickets, jobs, oldest, err
}
