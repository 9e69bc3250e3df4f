package foreignpolicy

import "slices"

// evaluate determines which policy opens a workload: for all clients the first time, and then for new ones. The result does not count if the
// budget is exceeded.
func (d *Detector) evaluate(w *workload, b *budget, groupsUnread bool) {
	if !w.static {
		w.static = true
		w.by = d.findExternalOpener(w, b, groupsUnread)
	}
	switch {
	case w.by != nil && (w.opener < 0 || d.alive[w.opener]):
		return // it stays open to the clients that it was open to
	case w.by != nil:
		w.by, w.opener, w.seen = nil, -1, 0
	case w.seen == len(d.pods):
		return
	}
	if !b.spend(w.peers / smallSteps) {
		return
	}
	for i := range w.rules {
		for _, x := range w.rules[i].chosen {
			if !d.extend(x, b) {
				return
			}
		}
	}
	for _, r := range w.foreign {
		for _, x := range r.chosen {
			first, _ := slices.BinarySearch(x.matched, int32(w.seen)) //nolint:gosec // a member has fewer pods
			for _, at := range x.matched[first:] {
				if !b.spend(1) {
					return
				}
				if !d.alive[at] {
					continue
				}
				if matching, ok := w.matchingPod(int(at), b); !ok || w.opens(r, matching, b) {
					w.by, w.opener = r.policy, int(at)
					return
				}
			}
		}
	}
	w.seen = len(d.pods)
}

// findExternalOpener returns a policy that opens a workload to a source that is not a pod of the member.
func (d *Detector) findExternalOpener(w *workload, b *budget, groupsUnread bool) *Policy {
	outside, ok := d.externalSources(w, b)
	if !ok {
		return nil
	}
	cluster := d.ownCluster()
	for _, r := range w.foreign {
		if groupsUnread && r.policy.groups {
			return r.policy
		}
		opensTo := func(s *source) bool {
			matching, ok := w.matchingSource(s, b)
			return !ok || w.opens(r, matching, b)
		}
		opens := func(s *source) bool {
			if !b.spend(r.peerChecks) {
				return true
			}
			return r.peer(func(j int) match { return r.peers[j].selects(s) }) != no && opensTo(s)
		}
		for j := range reservedSources {
			for _, local := range []bool{false, true} {
				s := reservedSources[j]
				if s.local = local; opens(&s) {
					return r.policy
				}
			}
		}
		for j := range r.peers {
			if !b.spend(r.peers[j].witnessChecks()) {
				return r.policy
			}
			pods, sayable := r.peers[j].witnesses(cluster)
			if !sayable {
				return r.policy
			}
			for k := range pods {
				if opens(&pods[k]) {
					return r.policy
				}
			}
		}
		for _, list := range outside {
			if r.matchesAny(list, b, opensTo) {
				return r.policy
			}
		}
	}
	return nil
}

// matchesAny reports whether the rule matches a source outside the cluster mesh for which opens returns true, or whether finding that out
// takes more checks than the budget has. The sources are sorted by their addresses.
func (r *applicableRule) matchesAny(sources []source, b *budget, opens func(s *source) bool) bool {
	var tried map[*source]bool // a source that several peers match is tried once
	if len(r.peers) > 1 {
		tried = map[*source]bool{}
	}
	for j := range r.peers {
		if !r.peers[j].reachesOutside() {
			continue
		}
		candidates := r.peers[j].within(sources)
		for k := range candidates {
			s := &candidates[k]
			if !b.spend(r.peers[j].checks()) {
				return true
			}
			if r.peers[j].selects(s) == no || tried[s] {
				continue
			}
			if opens(s) {
				return true
			}
			if tried != nil {
				tried[s] = true
			}
		}
	}
	return false
}

// ownCluster returns the name of the member's cluster, from its pods' labels, or a value that no label has.
func (d *Detector) ownCluster() string {
	for _, p := range d.pods {
		for _, h := range p.labels {
			if l := h.Value(); l.Key == clusterKey {
				return l.Value
			}
		}
	}
	return unusedValue
}

// externalSources returns one address of each kind outside the cluster mesh, in lists that are sorted by address. It returns false if that
// takes more checks than the budget has.
func (d *Detector) externalSources(w *workload, b *budget) ([][]source, bool) {
	if !slices.ContainsFunc(w.foreign, func(r *applicableRule) bool { return slices.ContainsFunc(r.peers, selector.reachesOutside) }) {
		return nil, true
	}
	prefixes, groups := w.prefixes()
	if !b.spend(len(prefixes)) {
		return nil, false
	}
	samples := sampleAddresses(prefixes)
	if !b.spend(len(samples) * d.addresses.checks()) {
		return nil, false
	}
	out := [][]source{d.addresses.sources(samples)}
	if groups {
		if d.groupSources == nil {
			d.groupSources = d.addresses.sources(sampleAddresses(d.addresses.prefixes()))
		}
		out = append(out, d.groupSources)
	}
	return out, true
}
