// Package gormstore keeps tickets, delegations, the outbox and sessions in SQL through gorm. It implements the stores of package approval
// on an open database and decides nothing about tickets itself.
package gormstore

import (
	"context"

	"gorm.io/gorm"
	"k8s.io/utils/lru"

	"github.com/acp-io/acp/internal/database"
)

// Store implements approval.TicketStore, approval.DelegationStore and approval.Outbox.
type Store struct {
	db          *database.DB
	creations   *database.BatchWriter[*creation]
	transitions *database.BatchWriter[*transition]
	pages       pages
	changes     *changes
	lists       lists
	given       *lru.Cache // person to *given
}

// New is the store of an open database, which its opener closes.
func New(db *database.DB) *Store {
	s := &Store{db: db, creations: database.NewBatchWriter(db, createAll), pages: newPages(), lists: newLists(), given: lru.New(keepPeople)}
	s.changes = newChanges(s.poll, s.readUnread)
	s.transitions = database.NewBatchWriter(db, s.updateAll)
	return s
}

// Ping implements approval.TicketStore.
func (s *Store) Ping(ctx context.Context) error { return storeError(s.db.Ping(ctx)) }

// write runs f in one transaction and translates what the database says.
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
