package gormstore

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
)

const due = "channel = ? AND state = ? AND run_after <= ? AND lease_until <= ?"

// maxDigest bounds the messages of one digest; further ones are sent in the next one.
const maxDigest = 200

// Lease implements notify.Store. It first checks without the write lock, because usually nothing is due.
func (s *Store) Lease(ctx context.Context, c notify.Channel, worker string, now time.Time, ttl time.Duration) ([]notify.Delivery, error) {
	at := database.Micros(now)
	var found int64
	if err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		found, err = database.Number(
			tx,
			"SELECT id FROM notifications WHERE channel = ? AND state IN ? AND run_after <= ? AND lease_until <= ? LIMIT 1",
			c, []string{queued, retract}, at, at,
		)
		return err
	}); err != nil || found == 0 {
		return nil, err
	}
	var out []notify.Delivery
	err := s.db.Write(ctx, func(tx *gorm.DB) error {
		out = nil
		rows, err := pick(tx, c, queued, at)
		if err == nil && len(rows) == 0 {
			rows, err = pick(tx, c, retract, at)
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		ids := make([]int64, len(rows))
		for i, r := range rows {
			ids[i] = r.ID
			out = append(out, notify.Delivery{ID: r.ID, Attempts: r.Attempts + 1, Worker: worker,
				Retraction: r.State == retract, Receipt: r.Receipt, Outcome: message.Decode(r.Outcome),
				QueuedMessage: notify.QueuedMessage{Message: r.message(), Channel: r.Channel, Digest: r.Digest, RunAfter: database.Instant(r.RunAfter)}})
		}
		_, err = database.Exec(
			tx,
			"UPDATE notifications SET worker = ?, lease_until = ?, attempts = attempts + 1 WHERE id IN ?",
			worker,
			database.Micros(now.Add(ttl)),
			ids,
		)
		return err
	})
	return out, err
}

// pick locks and returns the oldest due row of a state that is not being leased by another replica; if it belongs to a digest, all rows of
// that digest.
func pick(tx *gorm.DB, c notify.Channel, state string, at int64) ([]row, error) {
	query, lock := "SELECT * FROM notifications WHERE "+due, database.ForUpdateSkipLocked(tx)
	rows, err := database.Select[row](tx, query+" ORDER BY run_after, id LIMIT 1"+lock, c, state, at, at)
	if err != nil || len(rows) == 0 || !rows[0].Digest {
		return rows, err
	}
	return database.Select[row](tx, query+" AND person = ? AND digest ORDER BY id LIMIT ?"+lock, c, state, at, at, rows[0].Person, maxDigest)
}

// Sent implements notify.Store.
func (s *Store) Sent(ctx context.Context, d []notify.Delivery, at time.Time) error {
	return s.release(ctx, d, func(d notify.Delivery) (string, []any) {
		switch {
		case d.Retraction:
			return "state = ?, problem = ''", []any{sent}
		case d.Receipt != "":
			// The ticket may have changed while the message was sent.
			return "state = CASE WHEN outcome = '' THEN 'sent' ELSE 'retract' END, run_after = ?, attempts = 0, receipt = ?, done_at = ?, problem = ''",
				[]any{database.Micros(at), d.Receipt, database.Micros(at)}
		}
		return "state = ?, done_at = ?, problem = ''", []any{sent, database.Micros(at)}
	})
}

// Postpone implements notify.Store.
func (s *Store) Postpone(ctx context.Context, d []notify.Delivery, until time.Time, problem string) error {
	return s.release(ctx, d, func(notify.Delivery) (string, []any) {
		return "run_after = ?, problem = ?", []any{database.Micros(until), problem}
	})
}

// MarkDead implements notify.Store.
func (s *Store) MarkDead(ctx context.Context, d []notify.Delivery, at time.Time, problem string) error {
	return s.release(ctx, d, func(notify.Delivery) (string, []any) {
		return "state = ?, done_at = ?, problem = ?", []any{dead, database.Micros(at), problem}
	})
}

// release ends leases and makes the assignments that set returns with their values, only if the worker still holds the leases; the number of attempts
// distinguishes two leases of the same worker.
func (s *Store) release(ctx context.Context, ds []notify.Delivery, set func(notify.Delivery) (assignments string, args []any)) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		for _, d := range ds {
			state := queued
			if d.Retraction {
				state = retract
			}
			assignments, args := set(d)
			n, err := database.Exec(
				tx,
				"UPDATE notifications SET worker = '', lease_until = 0, "+assignments+" WHERE id = ? AND worker = ? AND attempts = ? AND state = ?",
				slices.Concat(args, []any{d.ID, d.Worker, d.Attempts, state})...)
			if err != nil {
				return err
			}
			if n != 1 {
				return notify.ErrLeaseLost
			}
		}
		return nil
	})
}

// QueueStats implements notify.Store.
func (s *Store) QueueStats(ctx context.Context) (channels []notify.QueueStats, changes int64, err error) {
	type count struct {
		Channel notify.Channel
		State   string
		Many    int64
		Oldest  int64
	}
	var counts []count
	err = s.db.Read(ctx, func(tx *gorm.DB) (err error) {
		if changes, err = database.Number(tx, "SELECT COUNT(*) FROM notify_outbox"); err != nil {
			return err
		}
		counts, err = database.Select[count](
			tx,
			"SELECT channel, state, COUNT(*) AS many, MIN(run_after) AS oldest FROM notifications WHERE state IN ? GROUP BY channel, state "+
				"ORDER BY channel, state",
			[]string{queued, dead},
		)
		return err
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
		x.Queued, x.Oldest = c.Many, database.Instant(c.Oldest)
	}
	return channels, changes, err
}

// Prune implements notify.Store.
func (s *Store) Prune(ctx context.Context, before time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		_, err := database.Exec(tx, "DELETE FROM notifications WHERE state IN ? AND done_at < ?", []string{read, sent, dead, retract}, database.Micros(before))
		return err
	})
}
