package approval

import (
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// StepState of one step of the chain.
type StepState string

const (
	StepWaiting  StepState = "waiting"
	StepCurrent  StepState = "current"
	StepApproved StepState = "approved"
	StepRejected StepState = "rejected"
	StepTimedOut StepState = "timed-out"
	StepSkipped  StepState = "skipped" // the item ended before it came to this step
)

// Step is one decision of the chain. Approvers are person ids, resolved at submission; From is where they came from,
// so that it can be asked again when somebody decides.
type Step struct {
	Name      string
	State     StepState
	Approvers []string
	From      []v1alpha1.Approver
	Quorum    int // approvals needed, at least 1
	Votes     []Vote
	Note      string
	Auto      bool // approved by the policy's condition, not by a person

	Timeout      time.Duration // 0: it waits for ever
	Deadline     time.Time     // zero until the step is current
	OnTimeout    v1alpha1.TimeoutAction
	EscalateTo   []string
	EscalateFrom []v1alpha1.Approver
	Escalated    bool
}

// Vote is one person's decision in a step. A delegate names for whom he decided; both have filled the step.
type Vote struct {
	Person, OnBehalfOf string
	Approve            bool
	At                 time.Time
	Comment            string
}

// Left is how many approvals the step still needs.
func (s *Step) Left() int {
	n := max(s.Quorum, 1)
	for _, v := range s.Votes {
		if v.Approve {
			n--
		}
	}
	return max(n, 0)
}

// has tells whether a person has decided in the step, himself or through a delegate.
func (s *Step) has(person string) bool {
	return slices.ContainsFunc(s.Votes, func(v Vote) bool { return v.Person == person || v.OnBehalfOf == person })
}

// roles from which the step's approvers come now.
func (s *Step) roles() []v1alpha1.Approver {
	if s.Escalated {
		return append(slices.Clone(s.From), s.EscalateFrom...)
	}
	return s.From
}

// mayVote tells whether a person may decide a step, as far as the chain knows: he, or for whom he stands, is one of
// its approvers, and neither has filled a step.
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

// Able are the approvers of a step that has not been decided but for those who filled another one.
func (it *Item) Able(s *Step) []string {
	return slices.DeleteFunc(slices.Clone(s.Approvers), func(person string) bool {
		_, filled := it.filled(s, person)
		return filled && !s.has(person)
	})
}

// filled names the step that a person has filled, so that he cannot fill s.
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

// strands names a later need that could not be met any more if these people filled the step that waits.
func (it *Item) strands(people ...string) (string, bool) {
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
