package policy

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

const (
	// everyoneEntries is the number of entries that one masked port range takes for every source: Cilium 1.20 and later
	// have an entry for each of the identities that stand for all others (pkg/policy/aggregate.go).
	everyoneEntries = 5
	// denyEveryoneEntries is the number of entries that a deny of every source takes in addition to pods: the reserved
	// identities that it names, those of the API server and of both families of the world, and some of nodes.
	denyEveryoneEntries = 16
	// ICMPTypes is the number of ICMP types that an object for other ports opens, each for every source.
	ICMPTypes = 40
	// baseEntries is the number of entries of every workload: egress for every source, ingress for every source where
	// nothing closes, and the node.
	baseEntries = 2*everyoneEntries + 1
)

// entries estimates the number of policy-map entries that a rule needs on a workload, as Cilium counts them: one for
// every identity of its peers and every masked port range. all contains the addresses of all rules of the unit.
func (s *Snapshot) entries(in *meshCapacity, r *Rule, all *unitAddresses) int {
	ports := maskedRanges(r.Ports)
	if r.Anyone && r.Effect == Allow {
		return everyoneEntries * ports
	}
	peers := 0
	if r.Anyone {
		// A deny of every source lists the identities, because a deny without peers would also block the node's own
		// probes.
		peers = denyEveryoneEntries + s.allIdentities(in) + len(all.ranges) + all.cells
	}
	for i := range r.Subjects {
		peers += s.identitiesSelected(in, &r.Subjects[i])
	}
	return (peers + all.of(s, r)) * ports
}

// unitAddresses are the addresses that the rules of a unit name.
type unitAddresses struct {
	// cells is the estimated number of identities of all groups of the unit.
	ranges []netip.Prefix
	// cells is the estimated number of identities of all groups of the unit.
	cells int
}

func hasAddresses(r Rule) bool {
	return r.Anyone && r.Effect == Deny || len(r.Prefixes)+len(r.External)+len(r.ExternalClasses) > 0
}

// addressesOf collects the addresses of a unit's rules.
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

// of returns the number of identities of the addresses that a rule matches. An agent allocates one identity for each
// range, and one for all addresses of a group and a family together. A range of the unit that lies within a range of
// the rule matches, too, and so may its groups.
func (u *unitAddresses) of(s *Snapshot, r *Rule) int {
	if len(r.Prefixes) == 0 {
		return u.cellsOf(s, r)
	}
	n, last := 0, netip.Prefix{}
	for _, p := range r.Prefixes { // sorted: a range comes before the ranges within it
		if last.IsValid() && contains(last, p) {
			continue
		}
		last = p
		first, _ := slices.BinarySearchFunc(u.ranges, p, netip.Prefix.Compare)
		for _, q := range u.ranges[first:] {
			if !contains(p, q) {
				break
			}
			n++
		}
	}
	return n + u.cells
}

// families counts the address families of sorted prefixes: an agent allocates different identities for the IPv4 and the
// IPv6 addresses of a group.
func families(sorted []netip.Prefix) int {
	if n := len(sorted); n > 0 && sorted[0].Addr().Is4() != sorted[n-1].Addr().Is4() {
		return 2
	}
	return 1
}

// cellsOf estimates the identities of the groups that a rule refers to: ranges of the unit divide a group into parts,
// each with its own identity, and the identity of an address that several subjects claim depends on which subjects do.
func (u *unitAddresses) cellsOf(s *Snapshot, r *Rule) int {
	if len(r.External)+len(r.ExternalClasses) == 0 {
		return 0
	}
	n := 0
	for _, g := range s.groups() {
		if slices.Contains(r.ExternalClasses, g.ClassID) || slices.Contains(r.External, g.ID) {
			n += min(len(g.Prefixes), families(g.Prefixes)+len(u.ranges))
			if r.Effect == Deny {
				n += len(g.Contested)
			}
			for _, p := range g.Prefixes {
				if len(u.ranges) == 0 {
					break
				}
				first, _ := slices.BinarySearchFunc(u.ranges, p, netip.Prefix.Compare)
				for _, q := range u.ranges[first:] {
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

// fit estimates the entries of the unit. While they are too many for a member in which the unit is placed, it leaves
// out allows, the youngest first, so that existing access keeps working and growth is refused. Denies stay. If they do
// not fit even without any allow, other ports are closed, and the unit lists the members in which it is not fully in
// force.
func (s *Snapshot) fit(u *Unit, c *resourceClass, held []*statement, inherited int) []Refusal {
	need := func(in *meshCapacity, rules []Rule) int {
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
	// tight returns the first map into which rules do not fit, or nil. It stores the largest need in the unit.
	tight := func(rules []Rule) *policyMap {
		var first *policyMap
		u.Entries = 0
		for i := range c.capacities {
			in := &c.capacities[i]
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
		// The search finds how many allows fit: more allows never need fewer entries.
		fits := sort.Search(len(allows), func(n int) bool {
			return tight(s.rulesOf(c, slices.Concat(kept, allows[:n+1]))) != nil
		})
		for _, st := range allows[fits:] {
			refused = append(refused, Refusal{Ref: st.ref, Resource: u.Resource, Reason: v1alpha1.RefusedTooMany,
				Message: message.RefusalMapFull(full.room())})
		}
		u.Rules = s.rulesOf(c, slices.Concat(kept, allows[:fits]))
		if tight(u.Rules) != nil {
			s.overfill(u, c, tight, need)
		}
	}
	if len(refused) > 0 || slices.ContainsFunc(c.capacities, func(in meshCapacity) bool { return u.Entries > in.maps[0].entries/2 }) {
		u.Warnings = append(u.Warnings, message.UnitHalfFull())
	}
	return refused
}

// overfill closes other ports of a unit whose denies do not fit, and records the members in which the denies do not fit
// even then.
func (s *Snapshot) overfill(u *Unit, c *resourceClass, tight func([]Rule) *policyMap, need func(*meshCapacity, []Rule) int) {
	if len(u.OpenPorts) > 0 {
		u.OtherPorts, u.OpenPorts, u.ForeignKeys = v1alpha1.OtherPortsDeny, nil, nil
		u.Warnings = append(u.Warnings, message.UnitOtherPortsClosed())
	}
	full := tight(u.Rules)
	if full == nil {
		return
	}
	for i := range c.capacities {
		n := need(&c.capacities[i], u.Rules)
		for _, m := range c.capacities[i].maps {
			if n > m.limit() {
				u.Overfull = append(u.Overfull, m.member)
			}
		}
	}
	slices.Sort(u.Overfull)
	u.Warnings = append(u.Warnings, message.UnitOverfull(full.room()))
}

// byStatementAge orders statements by the age of their policy, and by sid within a policy. Digits in a sid are compared
// as a number, because the portal's sids grow with its tickets.
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

// digits returns the number of digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
