// Package gormstore stores tickets, delegations and the outbox in SQL through gorm. It implements the stores of package
// approval on an open database and contains no rules about tickets.
package gormstore

import (
	"context"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
)

// Store implements approval.TicketStore, approval.DelegationStore and approval.Outbox.
type Store struct{ db *database.DB }

// New returns the store of an open database, which the caller closes.
func New(db *database.DB) *Store { return &Store{db} }

// Ping implements approval.TicketStore.
func (s *Store) Ping(ctx context.Context) error { return storeError(s.db.Ping(ctx)) }

// write runs f in one transaction and translates the errors of the database.
func (s *Store) write(ctx context.Context, f func(tx *gorm.DB) error) error {
	return storeError(s.db.Write(ctx, f))
}

// read runs f on one consistent snapshot.
func (s *Store) read(ctx context.Context, f func(tx *gorm.DB) error) error {
	return storeError(s.db.Read(ctx, f))
}

// readOne runs f, which makes one query.
func (s *Store) readOne(ctx context.Context, f func(tx *gorm.DB) error) error {
	return storeError(s.db.ReadOne(ctx, f))
}
