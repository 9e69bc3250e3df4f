// Package gormstore keeps the states of rollouts in SQL through gorm. It implements rollout.Store and decides nothing.
package gormstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/database"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/rollout"
)

type stateRow struct {
	Resource string `gorm:"primaryKey"`
	Body     string
}

func (stateRow) TableName() string { return "rollout_states" }

// guardLead is the one thing that a replica leads.
const guardLead = "guard"

// namesAtOnce keeps a query's parameters below what databases accept.
const namesAtOnce = 500

// Store implements rollout.Store.
type Store struct{ db *database.DB }

// New is the store of an open database.
func New(db *database.DB) *Store { return &Store{db} }

var _ rollout.Store = (*Store)(nil)

// States implements rollout.Store.
func (s *Store) States(ctx context.Context, resources ...string) (map[string]rollout.State, error) {
	var rows []stateRow
	err := s.db.Read(ctx, func(tx *gorm.DB) (err error) {
		if len(resources) == 0 {
			rows, err = database.Select[stateRow](tx, "SELECT * FROM rollout_states")
			return err
		}
		rows = nil
		for names := range slices.Chunk(resources, namesAtOnce) {
			found, err := database.Select[stateRow](tx, "SELECT * FROM rollout_states WHERE resource IN ?", names)
			if err != nil {
				return err
			}
			rows = append(rows, found...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the states of rollouts: %w", err)
	}
	out := make(map[string]rollout.State, len(rows))
	for _, r := range rows {
		out[r.Resource] = r.state()
	}
	return out, nil
}

func (r stateRow) state() (x rollout.State) {
	if r.Body == "" {
		return x
	}
	if err := json.Unmarshal([]byte(r.Body), &x); err != nil {
		return rollout.State{Unreadable: true} // not what was decoded before the error
	}
	return x
}

// Change implements rollout.Store.
func (s *Store) Change(ctx context.Context, resource string, change func(*rollout.State) (rollout.News, error)) (rollout.State, error) {
	var x rollout.State
	err := s.db.Write(ctx, func(tx *gorm.DB) error {
		if err := database.Lock(tx, "rollout "+resource); err != nil {
			return err
		}
		row, err := database.SelectOne[stateRow](tx, "SELECT * FROM rollout_states WHERE resource = ?", resource)
		if err != nil {
			return err
		}
		if row == nil {
			row = &stateRow{Resource: resource}
		}
		if x = row.state(); x.Unreadable {
			return rollout.StateUnreadable(resource)
		}
		news, err := change(&x)
		if err != nil {
			return err
		}
		body, err := json.Marshal(x)
		if err != nil {
			return fmt.Errorf("encode the state of the rollout of %s: %w", resource, err)
		}
		row.Body = string(body)
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(row).Error; err != nil {
			return err
		}
		return record(tx, news)
	})
	return x, err
}

// Record implements rollout.Store.
func (s *Store) Record(ctx context.Context, n rollout.News) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error { return record(tx, n) })
}

// record writes the ledger's lines last, because writers of lines wait for each other.
func record(tx *gorm.DB, n rollout.News) error {
	for _, b := range n.ResourceEvents {
		if err := notifystore.EnqueueResourceEvent(tx, b); err != nil {
			return err
		}
	}
	return ledgerstore.Append(tx, n.Entries...)
}

// Lead implements rollout.Store.
func (s *Store) Lead(ctx context.Context, holder string, now time.Time, ttl time.Duration) (bool, error) {
	return s.db.Lead(ctx, guardLead, holder, now, ttl)
}
