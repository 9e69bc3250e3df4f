package audit

import (
	"time"

	"github.com/acp-io/acp/internal/policy"
)

// Filter selects connections. An empty field does not filter, and several values of one field are alternatives.
type Filter struct {
	// Since is inclusive and rounded down to a minute, Until exclusive and rounded up; zero: no bound.
	Since, Until                           time.Time
	Subjects, Resources, Clusters, Actions []string
	Decisions                              []policy.Word
	Verdicts                               []Verdict
	Ports                                  []uint16
	Policy, SID                            string
	// Unattributed: an end has no name.
	Unattributed bool
	// Disagree: the dataplane and the evaluator differ.
	Disagree bool
	// Text is part of any name or source, case-insensitive.
	Text string
	// Within nil: all.
	Within *Scope
}

// Scope is what a caller may see: edges whose subject or resource is among them.
type Scope struct{ Subjects, Resources []string }

// Total is one edge with its totals in the filter's window.
type Total struct {
	Edge
	Count               int64
	FirstSeen, LastSeen time.Time
	// Days are the UTC days with traffic, ascending.
	Days []time.Time
}

// LossQuery selects losses.
type LossQuery struct {
	Since, Until time.Time
	Clusters     []string
	Cursor       string
	Limit        int
}

// LossPage is one page of losses.
type LossPage struct {
	Items []Loss
	Next  string
}

// Coverage is how well one day of one cluster was watched.
type Coverage struct {
	Cluster string
	// Day is UTC.
	Day time.Time
	// Watched is the time of the day's part in the window and past in which the source was followed, gaps not taken off.
	Watched time.Duration
	Lost    int64
	GapTime time.Duration
}

// SeriesQuery asks for counts by time.
type SeriesQuery struct {
	Filter
	Step time.Duration
}

// Point is one count of a series.
type Point struct {
	Start    time.Time
	Decision policy.Word
	Count    int64
}
