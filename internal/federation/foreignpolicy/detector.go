package foreignpolicy

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Input is what there is in a member.
type Input struct {
	// Own are ACP's policies, and Foreign those of others.
	Own, Foreign []*Policy
	Groups       []Group
	// GroupsUnread: the groups are not known, so that policies of others that name some may let in anybody.
	GroupsUnread bool
	// Keys are those of the labels that classes select pods by.
	Keys map[string]bool
	// Each calls do with the labels of each identity of the member's pods. Without identities nobody knows which pods there
	// are.
	Each func(do func(labels []Handle))
}

// Opened tells which pods of some classes policies of others open in a member.
type Opened struct {
	// labels of pods that are there, with the policy that opens them.
	labels map[Label]string
	// unsure are policies that open pods nobody knows of.
	unsure []*Policy
	keys   map[string]bool
}

// By names the policy that opens the pods with a label, or may do so; "": none does.
func (o Opened) By(key, value string) string {
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

// Equal tells whether two say the same.
func (o Opened) Equal(p Opened) bool {
	return maps.Equal(o.labels, p.labels) && maps.Equal(o.keys, p.keys) && slices.Equal(o.unsure, p.unsure)
}

// maySelect tells whether some pod with the label, of which nothing else is known, may be let in to.
func (p *Policy) maySelect(key, value string) bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool {
		return r.verdict == allow && len(r.peers) > 0 && len(r.grants) > 0 && !slices.ContainsFunc(r.subject.reqs, func(q requirement) bool {
			return q.is(key) && !q.holds(value, true)
		})
	})
}

// mostChecks bounds what is compared for one workload. A workload that would need more counts as opened: it takes millions of
// combinations of clients and ports to come here.
const mostChecks = 2_000_000

// Detector finds what policies of others open in one member. It keeps what it found, and looks again only at workloads whose
// policies changed, and at clients that it has not seen. It is not safe for concurrent use.
type Detector struct {
	// pods are the member's, by what they were first seen at, and labeled those with a label.
	pods      []source
	alive     []bool
	known     map[*Handle]int
	labeled   map[Label][]int
	selectors map[string]*selection
	workloads map[string]*workload
	ids       map[*rule]int
	addresses *addresses
	groups    []Group

	// Checks counts comparisons of a selector with a pod, and combinations of a workload, a client and a port that were tried.
	Checks int
}

// NewDetector makes a Detector that has seen nothing.
func NewDetector() *Detector {
	d := &Detector{addresses: newAddresses(nil)}
	d.forget()
	return d
}

// forget drops all that was found, but for the groups.
func (d *Detector) forget() {
	d.pods, d.alive, d.known, d.labeled = nil, nil, map[*Handle]int{}, map[Label][]int{}
	d.forgetRules()
}

func (d *Detector) forgetRules() {
	d.selectors, d.workloads, d.ids = map[string]*selection{}, map[string]*workload{}, map[*rule]int{}
}

// selection holds which of the pods a selector selects, as far as they were compared, in their order.
type selection struct {
	*selector
	seen    int
	matched []int
}

// selection returns what a selector selects of the pods.
func (d *Detector) selection(s *selector) *selection {
	x := d.selectors[s.text]
	if x == nil {
		x = &selection{selector: s}
		d.selectors[s.text] = x
	}
	return x
}

// extend compares a selector with the pods that it was not compared with: those that have a label that it asks for.
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
	asks := false
	for _, r := range x.reqs {
		if x.kind != byLabels || r.op != opIn || len(r.values) != 1 || r.source != k8sSource && r.source != anySource {
			continue
		}
		if list := d.labeled[Label{r.key, r.values[0]}]; !asks || len(list) < len(fewest) {
			fewest, asks = list, true
		}
	}
	if asks {
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

// has tells whether the selector selects a pod.
func (x *selection) has(at int) match {
	if x.kind == opaque {
		return maybe
	}
	if _, found := slices.BinarySearch(x.matched, at); found {
		return yes
	}
	return no
}

// Find tells what is opened now.
func (d *Detector) Find(in Input) Opened {
	out := Opened{labels: map[Label]string{}, keys: map[string]bool{}}
	opening := slices.DeleteFunc(slices.Clone(in.Foreign), func(p *Policy) bool { return !p.Opens() })
	if len(opening) == 0 {
		d.forget()
		return out
	}
	slices.SortFunc(opening, func(a, b *Policy) int { return strings.Compare(a.String(), b.String()) })
	if !slices.EqualFunc(d.groups, in.Groups, func(a, b Group) bool {
		return a.Name == b.Name && maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Prefixes, b.Prefixes)
	}) {
		d.groups, d.addresses, d.workloads = in.Groups, newAddresses(in.Groups), map[string]*workload{}
	}
	targets := d.take(in)
	if len(d.pods) == 0 {
		out.unsure, out.keys = opening, maps.Clone(in.Keys)
		return out
	}
	index := newIndex(in)
	workloads := map[string]*workload{}
	for _, labels := range targets {
		rules := index.bearing(labels, &d.Checks)
		if !slices.ContainsFunc(rules, func(r bearing) bool { return !r.own && r.verdict == allow }) {
			continue
		}
		key := d.key(rules)
		w := workloads[key]
		if w == nil {
			if w = d.workloads[key]; w == nil {
				w = d.workload(rules)
			}
			workloads[key] = w
			d.judge(w, in.GroupsUnread)
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
	d.sweep()
	return out
}

// take reads the identities, and returns those of pods with a class's label.
func (d *Detector) take(in Input) (targets [][]Handle) {
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
	if gone > 64 && gone > len(d.pods)/2 { // begin anew rather than keep what is gone
		d.forget()
		return d.take(in)
	}
	return targets
}

// key identifies a set of rules.
func (d *Detector) key(rules []bearing) string {
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

// sweep forgets what no workload uses any more, once there is much of it.
func (d *Detector) sweep() {
	used := 0
	for _, w := range d.workloads {
		used += len(w.rules)
	}
	if len(d.ids) > 1024 && len(d.ids) > 2*used {
		d.forgetRules()
	}
}

// workload makes one of the rules that select it.
func (d *Detector) workload(rules []bearing) *workload {
	w := newWorkload(rules)
	for _, list := range [][]bearing{w.rules, w.foreign} {
		for i := range list {
			for j := range list[i].peers {
				list[i].chosen = append(list[i].chosen, d.selection(&list[i].peers[j]))
			}
		}
	}
	return w
}

// judge finds out which policy opens a workload: all of it the first time, and then what is new.
func (d *Detector) judge(w *workload, groupsUnread bool) {
	if !w.closed {
		return
	}
	left := mostChecks
	tried := func(n int) bool {
		left, d.Checks = left-n, d.Checks+n
		return left > 0
	}
	if !w.static {
		w.static = true
		w.by = d.others(w, tried, groupsUnread)
	}
	switch {
	case w.by != nil && (w.opener < 0 || d.alive[w.opener]):
		return // it stays open to whom it was open
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

// aboutPod tells which rules are about a pod of the member.
func (w *workload) aboutPod(at int, tried func(n int) bool) []match {
	about := make([]match, len(w.rules))
	for i := range w.rules {
		r := &w.rules[i]
		tried(len(r.peers))
		about[i] = r.peer(func(j int) match { return r.chosen[j].has(at) })
	}
	return about
}

// about tells which rules are about a source that is no pod of the member.
func (w *workload) about(s *source, tried func(n int) bool) []match {
	about := make([]match, len(w.rules))
	for i := range w.rules {
		r := &w.rules[i]
		tried(len(r.peers))
		about[i] = r.peer(func(j int) match { return r.peers[j].selects(s) })
	}
	return about
}

// others looks for a policy that opens a workload to somebody who is no pod of the member.
func (d *Detector) others(w *workload, tried func(n int) bool, groupsUnread bool) *Policy {
	outside := d.outside(w)
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

// ownCluster is the name of the member's cluster, as its pods have it; a value that no label has if none does.
func (d *Detector) ownCluster() string {
	for _, p := range d.pods {
		for _, h := range p.labels {
			if l := h.Value(); l.Key == clusterKey {
				return l.Value
			}
		}
	}
	return nobody
}

// reachesOutside tells whether a rule may be about addresses outside of the cluster mesh: these have no labels of pods.
func (r *rule) reachesOutside() bool {
	return slices.ContainsFunc(r.peers, func(s selector) bool {
		return s.kind != byLabels || !s.local && !slices.ContainsFunc(s.reqs, func(q requirement) bool { return q.source == k8sSource && (q.op == opIn || q.op == opExists) })
	})
}

// outside are an address of each kind outside of the cluster mesh.
func (d *Detector) outside(w *workload) []source {
	if !slices.ContainsFunc(w.foreign, func(r bearing) bool { return r.reachesOutside() }) {
		return nil
	}
	prefixes, groups := w.prefixes()
	if groups {
		for _, g := range d.groups {
			prefixes = append(prefixes, g.Prefixes...)
		}
	}
	var out []source
	for _, a := range corners(prefixes) {
		out = append(out, d.addresses.source(a, true), d.addresses.source(a, false))
	}
	return out
}
