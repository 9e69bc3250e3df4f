package foreignpolicy

import (
	"slices"
	"strings"
)

// index finds the rules that may select a pod: by namespace, by label, and the rules that can be found by neither.
type index struct {
	byLabel map[Label][]applicableRule
	rest    []applicableRule
}

func newIndex(in Input) *index {
	x := &index{byLabel: map[Label][]applicableRule{}}
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
		b := applicableRule{rule: r, own: own}
		// The label that fewest pods have is the best key; the namespace is the second best.
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

// applicable returns the rules that select, or may select, a pod, in the order of their policies and within them.
func (x *index) applicable(labels []Handle, checks *int) []applicableRule {
	var out []applicableRule
	pod := source{labels: labels, local: true}
	take := func(list []applicableRule) {
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
			l.Key = key // a selector of any source may refer to it
		}
		take(x.byLabel[l])
	}
	slices.SortFunc(out, func(a, b applicableRule) int {
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
