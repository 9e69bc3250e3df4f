package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sort"

	"github.com/acp-io/acp/api/v1alpha1"
)

const (
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

// entries estimates what a rule needs in a workload's policy map, as Cilium counts: an entry for every identity of its
// peers and every masked range of ports. The addresses are those of all rules of the unit.
func (s *Snapshot) entries(in *room, r *Rule, all *unitAddresses) int {
	ports := maskedRanges(r.Ports)
	if r.Anyone && r.Effect == Allow {
		return everyoneEntries * ports
	}
	peers := 0
	if r.Anyone {
		// A deny of everyone is spelled out, because a deny of everything would also cut the node's own probes.
		peers = denyEveryoneEntries + s.everyone(in) + len(all.ranges) + all.cells
	}
	for i := range r.Subjects {
		peers += s.identitiesSelected(in, &r.Subjects[i])
	}
	return (peers + all.of(s, r)) * ports
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
// addresses of a group and a family together, however many they are; a range of the unit that is within a range of the rule matches,
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

// families counts the families of sorted prefixes: an agent gives the IPv4 addresses of a group another identity than its IPv6
// addresses.
func families(sorted []netip.Prefix) int {
	if n := len(sorted); n > 0 && sorted[0].Addr().Is4() != sorted[n-1].Addr().Is4() {
		return 2
	}
	return 1
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
			n += min(len(g.Prefixes), families(g.Prefixes)+len(x.ranges))
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

// fit estimates the entries of the unit. While they are too many for a member that it is placed in it takes out allows, the youngest
// first, so that what works goes on working and growth is what is refused. Denies stay. Where they do not fit without any allow, other
// ports are closed, and the unit names the members in which it is not in force in full.
func (s *Snapshot) fit(u *Unit, c *resourceClass, held []*statement, inherited int) []Refusal {
	need := func(in *room, rules []Rule) int {
		n := inherited
		if slices.ContainsFunc(u.Inherited, hasAddresses) && slices.ContainsFunc(rules, hasAddresses) {
			// Their addresses may share identities, so they are counted together.
			n, rules = 0, slices.Concat(rules, u.Inherited)
		}
		addresses := s.addressesOf(rules)
		for i := range rules {
			n += s.entries(in, &rules[i], addresses)
		}
		if u.OtherPorts == v1alpha1.OtherPortsAllow && len(u.OpenPorts) > 0 {
			n += everyoneEntries * (maskedRanges(u.OpenPorts) + ICMPTypes)
		}
		return n
	}
	// tight is the first map in which rules do not fit; nil: there is none. It leaves the largest need in the unit.
	tight := func(rules []Rule) *policyMap {
		var first *policyMap
		u.Entries = 0
		for i := range c.rooms {
			in := &c.rooms[i]
			n := need(in, rules)
			if u.Entries = max(u.Entries, n); !in.fits(n) && first == nil {
				first = &in.maps[0]
			}
		}
		return first
	}
	var refused []Refusal
	if full := tight(u.Rules); full != nil {
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
			return tight(s.rulesOf(c, slices.Concat(kept, allows[:n+1]))) != nil
		})
		for _, st := range allows[fits:] {
			refused = append(refused, Refusal{Ref: st.ref, Resource: u.Resource, Reason: v1alpha1.RefusedTooMany,
				Message: fmt.Sprintf("the rules would need more policy-map entries than a workload has room for (%s): grant fewer subjects or ports", full)})
		}
		u.Rules = s.rulesOf(c, slices.Concat(kept, allows[:fits]))
		if tight(u.Rules) != nil {
			s.overfill(u, c, tight, need)
		}
	}
	if len(refused) > 0 || slices.ContainsFunc(c.rooms, func(in room) bool { return u.Entries > in.maps[0].entries/2 }) {
		u.Warnings = append(u.Warnings, "the rules fill more than half of a workload's policy map: grant fewer subjects or ports")
	}
	return refused
}

// overfill closes other ports of a unit whose denies do not fit, and names the members in which they do not fit even then.
func (s *Snapshot) overfill(u *Unit, c *resourceClass, tight func([]Rule) *policyMap, need func(*room, []Rule) int) {
	if len(u.OpenPorts) > 0 {
		u.OtherPorts, u.OpenPorts, u.ForeignKeys = v1alpha1.OtherPortsDeny, nil, nil
		u.Warnings = append(u.Warnings, "the ports of no action stay closed, because the denies do not leave room for them in a workload's policy map")
	}
	full := tight(u.Rules)
	if full == nil {
		return
	}
	for i := range c.rooms {
		n := need(&c.rooms[i], u.Rules)
		for _, m := range c.rooms[i].maps {
			if n > m.limit() {
				u.Overfull = append(u.Overfull, m.member)
			}
		}
	}
	slices.Sort(u.Overfull)
	u.Warnings = append(u.Warnings, fmt.Sprintf("the rules need more policy-map entries than a workload has room for (%s) without any allow, so some of them are not in force: deny fewer subjects or ports", full))
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
