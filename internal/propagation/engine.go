package propagation

import "github.com/acp-io/acp/internal/federation"

// Engine distributes objects to the members that use it. The conformance suite in package conformance states what every engine has to
// do. An engine is safe for concurrent use.
type Engine interface {
	// Name returns the name by which registrations select the engine.
	Name() federation.Engine
	// Capabilities returns what the engine can do.
	Capabilities() Capabilities
	// Deliver makes the members of the engine have what a recorded object contains for them, and nothing of it where it is not
	// placed. It does not block. The version that the host has by then counts, if it is newer than the given one. An engine never
	// changes a member because of a record that it cannot read in full.
	Deliver(o *federation.Object)
	// DeliverUrgent is Deliver for an object whose present version revokes access or opens a resource, after Deliver. The engine distributes it
	// before everything that is not urgent.
	DeliverUrgent(o *federation.Object)
	// Report returns the engine's record of the given version of an object in a member that uses it.
	Report(o *federation.Object, cluster string) federation.Report
	// Recheck makes the engine compare what a member has with the record: of an object, or of all objects for "". It is called for
	// events in the member, and when a member is registered, lost or found again.
	Recheck(cluster, key string)
}

// Former is an engine that may still write into a member after it has moved to another engine.
type Former interface {
	// Retains reports whether the engine may still write an object into a member whose registration names it as the former engine.
	Retains(o *federation.Object, cluster string) bool
}

// Mode is the direction in which an engine's data moves.
type Mode string

// Modes.
const (
	// Push means that the host connects to the member, and has credentials of it.
	Push Mode = "push"
	// Pull means that an agent in the member connects to the host.
	Pull Mode = "pull"
)

// Capabilities are what an engine can do.
type Capabilities struct {
	Mode Mode
	// Overrides reports whether members can have different specs of one object.
	Overrides bool
	// Prioritizes reports whether the engine itself writes urgent objects before others, so that the write queue need not hold back bulk
	// changes for them.
	Prioritizes bool
	// WritesPerSecond is the expected number of objects that the engine writes into a member per second, or 0 if only the member
	// limits it.
	WritesPerSecond float64
	// NeedsController reports whether a controller which is not part of ACP has to run on the host.
	NeedsController bool
	// Isolated reports whether a member that does not serve a kind, or refuses to list it, affects itself alone. Such a member of another
	// engine has to be quarantined, or the engine carries the kind to none of its members after a restart.
	Isolated bool
	// FollowsEdits reports whether the engine carries out content of a record that ACP never writes, until the adapter has restored the
	// record. Any other engine leaves the members as they are.
	FollowsEdits bool
	// RemovesDeleted reports whether the engine takes an object from the members that it reaches when its record is deleted without the
	// removal protocol. Any other engine leaves it in the members, where it is reported as an orphan.
	RemovesDeleted bool
	// RestoresLabels reports whether the engine restores labels that were changed in a member at once, not only with the next change.
	RestoresLabels bool
}
