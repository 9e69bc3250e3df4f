package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/waves"
)

var (
	// ErrGone means that the resource is no longer onboarded.
	ErrGone = errors.New("the resource is not onboarded")
	// ErrChanged means that the object differs from the version that the caller saw.
	ErrChanged = errors.New("the object was changed meanwhile")
)

// State is the stored state of a resource's rollout, in addition to its mode.
type State struct {
	Announcement *Announcement `json:"announcement,omitempty"`
	Guard        Guard         `json:"guard,omitzero"`
	// Enforced is since when each member was observed to enforce; the guard maintains it.
	Enforced map[string]time.Time `json:"enforced,omitempty"`
	// Gaps are the current gaps of the guarded members, and Missed is the total duration of the gaps that ended.
	Gaps   map[string]Gap           `json:"gaps,omitempty"`
	Missed map[string]time.Duration `json:"missed,omitempty"`
	// WavesHalted is when the last halt of the waves happened that was recorded. It is the only field of the state of a class.
	WavesHalted time.Time `json:"wavesHalted,omitzero"`
	// FleetDowngrades are the leases of the runs of fleet downgrades. It is the only field of the state "FleetDowngrade", which no other
	// state has.
	FleetDowngrades []FleetDowngradeLease `json:"fleetDowngrades,omitempty"`
	// Unreadable reports that a state is stored and cannot be decoded. The other fields are then zero, and nothing is known of them.
	Unreadable bool `json:"-"`
}

// StateUnreadable returns the error of an operation that needs a state which is stored and cannot be decoded.
func StateUnreadable(resource string) error {
	return fmt.Errorf("read the state of the rollout of %s: %w", resource,
		&approval.Error{Code: approval.CodeConflict, Message: message.RolloutHintStateUnreadable()})
}

// Announcement is the announcement to the owners of the clients seen that a resource will be closed.
type Announcement struct {
	At        time.Time `json:"at"`
	By        string    `json:"by"`
	Message   string    `json:"message"`
	EnforceAt time.Time `json:"enforceAt,omitzero"` // as planned
	Notified  int       `json:"told"`               // people
}

// Guard contains the settings of a resource's guard; the zero value means the defaults.
type Guard struct {
	Off    bool          `json:"off,omitempty"`
	Limit  *int64        `json:"limit,omitempty"`  // DefaultLimit if nil
	Window time.Duration `json:"window,omitempty"` // 0 means DefaultGuardWindow
	Stop   *Stop         `json:"stop,omitempty"`   // nil if it has not stopped the rollout, or was armed again
	// ArmedAt is when a user armed the guard again after a stop.
	ArmedAt time.Time `json:"armedAt,omitzero"`
	// Reopens reports whether a stop also turns the resource to temporary audit. It is off by default, because otherwise a
	// known client could have the resource opened by being refused.
	Reopens bool `json:"reopens,omitempty"`
}

// Stop is the reason for which the guard stopped a rollout.
type Stop struct {
	At      time.Time      `json:"at"`
	Cluster string         `json:"cluster"`
	Count   int64          `json:"count"`
	Reason  message.Stored `json:"reason"`
}

// Defaults of the guard.
const (
	// DefaultLimit is the number of new denials that a guard tolerates.
	DefaultLimit = 20
	// DefaultGuardWindow is the time in which a guard counts new denials.
	DefaultGuardWindow = 5 * time.Minute
)

// DenialLimit returns the number of new denials in the window that is tolerated.
func (g Guard) DenialLimit() int64 {
	if g.Limit == nil {
		return DefaultLimit
	}
	return *g.Limit
}

// DenialWindow returns the window in which denials are counted.
func (g Guard) DenialWindow() time.Duration {
	if g.Window == 0 {
		return DefaultGuardWindow
	}
	return g.Window
}

// News are the records that are stored in the transaction of a change, or alone.
type News struct {
	Entries        []ledger.Entry
	ResourceEvents []notify.ResourceEvent
}

// Store stores states. Every method is one transaction. Several replicas may use one store.
type Store interface {
	// States returns the states of resources by name, of classes by their names after "ResourceClass/", and of fleet downgrades by
	// "FleetDowngrade"; those without state are not included. Without names, it returns all. A state that cannot be decoded is returned as
	// Unreadable, and does not affect the others.
	States(ctx context.Context, resources ...string) (map[string]State, error)
	// Change loads a state, applies a change and stores it with its news, atomically with respect to other changes of
	// the resource. An error of the change is returned unchanged, and nothing is stored. If the state cannot be decoded, it returns
	// StateUnreadable.
	Change(ctx context.Context, resource string, change func(*State) (News, error)) (State, error)
	// Record stores news without a change of state.
	Record(ctx context.Context, n News) error
	// Lead reports whether the holder holds the lease until now+ttl. It acquires the lease if it is free or expired.
	Lead(ctx context.Context, holder string, now time.Time, ttl time.Duration) (bool, error)
	ProposalStore
}

// HostWriter writes what concerns rollouts to the host cluster: temporary audits, and instructions to the adapter about waves.
type HostWriter interface {
	// SetTemporaryAudit reads the object, compares it with the version (empty means any), calls the check with its spec, and
	// writes the temporary audit; nil ends it. It may call the check again after a conflict. It returns ErrGone,
	// ErrChanged, or the check's own error.
	SetTemporaryAudit(
		ctx context.Context,
		object, version string,
		audit *v1alpha1.TemporaryAudit,
		check func(context.Context, v1alpha1.ProtectedResourceSpec) error,
	) (*v1alpha1.ProtectedResource, error)
	// Instruct gives the adapter an instruction about the waves of an object. It returns ErrGone if there is no such object.
	Instruct(ctx context.Context, object string, i waves.Instruction) error
	// InstructClass gives the adapter an instruction about the waves of a change of a resource class. It returns ErrGone if there is no
	// such class.
	InstructClass(ctx context.Context, name string, i waves.Instruction) error
}
