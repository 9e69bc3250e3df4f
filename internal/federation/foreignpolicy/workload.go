package foreignpolicy

import (
	"cmp"
	"iter"
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

// add adds what another outcome lets in.
func (o *outcome) add(p outcome) {
	if o.whole || p.whole {
		*o = outcome{whole: true}
		return
	}
	o.requests = append(o.requests, p.requests...)
}

// exceeds reports whether more is let in than by another outcome. Requests are compared as text.
func (o outcome) exceeds(p outcome) bool {
	if o.whole || p.whole || len(o.requests) == 0 {
		return o.whole && !p.whole
	}
	within := make(map[string]struct{}, len(p.requests))
	for _, r := range p.requests {
		within[r] = struct{}{}
	}
	return slices.ContainsFunc(o.requests, func(r string) bool {
		_, found := within[r]
		return !found
	})
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
	// largest is the policy of others that causes the most work. It counts as opening the workload if the evaluation takes too many checks.
	largest *Policy
	// rules are in Cilium's order of evaluation, and foreign are the rules of others that let connections in, by
	// policy.
	rules   []applicableRule
	foreign []*applicableRule
	// edges are the ports at which a rule begins or ends, by protocol.
	edges map[string][]uint16
	// peers is the number of peers of all rules, and peerChecks that of the checks of a comparison of all of them with a source.
	peers, peerChecks int

	// seen is the number of the member's pods that were evaluated. by is the policy that was found to open the
	// workload, for the source opener, which is -1 if it is not a pod of the member.
	seen   int
	by     *Policy
	opener int
	static bool
	// postponed reports whether the workload was not evaluated, because no checks were left for the member.
	postponed bool
}

// largestOpener returns the policy of others with an allow that causes the most work, and the sizes of all sets together.
func largestOpener(sets []ruleSet) (largest *Policy, size int) {
	sizes := map[*Policy]int{}
	for i := range sets {
		if size += sets[i].size; sets[i].allows {
			sizes[sets[i].policy()] += sets[i].size
		}
	}
	for p, n := range sizes {
		if largest == nil || n > sizes[largest] || n == sizes[largest] && p.String() < largest.String() {
			largest = p
		}
	}
	return largest, size
}

// newWorkload returns the workload that the rules select.
func newWorkload(sets []ruleSet) *workload {
	w := &workload{edges: map[string][]uint16{}, opener: -1}
	for i := range sets {
		for _, r := range sets[i].rules {
			w.rules = append(w.rules, applicableRule{rule: r, own: sets[i].own, sure: sets[i].sure})
		}
	}
	slices.SortStableFunc(w.rules, func(a, b applicableRule) int {
		return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.order, b.order), cmp.Compare(a.verdict.rank(), b.verdict.rank()))
	})
	for i := range w.rules {
		r := &w.rules[i]
		w.peers, w.peerChecks = w.peers+len(r.peers), w.peerChecks+r.peerChecks
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
	slices.SortStableFunc(w.foreign, func(a, b *applicableRule) int { return strings.Compare(a.policy.String(), b.policy.String()) })
	return w
}

// markExceeded makes the workload count as opened until its rules change, because its evaluation takes too many checks.
func (w *workload) markExceeded() {
	w.by, w.opener, w.static = w.largest, -1, true
	w.rules, w.foreign, w.edges = nil, nil, nil
}

// rank orders verdicts of equal priority: deny, allow, pass.
func (v verdict) rank() int {
	switch v {
	case deny:
		return 0
	case allow:
		return 1
	default:
		return 2
	}
}

// otherProtocol represents all protocols that no rule names.
const otherProtocol = "\x00"

// splitPorts returns one port of each part of a range such that no rule begins or ends within a part.
func (w *workload) splitPorts(of ports) iter.Seq[ports] {
	return func(yield func(ports) bool) {
		if of.protocol != "" {
			w.splitRange(of, yield)
			return
		}
		if !yield(ports{otherProtocol, 0, 0}) {
			return
		}
		protocols := []string{"TCP", "UDP", "SCTP", "ICMP", "ICMPV6"}
		for p := range w.edges {
			if !slices.Contains(protocols, p) {
				protocols = append(protocols, p)
			}
		}
		for _, p := range protocols {
			if !w.splitRange(wholeRange(p), yield) {
				return
			}
		}
	}
}

// splitRange calls yield with one port of each part of a range of one protocol, until yield returns false.
func (w *workload) splitRange(of ports, yield func(ports) bool) bool {
	if !yield(ports{of.protocol, of.first, of.first}) {
		return false
	}
	edges := w.edges[of.protocol]
	first, found := slices.BinarySearch(edges, of.first)
	if found {
		first++
	}
	for _, e := range edges[first:] {
		if e > of.last {
			break
		}
		if !yield(ports{of.protocol, e, e}) {
			return false
		}
	}
	return true
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

// matchingRule is a rule that matches, or may match, a source.
type matchingRule struct {
	*applicableRule
	match match
}

// matching returns the rules of which a peer matches, or may match, a source, in the order of their evaluation. It returns false if that takes
// more checks than the budget has.
func (w *workload) matching(checks int, b *budget, selects func(r *applicableRule, peer int) match) ([]matchingRule, bool) {
	if !b.spend(checks) {
		return nil, false
	}
	var out []matchingRule
	for i := range w.rules {
		r := &w.rules[i]
		if m := r.peer(func(j int) match { return selects(r, j) }); m != no {
			out = append(out, matchingRule{r, m})
		}
	}
	return out, true
}

// matchingPod returns the rules that match a pod of the member.
func (w *workload) matchingPod(at int, b *budget) ([]matchingRule, bool) {
	return w.matching(len(w.rules)+w.peers, b, func(r *applicableRule, peer int) match { return r.chosen[peer].has(at) })
}

// matchingSource returns the rules that match a source that is not a pod of the member.
func (w *workload) matchingSource(s *source, b *budget) ([]matchingRule, bool) {
	return w.matching(len(w.rules)+w.peerChecks, b, func(r *applicableRule, peer int) match { return r.peers[peer].selects(s) })
}

// ownOutcome returns what ACP's own rules certainly let in on a port from a source that the rules match.
func ownOutcome(rules []matchingRule, at ports) outcome {
	var out outcome
	for i := range rules {
		r := &rules[i]
		if !r.own {
			continue
		}
		o, sure := r.of(at)
		sure = min(sure, r.match)
		switch {
		case sure == no:
		case r.verdict == deny:
			return outcome{}
		case r.verdict == allow && sure == yes:
			out.add(o)
		}
	}
	return out
}

// combinedOutcome returns what all rules that match a source may let in. A request that no rule of a priority names is evaluated by the later
// ones.
func combinedOutcome(rules []matchingRule, at ports) outcome {
	var out outcome
	// passed reports whether a rule of the tier passes to the next one, whose outcome is the same for all rules that do.
	passed, passing := false, adminTier
	for i := 0; i < len(rules); {
		first, decided := rules[i], false
		passed, passing = passed && passing == first.tier, first.tier
		for ; i < len(rules) && rules[i].tier == first.tier && rules[i].order == first.order; i++ {
			r := &rules[i]
			if decided && r.verdict != allow {
				continue
			}
			o, sure := r.of(at)
			sure = min(sure, r.match)
			switch {
			case sure == no:
			case r.verdict == deny && sure == yes:
				return out
			case r.verdict == allow:
				out.add(o)
				decided = decided || sure == yes && o.whole
			case r.verdict == pass:
				if !passed {
					passed = true
					out.add(combinedOutcome(nextTier(rules[i:]), at))
				}
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

// nextTier returns the rules after those of the tier of the first one.
func nextTier(rules []matchingRule) []matchingRule {
	next := 0
	for next < len(rules) && rules[next].tier == rules[0].tier {
		next++
	}
	return rules[next:]
}

// opens reports whether a rule of others lets in more from a source than ACP's own rules do, or whether finding that out takes more checks
// than the budget has. matching are the rules that match the source.
func (w *workload) opens(r *applicableRule, matching []matchingRule, b *budget) bool {
	checks := 0
	for i := range matching {
		checks += matching[i].portChecks
	}
	for _, g := range r.grants {
		for _, p := range g.ports {
			for at := range w.splitPorts(p) {
				if !b.spend(checks) || combinedOutcome(matching, at).exceeds(ownOutcome(matching, at)) {
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
