package gormstore

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/notify"
)

const due = "channel = ? AND state = ? AND run_after <= ? AND lease_until <= ?"

// maxDigest bounds the messages of one digest; further ones are sent in the next one.
const maxDigest = 200

// Lease implements notify.Store. It first checks without the write lock, because usually nothing is due.
func (s *Store) Lease(ctx context.Context, c notify.Channel, worker string, now time.Time, ttl time.Duration) ([]notify.Delivery, error) {
	at := micros(now)
	var some int64
	if err := s.db.Read(ctx, func(tx *gorm.DB) error {
		return tx.Model(&row{}).Where(due, c, queued, at, at).Limit(1).Count(&some).Error
	}); err != nil || some == 0 {
		return nil, err
	}
	var out []notify.Delivery
	err := s.db.Write(ctx, func(tx *gorm.DB) error {
		out = nil
		rows, err := pick(tx, c, at)
		if err != nil || len(rows) == 0 {
			return err
		}
		ids := make([]int64, len(rows))
		for i, r := range rows {
			ids[i] = r.ID
			out = append(out, notify.Delivery{ID: r.ID, Attempts: r.Attempts + 1, Worker: worker,
				Posting: notify.Posting{Message: r.message(), Channel: r.Channel, Digest: r.Digest, RunAfter: instant(r.RunAfter)}})
		}
		return tx.Model(&row{}).Where("id IN ?", ids).
			Updates(map[string]any{"worker": worker, "lease_until": micros(now.Add(ttl)), "attempts": gorm.Expr("attempts + 1")}).Error
	})
	return out, err
}

// pick locks and returns the oldest due row that is not being leased by another replica; if it belongs to a digest, all rows of
// that digest.
func pick(tx *gorm.DB, c notify.Channel, at int64) ([]row, error) {
	// SQLite has a single writer and does not support the clause.
	locked := tx
	if tx.Name() == "postgres" {
		locked = tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"})
	}
	locked = locked.Session(&gorm.Session{})
	var rows []row
	if err := locked.Where(due, c, queued, at, at).Order("run_after, id").Limit(1).Find(&rows).Error; err != nil || len(rows) == 0 || !rows[0].Digest {
		return rows, err
	}
	person := rows[0].Person
	rows = nil
	err := locked.Where(due, c, queued, at, at).Where("person = ? AND digest = ?", person, true).Order("id").Limit(maxDigest).Find(&rows).Error
	return rows, err
}

// Sent implements notify.Store.
func (s *Store) Sent(ctx context.Context, d []notify.Delivery, at time.Time) error {
	return s.release(ctx, d, map[string]any{"state": sent, "done_at": micros(at), "problem": "", "worker": "", "lease_until": 0})
}

// Postpone implements notify.Store.
func (s *Store) Postpone(ctx context.Context, d []notify.Delivery, until time.Time, problem string) error {
	return s.release(ctx, d, map[string]any{"run_after": micros(until), "problem": problem, "worker": "", "lease_until": 0})
}

// MarkDead implements notify.Store.
func (s *Store) MarkDead(ctx context.Context, d []notify.Delivery, at time.Time, problem string) error {
	return s.release(ctx, d, map[string]any{"state": dead, "done_at": micros(at), "problem": problem, "worker": "", "lease_until": 0})
}

// release changes the rows only if the worker still holds the leases; the number of attempts distinguishes two leases of the same
// worker.
func (s *Store) release(ctx context.Context, ds []notify.Delivery, change map[string]any) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		for _, d := range ds {
			res := tx.Model(&row{}).Where("id = ? AND worker = ? AND attempts = ? AND state = ?", d.ID, d.Worker, d.Attempts, queued).Updates(change)
			if res.Error != nil {
				return res.Error
			}
			if res.RowsAffected != 1 {
				return notify.ErrLeaseLost
			}
		}
		return nil
	})
}

// QueueStats implements notify.Store.
func (s *Store) QueueStats(ctx context.Context) (channels []notify.QueueStats, changes int64, err error) {
	var counts []struct {
		Channel notify.Channel
		State   string
		Many    int64
		Oldest  int64
	}
	err = s.db.Read(ctx, func(tx *gorm.DB) error {
		counts = nil
		if err := tx.Model(&changeRow{}).Count(&changes).Error; err != nil {
			return err
		}
		return tx.Model(&row{}).Select("channel, state, count(*) AS many, min(run_after) AS oldest").Where("state IN ?", []string{queued, dead}).
			Group("channel, state").Order("channel, state").Scan(&counts).Error
	})
	for _, c := range counts {
		if len(channels) == 0 || channels[len(channels)-1].Channel != c.Channel {
			channels = append(channels, notify.QueueStats{Channel: c.Channel})
		}
		x := &channels[len(channels)-1]
		if c.State == dead {
			x.Dead = c.Many
			continue
		}
		x.Queued, x.Oldest = c.Many, instant(c.Oldest)
	}
	return channels, changes, err
}

// Prune implements notify.Store.
func (s *Store) Prune(ctx context.Context, before time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		return tx.Where("state IN ? AND done_at < ?", []string{read, sent, dead}, micros(before)).Delete(&row{}).Error
	})
}
