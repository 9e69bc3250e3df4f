package approval

import (
	"cmp"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
)

// maxCombinations bounds the combinations of alternatives that are tried for a chain. An alternative is a leader further
// up, or the security team in place of an owner.
const maxCombinations = 4096

// about is the request that a chain is resolved for.
type about struct {
	c            *catalog.Catalog
	requester    string
	author       string // the person who wrote the request of a program, if it is known
	application  catalog.Entity
	resource     catalog.Entity
	holderUpdate bool            // the application is given a version of a package that it holds
	reached      *Reached        // the resources whose owners decide about a registration, a package or a class; nil for other requests
	scope        *StatementScope // of a statement, or of the end of one; nil for other requests
	timeouts     BuiltinTimeout  // of the built-in chain
	// organizations contains the organizations of the host cluster; nil if no approval policy is evaluated.
	organizations *organization.Index
	// delegates decide a change of an organization's object in place of the security team; see delegates.
	delegates []v1alpha1.Approver
	// instead is the reason why the security team decides in the place of owners of resources that a change of a class affects; zero if it does not.
	instead message.Message
	// added are the steps of the approval policies of organizations.
	added organizationRules
}

// alternative is one possible set of approvers of a step.
type alternative struct {
	people []string
	from   []v1alpha1.Approver
	note   message.Message
	// standIn reports whether the security team decides in the place of owners.
	standIn bool
}

// wanted is a step for which no alternative is chosen yet.
type wanted struct {
	step         Step // without Approvers, From and Note
	all          bool // every approver has to agree
	note         message.Message
	alternatives []alternative
	owners       bool // only the resource's owners decide it
}

// may reports whether a person can be an approver: requesters and auditors cannot.
func (a about) may(person string) bool {
	return person != a.requester && (a.author == "" || person != a.author) && !a.c.InGroup(person, catalog.GroupAuditors)
}

// people returns the people whom approver expressions select and who may decide, sorted. Of the leaders it returns only
// the one of a level, 0 being the nearest.
func (a about) people(from []v1alpha1.Approver, level int) []string {
	var out []string
	for _, f := range from {
		if kind, _ := splitApprover(f); kind == FromLeader {
			if l := a.leaders(); level < len(l) {
				out = append(out, l[level])
			}
			continue
		}
		out = append(out, approversOf(a.c, f, a.requester, a.application, a.resource)...)
	}
	out = slices.DeleteFunc(out, func(p string) bool { return !a.may(p) })
	slices.Sort(out)
	return slices.Compact(out)
}

// leaders returns the requester's leaders who may decide, nearest first.
func (a about) leaders() []string {
	return slices.DeleteFunc(a.c.Leaders(a.requester), func(p string) bool { return !a.may(p) })
}

// waysToFill returns the alternatives of a step with these approvers: a leader who is needed for another step is replaced
// by the next leader up, and an owner who is the requester, or is needed for another step, by the security team.
// Alternatives without people are left out.
func (a about) waysToFill(from []v1alpha1.Approver) []alternative {
	from = a.sponsors(from)
	var out []alternative
	add := func(people []string, from []v1alpha1.Approver, note message.Message) {
		if len(people) > 0 && !slices.ContainsFunc(out, func(x alternative) bool { return slices.Equal(x.people, people) }) {
			out = append(out, alternative{people: people, from: from, note: note})
		}
	}
	owns := slices.ContainsFunc(from, func(f v1alpha1.Approver) bool { return f == FromResourceOwner || f == FromApplicationOwner })
	var owners []string // the owners, including the requester
	for _, f := range from {
		if f == FromResourceOwner || f == FromApplicationOwner {
			owners = append(owners, approversOf(a.c, f, a.requester, a.application, a.resource)...)
		}
	}
	asksHimself := slices.Contains(owners, a.requester)
	levels := 1
	if slices.Contains(from, FromLeader) {
		levels = max(1, len(a.leaders()))
	}
	for level := range levels {
		note := a.leaderNote(from, level)
		if note.IsZero() && asksHimself {
			note = message.StepNoteRequesterOwns()
		}
		add(a.people(from, level), from, note)
	}
	if owns && len(owners) > 0 {
		note := message.StepNoteOwnerNeededElsewhere()
		if asksHimself && len(out) == 0 {
			note = message.StepNoteRequesterIsOwner()
		}
		with := append(slices.Clone(from), fromSecurity)
		before := len(out)
		add(a.people([]v1alpha1.Approver{fromSecurity}, 0), with, note)
		if len(out) > before {
			out[before].standIn = true
		}
	}
	return out
}

func (a about) leaderNote(from []v1alpha1.Approver, level int) message.Message {
	if !slices.Contains(from, FromLeader) {
		return message.Message{}
	}
	usable := a.leaders()
	if level > 0 {
		return message.StepNoteLeaderNeededElsewhere(displayName(a.c, usable[level-1]))
	}
	if all := a.c.Leaders(a.requester); len(all) > 0 && len(usable) > 0 && all[0] != usable[0] {
		return message.StepNoteLeaderCannotDecide(displayName(a.c, all[0]))
	}
	return message.Message{}
}

// choose returns the chain of the first combination of alternatives in which every step gets its approvals from different
// people. With manySteps one person may fill several steps.
func choose(steps []wanted, manySteps bool) ([]Step, bool) {
	pick := make([]int, len(steps))
	for range maxCombinations {
		chain, ok := combine(steps, pick)
		if ok && (manySteps || distinct(chain)) {
			return chain, true
		}
		if !next(pick, steps) {
			return nil, false
		}
	}
	return nil, false
}

// combine returns the chain of one combination; false if a step has fewer people than its quorum.
func combine(steps []wanted, pick []int) ([]Step, bool) {
	chain := make([]Step, len(steps))
	for i, w := range steps {
		alt := w.alternatives[pick[i]]
		s := w.step
		s.Approvers, s.From, s.Note = slices.Clone(alt.people), alt.from, cmp.Or(alt.note, w.note)
		if alt.standIn && !s.OnCall.IsZero() { // the schedule is the owners', and may name nobody of the security team
			s.OnCall.Approvers = true
		}
		if w.all {
			s.Quorum = len(alt.people)
		}
		if s.Quorum > len(alt.people) {
			return nil, false
		}
		chain[i] = s
	}
	return chain, true
}

// next advances pick to the next combination; false after the last. The alternatives of the first step change fastest, so
// that a higher leader is tried before a person who replaces an owner.
func next(pick []int, steps []wanted) bool {
	for i := range pick {
		if pick[i]++; pick[i] < len(steps[i].alternatives) {
			return true
		}
		pick[i] = 0
	}
	return false
}

// distinct reports whether every step can get its approvals from different people. An automatic step needs no person.
func distinct(steps []Step) bool {
	needs := make([]need, 0, len(steps))
	for _, s := range steps {
		if !s.Auto {
			needs = append(needs, need{name: s.Name, people: s.Approvers, count: s.Quorum})
		}
	}
	_, ok := fill(needs, map[string]bool{})
	return ok
}

func displayName(c *catalog.Catalog, id string) string {
	if p, ok := c.Person(id); ok {
		return p.DisplayName
	}
	return id
}
