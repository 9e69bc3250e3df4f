package foreignpolicy

import (
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

// maxChecks bounds the comparisons for one workload. A workload that would need more counts as opened; that takes
// millions of combinations of clients and ports.
const maxChecks = 2_000_000

// Detector computes what policies of others open in one member. It caches its results, and evaluates again only
// workloads whose policies changed, and new clients. It is not safe for concurrent use.
type Detector struct {
	// pods are the member's pods in the order in which they were first seen, and labeled those with a label.
	pods      []source
	alive     []bool
	known     map[*Handle]int
	labeled   map[Label][]int
	selectors map[string]*selection
	workloads map[string]*workload
	ids       map[*rule]int
	addresses *addresses
	groups    []Group

	// Checks counts comparisons of a selector with a pod, and evaluated combinations of a workload, a client and a
	// port.
	Checks int
}

// NewDetector returns a Detector without results.
func NewDetector() *Detector {
	d := &Detector{addresses: newAddresses(nil)}
	d.reset()
	return d
}

// reset drops all results, except for the groups.
func (d *Detector) reset() {
	d.pods, d.alive, d.known, d.labeled = nil, nil, map[*Handle]int{}, map[Label][]int{}
	d.resetRules()
}

func (d *Detector) resetRules() {
	d.selectors, d.workloads, d.ids = map[string]*selection{}, map[string]*workload{}, map[*rule]int{}
}

// selection contains the pods that a selector selects, as far as they were compared, in their order.
type selection struct {
	*selector
	seen    int
	matched []int
}

// selection returns the pods that a selector selects.
func (d *Detector) selection(s *selector) *selection {
	x := d.selectors[s.text]
	if x == nil {
		x = &selection{selector: s}
		d.selectors[s.text] = x
	}
	return x
}

// extend compares a selector with the pods that it was not compared with, limited to those with a label that it
// requires.
func (d *Detector) extend(x *selection) {
	if x.seen == len(d.pods) {
		return
	}
	from := x.seen
	x.seen = len(d.pods)
	compare := func(at int) {
		d.Checks++
		if x.selects(&d.pods[at]) != no {
			x.matched = append(x.matched, at)
		}
	}
	var fewest []int
	indexed := false
	for _, r := range x.reqs {
		if x.kind != byLabels || r.op != opIn || len(r.values) != 1 || r.source != k8sSource && r.source != anySource {
			continue
		}
		if list := d.labeled[Label{r.key, r.values[0]}]; !indexed || len(list) < len(fewest) {
			fewest, indexed = list, true
		}
	}
	if indexed {
		first, _ := slices.BinarySearch(fewest, from)
		for _, at := range fewest[first:] {
			compare(at)
		}
		return
	}
	for at := from; at < len(d.pods); at++ {
		compare(at)
	}
}

// has reports whether the selector selects a pod.
func (x *selection) has(at int) match {
	if x.kind == opaque {
		return maybe
	}
	if _, found := slices.BinarySearch(x.matched, at); found {
		return yes
	}
	return no
}

// Find computes which pods are opened now.
func (d *Detector) Find(in Input) CiliumExposure {
	out := CiliumExposure{labels: map[Label]string{}, keys: map[string]bool{}}
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
	index := newIndex(in)
	workloads := map[string]*workload{}
	for _, labels := range targets {
		rules := index.applicable(labels, &d.Checks)
		if !slices.ContainsFunc(rules, func(r applicableRule) bool { return !r.own && r.verdict == allow }) {
			continue
		}
		key := d.key(rules)
		w := workloads[key]
		if w == nil {
			if w = d.workloads[key]; w == nil {
				w = d.workload(rules)
			}
			workloads[key] = w
			d.evaluate(w, in.GroupsUnread)
		}
		if w.by == nil {
			continue
		}
		for _, h := range labels {
			if l := h.Value(); in.Keys[l.Key] {
				if had := out.labels[l]; had == "" || w.by.String() < had {
					out.labels[l] = w.by.String()
				}
			}
		}
	}
	d.workloads = workloads
	d.prune()
	return out
}

// readIdentities reads the identities, and returns those of pods with a class's label.
func (d *Detector) readIdentities(in Input) (targets [][]Handle) {
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
				d.labeled[l] = append(d.labeled[l], at)
			}
		}
		alive[at] = true
		if slices.ContainsFunc(labels, func(h Handle) bool { _, ours := in.Keys[h.Value().Key]; return ours }) {
			targets = append(targets, labels)
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

// key returns the key of a set of rules.
func (d *Detector) key(rules []applicableRule) string {
	var b strings.Builder
	for _, r := range rules {
		n, ok := d.ids[r.rule]
		if !ok {
			n = len(d.ids) + 1
			d.ids[r.rule] = n
		}
		b.WriteString(strconv.Itoa(n))
		if r.own {
			b.WriteByte('o')
		}
		if r.sure {
			b.WriteByte('s')
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// prune removes results that no workload uses any more, once there are many.
func (d *Detector) prune() {
	used := 0
	for _, w := range d.workloads {
		used += len(w.rules)
	}
	if len(d.ids) > 1024 && len(d.ids) > 2*used {
		d.resetRules()
	}
}

// workload returns the workload that the rules select.
func (d *Detector) workload(rules []applicableRule) *workload {
	w := newWorkload(rules)
	for _, list := range [][]applicableRule{w.rules, w.foreign} {
		for i := range list {
			for j := range list[i].peers {
				list[i].chosen = append(list[i].chosen, d.selection(&list[i].peers[j]))
			}
		}
	}
	return w
}

// evaluate determines which policy opens a workload: for all clients the first time, and then for new ones.
func (d *Detector) evaluate(w *workload, groupsUnread bool) {
	if !w.closed {
		return
	}
	left := maxChecks
	tried := func(n int) bool {
		left, d.Checks = left-n, d.Checks+n
		return left > 0
	}
	if !w.static {
		w.static = true
		w.by = d.findExternalOpener(w, tried, groupsUnread)
	}
	switch {
	case w.by != nil && (w.opener < 0 || d.alive[w.opener]):
		return // it stays open to the clients that it was open to
	case w.by != nil:
		w.by, w.opener, w.seen = nil, -1, 0
	}
	for i := range w.rules {
		for _, x := range w.rules[i].chosen {
			d.extend(x)
		}
	}
	for i := range w.foreign {
		r := &w.foreign[i]
		for _, x := range r.chosen {
			first, _ := slices.BinarySearch(x.matched, w.seen)
			for _, at := range x.matched[first:] {
				if !d.alive[at] {
					continue
				}
				if w.opens(r, w.aboutPod(at, tried), tried) {
					w.by, w.opener = r.policy, at
					return
				}
			}
		}
	}
	w.seen = len(d.pods)
}

// aboutPod returns which rules match a pod of the member.
func (w *workload) aboutPod(at int, tried func(n int) bool) []match {
	about := make([]match, len(w.rules))
	for i := range w.rules {
		r := &w.rules[i]
		tried(len(r.peers))
		about[i] = r.peer(func(j int) match { return r.chosen[j].has(at) })
	}
	return about
}

// about returns which rules match a source that is not a pod of the member.
func (w *workload) about(s *source, tried func(n int) bool) []match {
	about := make([]match, len(w.rules))
	for i := range w.rules {
		r := &w.rules[i]
		tried(len(r.peers))
		about[i] = r.peer(func(j int) match { return r.peers[j].selects(s) })
	}
	return about
}

// findExternalOpener returns a policy that opens a workload to a source that is not a pod of the member.
func (d *Detector) findExternalOpener(w *workload, tried func(n int) bool, groupsUnread bool) *Policy {
	outside := d.externalSources(w)
	for i := range w.foreign {
		r := &w.foreign[i]
		if groupsUnread && r.policy.groups {
			return r.policy
		}
		opens := func(s *source) bool {
			tried(len(r.peers))
			if r.peer(func(j int) match { return r.peers[j].selects(s) }) == no {
				return false
			}
			return w.opens(r, w.about(s, tried), tried)
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
			pods, sayable := r.peers[j].witnesses(d.ownCluster())
			if !sayable {
				return r.policy
			}
			for k := range pods {
				if opens(&pods[k]) {
					return r.policy
				}
			}
		}
		if !r.reachesOutside() {
			continue
		}
		for j := range outside {
			if opens(&outside[j]) {
				return r.policy
			}
		}
	}
	return nil
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

// reachesOutside reports whether a rule may match addresses outside the cluster mesh, which have no pod labels.
func (r *rule) reachesOutside() bool {
	return slices.ContainsFunc(r.peers, func(s selector) bool {
		return s.kind != byLabels ||
			!s.local && !slices.ContainsFunc(s.reqs, func(q requirement) bool { return q.source == k8sSource && (q.op == opIn || q.op == opExists) })
	})
}

// externalSources returns one address of each kind outside the cluster mesh.
func (d *Detector) externalSources(w *workload) []source {
	if !slices.ContainsFunc(w.foreign, func(r applicableRule) bool { return r.reachesOutside() }) {
		return nil
	}
	prefixes, groups := w.prefixes()
	if groups {
		for _, g := range d.groups {
			prefixes = append(prefixes, g.Prefixes...)
		}
	}
	var out []source
	for _, a := range sampleAddresses(prefixes) {
		out = append(out, d.addresses.source(a, true), d.addresses.source(a, false))
	}
	return out
}
