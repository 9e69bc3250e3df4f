package audit

import (
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/policy"
)

// Filter selects connections. An empty field does not filter; several values of one field are alternatives.
type Filter struct {
	// Since is inclusive and rounded down to a minute, Until exclusive and rounded up; zero: no bound.
	Since, Until time.Time

	// Subjects and Resources are exact names.
	Subjects, Resources []string
	// Clusters are those of the destinations.
	Clusters  []string
	Actions   []string
	Decisions []policy.Word
	Verdicts  []Verdict
	Ports     []uint16
	// Policy and SID name the statement that decided.
	Policy, SID string
	// Unattributed: an end has no name.
	Unattributed bool
	// Disagree: the dataplane did something else than the evaluator said.
	Disagree bool
	// Text is part of a name, or of what stands for one, of either end. The case of ASCII letters does not matter.
	Text string
	// Within limits to what a caller may see; nil: all.
	Within *Scope
}

// Scope holds edges whose subject or resource is among its names; without names it holds none.
type Scope struct{ Subjects, Resources []string }

// Window returns the bounds in whole buckets; zero: no bound.
func (f Filter) Window() (since, until time.Time) {
	if !f.Since.IsZero() {
		since = f.Since.UTC().Truncate(BucketWidth)
	}
	if !f.Until.IsZero() {
		until = f.Until.UTC().Truncate(BucketWidth)
		if until.Before(f.Until) {
			until = until.Add(BucketWidth)
		}
	}
	return since, until
}

// Total is one edge with its totals in the filter's window.
type Total struct {
	Edge
	Count               int64
	FirstSeen, LastSeen time.Time
	// Days are the starts of the UTC days with traffic, ascending.
	Days []time.Time
}

// MaxSteps limits a series.
const MaxSteps = 1000

// SeriesQuery asks for counts over time. It needs both bounds.
type SeriesQuery struct {
	Filter
	// Step is a multiple of a minute. Steps begin at multiples of it since 1970 UTC.
	Step time.Duration
}

// Validate returns ErrInvalidQuery for a step or a window that cannot be answered.
func (q SeriesQuery) Validate() error {
	since, until := q.Window()
	switch {
	case since.IsZero() || until.IsZero():
		return fmt.Errorf("%w: a series needs a beginning and an end", ErrInvalidQuery)
	case q.Step < BucketWidth || q.Step%BucketWidth != 0:
		return fmt.Errorf("%w: the step of a series is a multiple of a minute, not %s", ErrInvalidQuery, q.Step)
	case until.Sub(since) > MaxSteps*q.Step:
		return fmt.Errorf("%w: a series has at most %d steps: take a longer step or a shorter window", ErrInvalidQuery, MaxSteps)
	}
	return nil
}

// Point counts the connections of one decision in the step that begins at Start.
type Point struct {
	Start    time.Time
	Decision policy.Word
	Count    int64
}

// Watch is a span in which a source was followed, whether it had flows or not.
type Watch struct {
	Source   string
	From, To time.Time
}
