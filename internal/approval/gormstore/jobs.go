package gormstore

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/sqlquery"
)

// due returns the conditions for jobs that can be leased: the time of the job has come, it has no lease, and no earlier job of its
// key is waiting. Times that are later than any correct clock can have written are ignored.
func due(now time.Time, ttl time.Duration) sqlquery.Conditions {
	var c sqlquery.Conditions
	c.Add(
		"(run_after <= ? OR run_after > ? OR NOT parked AND run_after > ?)",
		database.Micros(now),
		database.Micros(now.Add(approval.LongestParked+approval.ClockTolerance)),
		database.Micros(now.Add(approval.LongestRetry+approval.ClockTolerance)),
	)
	c.Add("(lease_until <= ? OR lease_until > ?)", database.Micros(now), database.Micros(now.Add(ttl+approval.ClockTolerance)))
	c.Add("NOT EXISTS (SELECT 1 FROM outbox e WHERE e.job_key = outbox.job_key AND e.id < outbox.id AND NOT e.parked)")
	return c
}

// Lease implements approval.Outbox. It first checks without the write lock, because usually no job is due, and skips jobs
// that another replica is about to lease.
func (s *Store) Lease(ctx context.Context, worker string, now time.Time, ttl time.Duration) (*approval.Job, error) {
	isDue := due(now, ttl)
	var found int64
	if err := s.readOne(ctx, func(tx *gorm.DB) (err error) {
		found, err = database.Number(tx, "SELECT id FROM outbox"+isDue.Where()+" LIMIT 1", isDue.Args()...)
		return err
	}); err != nil {
		return nil, err
	}
	if found == 0 {
		return nil, approval.ErrNoJob
	}
	var row *jobRow
	err := s.write(ctx, func(tx *gorm.DB) (err error) {
		row, err = database.SelectOne[jobRow](tx, "SELECT * FROM outbox"+isDue.Where()+" ORDER BY id LIMIT 1"+database.ForUpdateSkipLocked(tx), isDue.Args()...)
		if err != nil {
			return err
		}
		if row == nil {
			return approval.ErrNoJob
		}
		before := row.LeaseUntil
		row.Worker, row.LeaseUntil, row.Attempts = worker, database.Micros(now.Add(ttl)), row.Attempts+1
		n, err := database.Exec(tx, "UPDATE outbox SET worker = ?, lease_until = ?, attempts = ? WHERE id = ? AND lease_until = ?",
			row.Worker, row.LeaseUntil, row.Attempts, row.ID, before)
		if err == nil && n != 1 {
			return approval.ErrNoJob
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &approval.Job{ID: row.ID, Ticket: row.Ticket, Item: row.Item, Kind: row.Kind, Key: row.Key, Attempts: row.Attempts,
		Worker: row.Worker, LeaseUntil: database.Instant(row.LeaseUntil)}, nil
}

// Finish implements approval.Outbox.
func (s *Store) Finish(ctx context.Context, j *approval.Job, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	return s.completeJob(ctx, j, change, "DELETE FROM outbox")
}

// Postpone implements approval.Outbox.
func (s *Store) Postpone(ctx context.Context, j *approval.Job, until time.Time, parked bool, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	return s.completeJob(ctx, j, change, "UPDATE outbox SET run_after = ?, parked = ?, worker = '', lease_until = 0", database.Micros(until), parked)
}

// completeJob deletes or changes a job by a statement, to which it adds the condition, if the worker still has its lease. The
// number of attempts distinguishes leases of one worker.
func (s *Store) completeJob(
	ctx context.Context,
	j *approval.Job,
	change func(*approval.Ticket) error,
	statement string,
	args ...any,
) (*approval.Ticket, error) {
	var t *approval.Ticket
	err := s.write(ctx, func(tx *gorm.DB) (err error) {
		n, err := database.Exec(tx, statement+" WHERE id = ? AND worker = ? AND attempts = ?", slices.Concat(args, []any{j.ID, j.Worker, j.Attempts})...)
		if err != nil {
			return err
		}
		if n != 1 {
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
