package audit

import "time"

// Taken is one event of a source that was taken in: what it counts for, and how to know it again.
type Taken struct {
	Seen
	// Edges that the event counts for, each Count times; none for an event that only has to be known again.
	Edges []Edge
	Count int64
	// Position is the newest time up to which the source was read, Forget the time before which no event of it is
	// delivered again.
	Position, Forget time.Time
}
