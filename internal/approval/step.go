package approval

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// StepState is the state of a step of a chain.
type StepState string

const (
	// StepWaiting is the state of a step whose predecessors are not all approved.
	StepWaiting StepState = "waiting"
	// StepCurrent is the state of the step that is to be decided now.
	StepCurrent StepState = "current"
	// StepApproved is the state of a step with enough approvals, or whose condition is true.
	StepApproved StepState = "approved"
	// StepRejected is the state of a step that an approver rejected.
	StepRejected StepState = "rejected"
	// StepTimedOut is the state of a step that was not decided in time and whose policy denies in this case.
	StepTimedOut StepState = "timed-out"
	// StepSkipped is the state of a step that was not decided, because the item ended before.
	StepSkipped StepState = "skipped"
)

// Step is one decision of a chain. Approvers are ids of people, resolved at submission. From are the expressions that
// selected them, which are evaluated again when somebody decides.
type Step struct {
	Name      string
	State     StepState
	Approvers []string
	From      []v1alpha1.Approver
	Quorum    int // approvals needed, at least 1
	Votes     []Vote
	Note      message.Message // why these approvers; zero if they are the usual ones
	Auto      bool            // approved by the policy's condition, not by a person

	Timeout      time.Duration // 0 means that the step waits without limit
	Deadline     time.Time     // zero until the step is current
	OnTimeout    v1alpha1.TimeoutAction
	EscalateTo   []string
	EscalateFrom []v1alpha1.Approver
	Escalated    bool
	Added        []string `json:",omitempty"` // the Approvers whom the escalation added

	Remind    time.Duration `json:",omitzero"` // first interval of the reminders; 0 means none, except by OnTimeout
	RemindAt  time.Time     `json:",omitzero"` // zero until the step is current, and after the last reminder
	Reminders int           `json:",omitzero"` // since the step is current, or since its escalation

	OnCall OnCallLimit `json:",omitzero"` // who of the approvers may decide; zero if all may
	// MissingSince is since when nobody can decide the step because its on-call schedule does not exist any more; zero while it exists.
	MissingSince time.Time `json:",omitzero"`
	MissingSaid  bool      `json:",omitzero"` // an EventScheduleMissing was recorded
}

// Vote is one person's decision in a step. If a delegate decided, OnBehalfOf names the represented person, and both have
// filled the step.
type Vote struct {
	Person, OnBehalfOf string
	Approve            bool
	At                 time.Time
	Comment            string
	Through            string `json:",omitempty"` // as in Actor
}

// StepName returns the name of a step as a message. The steps of the built-in chain have translations; the names that approval policies
// give to theirs are the same in every language.
func StepName(name string) message.Message {
	switch name {
	case StepLeader:
		return message.StepNameLeader()
	case StepOwner:
		return message.StepNameOwner()
	case StepApplication:
		return message.StepNameApplication()
	case StepPublisher:
		return message.StepNamePublisher()
	case StepSecurity:
		return message.StepNameSecurity()
	case StepAdministrator:
		return message.StepNameAdministrator()
	case StepReview:
		return message.StepNameReview()
	}
	if resource, ok := strings.CutPrefix(name, StepOwner+":"); ok && resource != "" {
		return message.StepNameOwnerOf(resource)
	}
	return message.Verbatim(name)
}

// Left returns the number of approvals that the step still needs.
func (s *Step) Left() int {
	n := max(s.Quorum, 1)
	for _, v := range s.Votes {
		if v.Approve {
			n--
		}
	}
	return max(n, 0)
}

// restart resets the step for a new decision: without votes, without an automatic approval, which was given for another request,
// and without the people whom an escalation added.
func (s *Step) restart() {
	s.State, s.Votes, s.Auto = StepWaiting, nil, false
	s.Approvers = slices.DeleteFunc(s.Approvers, func(p string) bool { return slices.Contains(s.Added, p) })
	s.Escalated, s.Added = false, nil
	s.MissingSince, s.MissingSaid = time.Time{}, false
	s.stop()
}

// has reports whether a person has decided in the step, also through a delegate.
func (s *Step) has(person string) bool {
	return slices.ContainsFunc(s.Votes, func(v Vote) bool { return v.Person == person || v.OnBehalfOf == person })
}

// roles returns the approver expressions of the step, after an escalation with those of the escalation.
func (s *Step) roles() []v1alpha1.Approver {
	if s.Escalated {
		return append(slices.Clone(s.From), s.EscalateFrom...)
	}
	return s.From
}

// mayVote reports whether the chain permits a person to decide a step: the person, or the one they represent, is one of
// its approvers, and neither has filled another step.
func (it *Item) mayVote(s *Step, person, onBehalfOf string) bool {
	who := person
	if onBehalfOf != "" {
		who = onBehalfOf
	}
	if !slices.Contains(s.Approvers, who) {
		return false
	}
	_, filled := it.filled(s, person)
	if onBehalfOf != "" && !filled {
		_, filled = it.filled(s, onBehalfOf)
	}
	return !filled
}

// RemainingApprovers returns the approvers of an undecided step who may still decide it: those who have not filled another step.
func (it *Item) RemainingApprovers(s *Step) []string {
	return slices.DeleteFunc(slices.Clone(s.Approvers), func(person string) bool {
		_, filled := it.filled(s, person)
		return filled && !s.has(person)
	})
}

// filled returns the name of the step that a person has filled and because of which they cannot fill s.
func (it *Item) filled(s *Step, person string) (string, bool) {
	if s == it.Review || it.ManySteps {
		return s.Name, s.has(person)
	}
	for i := range it.Steps {
		if it.Steps[i].has(person) {
			return it.Steps[i].Name, true
		}
	}
	return "", false
}

// blockedStep returns the name of a later step that could not get its approvals any more if these people filled the waiting
// step.
func (it *Item) blockedStep(people ...string) (string, bool) {
	if it.ManySteps {
		return "", false
	}
	used := map[string]bool{}
	for _, p := range people {
		used[p] = true
	}
	var needs []need
	for i := range it.Steps {
		s := &it.Steps[i]
		for _, v := range s.Votes {
			used[v.Person], used[v.OnBehalfOf] = true, true
		}
		left := s.Left()
		if s.State == StepCurrent {
			left--
		}
		if s.State == StepCurrent || s.State == StepWaiting && !s.Auto {
			needs = append(needs, need{name: s.Name, people: s.Approvers, count: left})
		}
	}
	unmet, ok := fill(needs, used)
	if ok {
		return "", false
	}
	for _, n := range needs {
		if n.count > 0 && slices.ContainsFunc(people, func(p string) bool { return slices.Contains(n.people, p) }) {
			return n.name, true
		}
	}
	return unmet, true
}
