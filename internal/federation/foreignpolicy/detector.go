package foreignpolicy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Input is the state of a member.
type Input struct {
	// Own are ACP's policies, and Foreign the policies of others.
	Own, Foreign []*Policy
	Groups       []Group
	// GroupsUnread reports whether the groups are not known, so that policies of others with groups may let in any source.
	GroupsUnread bool
	// Keys are the keys of the labels by which classes select pods.
	Keys map[string]bool
	// Each calls do with the labels of each identity of the member's pods. If Each is nil, the existing pods are not
	// known.
	Each func(do func(labels []Handle))
}

// CiliumExposure records which pods of some classes are opened in a member by Cilium policies of others.
type CiliumExposure struct {
	// labels are the labels of existing pods, with the policy that opens them.
	labels map[Label]string
	// unsure are policies that may open pods that are not known.
	unsure []*Policy
	keys   map[string]bool
}

// OpenedBy returns the name of a policy that opens, or may open, the pods with a label; "" if there is none.
func (o CiliumExposure) OpenedBy(key, value string) string {
	if by := o.labels[Label{key, value}]; by != "" || !o.keys[key] {
		return by
	}
	for _, p := range o.unsure {
		if p.maySelect(key, value) {
			return p.String()
		}
	}
	return ""
}

// Equal reports whether two values are equal.
func (o CiliumExposure) Equal(p CiliumExposure) bool {
	return maps.Equal(o.labels, p.labels) && maps.Equal(o.keys, p.keys) && slices.Equal(o.unsure, p.unsure)
}

// maySelect reports whether the policy may let a source in to a pod of which only one label is known.
func (p *Policy) maySelect(key, value string) bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool {
		return r.verdict == allow && len(r.peers) > 0 && len(r.grants) > 0 && !slices.ContainsFunc(r.subject.reqs, func(q requirement) bool {
			return q.is(key) && !q.holds(value, true)
		})
	})
}

// Detector computes what policies of others open in one member. It caches its results, and evaluates again only
// workloads whose policies changed, and new clients. It is not safe for concurrent use.
//
// The work of each Find is bounded, apart from steps that are linear in its input. What is not evaluated for this reason counts as opened.
type Detector struct {
	// pods are the member's pods in the order in which they were first seen, and labeled those with a label.
	pods      []source
	alive     []bool
	known     map[*Handle]int
	labeled   map[Label][]int32
	selectors map[string]*selection
	workloads map[string]*workload
	// ids are the ids of the sets of rules of the last Find, by their first rule, and lastID is the last id that was used.
	ids       map[*rule]int
	lastID    int
	addresses *addresses
	groups    []Group
	// groupSources are the sources at the prefixes of the groups during a Find, and nil before they are needed.
	groupSources []source
	// workloadChecks and memberChecks are maxChecks and maxMemberChecks, except in tests.
	workloadChecks, memberChecks int
	pending                      bool

	// Checks counts the checks of all calls.
	Checks int
}

// NewDetector returns a Detector without results.
func NewDetector() *Detector {
	d := &Detector{addresses: newAddresses(nil), workloadChecks: maxChecks, memberChecks: maxMemberChecks}
	d.reset()
	return d
}

// Pending reports whether the last Find used up the checks for a member and would evaluate further workloads if it was called again.
func (d *Detector) Pending() bool { return d.pending }

// reset drops all results, except for the groups.
func (d *Detector) reset() {
	d.pods, d.alive, d.known, d.labeled = nil, nil, map[*Handle]int{}, map[Label][]int32{}
	d.selectors, d.workloads, d.ids = map[string]*selection{}, map[string]*workload{}, map[*rule]int{}
}

// selection contains the pods that a selector selects, as far as they were compared, in their order.
type selection struct {
	*selector
	seen    int
	matched []int32
	// values is the number of values of its conditions.
	values int
}

// selection returns the pods that a selector selects.
func (d *Detector) selection(s *selector) *selection {
	x := d.selectors[s.text]
	if x == nil {
		x = &selection{selector: s}
		for i := range s.reqs {
			x.values += len(s.reqs[i].values)
		}
		d.selectors[s.text] = x
	}
	return x
}

// extend compares a selector with the pods that it was not compared with, limited to those with a label that it
// requires. It returns false if that takes more checks than the budget has.
func (d *Detector) extend(x *selection, b *budget) bool {
	if x.kind == byPrefix || x.kind == byGroup { // pods have no addresses outside the cluster mesh
		return true
	}
	if x.seen == len(d.pods) {
		return true
	}
	if !b.spend(x.values / smallSteps) {
		return false
	}
	candidates, indexed := d.candidates(x)
	count := len(d.pods) - x.seen
	if indexed {
		count = len(candidates)
	}
	if !b.spend(count * x.checks()) {
		return false
	}
	compare := func(at int) {
		if x.selects(&d.pods[at]) != no {
			x.matched = append(x.matched, int32(at)) //nolint:gosec // a member has fewer pods
		}
	}
	if indexed {
		for _, at := range candidates {
			compare(int(at))
		}
	} else {
		for at := x.seen; at < len(d.pods); at++ {
			compare(at)
		}
	}
	x.seen = len(d.pods)
	return true
}

// candidates returns the pods with a label that a selector requires, of those that it was not compared with. It returns false if the selector
// requires none, or if most pods have it.
func (d *Detector) candidates(x *selection) ([]int32, bool) {
	if x.kind != byLabels {
		return nil, false
	}
	var fewest []int32
	indexed, count := false, len(d.pods)-x.seen
	for i := range x.reqs {
		r := &x.reqs[i]
		if r.op != opIn || r.source != k8sSource && r.source != anySource {
			continue
		}
		total := 0
		for _, v := range r.values {
			total += len(d.unseen(x, r.key, v))
		}
		if total >= count && (indexed || len(r.values) > 1) {
			continue
		}
		fewest, indexed, count = fewest[:0], true, total
		for _, v := range r.values {
			fewest = append(fewest, d.unseen(x, r.key, v)...)
		}
	}
	slices.Sort(fewest)
	return slices.Compact(fewest), indexed
}

// unseen returns the pods with a label that a selector was not compared with.
func (d *Detector) unseen(x *selection, key, value string) []int32 {
	list := d.labeled[Label{key, value}]
	first, _ := slices.BinarySearch(list, int32(x.seen)) //nolint:gosec // a member has fewer pods
	return list[first:]
}

// has reports whether the selector selects a pod.
func (x *selection) has(at int) match {
	if x.kind == opaque {
		return maybe
	}
	if _, found := slices.BinarySearch(x.matched, int32(at)); found { //nolint:gosec // a member has fewer pods
		return yes
	}
	return no
}

// Find computes which pods are opened now.
func (d *Detector) Find(in Input) CiliumExposure {
	out := CiliumExposure{labels: map[Label]string{}, keys: map[string]bool{}}
	d.pending = false
	opening := slices.DeleteFunc(slices.Clone(in.Foreign), func(p *Policy) bool { return !p.Opens() })
	if len(opening) == 0 {
		d.reset()
		return out
	}
	slices.SortFunc(opening, func(a, b *Policy) int { return strings.Compare(a.String(), b.String()) })
	if !slices.EqualFunc(d.groups, in.Groups, func(a, b Group) bool {
		return a.Name == b.Name && maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Prefixes, b.Prefixes)
	}) {
		d.groups, d.addresses, d.workloads = in.Groups, newAddresses(in.Groups), map[string]*workload{}
	}
	targets := d.readIdentities(in)
	if !slices.Contains(d.alive, true) { // the labels of pods that are gone do not count as known
		out.unsure, out.keys = opening, maps.Clone(in.Keys)
		return out
	}
	r := d.newRound(in, targets)
	for _, t := range targets {
		by := d.opener(t.labels, r)
		if by == nil {
			continue
		}
		for _, h := range t.labels {
			if l := h.Value(); in.Keys[l.Key] {
				if had := out.labels[l]; had == "" || by.String() < had {
					out.labels[l] = by.String()
				}
			}
		}
	}
	d.workloads, d.groupSources, d.pending = r.workloads, nil, r.postponed && r.evaluated
	if r.built {
		d.dropUnusedSelections()
	}
	return out
}

// target is an identity of pods with a class's label.
type target struct {
	labels []Handle
	// size measures how much work the rules cause that may select the pods.
	size int
}

// round is the state of one Find.
type round struct {
	index        *index
	groupsUnread bool
	workloads    map[string]*workload
	// left is the number of checks for the member that are left.
	left int
	// built reports whether a workload is new, evaluated whether one was evaluated that has to be evaluated no more in the next round, and
	// postponed whether one was not evaluated because too few checks were left for the member.
	built, evaluated, postponed bool
}

// newRound returns the state for the evaluation of the targets, and sorts them: those with the least work are evaluated first, so that they do
// not depend on policies of others that use up the checks for the member.
func (d *Detector) newRound(in Input, targets []target) *round {
	r := &round{groupsUnread: in.GroupsUnread, workloads: map[string]*workload{}, left: d.memberChecks}
	r.index = newIndex(in, func(first *rule) int {
		if id, ok := d.ids[first]; ok {
			return id
		}
		d.lastID++
		return d.lastID
	})
	d.ids = r.index.ids
	for i := range targets {
		targets[i].size = r.index.sizeOf(targets[i].labels)
	}
	slices.SortStableFunc(targets, func(a, b target) int { return cmp.Compare(a.size, b.size) })
	return r
}

// opener returns a policy that opens, or may open, the pods with an identity; nil if there is none.
func (d *Detector) opener(labels []Handle, r *round) *Policy {
	b := &budget{left: r.left, checks: &d.Checks}
	sets, ok := r.index.applicable(labels, b)
	r.left = b.left
	if !ok {
		r.postponed = true
		return r.index.opener(labels)
	}
	if !slices.ContainsFunc(sets, func(s ruleSet) bool { return s.allows }) || !slices.ContainsFunc(sets, func(s ruleSet) bool { return s.closes && s.sure }) {
		return nil
	}
	k := key(sets)
	w := r.workloads[k]
	if w == nil {
		w = d.update(d.workloads[k], sets, r)
		r.workloads[k] = w
	}
	return w.by
}

// update evaluates the workload that the rules select. w is the workload after the last round, or nil.
func (d *Detector) update(w *workload, sets []ruleSet, r *round) *workload {
	limit := min(r.left, d.workloadChecks)
	b := &budget{left: limit, checks: &d.Checks}
	isNew := w == nil || w.postponed
	if isNew {
		r.built = true
		largest, size := largestOpener(sets)
		w = &workload{}
		if b.spend(size) {
			w = d.workload(sets)
		}
		w.largest = largest
	}
	if !b.exceeded {
		d.evaluate(w, b, r.groupsUnread)
	}
	r.left -= limit - b.left
	if b.exceeded {
		r.built = true // the selections of its rules are not used any more
		w.markExceeded()
		w.postponed = limit < d.workloadChecks
		r.postponed = r.postponed || w.postponed
	}
	r.evaluated = r.evaluated || !w.postponed && (isNew || b.left < limit)
	return w
}

// readIdentities reads the identities, and returns those of pods with a class's label.
func (d *Detector) readIdentities(in Input) (targets []target) {
	alive := make([]bool, len(d.pods))
	in.Each(func(labels []Handle) {
		if len(labels) == 0 {
			return
		}
		at, ok := d.known[&labels[0]]
		if !ok {
			at = len(d.pods)
			d.known[&labels[0]] = at
			d.pods, alive = append(d.pods, source{labels: labels, local: true}), append(alive, true)
			for _, h := range labels {
				l := h.Value()
				if _, key, ok := strings.Cut(l.Key, ":"); ok {
					l.Key = key
				}
				d.labeled[l] = append(d.labeled[l], int32(at)) //nolint:gosec // a member has fewer pods
			}
		}
		alive[at] = true
		if slices.ContainsFunc(labels, func(h Handle) bool { _, ours := in.Keys[h.Value().Key]; return ours }) {
			targets = append(targets, target{labels: labels})
		}
	})
	d.alive = alive
	gone := 0
	for at, there := range alive {
		if there {
			continue
		}
		gone++
		if d.pods[at].labels != nil {
			delete(d.known, &d.pods[at].labels[0])
			d.pods[at].labels = nil
		}
	}
	if gone > 64 && gone > len(d.pods)/2 { // start again when many pods are gone
		d.reset()
		return d.readIdentities(in)
	}
	return targets
}

// key returns the key of a workload.
func key(sets []ruleSet) string {
	var b strings.Builder
	for i := range sets {
		b.WriteString(strconv.Itoa(sets[i].id))
		if sets[i].own {
			b.WriteByte('o')
		}
		if sets[i].sure {
			b.WriteByte('s')
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// dropUnusedSelections removes the selections that no workload uses any more. They may be large.
func (d *Detector) dropUnusedSelections() {
	used := make(map[*selection]struct{}, len(d.selectors))
	for _, w := range d.workloads {
		for i := range w.rules {
			for _, x := range w.rules[i].chosen {
				used[x] = struct{}{}
			}
		}
	}
	maps.DeleteFunc(d.selectors, func(_ string, x *selection) bool {
		_, ok := used[x]
		return !ok
	})
}

// workload returns the workload that the rules select.
func (d *Detector) workload(sets []ruleSet) *workload {
	w := newWorkload(sets)
	for i := range w.rules {
		r := &w.rules[i]
		for j := range r.peers {
			r.chosen = append(r.chosen, d.selection(&r.peers[j]))
		}
	}
	return w
}

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
