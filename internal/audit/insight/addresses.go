package insight

import (
	"net/netip"
	"slices"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
)

// maxAddresses bounds the addresses that represent one source. With more, the source cannot be identified.
const maxAddresses = 4096

// Reasons why a source may be decided in more than one way. They are pointers, because the verdict of each edge has one.
var (
	whyRange     = new(message.ReplaySourceRange())
	whyMachine   = new(message.ReplaySourceMachine())
	whyAddresses = new(message.ReplaySourceManyAddresses())
	whyOutside   = new(message.ReplaySourceOutside())
	whyLabels    = new(message.ReplaySourceLabelsCut())
)

// addressesOf returns the addresses that represent everything that the edge's source can be, as far as a state
// distinguishes addresses; none if its names determine the decision. All addresses between two neighbouring bounds of
// prefixes have the same decision, so the bounds represent all. why is set if the source may be decided in more than
// one way.
func addressesOf(states []*policyState, e *audit.Edge, source *end, resources []string) (out []netip.Addr, why *message.Message) {
	switch {
	case e.Subject != "":
		return machineAddresses(states, e, resources)
	case source.kind == sourceOutside:
		return nil, whyOutside
	case source.kind == sourceLabels && source.cut:
		return nil, whyLabels
	case source.kind != sourcePrefix:
		return nil, nil
	}
	out = append(out, source.prefix.Addr())
	for _, d := range states {
		out = bounds(out, source.prefix, within(d.outside, source.prefix))
		for _, r := range resources {
			out = bounds(out, source.prefix, d.rangesOn(r))
		}
	}
	if out = distinct(out); len(out) > maxAddresses {
		return nil, whyAddresses
	}
	return out, whyRange
}

// machineAddresses returns the addresses of a subject outside the fleet if its name alone does not determine the
// decision: because a statement names a range that contains them, or because its addresses change owners.
func machineAddresses(states []*policyState, e *audit.Edge, resources []string) (out []netip.Addr, why *message.Message) {
	owned := states[0].owned[e.Subject]
	if e.SourceCluster != "" || len(owned) == 0 {
		return nil, nil
	}
	matters := false
	for _, d := range states {
		matters = matters || !slices.Equal(d.owned[e.Subject], owned)
		for _, r := range resources {
			matters = matters || slices.ContainsFunc(d.rangesOn(r), func(p netip.Prefix) bool { return slices.ContainsFunc(owned, p.Overlaps) })
		}
	}
	if !matters {
		return nil, nil
	}
	for _, p := range owned {
		out = append(out, p.Addr())
		for _, d := range states {
			out = bounds(out, p, within(d.outside, p))
			for _, r := range resources {
				out = bounds(out, p, d.rangesOn(r))
			}
		}
		if len(out) > maxAddresses {
			return nil, whyAddresses
		}
	}
	return distinct(out), whyMachine
}

// bounds appends the first addresses in and after each inner prefix within the outer one.
func bounds(out []netip.Addr, outer netip.Prefix, inner []netip.Prefix) []netip.Addr {
	for _, p := range inner {
		if p.Bits() <= outer.Bits() || !outer.Contains(p.Addr()) {
			continue
		}
		out = append(out, p.Addr())
		if next := lastOf(p).Next(); next.IsValid() && outer.Contains(next) {
			out = append(out, next)
		}
	}
	return out
}

// within returns the sorted prefixes that begin in another one.
func within(sorted []netip.Prefix, outer netip.Prefix) []netip.Prefix {
	from, _ := slices.BinarySearchFunc(sorted, outer.Addr(), func(p netip.Prefix, a netip.Addr) int { return p.Addr().Compare(a) })
	to := from
	for to < len(sorted) && outer.Contains(sorted[to].Addr()) {
		to++
	}
	return sorted[from:to]
}

func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for i := p.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(bytes)
	return a
}

func distinct(in []netip.Addr) []netip.Addr {
	slices.SortFunc(in, netip.Addr.Compare)
	return slices.Compact(in)
}
