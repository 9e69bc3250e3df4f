package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// Error is a refusal: errors.Is finds its kind, and the detail is a sentence for people.
type Error struct {
	Kind   error
	Detail string
}

func (e *Error) Error() string { return e.Detail }
func (e *Error) Unwrap() error { return e.Kind }

func refusal(kind error, format string, args ...any) error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// Kinds of Error that a caller decides on.
var (
	// ErrChanged means that somebody else changed the catalog since.
	ErrChanged = errors.New("the catalog has changed since")
	// ErrForbidden means that the actor may not do it.
	ErrForbidden = errors.New("not allowed")
	// ErrNotFound means that no such entity, preview or source.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that it cannot stand beside what the catalog has.
	ErrConflict = errors.New("conflict")
)

// Write is one change of the catalog: all of it, or nothing.
type Write struct {
	Put    []Stored // Version is the store's to set
	Remove []Ref
	Ledger []ledger.Entry
	// Preview that is used up; empty: none.
	Preview string
}

// Preview that waits to be applied.
type Preview struct {
	Token, Source, Actor string
	Revision             int64 // of the catalog that it was made for
	Reading              Reading
	Created              time.Time
}

// Status of a source's last sync.
type Status struct {
	Source string    `json:"source"`
	At     time.Time `json:"at"`
	// Good is when it could be read last.
	Good  time.Time `json:"good"`
	Error string    `json:"error,omitempty"`
	// Problems of single entities, at most MaxProblems of them.
	Problems      []Problem `json:"problems,omitempty"`
	ProblemsTotal int       `json:"problemsTotal,omitempty"`
	Entities      int       `json:"entities"`
	// Waiting is the token of a preview that a person has to decide on, because too much would go; see Limit.
	Waiting string `json:"waiting,omitempty"`
	Going   int    `json:"going,omitempty"`
}

// MaxProblems are kept of one sync.
const MaxProblems = 100

// Store keeps the catalog. It decides nothing. Implementations pass catalogtest.
type Store interface {
	// Revision grows with every Write; 0: nothing was ever written.
	Revision(context.Context) (int64, error)
	// Load gives everything at one revision.
	Load(context.Context) ([]Stored, int64, error)
	// Write changes the catalog that is at a revision, with the ledger lines in the same transaction, and gives the next
	// revision. ErrChanged: it is at another revision; ErrNotFound: the preview is used up. Then nothing is changed.
	Write(ctx context.Context, at int64, w Write) (int64, error)

	// KeepPreview replaces the earlier preview of its source and actor, and drops those made before the time.
	KeepPreview(ctx context.Context, p Preview, dropBefore time.Time) error
	// Preview by token; ErrNotFound.
	Preview(ctx context.Context, token string) (Preview, error)

	KeepStatus(context.Context, Status) error
	// Statuses sorted by source.
	Statuses(context.Context) ([]Status, error)
}
