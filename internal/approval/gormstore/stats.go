package gormstore

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// Stats returns the number of tickets by state, the number of jobs that are not done, and the instant since which the
// oldest of them has been due, which is zero if there is none.
func (s *Store) Stats(ctx context.Context) (tickets map[string]int64, jobs int64, oldest time.Time, err error) {
	tickets = map[string]int64{}
	err = s.read(ctx, func(tx *gorm.DB) error {
		var byState []struct {
			State string
			N     int64
		}
		if err := tx.Model(&ticketRow{}).Select("state, COUNT(*) AS n").Group("state").Scan(&byState).Error; err != nil {
			return err
		}
		for _, r := range byState {
			tickets[r.State] = r.N
		}
		var out struct{ N, Oldest int64 }
		// A job that was never postponed has been due since its ticket changed.
		since := "CASE WHEN run_after > 0 THEN run_after ELSE (SELECT updated_at FROM tickets WHERE number = outbox.ticket) END"
		if err := tx.Model(&jobRow{}).Select("COUNT(*) AS n, COALESCE(MIN(" + since + "), 0) AS oldest").Scan(&out).Error; err != nil {
			return err
		}
		jobs, oldest = out.N, instant(out.Oldest)
		return nil
	})
	return tickets, jobs, oldest, err
}
