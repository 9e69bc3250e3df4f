package ledger

import (
	"context"
	"iter"
	"time"
)

// Filter of the lines that a page shows; empty fields take every line.
type Filter struct {
	Actor, Action, Object string
	// From and To bound the instants of the lines, To excluded; both count in whole seconds.
	From, To time.Time
	Before   int64 // a cursor: only lines before this one; 0: from the newest on
	Limit    int   // at most MaxPage; 0: DefaultPage
}

// Sizes of a page.
const (
	DefaultPage = 50
	MaxPage     = 500
)

// Reader reads a ledger as it is stored, without judging it.
type Reader interface {
	// List returns lines, the newest first, and the cursor of the next page; 0: there is none.
	List(ctx context.Context, f Filter) (lines []Line, next int64, err error)
	// Lines yields the lines from a number on, in order, one at a time.
	Lines(ctx context.Context, from int64) iter.Seq2[Line, error]
	// Line by its number; false: there is none.
	Line(ctx context.Context, seq int64) (Line, bool, error)
	// Last line; false: the ledger is empty.
	Last(ctx context.Context) (Line, bool, error)
}
