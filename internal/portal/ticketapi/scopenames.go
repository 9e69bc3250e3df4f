package ticketapi

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// scopeNames matches names, and the sources of connections, by the subjects or the resources of a statement as they are written. Written names
// that cannot be parsed match nothing, as in the policy.
type scopeNames struct {
	anyone bool
	names  approval.NamePatterns
	ranges []netip.Prefix
}

func newScopeNames(written []string) *scopeNames {
	s := &scopeNames{}
	for _, name := range written {
		if name == anyone {
			s.anyone = true
			continue
		}
		n, err := policy.ParseName(name)
		switch {
		case err != nil:
		case n.IsPrefix():
			if p, err := n.ParsePrefix(); err == nil {
				s.ranges = append(s.ranges, p)
			}
		default:
			s.names.Add(name)
		}
	}
	return s
}

// anyone is the subject that stands for every client.
const anyone = "*"

// covers reports whether a written name, other than anyone and a range of addresses, covers a name.
func (s *scopeNames) covers(name string) bool { return s.names.Cover(name) }

// overlaps reports whether there may be a name or an address that both sides cover. Anyone covers everything.
func (s *scopeNames) overlaps(o *scopeNames) bool {
	if s.anyone || o.anyone {
		return true
	}
	return s.names.Overlap(&o.names) ||
		slices.ContainsFunc(s.ranges, func(a netip.Prefix) bool { return slices.ContainsFunc(o.ranges, a.Overlaps) })
}

// scopeMatch says how much of a source of connections is within the subjects of a statement.
type scopeMatch int

const (
	outside scopeMatch = iota
	inside
	// unsure means that it is not known: only a part of the addresses that the source may have is within the ranges.
	unsure
)

// matches returns whether the source of an edge is within the subjects. registered returns the addresses of a client outside of the fleet. A pod
// is never matched by an address, as in the policy.
func (s *scopeNames) matches(e *audit.Edge, registered map[string][]netip.Prefix) scopeMatch {
	switch {
	case s.anyone, e.Subject != "" && s.covers(e.Subject), slices.ContainsFunc(strings.Fields(e.OtherSubjects), s.covers):
		return inside
	case len(s.ranges) == 0, e.Subject != "" && e.SourceCluster != "":
		return outside
	case e.Subject != "":
		return s.within(registered[e.Subject]...)
	}
	return s.matchesSource(e.Source)
}

// unknownSource is the source of an edge from outside of the fleet whose address is not known.
const unknownSource = "outside"

// matchesSource returns whether a source without a name, which is recorded as a range of addresses, is within the ranges.
func (s *scopeNames) matchesSource(source string) scopeMatch {
	if source == unknownSource {
		return unsure
	}
	p, err := netip.ParsePrefix(source)
	if err != nil { // a workload or a node of the fleet
		return outside
	}
	return s.within(p)
}

// within returns whether addresses are within the ranges.
func (s *scopeNames) within(addresses ...netip.Prefix) scopeMatch {
	in, out := false, false
	for _, p := range addresses {
		switch {
		case slices.ContainsFunc(s.ranges, func(r netip.Prefix) bool { return r.Bits() <= p.Bits() && r.Contains(p.Addr()) }):
			in = true
		case slices.ContainsFunc(s.ranges, p.Overlaps):
			return unsure
		default:
			out = true
		}
	}
	switch {
	case in && out:
		return unsure
	case in:
		return inside
	}
	return outside
}

// addressesOf returns the registered addresses of applications, by their names.
func addressesOf(in policy.Input) map[string][]netip.Prefix {
	out := map[string][]netip.Prefix{}
	for _, w := range in.Workloads {
		name := string(w.Spec.Subject)
		out[name] = append(out[name], prefixesOf(w.Spec.Addresses)...)
	}
	return out
}

// prefixesOf parses addresses and ranges of addresses. Those that cannot be parsed are left out: they have no effect in the policy.
func prefixesOf(texts []string) (out []netip.Prefix) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p.Masked())
		} else if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}
