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
