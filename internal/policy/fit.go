package policy

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"

	"github.com/acp-io/acp/api/v1alpha1"
)

const (
	// MapEntries is what the policy map of a workload holds by default (Cilium's bpf-policy-map-max).
	MapEntries = 16384
	// everyoneEntries is what one masked range of ports takes for everyone: since Cilium 1.20 there is an entry for each of
	// the identities that stand for all others (pkg/policy/aggregate.go).
	everyoneEntries = 5
	// denyEveryoneEntries is what a deny of everyone takes beside pods: the reserved identities that it names, those of the
	// API server and of both families of the world, and some of nodes.
	denyEveryoneEntries = 16
	// ICMPTypes is how many types of ICMP an object for other ports opens, each for everyone.
	ICMPTypes = 40
	// baseEntries is what every workload has: egress for everyone, ingress for everyone where nothing closes, and the node.
	baseEntries = 2*everyoneEntries + 1
)

// room is how many entries of a workload's policy map the rules of its units may fill: a tenth is left for what other
// policies need, and for ranges of other units that lie within those of this one.
func (s *Snapshot) room() int { return (s.mapEntries - baseEntries) / 10 * 9 }

// entries estimates what a rule needs in a workload's policy map, as Cilium counts: an entry for every identity of its
// peers and every masked range of ports. The addresses are those of all rules of the unit.
func (s *Snapshot) entries(r *Rule, all *unitAddresses) int {
	ports := maskedRanges(r.Ports)
	if r.Anyone && r.Effect == Allow {
		return everyoneEntries * ports
	}
	peers := 0
	if r.Anyone {
		// A deny of everyone is spelled out, because a deny of everything would also cut the node's own probes.
		peers = denyEveryoneEntries + s.unnamed + s.identitiesOfAll(s.known) + len(all.ranges) + all.cells
	}
	for i := range r.Subjects {
		peers += s.identitiesSelected(&r.Subjects[i])
	}
	return (peers + all.of(s, r)) * ports
}

// identitiesOfAll is how many identities some names have in all members. Unless the input says more, each has one in each.
func (s *Snapshot) identitiesOfAll(names []string) int {
	n := len(names) * s.members
	if len(s.identities) > 0 {
		for _, name := range names {
			n += max(0, s.identities[name]-s.members)
		}
	}
	return n
}

// identitiesSelected is how many identities a selector selects in all members.
func (s *Snapshot) identitiesSelected(sel *SubjectSelector) int {
	n := len(sel.Values) * s.members
	for _, c := range s.subjects.all {
		if string(c.object.Spec.LabelKey) != sel.LabelKey {
			continue
		}
		if sel.Any {
			n += s.identitiesOfAll(s.knownUnder(c.stem))
		} else if len(s.identities) > 0 {
			for _, v := range sel.Values {
				n += max(0, s.identities[c.stem+v]-s.members)
			}
		}
	}
	return max(1, n)
}

// unitAddresses are the addresses that the rules of a unit name.
type unitAddresses struct {
	// ranges are sorted and distinct.
	ranges []netip.Prefix
	// cells estimates the identities of all groups of the unit.
	cells int
}

func hasAddresses(r Rule) bool {
	return r.Anyone && r.Effect == Deny || len(r.Prefixes)+len(r.External)+len(r.ExternalClasses) > 0
}

// addressesOf gathers the addresses of a unit's rules.
func (s *Snapshot) addressesOf(rules []Rule) *unitAddresses {
	out := &unitAddresses{}
	for i := range rules {
		out.ranges = append(out.ranges, rules[i].Prefixes...)
	}
	slices.SortFunc(out.ranges, netip.Prefix.Compare)
	out.ranges = slices.Compact(out.ranges)
	for i := range rules {
		out.cells += out.cellsOf(s, &rules[i])
	}
	return out
}

// of is how many identities the addresses that a rule matches have. An agent gives one to each range, and one to all
// addresses of a group together, however many they are; a range of the unit that is within a range of the rule matches,
// too, and so may its groups.
func (x *unitAddresses) of(s *Snapshot, r *Rule) int {
	if len(r.Prefixes) == 0 {
		return x.cellsOf(s, r)
	}
	n, last := 0, netip.Prefix{}
	for _, p := range r.Prefixes { // sorted: a range comes before those within it
		if last.IsValid() && contains(last, p) {
			continue
		}
		last = p
		first, _ := slices.BinarySearchFunc(x.ranges, p, netip.Prefix.Compare)
		for _, q := range x.ranges[first:] {
			if !contains(p, q) {
				break
			}
			n++
		}
	}
	return n + x.cells
}

// cellsOf estimates the identities of the groups that a rule refers to: ranges of the unit cut a group into parts, each with
// an identity of its own, and those of addresses that several subjects claim depend on who does.
func (x *unitAddresses) cellsOf(s *Snapshot, r *Rule) int {
	if len(r.External)+len(r.ExternalClasses) == 0 {
		return 0
	}
	n := 0
	for _, g := range s.groups() {
		if slices.Contains(r.ExternalClasses, g.ClassID) || slices.Contains(r.External, g.ID) {
			n += min(len(g.Prefixes), 1+len(x.ranges))
			if r.Effect == Deny {
				n += len(g.Contested)
			}
			for _, p := range g.Prefixes {
				if len(x.ranges) == 0 {
					break
				}
				first, _ := slices.BinarySearchFunc(x.ranges, p, netip.Prefix.Compare)
				for _, q := range x.ranges[first:] {
					if !contains(p, q) {
						break
					}
					n++
				}
			}
		}
	}
	return n
}

// fit estimates the entries of the unit. While they are too many it takes out allows, the youngest first, so that what
// works goes on working and growth is what is refused.
func (s *Snapshot) fit(u *Unit, c *resourceClass, held []*statement, inherited int) []Refusal {
	count := func(rules []Rule) int {
		n := inherited
		if slices.ContainsFunc(u.Inherited, hasAddresses) && slices.ContainsFunc(rules, hasAddresses) {
			// Their addresses may share identities, so they are counted together.
			n, rules = 0, slices.Concat(rules, u.Inherited)
		}
		addresses := s.addressesOf(rules)
		for i := range rules {
			n += s.entries(&rules[i], addresses)
		}
		if u.OtherPorts == v1alpha1.OtherPortsAllow && len(u.OpenPorts) > 0 {
			n += everyoneEntries * (maskedRanges(u.OpenPorts) + ICMPTypes)
		}
		return n
	}
	u.Entries = count(u.Rules)
	var refused []Refusal
	if u.Entries > s.room() {
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
			return count(s.rulesOf(c, slices.Concat(kept, allows[:n+1]))) > s.room()
		})
		for _, st := range allows[fits:] {
			refused = append(refused, Refusal{Ref: st.ref, Resource: u.Resource, Reason: v1alpha1.RefusedTooMany,
				Message: "the rules would need more policy-map entries than a workload has room for: grant fewer subjects or ports"})
		}
		u.Rules = s.rulesOf(c, slices.Concat(kept, allows[:fits]))
		u.Entries = count(u.Rules)
	}
	if u.Entries > s.mapEntries/2 || len(refused) > 0 {
		u.Warnings = append(u.Warnings, "the rules fill more than half of a workload's policy map: grant fewer subjects or ports")
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
