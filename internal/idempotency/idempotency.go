// Package idempotency makes a call that is sent twice take effect once. A person's key is claimed before the call runs,
// and a repeated call with the same key is given the stored answer. It is for calls whose own store has no column for
// the key and whose answers contain no secret. It depends on neither HTTP nor SQL.
package idempotency

import (
	"context"
	"errors"
	"time"
)

const (
	// AnswerRetention is how long a stored answer is returned to repeated calls.
	AnswerRetention = 24 * time.Hour
	// CallTimeout is how long a call may take. An older claim without an answer counts as abandoned by a program that
	// crashed.
	CallTimeout = time.Minute
	// MaxAnswer is the largest answer that is stored, in bytes.
	MaxAnswer = 1 << 20
)

var (
	// ErrInProgress means that the first call with the key has not ended yet.
	ErrInProgress = errors.New("a call with this key is under way")
	// ErrKeyReused means that the person has used the key for a different call.
	ErrKeyReused = errors.New("the key belongs to another call")
)

// Call identifies one call of a person. Digest is a hash of the whole request, so that a key that is reused for another
// request is recognised.
type Call struct {
	Person, Key, Digest string
	At                  time.Time
}

// Answer is the response to a completed call.
type Answer struct {
	Status    int
	MediaType string // the media type of Body
	Body      []byte
}

// Store persists claims and answers.
type Store interface {
	// Begin claims the key for a call. It returns the stored answer if the call was already made, nil if the caller has
	// to make it, ErrInProgress while another caller makes it, and ErrKeyReused if the key belongs to another call.
	Begin(ctx context.Context, c Call) (*Answer, error)
	// Finish stores the answer of a call for which Begin returned nil.
	Finish(ctx context.Context, c Call, a Answer) error
	// Release removes the claim of a call that changed nothing, so that the call can be repeated.
	Release(ctx context.Context, c Call) error
	// Prune deletes the claims that were made before an instant, with their answers.
	Prune(ctx context.Context, before time.Time) error
}
