package foreignpolicy

import (
	"maps"
	"slices"
)

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
