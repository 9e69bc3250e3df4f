package audit

import "time"

// Tally is what connections of one kind count for. Those that share one are added up without a look at its edges.
type Tally struct {
	// Edges are counted once each for every connection. They must not be changed.
	Edges []Edge
	// Kept belongs to the sink that the tally is handed to, for whatever it remembers about it.
	Kept any
}

// Taken is one event of a source that was taken in: what it counts for, and how to know it again.
type Taken struct {
	Seen
	// Tally is nil for an event that only has to be known again.
	Tally *Tally
	// Count is how many connections the event stands for; 0 for one that only shows that they are still in use.
	Count int64
	// Flow is the event itself where it is to be kept; its Edge is left to the sink, which has it from the tally.
	Flow *Flow
	// Loss is what the event says to be missing.
	Loss *Loss
	// Position is the newest time up to which the source was read, Forget the time before which no event of it is
	// delivered again.
	Position, Forget time.Time
}

// Progress is how far a source was followed, whether anything of it counted or not.
type Progress struct {
	Watch
	Position, Forget time.Time
}
