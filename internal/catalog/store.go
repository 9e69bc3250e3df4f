package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// Error is a refusal: errors.Is finds its kind, and Message says to users what to do.
type Error struct {
	Kind    error
	Message message.Message
}

func (e *Error) Error() string { return e.Message.Text }
func (e *Error) Unwrap() error { return e.Kind }

func refusal(kind error, m message.Message) error {
	return &Error{Kind: kind, Message: m}
}

// Kinds of Error that callers handle differently.
var (
	// ErrChanged means that the catalog was changed meanwhile.
	ErrChanged = errors.New("the catalog has changed since")
	// ErrForbidden means that the actor may not make the change.
	ErrForbidden = errors.New("not allowed")
	// ErrNotFound means that there is no such entity, preview or source.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the change contradicts what the catalog has.
	ErrConflict = errors.New("conflict")
)

// Write is one change of the catalog, made completely or not at all.
type Write struct {
	Put    []Stored // the store sets Version
	Remove []Ref
	Ledger []ledger.Entry
	// Preview is the token of the preview that is applied and then deleted, or empty.
	Preview string
}

// Preview is the content of a source that waits to be applied.
type Preview struct {
	Token, Source, Actor string
	Revision             int64 // of the catalog with which it was compared
	Content              SourceContent
	Created              time.Time
}

// Status is the status of a source's last sync.
type Status struct {
	Source string    `json:"source"`
	At     time.Time `json:"at"`
	// SucceededAt is when the source was last read successfully.
	SucceededAt time.Time `json:"good"`
	Error       string    `json:"error,omitempty"`
	// Problems contains problems of single entities, at most MaxProblems of them.
	Problems      []Problem `json:"problems,omitempty"`
	ProblemsTotal int       `json:"problemsTotal,omitempty"`
	Entities      int       `json:"entities"`
	// PendingPreview is the token of a preview that a person has to decide about, because too many entities would be
	// gone; see RemovalLimit. PendingRemovals is their number.
	PendingPreview  string `json:"waiting,omitempty"`
	PendingRemovals int    `json:"going,omitempty"`
}

// MaxProblems is the largest number of problems that are stored of one sync.
const MaxProblems = 100

// Store persists the catalog and makes no decisions. Implementations must pass catalogtest.
type Store interface {
	// Revision returns the revision, which grows with every Write. It is 0 before the first one.
	Revision(context.Context) (int64, error)
	// Load returns everything at one revision.
	Load(context.Context) ([]Stored, int64, error)
	// Write changes the catalog if it is at the given revision, with the ledger lines in the same transaction, and
	// returns the next revision. It returns ErrChanged if the catalog is at another revision, and ErrNotFound if the
	// preview does not exist; then nothing is changed.
	Write(ctx context.Context, at int64, w Write) (int64, error)

	// KeepPreview stores a preview in place of the earlier one of its source and actor, and deletes those created
	// before dropBefore.
	KeepPreview(ctx context.Context, p Preview, dropBefore time.Time) error
	// Preview returns the preview with a token, or ErrNotFound.
	Preview(ctx context.Context, token string) (Preview, error)

	KeepStatus(context.Context, Status) error
	// Statuses returns the status of all sources, sorted by source.
	Statuses(context.Context) ([]Status, error)
}
