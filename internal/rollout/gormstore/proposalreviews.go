package gormstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/rollout"
)

type reviewRow struct {
	Resource   string `gorm:"primaryKey"`
	ReviewedAt int64
	ReviewedBy string
	SeenUntil  int64
	NextReview int64
	RemindedAt int64
}

func (reviewRow) TableName() string { return "proposal_reviews" }

type noticeRow struct {
	Resource    string `gorm:"primaryKey"`
	Application string `gorm:"primaryKey"`
	SentAt      int64
	SentBy      string
	Reason      string
	Recipients  int
}

func (noticeRow) TableName() string { return "client_notices" }

func (r *reviewRow) review() rollout.ProposalReview {
	return rollout.ProposalReview{
		At:         database.Instant(r.ReviewedAt),
		By:         r.ReviewedBy,
		SeenUntil:  database.Instant(r.SeenUntil),
		NextReview: database.Instant(r.NextReview),
		RemindedAt: database.Instant(r.RemindedAt),
	}
}

func (r *noticeRow) notice() rollout.ClientNotice {
	return rollout.ClientNotice{At: database.Instant(r.SentAt), By: r.SentBy, Reason: r.Reason, Recipients: r.Recipients}
}

// ProposalReviews implements rollout.ProposalStore.
func (s *Store) ProposalReviews(ctx context.Context, resources ...string) (map[string]rollout.ProposalReview, error) {
	out := map[string]rollout.ProposalReview{}
	err := s.db.Read(ctx, func(tx *gorm.DB) error {
		for names := range slices.Chunk(resources, namesAtOnce) {
			rows, err := database.Select[reviewRow](tx, "SELECT * FROM proposal_reviews WHERE resource IN ?", names)
			if err != nil {
				return err
			}
			for i := range rows {
				out[rows[i].Resource] = rows[i].review()
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the reviews of proposals: %w", err)
	}
	return out, nil
}

// ChangeProposalReview implements rollout.ProposalStore.
func (s *Store) ChangeProposalReview(
	ctx context.Context,
	resource string,
	change func(*rollout.ProposalReview) (rollout.News, error),
) (rollout.ProposalReview, error) {
	var x rollout.ProposalReview
	err := s.db.Write(ctx, func(tx *gorm.DB) error {
		if err := database.Lock(tx, "proposal review "+resource); err != nil {
			return err
		}
		row, err := database.SelectOne[reviewRow](tx, "SELECT * FROM proposal_reviews WHERE resource = ?", resource)
		if err != nil {
			return err
		}
		x = rollout.ProposalReview{}
		if row != nil {
			x = row.review()
		}
		news, err := change(&x)
		if err != nil {
			return err
		}
		row = &reviewRow{
			Resource:   resource,
			ReviewedAt: database.Micros(x.At),
			ReviewedBy: x.By,
			SeenUntil:  database.Micros(x.SeenUntil),
			NextReview: database.Micros(x.NextReview),
			RemindedAt: database.Micros(x.RemindedAt),
		}
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(row).Error; err != nil {
			return err
		}
		return record(tx, news)
	})
	return x, err
}

// DueProposalReviews implements rollout.ProposalStore.
func (s *Store) DueProposalReviews(ctx context.Context, now time.Time, limit int) ([]string, error) {
	out := []string{}
	err := s.db.Read(ctx, func(tx *gorm.DB) error {
		rows, err := database.Select[reviewRow](
			tx,
			"SELECT * FROM proposal_reviews WHERE next_review > 0 AND next_review <= ? AND reminded_at = 0 ORDER BY next_review, resource LIMIT ?",
			database.Micros(now), limit,
		)
		out = out[:0]
		for i := range rows {
			out = append(out, rows[i].Resource)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the due reviews of proposals: %w", err)
	}
	return out, nil
}

// ClientNotices implements rollout.ProposalStore.
func (s *Store) ClientNotices(ctx context.Context, resource string) (map[string]rollout.ClientNotice, error) {
	out := map[string]rollout.ClientNotice{}
	err := s.db.Read(ctx, func(tx *gorm.DB) error {
		rows, err := database.Select[noticeRow](tx, "SELECT * FROM client_notices WHERE resource = ?", resource)
		for i := range rows {
			out[rows[i].Application] = rows[i].notice()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the notices about %s: %w", resource, err)
	}
	return out, nil
}

// AddClientNotice implements rollout.ProposalStore.
func (s *Store) AddClientNotice(
	ctx context.Context,
	resource, application, sender string,
	since time.Time,
	add func(previous rollout.ClientNotice, recent int64) (rollout.ClientNotice, rollout.News, error),
) (rollout.ClientNotice, error) {
	var n rollout.ClientNotice
	err := s.db.Write(ctx, func(tx *gorm.DB) error {
		// Every writer acquires the sender's lock first, so that two writers cannot wait for each other.
		for _, name := range []string{"client notices of " + sender, "client notices about " + resource} {
			if err := database.Lock(tx, name); err != nil {
				return err
			}
		}
		recent, err := database.Number(tx, "SELECT COUNT(*) FROM client_notices WHERE sent_by = ? AND sent_at > ?", sender, database.Micros(since))
		if err != nil {
			return err
		}
		row, err := database.SelectOne[noticeRow](tx, "SELECT * FROM client_notices WHERE resource = ? AND application = ?", resource, application)
		if err != nil {
			return err
		}
		var previous rollout.ClientNotice
		if row != nil {
			previous = row.notice()
		}
		var news rollout.News
		if n, news, err = add(previous, recent); err != nil {
			return err
		}
		row = &noticeRow{Resource: resource, Application: application, SentAt: database.Micros(n.At), SentBy: n.By, Reason: n.Reason, Recipients: n.Recipients}
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(row).Error; err != nil {
			return err
		}
		return record(tx, news)
	})
	return n, err
}
