package rollout

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/notify"
)

var (
	// ErrGone means that the resource is not onboarded any more.
	ErrGone = errors.New("the resource is not onboarded")
	// ErrChanged means that the object is not as the caller saw it.
	ErrChanged = errors.New("the object was changed meanwhile")
)

// State is what is kept of a resource beside its mode.
type State struct {
	Announcement *Announcement `json:"announcement,omitempty"`
	Guard        Guard         `json:"guard,omitzero"`
	// Enforced is since when each member was seen to enforce; the guard keeps it.
	Enforced map[string]time.Time `json:"enforced,omitempty"`
	// Gaps are those that last in the members that are guarded, and Missed is how long those that ended took together.
	Gaps   map[string]Gap           `json:"gaps,omitempty"`
	Missed map[string]time.Duration `json:"missed,omitempty"`
}

// Announcement told the owners of the clients seen that a resource will be closed.
type Announcement struct {
	At        time.Time `json:"at"`
	By        string    `json:"by"`
	Message   string    `json:"message"`
	EnforceAt time.Time `json:"enforceAt,omitzero"` // as planned
	Told      int       `json:"told"`               // people
}

// Guard of a resource; the zero value has the defaults.
type Guard struct {
	Off    bool          `json:"off,omitempty"`
	Limit  *int64        `json:"limit,omitempty"`  // nil: DefaultLimit
	Window time.Duration `json:"window,omitempty"` // 0: DefaultGuardWindow
	Stop   *Stop         `json:"stop,omitempty"`   // nil: it has not stopped the rollout, or was armed again
	// ArmedAt is when somebody armed it again after a stop.
	ArmedAt time.Time `json:"armedAt,omitzero"`
	// Reopens: a stop also turns the resource to temporary audit. Not by default, because then a known client that is
	// refused could have it opened.
	Reopens bool `json:"reopens,omitempty"`
}

// Stop is why the guard stopped a rollout.
type Stop struct {
	At      time.Time `json:"at"`
	Cluster string    `json:"cluster"`
	Count   int64     `json:"count"`
	Reason  string    `json:"reason"`
}

// What the guard goes by unless somebody set it otherwise.
const (
	DefaultLimit       = 20
	DefaultGuardWindow = 5 * time.Minute
)

// Most is the number of new denials in the window that is still borne.
func (g Guard) Most() int64 {
	if g.Limit == nil {
		return DefaultLimit
	}
	return *g.Limit
}

// Within is the time in which denials are counted.
func (g Guard) Within() time.Duration {
	if g.Window == 0 {
		return DefaultGuardWindow
	}
	return g.Window
}

// News is what is kept together with a change, or with none.
type News struct {
	Entries   []ledger.Entry
	Bulletins []notify.Bulletin
}

// Store keeps states. Every method is one transaction. Several replicas may use one store.
type Store interface {
	// States of resources by name; who has none is not in it. Without names: all.
	States(ctx context.Context, resources ...string) (map[string]State, error)
	// Change loads a state, applies a change and stores it with its news. No other change of the resource comes between.
	// An error of the change is returned as it is and changes nothing.
	Change(ctx context.Context, resource string, change func(*State) (News, error)) (State, error)
	// Record news that change no state.
	Record(ctx context.Context, n News) error
	// Lead tells whether the holder leads until now+ttl: nobody else does, or his time is over.
	Lead(ctx context.Context, holder string, now time.Time, ttl time.Duration) (bool, error)
}

// Switch begins and ends temporary audits in the host cluster.
type Switch interface {
	// Toggle reads the object, compares it with the version (empty: any), calls the check with its spec, and writes. It may
	// call the check again after a conflict. Nil ends the temporary audit. ErrGone, ErrChanged, or the check's own error.
	Toggle(ctx context.Context, object, version string, audit *v1alpha1.TemporaryAudit, check func(context.Context, v1alpha1.ProtectedResourceSpec) error) (*v1alpha1.ProtectedResource, error)
}
