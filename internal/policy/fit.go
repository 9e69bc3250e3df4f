package policy

import (
	"cmp"
	"slices"
	"sort"

	"github.com/acp-io/acp/api/v1alpha1"
)

const (
	// MapEntries is what the policy map of a workload holds by default.
	MapEntries = 16384
	// warnEntries is where a unit gets a warning, fullEntries what allows may fill.
	warnEntries = MapEntries / 2
	fullEntries = MapEntries / 10 * 9
)

// entries estimates what a rule needs in a workload's policy map: one entry for every peer identity and masked range
// of ports. A subject is taken to have one identity in each member.
func (s *Snapshot) entries(r *Rule) int {
	peers := len(r.Prefixes)
	if r.Anyone {
		peers = 1
		if r.Effect == Deny {
			// Spelled out, because a deny of everything would also cut the node's own probes.
			peers += len(s.known) * s.members
		}
	}
	for _, sel := range r.Subjects {
		n := len(sel.Values)
		if sel.Any {
			for _, c := range s.subjects.all {
				if string(c.object.Spec.LabelKey) == sel.LabelKey {
					n += len(s.knownUnder(c.stem))
				}
			}
		}
		peers += max(1, n) * s.members
	}
	if len(r.External)+len(r.ExternalClasses) > 0 {
		for _, g := range s.groups() {
			if slices.Contains(r.ExternalClasses, g.ClassID) || slices.Contains(r.External, g.ID) {
				peers += len(g.Prefixes) + len(g.Contested)
			}
		}
	}
	return peers * maskedRanges(r.Ports)
}

// fit estimates the entries of the unit. While they are too many it takes out allows, the youngest first, so that what
// works goes on working and growth is what is refused.
func (s *Snapshot) fit(u *Unit, c *resourceClass, held []*statement, inherited int) []Refusal {
	count := func(rules []Rule) int {
		n := inherited
		for i := range rules {
			n += s.entries(&rules[i])
		}
		if u.OtherPorts == v1alpha1.OtherPortsAllow {
			n += maskedRanges(u.OpenPorts)
		}
		return n
	}
	u.Entries = count(u.Rules)
	var refused []Refusal
	if u.Entries > fullEntries {
		allows, kept := []*statement(nil), []*statement(nil)
		for _, st := range held {
			if st.effect == Allow {
				allows = append(allows, st)
			} else {
				kept = append(kept, st)
			}
		}
		slices.SortStableFunc(allows, byStatementAge)
		// How many fit: more allows never need fewer entries.
		fits := sort.Search(len(allows), func(n int) bool {
			return count(s.rulesOf(c, slices.Concat(kept, allows[:n+1]))) > fullEntries
		})
		for _, st := range allows[fits:] {
			refused = append(refused, Refusal{Ref: st.ref, Resource: u.Resource, Reason: v1alpha1.RefusedTooMany,
				Message: "the rules would need more policy-map entries than a workload has room for: grant fewer subjects, or a whole class"})
		}
		u.Rules = s.rulesOf(c, slices.Concat(kept, allows[:fits]))
		u.Entries = count(u.Rules)
	}
	if u.Entries > warnEntries || len(refused) > 0 {
		u.Warnings = append(u.Warnings, "the rules fill more than half of a workload's policy map: grant fewer subjects, or a whole class")
	}
	return refused
}

// byStatementAge orders statements by the age of their policy, and by sid within it. Digits in a sid count as a number:
// the portal's sids grow with its tickets.
func byStatementAge(a, b *statement) int {
	return cmp.Or(byAge(a.policy, b.policy), compareNatural(a.ref.SID, b.ref.SID))
}

func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			if order := cmp.Or(cmp.Compare(x, y), cmp.Compare(a[:x], b[:y])); order != 0 {
				return order
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			break
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(a, b)
}

// digits is how many digits s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
