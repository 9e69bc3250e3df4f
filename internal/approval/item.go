package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// State of an item; a ticket's is the sum.
type State string

const (
	StatePending   State = "pending"   // a step waits for somebody
	StateApproved  State = "approved"  // every step is approved; nothing is written yet
	StateApplying  State = "applying"  // written, or about to be; not every member has it
	StateEffective State = "effective" // read back from every targeted member
	StateRejected  State = "rejected"
	StateTimedOut  State = "timed-out" // nobody decided in time, and the policy says that this denies
	StateWithdrawn State = "withdrawn"
	StateFailed    State = "failed"   // it was refused, or vanished; Message says which
	StateRevoking  State = "revoking" // being taken out of the members
	StateRevoked   State = "revoked"
	StateExpired   State = "expired"
)

// Valid tells whether there is such a state.
func (s State) Valid() bool { return slices.Contains(sumOrder, s) }

// Open tells whether something may still happen to an item without a person.
func (s State) Open() bool { return s.Grants() || s == StateRevoking }

// Grants tells whether something may be in the host cluster because of the state.
func (s State) Grants() bool {
	switch s {
	case StateApproved, StateApplying, StateEffective, StateFailed:
		return true
	}
	return false
}

// Item is one application's access to one resource, one grant to revoke, or one change of an object. Names are those at
// submission: they are what was approved.
type Item struct {
	State State

	// What it is about; which fields, the ticket's kind says.
	Application, ApplicationName string
	Resource, ResourceName       string
	Actions                      []string
	SID                          string
	Change                       *Change
	Target                       *Target       // the grant that is extended or revoked
	Duration                     time.Duration // of the access; 0: until revoked
	ExpiresAt                    time.Time     // zero until approved, and without Duration
	WarnAt                       time.Time     // when to warn of the expiry next; zero: not any more
	GrantedAt                    time.Time     `json:",omitzero"` // when it was approved; of access
	Earlier                      Earlier       `json:",omitzero"`
	Latest                       time.Time     `json:",omitzero"`  // the end is not after this, whenever it is approved; zero: no bound
	Adopt                        bool          `json:",omitempty"` // asked for by the resource's side
	Override                     *Override     `json:",omitempty"` // of a change that closes the resource

	// Who decides.
	Approval  string // the ApprovalPolicy that made the chain; empty: the built-in one
	ManySteps bool   // that policy lets one person fill several steps
	Steps     []Step
	Review    *Step // of break-glass, after the fact
	Shown     Shown

	Message string

	// Where it is in the host cluster: the object, its UID, and the generations that hold it and its removal.
	Policy, PolicyUID                   string
	WrittenGeneration, RevokeGeneration int64
	// Leaving are the members that have something of the object which the change takes out, until each was seen without it.
	Leaving []string `json:",omitempty"`
}

// Earlier is the access that an item continues; zero: it begins anew.
type Earlier struct {
	Since      time.Time     // when the first grant was approved
	GlassSince time.Time     `json:",omitzero"` // the same of the first one by break-glass
	Length     time.Duration // of the first grant; 0: until revoked
}

// Total is how long the access lasts from the first grant on, if an item that is asked for at an instant begins then; 0:
// until revoked.
func (it *Item) Total(asked time.Time) time.Duration {
	if it.Duration == 0 || it.Earlier.Since.IsZero() {
		return it.Duration
	}
	return asked.Add(it.Duration).Sub(it.Earlier.Since)
}

// Target is an item of another ticket.
type Target struct {
	Ticket int64
	Item   int
}

// Change of an object of the host cluster.
type Change struct {
	Kind     string // ProtectedResource, ResourceClass, SubjectClass, ApprovalPolicy
	Name     string
	Verb     string          // create, update, delete
	Base     string          // the resource version that was looked at; empty: there was none
	Before   json.RawMessage `json:",omitempty"` // spec in canonical JSON
	After    json.RawMessage `json:",omitempty"`
	FromMode v1alpha1.Mode
	ToMode   v1alpha1.Mode
}

// Verbs of a Change.
const (
	VerbCreate = "create"
	VerbUpdate = "update"
	VerbDelete = "delete"
)

// Shown is what was shown to those who decide: the lines that the item brings, sorted. Approvals are for its digest.
type Shown struct {
	Digest string
	Lines  []string
}

// NewShown sorts the lines and computes their digest.
func NewShown(lines []string) Shown {
	sorted := slices.Compact(slices.Sorted(slices.Values(lines)))
	sum := sha256.Sum256([]byte(strings.Join(sorted, "\n")))
	return Shown{Digest: hex.EncodeToString(sum[:]), Lines: sorted}
}

const (
	// denies begins a compiled line that refuses access.
	denies = "deny "
	// noLonger begins a difference that names such a line.
	noLonger = "no longer: "
)

// Grown are the differences by which now lets somebody do what nobody was shown: lines that are new, and denies that are
// gone. A line that only takes access away is none.
func (s Shown) Grown(now Shown) []string {
	var out []string
	for _, l := range now.Lines {
		if !s.has(l) && !strings.HasPrefix(l, denies) && !strings.HasPrefix(l, takesAway) && !strings.HasPrefix(l, LeftOut) {
			out = append(out, l)
		}
	}
	for _, l := range s.Lines {
		if strings.HasPrefix(l, denies) && !now.has(l) {
			out = append(out, noLonger+l)
		}
	}
	return out
}

func (s Shown) has(line string) bool {
	_, ok := slices.BinarySearch(s.Lines, line)
	return ok
}

// Current is the step that waits; -1: none.
func (it *Item) Current() int {
	return slices.IndexFunc(it.Steps, func(s Step) bool { return s.State == StepCurrent })
}

// Reviewing tells that the item is in force by break-glass and nobody has reviewed it.
func (it *Item) Reviewing() bool { return it.Review != nil && it.Review.State == StepCurrent }

// waiting is the step that waits for a person: of the chain, or the review; nil: none.
func (it *Item) waiting() *Step {
	if i := it.Current(); i >= 0 && it.State == StatePending {
		return &it.Steps[i]
	}
	if it.Reviewing() {
		return it.Review
	}
	return nil
}

// Due is the next instant at which time alone does something to the item; zero: never.
func (it *Item) Due() time.Time {
	var due time.Time
	sooner := func(at time.Time) {
		if !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	if s := it.waiting(); s != nil {
		sooner(s.Deadline)
	}
	if it.State.Grants() {
		sooner(it.ExpiresAt)
		sooner(it.WarnAt)
	}
	return due
}

// Role is how a person is concerned by an item.
type Role string

const (
	RoleWaits   Role = "waits"   // the item waits for this person's decision or review
	RoleNamed   Role = "named"   // is an approver or a reviewer of any of its steps, now or by escalation
	RoleDecided Role = "decided" // has decided or reviewed, himself or through a delegate
)

// Concern is one person's relation to one item.
type Concern struct {
	Item   int
	Person string
	Role   Role
}

// Concerns of everybody but the requester, each once; what lists by person are made of.
func (t *Ticket) Concerns() []Concern {
	seen := map[Concern]bool{}
	var out []Concern
	add := func(c Concern) {
		if c.Person != "" && c.Person != t.Requester && !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	for i := range t.Items {
		it := &t.Items[i]
		if s := it.waiting(); s != nil {
			for _, p := range s.Approvers {
				if it.mayVote(s, p, "") {
					add(Concern{i, p, RoleWaits})
				}
			}
		}
		for _, s := range it.allSteps() {
			for _, p := range s.Approvers {
				add(Concern{i, p, RoleNamed})
			}
			for _, p := range s.EscalateTo {
				add(Concern{i, p, RoleNamed})
			}
			for _, v := range s.Votes {
				add(Concern{i, v.Person, RoleDecided})
				add(Concern{i, v.OnBehalfOf, RoleDecided})
			}
		}
	}
	return out
}

func (it *Item) allSteps() []Step {
	if it.Review == nil {
		return it.Steps
	}
	return append(slices.Clone(it.Steps), *it.Review)
}

// Claim is one (application, resource, action) that only one ticket under way may be about. Of a change of an object
// the resource is its kind and name; of a revocation, its target.
type Claim struct{ Application, Resource, Action string }

// Claims that the ticket's items hold in their present states.
func (t *Ticket) Claims() []Claim {
	var out []Claim
	for i := range t.Items {
		switch t.Items[i].State {
		case StatePending, StateApproved, StateApplying:
			out = append(out, t.claims(i)...)
		}
	}
	return out
}

func (t *Ticket) claims(i int) []Claim {
	it := t.Items[i]
	switch {
	case it.Change != nil:
		return []Claim{{"", it.Change.Kind + "/" + it.Change.Name, "change"}}
	case t.Kind == KindRevoke && it.Target != nil:
		return []Claim{{"", SID(it.Target.Ticket, it.Target.Item), "revoke"}}
	}
	out := make([]Claim, 0, len(it.Actions))
	for _, a := range it.Actions {
		out = append(out, Claim{it.Application, it.Resource, a})
	}
	return out
}
