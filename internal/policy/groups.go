package policy

import (
	"net/netip"
	"slices"
	"sort"
)

// ExternalGroups are the addresses of the external workloads by subject, sorted by it.
func (s *Snapshot) ExternalGroups() []ExternalGroup {
	groups := s.groups()
	if len(groups) == 0 {
		return nil
	}
	out := make([]ExternalGroup, 0, len(groups))
	for _, name := range s.external.subjects {
		out = append(out, *groups[name])
	}
	return out
}

// Equal tells whether two groups are the same to every dataplane.
func (g ExternalGroup) Equal(o ExternalGroup) bool {
	return g.ID == o.ID && g.Subject == o.Subject && g.Class == o.Class && g.ClassID == o.ClassID &&
		slices.Equal(g.Prefixes, o.Prefixes) && slices.Equal(g.Contested, o.Contested)
}

func (s *Snapshot) externalGroups() map[string]*ExternalGroup {
	out := make(map[string]*ExternalGroup, len(s.external.subjects))
	if s.lacks.Groups {
		return out
	}
	for _, name := range s.external.subjects {
		if c, ok := s.subjects.of(name); ok { // a workload without class is left out
			out[name] = &ExternalGroup{ID: UnitID(name), Subject: name, Class: c.object.Name, ClassID: UnitID(c.stem + "*")}
		}
	}
	for _, t := range territories(s.external.owners) {
		prefixes := t.prefixes()
		for _, owner := range s.external.owners[t.prefix] {
			if g := out[owner]; g == nil {
				continue // the addresses of nobody are cut out of the others' and are in no group
			} else if len(s.external.owners[t.prefix]) > 1 {
				g.Contested = append(g.Contested, prefixes...)
			} else {
				g.Prefixes = append(g.Prefixes, prefixes...)
			}
		}
	}
	for _, g := range out {
		slices.SortFunc(g.Prefixes, netip.Prefix.Compare)
		slices.SortFunc(g.Contested, netip.Prefix.Compare)
	}
	return out
}

// territory is a prefix and the longest-matching prefixes of other owners within it, sorted.
type territory struct {
	prefix netip.Prefix
	others []netip.Prefix
}

// territories cut the addresses up by owners. A prefix within one of the same owners has none of its own.
func territories(owners map[netip.Prefix][]string) []*territory {
	all := make([]netip.Prefix, 0, len(owners))
	for p := range owners {
		all = append(all, p)
	}
	slices.SortFunc(all, netip.Prefix.Compare) // a prefix comes before those within it
	var out, open []*territory
	for _, p := range all {
		for len(open) > 0 && !contains(open[len(open)-1].prefix, p) {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			around := open[len(open)-1]
			if slices.Equal(owners[around.prefix], owners[p]) {
				continue
			}
			around.others = append(around.others, p)
		}
		t := &territory{prefix: p}
		out, open = append(out, t), append(open, t)
	}
	return out
}

func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// prefixes are those that make up the territory, without the others' addresses.
func (t *territory) prefixes() []netip.Prefix {
	return withoutWholeFamily(without(nil, t.prefix, t.others))
}

// withoutWholeFamily replaces a prefix of all addresses of a family by its two halves. Cilium gives such a prefix no identity
// of its own: an allow in a group of addresses would let nobody in, and a deny would refuse nobody.
func withoutWholeFamily(prefixes []netip.Prefix) []netip.Prefix {
	out := prefixes[:0:0]
	for _, p := range prefixes {
		if p.Bits() == 0 {
			low, high := halves(p)
			out = append(out, low, high)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// without appends p minus the holes in it, which are sorted and do not overlap.
func without(out []netip.Prefix, p netip.Prefix, holes []netip.Prefix) []netip.Prefix {
	if len(holes) == 0 {
		return append(out, p)
	}
	if holes[0] == p {
		return out
	}
	low, high := halves(p)
	cut := sort.Search(len(holes), func(i int) bool { return !low.Contains(holes[i].Addr()) })
	return without(without(out, low, holes[:cut]), high, holes[cut:])
}

// halves splits a prefix that is not a single address.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	bits := p.Bits()
	low = netip.PrefixFrom(p.Addr(), bits+1)
	addr := p.Addr().AsSlice()
	addr[bits/8] |= 0x80 >> (bits % 8)
	upper, _ := netip.AddrFromSlice(addr) // as long as p's own
	return low, netip.PrefixFrom(upper, bits+1)
}
