package foreignpolicy

import (
	"slices"
	"strings"
)

// index finds the rules that may select a pod: those of its namespace, those with one of its labels, and those of which
// nothing of the kind is known.
type index struct {
	byLabel map[Label][]bearing
	rest    []bearing
}

func newIndex(in Input) *index {
	x := &index{byLabel: map[Label][]bearing{}}
	for _, p := range in.Own {
		x.add(p, true)
	}
	for _, p := range in.Foreign {
		x.add(p, false)
	}
	return x
}

func (x *index) add(p *Policy, own bool) {
	for _, r := range p.rules {
		b := bearing{rule: r, own: own}
		// A label of one of few values is what most others lack; the namespace is the second best.
		best := -1
		for i, q := range r.subject.reqs {
			if q.op == opIn && (q.source == k8sSource || q.source == anySource) && (best < 0 || r.subject.reqs[best].key == namespaceKey) {
				best = i
			}
		}
		if best < 0 {
			x.rest = append(x.rest, b)
			continue
		}
		for _, v := range r.subject.reqs[best].values {
			l := Label{r.subject.reqs[best].key, v}
			x.byLabel[l] = append(x.byLabel[l], b)
		}
	}
}

// bearing are the rules that select a pod, or may do so, in the order of their policies and in them.
func (x *index) bearing(labels []Handle, checks *int) []bearing {
	var out []bearing
	pod := source{labels: labels, local: true}
	take := func(list []bearing) {
		for _, b := range list {
			*checks++
			if m := b.subject.selects(&pod); m != no {
				b.sure = m == yes
				out = append(out, b)
			}
		}
	}
	take(x.rest)
	for _, h := range labels {
		l := h.Value()
		if _, key, ok := strings.Cut(l.Key, ":"); ok {
			l.Key = key // a selector of any source may mean it
		}
		take(x.byLabel[l])
	}
	slices.SortFunc(out, func(a, b bearing) int {
		if a.policy.id != b.policy.id {
			if a.policy.id < b.policy.id {
				return -1
			}
			return 1
		}
		return a.index - b.index
	})
	return out
}
