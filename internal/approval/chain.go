package approval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
)

// maxCombinations of alternatives that are tried for a chain. Each alternative is a leader further up, or the security
// team in an owner's place, so more only means more of the same.
const maxCombinations = 4096

// about is whom and what a chain is resolved for.
type about struct {
	c           *catalog.Catalog
	requester   string
	application catalog.Entity
	resource    catalog.Entity
}

// alternative is one way to fill a step.
type alternative struct {
	people []string
	from   []v1alpha1.Approver
	note   string
}

// wanted is a step before its people are chosen.
type wanted struct {
	step         Step // all but Approvers, From and Note
	all          bool // the quorum is everybody
	note         string
	alternatives []alternative
}

// may tells who can be an approver at all: nobody for himself, and auditors decide nothing.
func (a about) may(person string) bool {
	return person != a.requester && !a.c.InGroup(person, catalog.GroupAuditors)
}

// people whom approvers name and who may decide, sorted; of the leaders only the one of a level.
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

// leaders who may decide, nearest first.
func (a about) leaders() []string {
	return slices.DeleteFunc(a.c.Leaders(a.requester), func(p string) bool { return !a.may(p) })
}

// waysToFill are the alternatives of approvers: a leader who is needed elsewhere is replaced by his leader, and an owner
// who asks himself, or is needed elsewhere, by the security team. Alternatives without people are left out.
func (a about) waysToFill(from []v1alpha1.Approver) []alternative {
	var out []alternative
	add := func(people []string, from []v1alpha1.Approver, note string) {
		if len(people) > 0 && !slices.ContainsFunc(out, func(x alternative) bool { return slices.Equal(x.people, people) }) {
			out = append(out, alternative{people, from, note})
		}
	}
	owns := slices.ContainsFunc(from, func(f v1alpha1.Approver) bool { return f == FromResourceOwner || f == FromApplicationOwner })
	var owners []string // whom the owner steps would name, the requester among them
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
		if note == "" && asksHimself {
			note = "The requester owns the resource, so another owner decides."
		}
		add(a.people(from, level), from, note)
	}
	if owns && len(owners) > 0 {
		note := "The owner is needed for another step, so the security team decides."
		if asksHimself && len(out) == 0 {
			note = "The requester owns the resource, so the security team decides."
		}
		with := append(slices.Clone(from), fromSecurity)
		add(a.people([]v1alpha1.Approver{fromSecurity}, 0), with, note)
	}
	return out
}

func (a about) leaderNote(from []v1alpha1.Approver, level int) string {
	if !slices.Contains(from, FromLeader) {
		return ""
	}
	usable := a.leaders()
	if level > 0 {
		return fmt.Sprintf("%s is needed for another step, so one up.", displayName(a.c, usable[level-1]))
	}
	if all := a.c.Leaders(a.requester); len(all) > 0 && len(usable) > 0 && all[0] != usable[0] {
		return fmt.Sprintf("%s cannot decide requests, so one up.", displayName(a.c, all[0]))
	}
	return ""
}

// choose takes the first combination of alternatives in which every step gets its approvals from people of its own;
// earlier steps change last. With manySteps a person may fill several.
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

// combine makes the chain of one combination; false: a quorum is larger than its people are many.
func combine(steps []wanted, pick []int) ([]Step, bool) {
	chain := make([]Step, len(steps))
	for i, w := range steps {
		alt := w.alternatives[pick[i]]
		s := w.step
		s.Approvers, s.From, s.Note = slices.Clone(alt.people), alt.from, cmp.Or(alt.note, w.note)
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

// next counts the combinations; the first step's alternatives change fastest, so that a leader goes one up before
// anybody stands in for an owner.
func next(pick []int, steps []wanted) bool {
	for i := range pick {
		if pick[i]++; pick[i] < len(steps[i].alternatives) {
			return true
		}
		pick[i] = 0
	}
	return false
}

// distinct tells whether every step can get its approvals from people of its own. A step that approves by itself needs
// nobody.
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
