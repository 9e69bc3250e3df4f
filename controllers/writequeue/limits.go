package writequeue

import "time"

// Priority orders the units that have to be written; the greater is written first. It is determined from the compiled unit, unlike
// the priorities of package requestqueue, which order the reconciles. The queue admits revocations and changes that open at once.
// Their caller may still wait for KubeFed's report on the previous version of an object, for at most Limits.MaxInFlight.
type Priority int

const (
	// Bulk is the priority of a unit that is part of a change of very many units, such as one of a class, or of a start.
	Bulk Priority = iota
	// Grant is the priority of a change that a person requested for this unit, and that revokes no access.
	Grant
	// Revocation is the priority of a change that may take access away.
	Revocation
	// Opening is the priority of a change that opens what was closed, such as from Enforce to Audit.
	Opening
)

// String returns the value of the metrics' label.
func (p Priority) String() string {
	return [...]string{"bulk", "grant", "revocation", "opening"}[p]
}

// Limits bound what is written for KubeFed. Each applies to each member separately, so that a slow member delays only the units
// that have to be written into it.
type Limits struct {
	// MaxPending is the number of objects that KubeFed may not have propagated to a member yet while further grants and bulk
	// changes for that member are still written.
	MaxPending int
	// PendingTimeout is how long one of these objects counts against MaxPending. A member that lacks an object for longer is
	// lagging: units that other members need as well no longer wait for it.
	PendingTimeout time.Duration
	// LagTimeout is how long an object counts in a member that lacks it while another member has it. KubeFed writes an object to all
	// members at once, so only the member itself can be the reason. With 0 only PendingTimeout applies.
	LagTimeout time.Duration
	// Rate is how many objects a second KubeFed writes into a member, and Burst how many it writes at once after a pause. With
	// Rate 0 the rate is not limited.
	Rate  float64
	Burst int
	// Reserved is the part of Burst that only revocations and changes that open may use.
	Reserved int
	// MaxInFlight bounds how long a write waits for KubeFed to report on the previous version of the same object. With 0 it does
	// not wait.
	MaxInFlight time.Duration
}

// DefaultLimits are the limits of KubeFed v0.10.0, whose client of a member writes 20 objects a second, and 30 at once. The rate is one
// percent lower, which leaves room for objects that KubeFed writes twice, so that a revocation finds KubeFed ready to write. Where
// KubeFed is slower, because it or the host is, at most about one second's writes are pending.
var DefaultLimits = Limits{
	MaxPending:     20,
	PendingTimeout: 5 * time.Second,
	LagTimeout:     time.Second,
	Rate:           19.8,
	Burst:          30,
	Reserved:       10,
	MaxInFlight:    200 * time.Millisecond,
}

// bulkShare is the share of bulk while grants wait: one of every bulkShare admissions, so that neither starves.
const bulkShare = 8

// Request is a request to write the objects of a unit.
type Request struct {
	Unit     string
	Priority Priority
	// Members contains the members into which KubeFed has to write the unit's objects.
	Members []string
}

// Admission is a unit that may be written now.
type Admission struct {
	Unit     string
	Priority Priority
}
