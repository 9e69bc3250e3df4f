package audit

import (
	"fmt"
	"net/netip"
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
	Decisions []policy.Verdict
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

// Limits of one page; a query without limit gets DefaultPage.
const (
	MaxPage     = 1000
	DefaultPage = 100
)

func limited(n int) int {
	switch {
	case n <= 0:
		return DefaultPage
	case n > MaxPage:
		return MaxPage
	}
	return n
}

// Total is one edge with its totals in the filter's window. Its count is 0 when nothing was seen of it but that connections
// from before the window are still in use.
type Total struct {
	Edge
	Count               int64
	FirstSeen, LastSeen time.Time
	// Days are the starts of the UTC days with traffic, ascending.
	Days []time.Time
}

// ConnectionQuery asks for a page of connections.
type ConnectionQuery struct {
	Filter
	// Cursor is the Next of the page before; empty: the first page. The pages after the first one leave out the minutes
	// that began after it was made, so that an edge that is seen again meanwhile is neither skipped nor repeated.
	Cursor string
	Limit  int
}

// Limited returns the limit to use for the query.
func (q ConnectionQuery) Limited() int { return limited(q.Limit) }

// Connection is one edge with its totals.
type Connection struct {
	Edge
	Count               int64
	FirstSeen, LastSeen time.Time
}

// ConnectionPage is a part of an answer; Next is empty on the last one.
type ConnectionPage struct {
	Items []Connection
	Next  string
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
	Decision policy.Verdict
	Count    int64
}

// Flow is one event as it was seen. Raw flows are kept for a short time only.
type Flow struct {
	Time time.Time
	Node string
	// Edge is the first pair of names of the event.
	Edge
	SourceAddress, DestinationAddress netip.Addr
	SourcePort                        uint16
	// Count is how many connections the event stands for.
	Count int64
	// Reason of the decision.
	Reason string
}

// FlowQuery asks for a page of raw flows. The filter's window is in whole minutes here too, so that raw flows and totals
// of one window are of the same connections.
type FlowQuery struct {
	Filter
	Cursor string
	Limit  int
}

// Limited returns the limit to use for the query.
func (q FlowQuery) Limited() int { return limited(q.Limit) }

// FlowPage is a part of an answer; Next is empty on the last one.
type FlowPage struct {
	Items []Flow
	Next  string
}

// GroupBy says by which name denials are counted.
type GroupBy string

const (
	BySubject  GroupBy = "subject"
	ByResource GroupBy = "resource"
)

// DeniedQuery counts denials since a time. Subject and Resource filter when set.
type DeniedQuery struct {
	By                GroupBy
	Subject, Resource string
	Since             time.Time
}

// Validate returns ErrInvalidQuery for a grouping that does not exist.
func (q DeniedQuery) Validate() error {
	if q.By != BySubject && q.By != ByResource {
		return fmt.Errorf("%w: denials can be counted by %q or %q, not by %q", ErrInvalidQuery, BySubject, ByResource, q.By)
	}
	return nil
}

// Filter is what the query selects.
func (q DeniedQuery) Filter() Filter {
	f := Filter{Since: q.Since, Decisions: []policy.Verdict{policy.Denied, policy.DefaultDenied}}
	if q.Subject != "" {
		f.Subjects = []string{q.Subject}
	}
	if q.Resource != "" {
		f.Resources = []string{q.Resource}
	}
	return f
}

// LossQuery asks for losses that ended at Since or later and began before Until.
type LossQuery struct {
	Since, Until time.Time
	Clusters     []string
	Cursor       string
	Limit        int
}

// Limited returns the limit to use for the query.
func (q LossQuery) Limited() int { return limited(q.Limit) }

// LossPage is a part of an answer; Next is empty on the last one.
type LossPage struct {
	Items []Loss
	Next  string
}
