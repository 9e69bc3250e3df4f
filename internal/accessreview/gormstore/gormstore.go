// Package gormstore stores access reviews in SQL through gorm. It implements accessreview.Store and decides nothing.
package gormstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/database"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/sqlquery"
)

// Store implements accessreview.Store.
type Store struct{ db *database.DB }

// New returns the store of an open database, which the caller closes.
func New(db *database.DB) *Store { return &Store{db} }

var _ accessreview.Store = (*Store)(nil)

type campaignRow struct {
	ID        int64
	State     accessreview.State
	Version   int64
	CreatedAt int64
	Body      string
}

func (r *campaignRow) campaign() (accessreview.Campaign, error) {
	var c accessreview.Campaign
	if err := json.Unmarshal([]byte(r.Body), &c); err != nil {
		return c, fmt.Errorf("read access review %d: %w", r.ID, err)
	}
	c.ID, c.State, c.Version, c.CreatedAt = r.ID, r.State, r.Version, time.UnixMicro(r.CreatedAt).UTC()
	return c, nil
}

// Create implements accessreview.Store.
func (s *Store) Create(ctx context.Context, c accessreview.Campaign, news func(accessreview.Campaign) accessreview.News) (accessreview.Campaign, error) {
	c.Version, c.CreatedAt = 1, c.CreatedAt.UTC().Truncate(time.Microsecond)
	body, err := json.Marshal(c)
	if err != nil {
		return c, fmt.Errorf("write an access review: %w", err)
	}
	err = s.db.Write(ctx, func(tx *gorm.DB) (err error) {
		c.ID, err = database.Number(tx, "INSERT INTO reviews (state, version, created_at, body) VALUES (?, ?, ?, ?) RETURNING id",
			string(c.State), c.Version, c.CreatedAt.UnixMicro(), string(body))
		if err != nil {
			return err
		}
		return record(tx, news(c))
	})
	return c, err
}

// record writes the ledger's lines last, because writers of lines wait for each other.
func record(tx *gorm.DB, n accessreview.News) error {
	for _, b := range n.Notifications {
		if err := notifystore.EnqueueResourceEvent(tx, b); err != nil {
			return err
		}
	}
	return ledgerstore.Append(tx, n.Entries...)
}

// Campaign implements accessreview.Store.
func (s *Store) Campaign(ctx context.Context, id int64) (c accessreview.Campaign, err error) {
	err = s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		c, err = campaign(tx, id, "")
		return err
	})
	return c, err
}

// campaign reads a campaign, with a clause that locks it.
func campaign(tx *gorm.DB, id int64, lock string) (c accessreview.Campaign, err error) {
	row, err := database.SelectOne[campaignRow](tx, "SELECT id, state, version, created_at, body FROM reviews WHERE id = ?"+lock, id)
	if err != nil {
		return c, err
	}
	if row == nil {
		return c, accessreview.ErrNotFound
	}
	return row.campaign()
}

// Campaigns implements accessreview.Store.
func (s *Store) Campaigns(ctx context.Context, f accessreview.CampaignFilter) ([]accessreview.Campaign, error) {
	var where sqlquery.Conditions
	if len(f.States) > 0 {
		where.Add("state IN ?", texts(f.States))
	}
	if len(f.Reviewers) > 0 {
		where.Add("EXISTS (SELECT 1 FROM review_reviewers p WHERE p.review = reviews.id AND p.person IN ?)", f.Reviewers)
	}
	if f.Before > 0 {
		where.Add("id < ?", f.Before)
	}
	query := "SELECT id, state, version, created_at, body FROM reviews" + where.Where() + " ORDER BY id DESC"
	args := where.Args()
	if f.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, f.Limit)
	}
	var rows []campaignRow
	if err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[campaignRow](tx, query, args...)
		return err
	}); err != nil {
		return nil, err
	}
	out := make([]accessreview.Campaign, len(rows))
	for i := range rows {
		var err error
		if out[i], err = rows[i].campaign(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, x := range in {
		out[i] = string(x)
	}
	return out
}

// Change implements accessreview.Store.
func (s *Store) Change(
	ctx context.Context,
	id int64,
	change func(*accessreview.Campaign) (accessreview.News, error),
) (c accessreview.Campaign, err error) {
	err = s.db.Write(ctx, func(tx *gorm.DB) error {
		if c, err = campaign(tx, id, database.ForUpdate(tx)); err != nil {
			return err
		}
		news, err := change(&c)
		if err != nil {
			return err
		}
		if err := save(tx, &c); err != nil {
			return err
		}
		return record(tx, news)
	})
	return c, err
}

func save(tx *gorm.DB, c *accessreview.Campaign) error {
	c.Version++
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write access review %d: %w", c.ID, err)
	}
	_, err = database.Exec(tx, "UPDATE reviews SET state = ?, version = ?, body = ? WHERE id = ?", string(c.State), c.Version, string(body), c.ID)
	return err
}

// Rebuild implements accessreview.Store.
func (s *Store) Rebuild(ctx context.Context, id int64, build string) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		c, err := campaign(tx, id, database.ForUpdate(tx))
		if err != nil {
			return err
		}
		if c.State != accessreview.StatePreparing {
			return accessreview.ErrNotBuilding
		}
		for _, table := range []string{"review_lines", "review_reviewers"} {
			if _, err := database.Exec(tx, "DELETE FROM "+table+" WHERE review = ?", id); err != nil {
				return err
			}
		}
		c.Build = build
		return save(tx, &c)
	})
}

// lead is the name of the worker's lease.
const lead = "access-review"

// Lead implements accessreview.Store.
func (s *Store) Lead(ctx context.Context, holder string, now time.Time, ttl time.Duration) (bool, error) {
	return s.db.Lead(ctx, lead, holder, now, ttl)
}
