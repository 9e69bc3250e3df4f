package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// State is the state of an item. A ticket's state is computed from those of its items.
type State string

const (
	// StatePending means that a step waits for a decision.
	StatePending State = "pending"
	// StateApproved means that every step is approved, and nothing is written yet.
	StateApproved State = "approved"
	// StateApplying means that the change is written, or about to be, and that not every member has it.
	StateApplying State = "applying"
	// StateEffective means that the change was read back from every targeted member.
	StateEffective State = "effective"
	// StateRejected means that an approver rejected the item.
	StateRejected State = "rejected"
	// StateTimedOut means that the step was not decided in time, and that the approval policy denies in this case.
	StateTimedOut State = "timed-out"
	// StateWithdrawn means that the requester, or the portal, ended the request before it was decided.
	StateWithdrawn State = "withdrawn"
	// StateFailed means that the change was refused, vanished or was altered. Item.Message says which.
	StateFailed State = "failed"
	// StateRevoking means that the grant is being removed from the members.
	StateRevoking State = "revoking"
	// StateRevoked means that a person ended the grant, and that every member was read without it.
	StateRevoked State = "revoked"
	// StateExpired means that the time of the grant is over, and that every member was read without it.
	StateExpired State = "expired"
)

// Valid reports whether the state is one of the constants.
func (s State) Valid() bool { return slices.Contains(sumOrder, s) }

// InProgress reports whether the host cluster or a member may still have, or lose, something because of the item.
func (s State) InProgress() bool { return s.MayBeOnHost() || s == StateRevoking }

// MayBeOnHost reports whether the host cluster may have something of an item in this state.
func (s State) MayBeOnHost() bool {
	switch s {
	case StateApproved, StateApplying, StateEffective, StateFailed:
		return true
	}
	return false
}

// Item is one application's access to one resource, one grant to revoke, or one change of an object. The names do not change
// after the submission, because approvers approved these names.
type Item struct {
	State State

	// The following fields are the subject of the item. The kind of the ticket determines which of them are set.
	Application, ApplicationName string
	Resource, ResourceName       string
	Actions                      []string
	SID                          string
	Change                       *Change
	Target                       *Target               // the grant that is extended or revoked
	Duration                     time.Duration         // of the access; 0 means until revoked
	Hours                        *v1alpha1.WeeklyHours `json:",omitempty"` // of the access; nil means at any hour
	ExpiresAt                    time.Time             // zero before the approval, and without a Duration
	WarnAt                       time.Time             // when to warn of the expiry next; zero if there are no more warnings
	ShortenTo                    time.Time             `json:",omitzero"` // an earlier end that the statement does not have yet; see End
	ShortenedAt                  time.Time             `json:",omitzero"` // when the access was shortened last
	GrantedAt                    time.Time             `json:",omitzero"` // when the access was approved
	Earlier                      Earlier               `json:",omitzero"`
	Latest                       time.Time             `json:",omitzero"`  // the latest possible end, whenever it is approved; zero means no bound
	Adopt                        bool                  `json:",omitempty"` // requested by an owner of the resource or the security team
	Override                     *Override             `json:",omitempty"` // only of a change that closes the resource
	// Package is the version of an access package that the item is a part of; nil if it was not requested as one.
	Package *PackageRef `json:",omitempty"`
	// Scope contains the subjects and resources of a statement that one application and one resource cannot express; nil for other items.
	Scope *StatementScope `json:",omitempty"`
	// Author is the person who wrote the request of a program, if it is known. They do not decide, as if they were the requester.
	Author string `json:",omitempty"`

	// The following fields determine who decides.
	Approval  string // the ApprovalPolicy of the chain; empty for the built-in chain
	ManySteps bool   // one person may fill several steps
	Steps     []Step
	Review    *Step // of break-glass, after it took effect
	Shown     Shown

	Message message.Message // what the item waits for, or why it failed

	// The object in the host cluster, its UID, and the generations that contain the item and its removal.
	Policy, PolicyUID                   string
	WrittenGeneration, RevokeGeneration int64
	// Leaving are the members from which the change removes the object, until each was seen without it.
	Leaving []string `json:",omitempty"`
}

// Earlier is the access that an item continues; zero if it is the first grant.
type Earlier struct {
	Since      time.Time     // when the first grant was approved
	GlassSince time.Time     `json:",omitzero"` // when the first break-glass grant began
	Length     time.Duration // of the first grant; 0 means until revoked
	// WholeSince is since when grants have given all of the item's actions without a gap, as far as it was known at the
	// request; zero if no grant in force did. Since also counts grants of a part of the actions.
	WholeSince time.Time `json:",omitzero"`
}

// Total returns the duration of the access from the first grant on, if the item begins when it is requested; 0: until
// revoked.
func (it *Item) Total(requestedAt time.Time) time.Duration {
	if it.Duration == 0 || it.Earlier.Since.IsZero() {
		return it.Duration
	}
	return requestedAt.Add(it.Duration).Sub(it.Earlier.Since)
}

// Target identifies an item of another ticket.
type Target struct {
	Ticket int64
	Item   int
}

// Change is a change of an object of the host cluster, or of an access package.
type Change struct {
	Kind     string // ProtectedResource, ResourceClass, SubjectClass, ApprovalPolicy, ExternalWorkload, AccessPackage
	Name     string
	Verb     string          // create, update, delete
	Base     string          // the resource version that the change is based on; empty if the object did not exist
	Before   json.RawMessage `json:",omitempty"` // spec in canonical JSON
	After    json.RawMessage `json:",omitempty"`
	FromMode v1alpha1.Mode
	ToMode   v1alpha1.Mode
	// Description of an ExternalWorkload; it is no part of the spec.
	Description string `json:",omitempty"`
}

// Values of Change.Verb.
const (
	// VerbCreate creates the object.
	VerbCreate = "create"
	// VerbUpdate replaces the spec of the object.
	VerbUpdate = "update"
	// VerbDelete deletes the object.
	VerbDelete = "delete"
)

// Shown are the lines that describe to the approvers what the item grants, sorted. Approvals are bound to its digest.
type Shown struct {
	Digest string
	Lines  []string
}

// NewShown returns the sorted lines with their digest.
func NewShown(lines []string) Shown {
	sorted := slices.Compact(slices.Sorted(slices.Values(lines)))
	sum := sha256.Sum256([]byte(strings.Join(sorted, "\n")))
	return Shown{Digest: hex.EncodeToString(sum[:]), Lines: sorted}
}

// Grown returns the differences by which now grants more than s: lines that are new, and denies that are gone. Lines that
// only take access away do not count.
func (s Shown) Grown(now Shown) []string {
	var out []string
	for _, l := range now.Lines {
		if !s.has(l) && !strings.HasPrefix(l, LineDeny) && !strings.HasPrefix(l, lineTakesAway) && !strings.HasPrefix(l, LineRefused) {
			out = append(out, l)
		}
	}
	for _, l := range s.Lines {
		if strings.HasPrefix(l, LineDeny) && !now.has(l) {
			out = append(out, lineNoLonger+l)
		}
	}
	return out
}

func (s Shown) has(line string) bool {
	_, ok := slices.BinarySearch(s.Lines, line)
	return ok
}

// Current returns the position of the waiting step; -1 if there is none.
func (it *Item) Current() int {
	return slices.IndexFunc(it.Steps, func(s Step) bool { return s.State == StepCurrent })
}

// Reviewing reports whether the item is in force by break-glass and not reviewed yet.
func (it *Item) Reviewing() bool { return it.Review != nil && it.Review.State == StepCurrent }

// waiting returns the waiting step of the chain, or the waiting review; nil if there is none.
func (it *Item) waiting() *Step {
	if i := it.Current(); i >= 0 && it.State == StatePending {
		return &it.Steps[i]
	}
	if it.Reviewing() {
		return it.Review
	}
	return nil
}

// End returns when the access ends: at ExpiresAt, or before it at ShortenTo; zero if it has no end.
func (it *Item) End() time.Time {
	if !it.ShortenTo.IsZero() && (it.ExpiresAt.IsZero() || it.ShortenTo.Before(it.ExpiresAt)) {
		return it.ShortenTo
	}
	return it.ExpiresAt
}

// Due returns the next instant at which the item changes because of the time; zero if there is none.
func (it *Item) Due() time.Time {
	var due time.Time
	sooner := func(at time.Time) {
		if !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	if s := it.waiting(); s != nil {
		sooner(s.Deadline)
		sooner(s.RemindAt)
	}
	if it.State.MayBeOnHost() {
		sooner(it.End())
		sooner(it.WarnAt)
	}
	return due
}

// Role is the relation of a person to an item.
type Role string

const (
	// RoleWaits means that the item waits for this person's decision or review.
	RoleWaits Role = "waits"
	// RoleNamed means that the person is an approver or reviewer in a step of the item. People to whom a step may be escalated
	// are approvers from the escalation on, not before it.
	RoleNamed Role = "named"
	// RoleDecided means that the person has decided or reviewed the item, perhaps through a delegate.
	RoleDecided Role = "decided"
)

// Concern is one person's relation to one item.
type Concern struct {
	Item   int
	Person string
	Role   Role
}

// Concerns returns the relations of everybody except the requester, each once. Stores build lists by person from them.
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

// Claim is a combination of application, resource and action that only one ticket under way may be about. For a change of
// an object the resource is its kind and name; for a revocation it is its target.
type Claim struct{ Application, Resource, Action string }

// Claims returns the claims that the ticket's items have in their current states.
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

// RevocationClaim returns the claim of a ticket that requests the revocation of a grant.
func RevocationClaim(of Target) Claim {
	return Claim{Resource: SID(of.Ticket, of.Item), Action: "revoke"}
}

func (t *Ticket) claims(i int) []Claim {
	it := t.Items[i]
	switch {
	case it.Change != nil:
		return []Claim{{"", it.Change.Kind + "/" + it.Change.Name, "change"}}
	case t.Kind == KindRevoke && it.Target != nil:
		return []Claim{RevocationClaim(*it.Target)}
	}
	if it.Scope != nil {
		return []Claim{{"", "statement/" + it.Scope.digest(it.Actions), "statement"}}
	}
	out := make([]Claim, 0, len(it.Actions))
	for _, a := range it.Actions {
		out = append(out, Claim{it.Application, it.Resource, a})
	}
	return out
}
