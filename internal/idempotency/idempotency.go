// Package idempotency owns what makes a call that is sent twice happen once: the claim of a person's key before the call
// runs, and the answer that the second one gets. It is for calls whose own store has no place for the key, and whose
// answers hold no secret. It knows no HTTP and no SQL.
package idempotency

import (
	"context"
	"errors"
	"time"
)

const (
	// Remembered is how long an answer is given again.
	Remembered = 24 * time.Hour
	// UnderWay is how long a call may take; after that its claim is that of a program that died.
	UnderWay = time.Minute
	// MaxAnswer is the largest answer that is kept.
	MaxAnswer = 1 << 20
)

var (
	// ErrUnderWay means that the first call has not ended yet.
	ErrUnderWay = errors.New("a call with this key is under way")
	// ErrOther means that the key belongs to another call of the person.
	ErrOther = errors.New("the key belongs to another call")
)

// Call is one call of a person. Digest is of all that it says.
type Call struct {
	Person, Key, Digest string
	At                  time.Time
}

// Answer that a call was given.
type Answer struct {
	Status int
	Kind   string // media type
	Body   []byte
}

// Store keeps claims and answers.
type Store interface {
	// Begin claims the key for a call. An answer says that the call was made; ErrUnderWay, ErrOther.
	Begin(ctx context.Context, c Call) (*Answer, error)
	// Finish keeps the answer of a call that Begin let go.
	Finish(ctx context.Context, c Call, a Answer) error
	// Drop the claim of a call that changed nothing, so that it can be tried again.
	Drop(ctx context.Context, c Call) error
	// Prune forgets what was claimed before an instant.
	Prune(ctx context.Context, before time.Time) error
}
