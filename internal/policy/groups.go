package policy

import (
	"net/netip"
	"slices"
	"sort"
	"time"
)

// ExternalGroups returns the addresses of the external workloads by subject, sorted by subject.
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

// Denies reports whether a deny names a subject among its subjects, other than by "*", and has not ended. The deny may begin later or be
// refused.
func (s *Snapshot) Denies(subject string, at time.Time) bool {
	return slices.ContainsFunc(s.naming(nil, subject), func(st *statement) bool {
		return st.effect == Deny && (st.notAfter.IsZero() || at.Before(st.notAfter))
	})
}

// Equal reports whether two groups are equal for every dataplane.
func (g ExternalGroup) Equal(o ExternalGroup) bool {
	return g.ID == o.ID && g.Subject == o.Subject && g.Class == o.Class && g.ClassID == o.ClassID &&
		slices.Equal(g.Prefixes, o.Prefixes) && slices.Equal(g.Contested, o.Contested)
}

func (s *Snapshot) externalGroups() map[string]*ExternalGroup {
	out := make(map[string]*ExternalGroup, len(s.external.subjects))
	if s.unsupported.Groups {
		return out
	}
	for _, name := range s.external.subjects {
		if c, ok := s.subjects.of(name); ok { // a workload without class is left out
			out[name] = &ExternalGroup{ID: UnitID(name), Subject: name, Class: c.object.Name, ClassID: UnitID(c.stem + "*")}
		}
	}
	for _, t := range ownedRanges(s.external.owners) {
		prefixes := t.prefixes()
		for _, owner := range s.external.owners[t.prefix] {
			if g := out[owner]; g == nil {
				continue // addresses without owner are removed from the others' prefixes and are in no group
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

// ownedRange is a prefix, with the longest-matching prefixes of other owners within it, sorted.
type ownedRange struct {
	prefix netip.Prefix
	others []netip.Prefix
}

// ownedRanges divides the addresses by owner. A prefix within a prefix of the same owners has no range of its own.
func ownedRanges(owners map[netip.Prefix][]string) []*ownedRange {
	all := make([]netip.Prefix, 0, len(owners))
	for p := range owners {
		all = append(all, p)
	}
	slices.SortFunc(all, netip.Prefix.Compare) // a prefix comes before the prefixes within it
	var out, open []*ownedRange
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
		t := &ownedRange{prefix: p}
		out, open = append(out, t), append(open, t)
	}
	return out
}

func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// prefixes returns the prefixes that make up the range, without the addresses of other owners.
func (t *ownedRange) prefixes() []netip.Prefix {
	return withoutWholeFamily(without(nil, t.prefix, t.others))
}

// withoutWholeFamily replaces a prefix of all addresses of a family by its two halves. Cilium allocates no identity for
// such a prefix: in a group of addresses, an allow of it would match no source, and so would a deny.
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
	upper, _ := netip.AddrFromSlice(addr) // same length as p's address
	return low, netip.PrefixFrom(upper, bits+1)
}
