package gormstore

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/approval"
)

// due is the condition for jobs that can be leased: the time of the job has come, it has no lease, and no earlier job of its
// key is waiting. Times that are later than any correct clock can have written are ignored.
const due = `(run_after <= @now OR run_after > @parked OR NOT parked AND run_after > @retried) AND (lease_until <= @now OR lease_until > @leased)
 AND NOT EXISTS (SELECT 1 FROM outbox e WHERE e.job_key = outbox.job_key AND e.id < outbox.id AND NOT e.parked)`

// Lease implements approval.Outbox. It first checks without the write lock, because usually no job is due, and skips jobs
// that another replica is about to lease.
func (s *Store) Lease(ctx context.Context, worker string, now time.Time, ttl time.Duration) (*approval.Job, error) {
	args := map[string]any{"now": micros(now), "parked": micros(now.Add(approval.LongestParked + approval.ClockTolerance)),
		"retried": micros(now.Add(approval.LongestRetry + approval.ClockTolerance)), "leased": micros(now.Add(ttl + approval.ClockTolerance))}
	var some int64
	if err := s.read(ctx, func(tx *gorm.DB) error {
		return tx.Model(&jobRow{}).Where(due, args).Limit(1).Count(&some).Error
	}); err != nil {
		return nil, err
	}
	if some == 0 {
		return nil, approval.ErrNoJob
	}
	var row jobRow
	err := s.write(ctx, func(tx *gorm.DB) error {
		var rows []jobRow
		skip := clause.Locking{Strength: clause.LockingStrengthUpdate, Options: clause.LockingOptionsSkipLocked}
		if err := tx.Clauses(skip).Where(due, args).Order("id").Limit(1).Find(&rows).Error; err != nil {
			return err
		}
		if len(rows) == 0 {
			return approval.ErrNoJob
		}
		row = rows[0]
		before := row.LeaseUntil
		row.Worker, row.LeaseUntil, row.Attempts = worker, micros(now.Add(ttl)), row.Attempts+1
		res := tx.Model(&jobRow{}).Where("id = ? AND lease_until = ?", row.ID, before).
			Updates(map[string]any{"worker": row.Worker, "lease_until": row.LeaseUntil, "attempts": row.Attempts})
		if res.Error == nil && res.RowsAffected != 1 {
			return approval.ErrNoJob
		}
		return res.Error
	})
	if err != nil {
		return nil, err
	}
	return &approval.Job{ID: row.ID, Ticket: row.Ticket, Item: row.Item, Kind: row.Kind, Key: row.Key, Attempts: row.Attempts,
		Worker: row.Worker, LeaseUntil: instant(row.LeaseUntil)}, nil
}

// Finish implements approval.Outbox.
func (s *Store) Finish(ctx context.Context, j *approval.Job, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	return s.completeJob(ctx, j, change, func(tx *gorm.DB) *gorm.DB { return tx.Delete(&jobRow{}) })
}

// Postpone implements approval.Outbox.
func (s *Store) Postpone(ctx context.Context, j *approval.Job, until time.Time, parked bool, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	return s.completeJob(ctx, j, change, func(tx *gorm.DB) *gorm.DB {
		return tx.Updates(map[string]any{"run_after": micros(until), "parked": parked, "worker": "", "lease_until": 0})
	})
}

// completeJob deletes or changes a job if the worker still has its lease. The number of attempts distinguishes leases of one
// worker.
func (s *Store) completeJob(ctx context.Context, j *approval.Job, change func(*approval.Ticket) error, back func(*gorm.DB) *gorm.DB) (*approval.Ticket, error) {
	var t *approval.Ticket
	err := s.write(ctx, func(tx *gorm.DB) (err error) {
		res := back(tx.Model(&jobRow{}).Where("id = ? AND worker = ? AND attempts = ?", j.ID, j.Worker, j.Attempts))
		if res.Error != nil {
			return res.Error
		}
		if res.RowsAffected != 1 {
			return approval.ErrLeaseLost
		}
		t, err = update(tx, j.Ticket, change)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.Stored()
	return t, nil
}
