package foreignpolicy

import (
	"cmp"
	"slices"
	"strings"
)

// ruleSet contains consecutive rules of a policy that select the same pods. It is compared with a pod as a whole, because a policy may have
// very many rules.
type ruleSet struct {
	// id is equal in two rounds if the rules are the same.
	id        int
	rules     []*rule
	own, sure bool
	// allows reports whether one of the rules is an allow of a policy of others, and closes whether one of ACP's rules closes the pods.
	allows, closes bool
	size           int
}

func (s *ruleSet) policy() *Policy { return s.rules[0].policy }

// ruleList contains rules that may select the pods with a label.
type ruleList struct {
	sets []ruleSet
	// checks is the number of checks of a comparison of all sets with a pod, and size measures how much work their rules cause.
	checks, size int
	// opener is the policy of the largest set with an allow of others, nil if there is none.
	opener     *Policy
	openerSize int
}

func (l *ruleList) add(s ruleSet) {
	l.sets = append(l.sets, s)
	l.checks += s.rules[0].subject.checks()
	l.size += s.size
	if s.allows && (l.opener == nil || s.size > l.openerSize) {
		l.opener, l.openerSize = s.policy(), s.size
	}
}

// index finds the rules that may select a pod: by namespace, by label, and the rules that can be found by neither.
type index struct {
	byLabel map[Label]*ruleList
	rest    ruleList
	// ids are the ids of the sets, by their first rule.
	ids map[*rule]int
}

// newIndex returns an index of all policies. number returns the id of the set that begins with a rule.
func newIndex(in Input, number func(first *rule) int) *index {
	x := &index{byLabel: map[Label]*ruleList{}, ids: map[*rule]int{}}
	for _, p := range in.Own {
		x.add(p, true, number)
	}
	for _, p := range in.Foreign {
		x.add(p, false, number)
	}
	return x
}

func (x *index) add(p *Policy, own bool, number func(first *rule) int) {
	for first := 0; first < len(p.rules); {
		s := ruleSet{own: own}
		end := first
		for ; end < len(p.rules) && p.rules[end].subject.text == p.rules[first].subject.text; end++ {
			s.allows = s.allows || !own && p.rules[end].verdict == allow
			s.closes = s.closes || own && p.rules[end].closes
			s.size += p.rules[end].size()
		}
		s.rules = p.rules[first:end]
		s.id = number(s.rules[0])
		x.ids[s.rules[0]] = s.id
		x.addSet(s)
		first = end
	}
}

// addSet adds rules under the label that fewest pods have, or the namespace if there is no other.
func (x *index) addSet(s ruleSet) {
	reqs, best := s.rules[0].subject.reqs, -1
	for i, q := range reqs {
		if q.op == opIn && (q.source == k8sSource || q.source == anySource) && (best < 0 || reqs[best].key == namespaceKey) {
			best = i
		}
	}
	if best < 0 {
		x.rest.add(s)
		return
	}
	for _, v := range reqs[best].values {
		l := Label{reqs[best].key, v}
		if x.byLabel[l] == nil {
			x.byLabel[l] = &ruleList{}
		}
		x.byLabel[l].add(s)
	}
}

// lists calls do with the lists of the rules that may select a pod.
func (x *index) lists(labels []Handle, do func(l *ruleList)) {
	do(&x.rest)
	for _, h := range labels {
		l := h.Value()
		if _, key, ok := strings.Cut(l.Key, ":"); ok {
			l.Key = key // a selector of any source may refer to it
		}
		if list := x.byLabel[l]; list != nil {
			do(list)
		}
	}
}

// sizeOf measures how much work the rules cause that may select a pod.
func (x *index) sizeOf(labels []Handle) int {
	size := 0
	x.lists(labels, func(l *ruleList) { size += l.size })
	return size
}

// opener returns the largest policy of others with an allow that may select a pod, without comparing it with the pod; nil if there is none.
func (x *index) opener(labels []Handle) *Policy {
	var largest *ruleList
	x.lists(labels, func(l *ruleList) {
		if l.opener != nil && (largest == nil || l.openerSize > largest.openerSize) {
			largest = l
		}
	})
	if largest == nil {
		return nil
	}
	return largest.opener
}

// applicable returns the rules that select, or may select, a pod, in the order of their policies and within them. It returns false if that
// takes more checks than the budget has.
func (x *index) applicable(labels []Handle, b *budget) ([]ruleSet, bool) {
	checks := 0
	x.lists(labels, func(l *ruleList) { checks += l.checks })
	if !b.spend(checks) {
		return nil, false
	}
	var out []ruleSet
	pod := source{labels: labels, local: true}
	x.lists(labels, func(l *ruleList) {
		for _, s := range l.sets {
			if m := s.rules[0].subject.selects(&pod); m != no {
				s.sure = m == yes
				out = append(out, s)
			}
		}
	})
	slices.SortFunc(out, func(a, b ruleSet) int {
		return cmp.Or(cmp.Compare(a.policy().id, b.policy().id), cmp.Compare(a.rules[0].index, b.rules[0].index))
	})
	return out, true
}
