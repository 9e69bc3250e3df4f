package ledger

import (
	"context"
	"iter"
	"time"
)

// Filter selects the lines of a page. Empty fields do not filter.
type Filter struct {
	Actor, Action, Object string
	// From (inclusive) and To (exclusive) bound the times of the lines, in whole seconds.
	From, To time.Time
	Oldest   bool  // the oldest line first, where it is the newest otherwise
	After    int64 // cursor: continue after the line with this number; 0 starts with the first
	Limit    int   // at most MaxPage; 0 means DefaultPage
}

// DefaultPage and MaxPage are the default and the maximum number of lines of a page.
const (
	// DefaultPage is the number of entries of a page if the query has no limit.
	DefaultPage = 50
	// MaxPage is the maximum number of entries of a page.
	MaxPage = 500
)

// Reader reads the stored ledger without verifying it.
type Reader interface {
	// List returns lines, newest first unless the filter says otherwise, and the cursor of the next page; 0 if there is none.
	List(ctx context.Context, f Filter) (lines []Line, next int64, err error)
	// Lines yields the lines from the given number on, in order.
	Lines(ctx context.Context, from int64) iter.Seq2[Line, error]
	// Line returns the line with the number; false if there is none.
	Line(ctx context.Context, seq int64) (Line, bool, error)
	// Last returns the newest line; false if the ledger is empty.
	Last(ctx context.Context) (Line, bool, error)
}
