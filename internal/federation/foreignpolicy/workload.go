package foreignpolicy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// outcome is the part of a connection that is let in.
type outcome struct {
	whole bool
	// requests are the HTTP requests that are let in, if not the whole connection.
	requests []string
}

func (o outcome) union(p outcome) outcome {
	if o.whole || p.whole {
		return outcome{whole: true}
	}
	return outcome{requests: append(slices.Clone(o.requests), p.requests...)}
}

// exceeds reports whether more is let in than by another outcome. Requests are compared as text.
func (o outcome) exceeds(p outcome) bool {
	return !p.whole && (o.whole || slices.ContainsFunc(o.requests, func(r string) bool { return !slices.Contains(p.requests, r) }))
}

// applicableRule is a rule that selects, or may select, a workload.
type applicableRule struct {
	*rule
	own, sure bool
	// chosen are the member's pods that the peers select.
	chosen []*selection
}

// workload is a set of pods that the same rules select.
type workload struct {
	// rules are in Cilium's order of evaluation, and foreign are the rules of others that let connections in, by
	// policy.
	rules   []applicableRule
	foreign []applicableRule
	closed  bool
	// edges are the ports at which a rule begins or ends, by protocol.
	edges map[string][]uint16

	// seen is the number of the member's pods that were evaluated. by is the policy that was found to open the
	// workload, for the source opener, which is -1 if it is not a pod of the member.
	seen   int
	by     *Policy
	opener int
	static bool
}

func newWorkload(rules []applicableRule) *workload {
	w := &workload{rules: rules, edges: map[string][]uint16{}, opener: -1}
	slices.SortStableFunc(w.rules, func(a, b applicableRule) int {
		return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.order, b.order), cmp.Compare(a.verdict.rank(), b.verdict.rank()))
	})
	for _, r := range w.rules {
		w.closed = w.closed || r.own && r.closes && r.sure
		if !r.own && r.verdict == allow {
			w.foreign = append(w.foreign, r)
		}
		for _, g := range r.grants {
			for _, p := range g.ports {
				if p.protocol != "" {
					w.edges[p.protocol] = append(w.edges[p.protocol], p.first, p.last+1)
				}
			}
		}
	}
	for p, list := range w.edges {
		slices.Sort(list)
		w.edges[p] = slices.Compact(list)
	}
	slices.SortStableFunc(w.foreign, func(a, b applicableRule) int { return strings.Compare(a.policy.String(), b.policy.String()) })
	return w
}

// rank orders verdicts of equal priority: deny, allow, pass.
func (v verdict) rank() int { return map[verdict]int{deny: 0, allow: 1, pass: 2}[v] }

// otherProtocol represents all protocols that no rule names.
const otherProtocol = "\x00"

// splitPorts returns one port of each part of a range such that no rule begins or ends within a part.
func (w *workload) splitPorts(of ports) []ports {
	if of.protocol == "" {
		out := []ports{{otherProtocol, 0, 0}}
		protocols := []string{"TCP", "UDP", "SCTP", "ICMP", "ICMPV6"}
		for p := range w.edges {
			if !slices.Contains(protocols, p) {
				protocols = append(protocols, p)
			}
		}
		for _, p := range protocols {
			out = append(out, w.splitPorts(wholeRange(p))...)
		}
		return out
	}
	out := []ports{{of.protocol, of.first, of.first}}
	for _, e := range w.edges[of.protocol] {
		if e > of.first && e <= of.last {
			out = append(out, ports{of.protocol, e, e})
		}
	}
	return out
}

// peer reports whether a rule matches a source.
func (r *applicableRule) peer(selected func(i int) match) match {
	best := no
	for i := range r.peers {
		if best = max(best, selected(i)); best == yes {
			break
		}
	}
	if best == yes && !r.sure {
		return maybe
	}
	return best
}

// of returns what the rule lets in on a port, and whether it certainly applies to the port.
func (r *applicableRule) of(at ports) (o outcome, about match) {
	for _, g := range r.grants {
		if !slices.ContainsFunc(g.ports, func(p ports) bool { return p.includes(at.protocol, at.first) }) {
			continue
		}
		if g.uncertain {
			about = max(about, maybe)
		} else {
			about = yes
		}
		if g.requests == nil || g.uncertain {
			o.whole = true
		} else {
			o.requests = append(o.requests, g.requests...)
		}
	}
	return o, about
}

// ownOutcome returns what ACP's own rules certainly let in on a port from a source. about is the result of each rule
// for the source.
func (w *workload) ownOutcome(about []match, at ports) outcome {
	var out outcome
	for i := range w.rules {
		r := &w.rules[i]
		if !r.own || about[i] == no {
			continue
		}
		o, sure := r.of(at)
		sure = min(sure, about[i])
		switch {
		case sure == no:
		case r.verdict == deny:
			return outcome{}
		case r.verdict == allow && sure == yes:
			out = out.union(o)
		}
	}
	return out
}

// combinedOutcome returns what all rules may let in, from the rule at i on. A request that no rule of a priority names
// is evaluated by the later ones.
func (w *workload) combinedOutcome(about []match, at ports, i int) outcome {
	var out outcome
	for i < len(w.rules) {
		first, decided := &w.rules[i], false
		for ; i < len(w.rules) && w.rules[i].tier == first.tier && w.rules[i].order == first.order; i++ {
			r := &w.rules[i]
			if about[i] == no || decided && r.verdict != allow {
				continue
			}
			o, sure := r.of(at)
			sure = min(sure, about[i])
			switch {
			case sure == no:
			case r.verdict == deny && sure == yes:
				return out
			case r.verdict == allow:
				out, decided = out.union(o), decided || sure == yes && o.whole
			case r.verdict == pass:
				next := i
				for next < len(w.rules) && w.rules[next].tier == first.tier {
					next++
				}
				out = out.union(w.combinedOutcome(about, at, next))
				if sure == yes {
					return out
				}
			}
		}
		if decided {
			return out
		}
	}
	return out
}

// opens reports whether a rule of others lets in more from a source than ACP's own rules do.
func (w *workload) opens(r *applicableRule, about []match, tried func(n int) bool) bool {
	for _, g := range r.grants {
		for _, p := range g.ports {
			for _, at := range w.splitPorts(p) {
				if !tried(1) || w.combinedOutcome(about, at, 0).exceeds(w.ownOutcome(about, at)) {
					return true
				}
			}
		}
	}
	return false
}

// prefixes returns the prefixes that the rules name, and whether they reference groups of addresses.
func (w *workload) prefixes() (out []netip.Prefix, groups bool) {
	for _, r := range w.rules {
		groups = groups || r.policy.groups
		for _, p := range r.peers {
			if p.kind == byPrefix {
				out = append(append(out, p.prefix), p.except...)
			}
		}
	}
	return out, groups
}
