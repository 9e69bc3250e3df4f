package audit

import "time"

// EdgeGroup lists the edges in which connections of one kind are counted. A sink can add up connections that share an EdgeGroup without
// looking at its edges.
type EdgeGroup struct {
	// Edges are the edges in each of which every connection is counted once. They must not be changed.
	Edges []Edge
	// SinkData belongs to the sink that receives the group, which may cache data about it here.
	SinkData any
}

// Event is one ingested event of a source: how it is counted, and the identity by which it is recognized when it is delivered
// again.
type Event struct {
	SeenEvent
	// EdgeGroup is nil for an event that is only remembered.
	EdgeGroup *EdgeGroup
	// Count is the number of connections that the event stands for; 0 if it only reports that earlier connections are still in
	// use.
	Count int64
	// Flow is set if the event is stored as a raw flow. The sink sets its Edge from the group.
	Flow *Flow
	// Loss is the loss that the event reports; nil if there is none.
	Loss *Loss
	// Position is the newest time up to which the source was read; ForgetBefore is the time before which none of its events is
	// delivered again.
	Position, ForgetBefore time.Time
}

// Progress records that a member was watched during a time span, whether events were counted or not, and the position of the source.
type Progress struct {
	WatchedSpan
	// PositionOf is the name of the source that Position and ForgetBefore belong to. Empty means that of the span.
	PositionOf             string
	Position, ForgetBefore time.Time
}
