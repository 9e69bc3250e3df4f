package audit

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/acp-io/acp/internal/policy"
)

// Filter selects connections. An empty field does not filter; several values of one field are alternatives.
type Filter struct {
	// Since is inclusive and rounded down to a minute; Until is exclusive and rounded up. A zero time means unbounded.
	Since, Until time.Time

	// Subjects and Resources are matched exactly.
	Subjects, Resources []string
	// Clusters are the clusters of the destinations.
	Clusters  []string
	Actions   []string
	Decisions []policy.Verdict
	Verdicts  []Verdict
	Ports     []uint16
	// Policy and SID identify the deciding statement.
	Policy, SID string
	// Unattributed selects connections with an endpoint that has no name.
	Unattributed bool
	// Disagree selects connections whose dataplane verdict contradicts the decision.
	Disagree bool
	// Text is a substring of a name or description of either endpoint. ASCII letters match in either case.
	Text string
	// Within restricts the result to what a caller may see; nil means unrestricted.
	Within *Scope
}

// Scope selects edges whose subject or resource is among its names. Without names it selects none.
type Scope struct{ Subjects, Resources []string }

// Window returns the bounds rounded to whole buckets. A zero time means unbounded.
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

// MaxPage is the largest number of items of a page, and DefaultPage the number for a query without a limit.
const (
	// MaxPage is the maximum number of items of a page.
	MaxPage = 1000
	// DefaultPage is the number of items of a page for a query without a limit.
	DefaultPage = 100
)

func effectiveLimit(n int) int {
	switch {
	case n <= 0:
		return DefaultPage
	case n > MaxPage:
		return MaxPage
	}
	return n
}

// Total is one edge with its totals in the filter's window. Its count is 0 if the only observation in the window is that earlier
// connections are still in use.
type Total struct {
	Edge
	Count               int64
	FirstSeen, LastSeen time.Time
	// Days are the starts of the UTC days with traffic, in ascending order.
	Days []time.Time
}

// ConnectionOrder is the order of connections.
type ConnectionOrder string

const (
	// LastSeenFirst is the default: descending by the time at which a connection was seen last. The first pages are read without
	// summing up the whole window.
	LastSeenFirst ConnectionOrder = ""
	// LastSeenLast is the ascending order by that time.
	LastSeenLast ConnectionOrder = "seen"
	// MostFirst is descending by the count in the window.
	MostFirst ConnectionOrder = "-count"
	// FewestFirst is ascending by the count in the window.
	FewestFirst ConnectionOrder = "count"
)

// ByCount reports whether the count is what the connections are sorted by.
func (o ConnectionOrder) ByCount() bool { return o == MostFirst || o == FewestFirst }

// Ascending reports whether the order is ascending.
func (o ConnectionOrder) Ascending() bool { return o == LastSeenLast || o == FewestFirst }

// ConnectionQuery selects a page of connections.
type ConnectionQuery struct {
	Filter
	// Order sums up all selected connections for each page unless it is the default. It therefore needs subjects or resources,
	// which select few, and the end of the window.
	Order ConnectionOrder
	// Cursor is the Next of the previous page; empty for the first page. Later pages exclude the minutes that began after the
	// first page was made, so that an edge that is observed again meanwhile is neither skipped nor repeated.
	Cursor string
	Limit  int
}

// Validate returns ErrInvalidQuery if the order does not exist, or if the filter lacks what the order needs.
func (q ConnectionQuery) Validate() error {
	switch q.Order {
	case LastSeenFirst:
		return nil
	case LastSeenLast, MostFirst, FewestFirst:
		if len(q.Subjects)+len(q.Resources) == 0 {
			return fmt.Errorf("%w: connections in the order %q need subjects or resources", ErrInvalidQuery, q.Order)
		}
		if q.Until.IsZero() {
			return fmt.Errorf("%w: connections in the order %q need the end of the window", ErrInvalidQuery, q.Order)
		}
		return nil
	}
	return fmt.Errorf("%w: connections have no order %q", ErrInvalidQuery, q.Order)
}

// NextCursor returns the cursor after the last connection of a page. tie is the backend's identifier of its edge, first the first
// connection of the page, and after the cursor of the page, or nil.
func (q ConnectionQuery) NextCursor(after *Cursor, first, last Connection, tie string) Cursor {
	c := Cursor{At: last.LastSeen.UnixMicro(), Tie: tie, Order: q.Order}
	if q.Order.ByCount() {
		c.At = last.Count
	}
	_, until := q.Window()
	switch {
	case after != nil:
		c.Until = after.Until
	case q.Order == LastSeenFirst:
		c.Until = first.LastSeen.Truncate(BucketWidth).Add(BucketWidth).UnixMicro()
	default:
		c.Until = until.UnixMicro()
	}
	return c
}

// EffectiveLimit returns the limit of the page, with the default and the maximum applied.
func (q ConnectionQuery) EffectiveLimit() int { return effectiveLimit(q.Limit) }

// Connection is one edge with its totals in the query's window.
type Connection struct {
	Edge
	Count               int64
	FirstSeen, LastSeen time.Time
}

// ConnectionPage is one page of connections. Next is the cursor of the next page; empty on the last one.
type ConnectionPage struct {
	Items []Connection
	Next  string
}

// MaxSteps is the largest number of steps of a series.
const MaxSteps = 1000

// SeriesQuery selects counts over time. Both bounds of the filter are required.
type SeriesQuery struct {
	Filter
	// Step is a multiple of a minute. Steps begin at multiples of it since 1970 UTC.
	Step time.Duration
}

// Validate returns ErrInvalidQuery if a bound is missing, the step is invalid, or the series has too many steps.
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

// Point is the number of connections with one decision in the step that begins at Start.
type Point struct {
	Start    time.Time
	Decision policy.Verdict
	Count    int64
}

// Flow is one observed event. Raw flows are kept for a short time only.
type Flow struct {
	Time time.Time
	Node string
	// Edge is the first pair of names of the event.
	Edge
	SourceAddress, DestinationAddress netip.Addr
	SourcePort                        uint16
	// Count is the number of connections that the event stands for.
	Count int64
	// Reason explains the decision, in a form that message.Decode reads.
	Reason string
}

// FlowQuery selects a page of raw flows. The filter's window is rounded to whole minutes here too, so that raw flows and totals
// of one window describe the same connections.
type FlowQuery struct {
	Filter
	Cursor string
	Limit  int
}

// EffectiveLimit returns the limit of the page, with the default and the maximum applied.
func (q FlowQuery) EffectiveLimit() int { return effectiveLimit(q.Limit) }

// FlowPage is one page of raw flows. Next is the cursor of the next page; empty on the last one.
type FlowPage struct {
	Items []Flow
	Next  string
}

// GroupBy is the name by which denials are grouped.
type GroupBy string

const (
	// BySubject groups denials by their subject.
	BySubject GroupBy = "subject"
	// ByResource groups denials by their resource.
	ByResource GroupBy = "resource"
)

// DeniedQuery selects denials since a time. Subject and Resource filter if they are set.
type DeniedQuery struct {
	By                GroupBy
	Subject, Resource string
	Since             time.Time
}

// Validate returns ErrInvalidQuery if the grouping does not exist.
func (q DeniedQuery) Validate() error {
	if q.By != BySubject && q.By != ByResource {
		return fmt.Errorf("%w: denials can be counted by %q or %q, not by %q", ErrInvalidQuery, BySubject, ByResource, q.By)
	}
	return nil
}

// Filter returns the filter for the denials that the query selects.
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

// LossQuery selects losses that ended at Since or later and began before Until.
type LossQuery struct {
	Since, Until time.Time
	Clusters     []string
	Cursor       string
	Limit        int
}

// EffectiveLimit returns the limit of the page, with the default and the maximum applied.
func (q LossQuery) EffectiveLimit() int { return effectiveLimit(q.Limit) }

// LossPage is one page of losses. Next is the cursor of the next page; empty on the last one.
type LossPage struct {
	Items []Loss
	Next  string
}
