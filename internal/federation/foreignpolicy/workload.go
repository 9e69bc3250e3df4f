package foreignpolicy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// outcome is what is let in of a connection.
type outcome struct {
	whole bool
	// requests of HTTP, if not the whole connection.
	requests []string
}

func (o outcome) and(p outcome) outcome {
	if o.whole || p.whole {
		return outcome{whole: true}
	}
	return outcome{requests: append(slices.Clone(o.requests), p.requests...)}
}

// exceeds tells whether more is let in than by another outcome. Requests are compared as they are written.
func (o outcome) exceeds(p outcome) bool {
	return !p.whole && (o.whole || slices.ContainsFunc(o.requests, func(r string) bool { return !slices.Contains(p.requests, r) }))
}

// bearing is a rule that selects a workload, or may do so.
type bearing struct {
	*rule
	own, sure bool
	// chosen are what the peers select of the member's pods.
	chosen []*selection
}

// workload is a set of pods that the same rules select.
type workload struct {
	// rules in the order in which Cilium looks at them, and foreign those of others that let somebody in, by their policies.
	rules   []bearing
	foreign []bearing
	closed  bool
	// edges are the ports at which some rule begins or ends, by protocol.
	edges map[string][]uint16

	// seen is how many pods of the member's were asked, and by the policy that was found to open it, for the source opener;
	// -1: for one that is no pod of the member.
	seen   int
	by     *Policy
	opener int
	static bool
}

func newWorkload(rules []bearing) *workload {
	w := &workload{rules: rules, edges: map[string][]uint16{}, opener: -1}
	slices.SortStableFunc(w.rules, func(a, b bearing) int {
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
	slices.SortStableFunc(w.foreign, func(a, b bearing) int { return strings.Compare(a.policy.String(), b.policy.String()) })
	return w
}

// rank orders verdicts of equal priority: denies come first, and allows before passing on.
func (v verdict) rank() int { return map[verdict]int{deny: 0, allow: 1, pass: 2}[v] }

// otherProtocol stands for all that no rule names.
const otherProtocol = "\x00"

// atoms are a port of each kind among those of a range: no rule begins or ends between two of them.
func (w *workload) atoms(of ports) []ports {
	if of.protocol == "" {
		out := []ports{{otherProtocol, 0, 0}}
		protocols := []string{"TCP", "UDP", "SCTP", "ICMP", "ICMPV6"}
		for p := range w.edges {
			if !slices.Contains(protocols, p) {
				protocols = append(protocols, p)
			}
		}
		for _, p := range protocols {
			out = append(out, w.atoms(wholeRange(p))...)
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

// peer tells whether a rule is about a source.
func (r *bearing) peer(selected func(i int) match) match {
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

// of returns what the rule lets in on a port, and whether it surely is about the port.
func (r *bearing) of(at ports) (o outcome, about match) {
	for _, g := range r.grants {
		if !slices.ContainsFunc(g.ports, func(p ports) bool { return p.includes(at.protocol, at.first) }) {
			continue
		}
		if g.doubt {
			about = max(about, maybe)
		} else {
			about = yes
		}
		if g.requests == nil || g.doubt {
			o.whole = true
		} else {
			o.requests = append(o.requests, g.requests...)
		}
	}
	return o, about
}

// alone is what ACP's own rules let in of a port from a source, of which about tells what each rule says: in doubt nothing.
func (w *workload) alone(about []match, at ports) outcome {
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
			out = out.and(o)
		}
	}
	return out
}

// together is what all rules may let in, from the rule at i on. A request that no rule of a priority names is looked at by
// the later ones.
func (w *workload) together(about []match, at ports, i int) outcome {
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
				out, decided = out.and(o), decided || sure == yes && o.whole
			case r.verdict == pass:
				next := i
				for next < len(w.rules) && w.rules[next].tier == first.tier {
					next++
				}
				out = out.and(w.together(about, at, next))
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

// opens tells whether a rule of others lets in more from a source than ACP's own rules do.
func (w *workload) opens(r *bearing, about []match, tried func(n int) bool) bool {
	for _, g := range r.grants {
		for _, p := range g.ports {
			for _, at := range w.atoms(p) {
				if !tried(1) || w.together(about, at, 0).exceeds(w.alone(about, at)) {
					return true
				}
			}
		}
	}
	return false
}

// prefixes are those that the rules name, and whether they name groups of addresses.
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
