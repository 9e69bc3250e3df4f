package accesspackage

import (
	"context"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// UpdateState is the state of an Update.
type UpdateState string

const (
	// UpdateQueued means that nothing was done yet.
	UpdateQueued UpdateState = "queued"
	// UpdateRunning means that some applications are not done.
	UpdateRunning UpdateState = "running"
	// UpdateCompleted means that every application has its final state.
	UpdateCompleted UpdateState = "completed"
	// UpdateStopped means that the package was archived, or that a later version was published, before every application was done.
	UpdateStopped UpdateState = "stopped"
)

// Update is the work of giving a version of a package to the applications that hold it, which Spec.Holders lists.
type Update struct {
	Package string
	Version int
	State   UpdateState
	Reason  message.Message // why it was stopped
	BegunAt time.Time       // zero while it is queued
	EndedAt time.Time       // zero while it is queued or running
}

// HolderState is the state of one application of an Update. The order of the constants is that in which an application passes them.
type HolderState string

const (
	// HolderPending means that nothing was done about the application.
	HolderPending HolderState = "pending"
	// HolderPlanned means that the plan is stored, and that its revocations are under way.
	HolderPlanned HolderState = "planned"
	// HolderRevoked means that the revocations of the plan have begun, and that the ticket is to be submitted.
	HolderRevoked HolderState = "revoked"
	// HolderWaiting means that the ticket is decided, or written to the members.
	HolderWaiting HolderState = "waiting"
	// HolderDone means that the application has what the version gives it.
	HolderDone HolderState = "done"
	// HolderSkipped means that the application held nothing of the package any more, or that the update was stopped before it.
	HolderSkipped HolderState = "skipped"
	// HolderFailed means that the application was not given all of it.
	HolderFailed HolderState = "failed"
)

// Final reports whether nothing more is done about an application in this state.
func (s HolderState) Final() bool { return s == HolderDone || s == HolderSkipped || s == HolderFailed }

// OpenHolderStates returns the states that are not final.
func OpenHolderStates() []HolderState {
	return []HolderState{HolderPending, HolderPlanned, HolderRevoked, HolderWaiting}
}

// HolderUpdate is the part of an Update about one application.
type HolderUpdate struct {
	Package     string
	Version     int
	Application string // its name
	State       HolderState
	Plan        Plan
	Ticket      int64           // which requests what the application is given; 0 if there is none
	Message     message.Message // what it waits for, or why it was skipped or failed
	UpdatedAt   time.Time
}

// Plan lists the changes of one application's accesses. It is stored before the first change is made, so that it stays the same after a crash.
type Plan struct {
	// Revoke are the accesses that are revoked, as items of tickets.
	Revoke []Access   `json:"revoke,omitempty"`
	Give   []Addition `json:"give,omitempty"`
	// Problem is the reason why a part of Give cannot be requested; zero if all of Give can be requested.
	Problem message.Message `json:"problem,omitzero"`
}

// Access identifies an item of a ticket that gives access.
type Access struct {
	Ticket int64 `json:"ticket"`
	Item   int   `json:"item"`
}

// Addition is access to one resource that a version adds for an application.
type Addition struct {
	Resource string   `json:"resource"` // its name
	Actions  []string `json:"actions"`
	// DurationSeconds is the longest duration; 0 means until revoked.
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
	// Until is the latest end; zero means that there is none.
	Until time.Time `json:"until,omitzero"`
}

// HolderFilter selects applications of one update.
type HolderFilter struct {
	Package string
	Version int
	States  []HolderState // nil selects all
	Limit   int           // 0 means all
}

// UpdateStore stores the updates of the holders of packages: Updates with their HolderUpdates.
type UpdateStore interface {
	// OpenUpdates returns the updates that are queued or running, by package and version, at most limit.
	OpenUpdates(ctx context.Context, limit int) ([]Update, error)
	// UpdatesOf returns the updates of the newest versions of a package, the newest first, at most limit.
	UpdatesOf(ctx context.Context, name string, limit int) ([]Update, error)
	// BeginUpdate makes a queued update running, with a ledger entry. It changes nothing if the update is in another state.
	BeginUpdate(ctx context.Context, u Update, at time.Time) error
	// EndUpdate makes a running update completed or, with a reason, stopped, with a ledger entry that has the number of applications in each
	// final state. It changes nothing if the update has ended, or if it is to be completed and an application has no final state.
	EndUpdate(ctx context.Context, u Update, reason message.Message, at time.Time) error
	// HolderUpdates returns applications of an update, by name.
	HolderUpdates(ctx context.Context, f HolderFilter) ([]HolderUpdate, error)
	// SaveHolder stores what is known of an application if its stored state is from, and reports whether it was. UpdatedAt is not after the
	// present.
	SaveHolder(ctx context.Context, h HolderUpdate, from HolderState) (bool, error)
}

// HeldAccess is one access in force that an application has by a package.
type HeldAccess struct {
	Access
	Resource string
	Actions  []string
	End      time.Time // zero means until revoked
}

// Compare returns what the version changes for an application that has these accesses by the package, as it is shown to approvers.
func (s Spec) Compare(held []HeldAccess) HolderChange {
	kept, lost := s.split(held)
	has := actionsOf(kept)
	out := HolderChange{}
	for _, h := range lost {
		for _, a := range h.Actions {
			switch {
			case !s.has(h.Resource, a):
				add(&out.Loses, h.Resource, a)
			case !slices.Contains(has[h.Resource], a):
				add(&out.Renews, h.Resource, a)
			}
		}
	}
	for name, r := range s.Resources {
		for _, a := range r.Actions {
			if !slices.Contains(has[name], a) && !slices.Contains(out.Renews[name], a) {
				add(&out.Gets, name, a)
			}
		}
	}
	return out
}

// Plan returns what has to be revoked from an application that has these accesses by the package now, and what has to be requested for it. It
// requests the additions that approvers saw, except the actions for which withheld returns true, and the actions of the version that
// the application has only by an access that is revoked because of its other actions. No addition ends later than the latest end of the
// application's accesses. An action of a revoked access does not end later than that access would have ended.
func (s Spec) Plan(shown HolderChange, held []HeldAccess, withheld func(resource, action string) bool, now time.Time) Plan {
	kept, lost := s.split(held)
	has := actionsOf(kept)
	var out Plan
	give := func(resource, action string, until time.Time) {
		for i := range out.Give {
			if g := &out.Give[i]; g.Resource == resource && g.Until.Equal(until) {
				g.Actions = append(g.Actions, action)
				return
			}
		}
		out.Give = append(out.Give, Addition{Resource: resource, Actions: []string{action}, Until: until})
	}
	for _, h := range lost {
		out.Revoke = append(out.Revoke, h.Access)
	}
	last := latestEnd(held)
	for _, name := range s.ResourceNames() {
		for _, a := range s.Resources[name].Actions {
			if slices.Contains(has[name], a) {
				continue
			}
			var had []HeldAccess
			for _, h := range lost {
				if h.Resource == name && slices.Contains(h.Actions, a) {
					had = append(had, h)
				}
			}
			switch {
			case len(had) > 0:
				give(name, a, latestEnd(had))
			case slices.Contains(shown.Gets[name], a) && !withheld(name, a):
				give(name, a, last)
			}
		}
	}
	for i := range out.Give {
		g := &out.Give[i]
		g.DurationSeconds = s.DurationSeconds
		if left := g.Until.Sub(now); !g.Until.IsZero() && (g.DurationSeconds == 0 || left < s.Duration()) {
			g.DurationSeconds = int64(left / time.Second)
		}
	}
	return out
}

// split separates the accesses that a version has as a whole from those that are to be revoked.
func (s Spec) split(held []HeldAccess) (kept, lost []HeldAccess) {
	for _, h := range held {
		if slices.ContainsFunc(h.Actions, func(a string) bool { return !s.has(h.Resource, a) }) {
			lost = append(lost, h)
		} else {
			kept = append(kept, h)
		}
	}
	return kept, lost
}

func (s Spec) has(resource, action string) bool {
	return slices.Contains(s.Resources[resource].Actions, action)
}

func actionsOf(held []HeldAccess) map[string][]string {
	out := map[string][]string{}
	for _, h := range held {
		out[h.Resource] = append(out[h.Resource], h.Actions...)
	}
	return out
}

// latestEnd returns the latest end of accesses; zero if one of them has none.
func latestEnd(held []HeldAccess) time.Time {
	var last time.Time
	for _, h := range held {
		if h.End.IsZero() {
			return time.Time{}
		}
		if h.End.After(last) {
			last = h.End
		}
	}
	return last
}

// add adds an action to a resource, sorted and once.
func add(to *map[string][]string, resource, action string) {
	if *to == nil {
		*to = map[string][]string{}
	}
	list := (*to)[resource]
	if at, found := slices.BinarySearch(list, action); !found {
		(*to)[resource] = slices.Insert(list, at, action)
	}
}
