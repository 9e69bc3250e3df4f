package policy

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
)

// target is what statements are found by: an exact resource, or a wildcard as far as one class goes.
type target struct {
	id uint32
	// statements are all of them, by number.
	statements []uint32
	// broad are those that are looked through, because their subjects are not all exact names.
	broad []entry
	// subjects has a bit for each exact subject of a wildcard: most are none, and need no search.
	subjects []uint64
}

// entry is a statement as the targets of one class have it.
type entry struct {
	// actions has a bit for each action of the class that the statement names.
	actions uint32
	// statement is its number, with flags.
	statement uint32
}

const (
	denyFlag    = 1 << 31
	boundedFlag = 1 << 30 // it has a beginning or an end
	numberMask  = boundedFlag - 1
	// maxActions of a class have a bit in an entry.
	maxActions = 32
)

// node is an exact resource that is protected or named by a statement.
type node struct {
	target
	class      *resourceClass // nil: none covers it
	protection *protection    // nil: not onboarded
	// fixed is the mode everywhere and at any time; "": it depends.
	fixed v1alpha1.Mode
	// wilds are the wildcards that cover the name, as far as its class goes.
	wilds []*target
}

// wildcard is a wildcard resource that a statement names.
type wildcard struct {
	stem string
	// statements are all of them, by number.
	statements []uint32
	byClass    []classTarget
}

type classTarget struct {
	class *resourceClass
	target
}

// pair is a slot of the table of exact subjects and targets. Several statements for one pair follow each other.
type pair struct {
	key uint64 // 0: empty, as no target has the id 0
	entry
}

// index finds the statements about a subject and a resource.
type index struct {
	nodes    map[string]*node
	wild     map[string][]*wildcard // by the head of the stem
	subjects map[string]uint32
	// bySubject are the statements that name a subject exactly, anySubject those with wildcards or anyone; by number.
	bySubject  [][]uint32
	anySubject []uint32

	pairs   []pair // a power of two of them, at most half of them in use
	shift   uint
	targets uint32
}

// maxPairs bounds the pairs of one statement: one with more is looked through instead, because 256 times 256 entries
// would cost more memory than they save time.
const maxPairs = 2048

func (s *Snapshot) buildIndex() {
	x := &s.index
	x.nodes = make(map[string]*node, len(s.protected))
	x.wild = map[string][]*wildcard{}
	x.subjects = make(map[string]uint32, 1024)
	for name, p := range s.protected {
		s.node(name).protect(p)
	}
	count := 0
	ids := make([]uint32, 0, len(s.statements)) // of all exact subjects, in order
	for i, st := range s.statements {
		ids = s.indexSubjects(ids, st, uint32(i))
		s.indexWild(st, uint32(i))
		count += st.pairCount()
	}
	x.makePairs(count)
	var last lastNode
	for i, st := range s.statements {
		n := uint32(i)
		if st.effect == Deny {
			n |= denyFlag
		}
		if !st.notBefore.IsZero() || !st.notAfter.IsZero() {
			n |= boundedFlag
		}
		own := ids[:len(st.subjects.exact)]
		ids = ids[len(own):]
		last = s.indexExact(st, n, own, last)
		s.indexWildTargets(st, n, own)
	}
	s.linkWildcards()
}

// protect attaches what the ProtectedResources say.
func (n *node) protect(p *protection) {
	n.protection, n.fixed = p, ""
	if len(p.objects) == 1 && len(p.objects[0].Spec.ClusterModes) == 0 && p.objects[0].Spec.TemporaryAudit == nil {
		n.fixed = p.objects[0].Spec.Mode
	}
}

func (s *Snapshot) node(name string) *node {
	n := s.index.nodes[name]
	if n == nil {
		s.index.targets++
		n = &node{target: target{id: s.index.targets}, fixed: v1alpha1.ModeObserve}
		n.class, _ = s.resources.of(name)
		s.index.nodes[name] = n
	}
	return n
}

func (s *Snapshot) indexSubjects(ids []uint32, st *statement, number uint32) []uint32 {
	x := &s.index
	for _, name := range st.subjects.exact {
		id, ok := x.subjects[name]
		if !ok {
			id = uint32(len(x.bySubject))
			x.subjects[name] = id
			x.bySubject = append(x.bySubject, nil)
		}
		x.bySubject[id] = append(x.bySubject[id], number)
		ids = append(ids, id)
	}
	if !st.subjects.simple() || st.vagueSubject {
		x.anySubject = append(x.anySubject, number)
	}
	return ids
}

// indexWild makes the wildcards of a statement known, so that the number of targets is settled.
func (s *Snapshot) indexWild(st *statement, number uint32) {
	for _, stem := range st.wild {
		w := s.wildcardOf(stem)
		w.statements = append(w.statements, number)
		if st.effect == Allow {
			for i := range w.byClass {
				name := longer(stem, w.byClass[i].class.stem) + "*"
				if list := s.wildUnits[name]; len(list) == 0 || list[len(list)-1] != st {
					s.wildUnits[name] = append(list, st)
				}
			}
		}
	}
}

func (s *Snapshot) wildcardOf(stem string) *wildcard {
	x := &s.index
	head := headOf(stem)
	for _, w := range x.wild[head] {
		if w.stem == stem {
			return w
		}
	}
	w := &wildcard{stem: stem}
	if n, err := ParseName(stem + "*"); err == nil {
		for _, c := range s.resources.overlapping(n) {
			x.targets++
			w.byClass = append(w.byClass, classTarget{class: c, target: target{id: x.targets}})
		}
	}
	x.wild[head] = append(x.wild[head], w)
	return w
}

// pairCount is at least how many pairs the statement takes.
func (st *statement) pairCount() int {
	if st.lookedThrough() {
		return 0
	}
	return len(st.subjects.exact) * (len(st.exact) + 2*len(st.wild))
}

func (st *statement) lookedThrough() bool {
	return st.vagueSubject || !st.subjects.simple() || len(st.subjects.exact)*(len(st.exact)+len(st.wild)) > maxPairs
}

func (x *index) makePairs(count int) {
	size := 64
	x.shift = 64 - 6
	for size < 2*count {
		size, x.shift = size*2, x.shift-1
	}
	x.pairs = make([]pair, size)
}

func pairKey(target, subject uint32) uint64 { return uint64(target)<<32 | uint64(subject) }

func (x *index) slot(key uint64) int { return int(key * 0x9e3779b97f4a7c15 >> x.shift) }

func (x *index) addPair(key uint64, e entry) {
	i := x.slot(key)
	for x.pairs[i].key != 0 {
		i = (i + 1) & (len(x.pairs) - 1)
	}
	x.pairs[i] = pair{key: key, entry: e}
}

// lastNode is a node that was looked up; the next statement is likely to be about it, too.
type lastNode struct {
	name string
	*node
}

func (s *Snapshot) indexExact(st *statement, number uint32, subjects []uint32, last lastNode) lastNode {
	for _, r := range st.exact {
		if last.node == nil || last.name != r {
			last = lastNode{r, s.node(r)}
		}
		last.statements = append(last.statements, number&numberMask)
		if last.class != nil {
			s.add(&last.target, st, subjects, entry{actions: last.class.actionsOf(st), statement: number})
		}
	}
	return last
}

func (s *Snapshot) indexWildTargets(st *statement, number uint32, subjects []uint32) {
	for _, stem := range st.wild {
		w := s.wildcardOf(stem)
		for i := range w.byClass {
			t := &w.byClass[i]
			if t.subjects == nil {
				t.subjects = make([]uint64, len(s.index.bySubject)/64+1)
			}
			for _, id := range subjects {
				t.subjects[id/64] |= 1 << (id % 64)
			}
			s.add(&t.target, st, subjects, entry{actions: t.class.actionsOf(st), statement: number})
		}
	}
}

func (s *Snapshot) add(t *target, st *statement, subjects []uint32, e entry) {
	if e.actions == 0 {
		return // no connection to the class's resources is any of its actions
	}
	if st.lookedThrough() {
		t.broad = append(t.broad, e)
		return
	}
	for _, id := range subjects {
		s.index.addPair(pairKey(t.id, id), e)
	}
}

// actionsOf has a bit for each action of the class that the statement names.
func (c *resourceClass) actionsOf(st *statement) uint32 {
	var out uint32
	for i := range c.actions {
		if st.hasAction(c.actions[i].name) {
			out |= 1 << i
		}
	}
	return out
}

// linkWildcards tells every known resource which wildcards cover it.
func (s *Snapshot) linkWildcards() {
	if len(s.index.wild) == 0 {
		return
	}
	for name, n := range s.index.nodes {
		n.wilds = s.covering(nil, name, n.class)
	}
}

// covering appends the wildcards that cover a name, as far as its class goes.
func (s *Snapshot) covering(out []*target, name string, class *resourceClass) []*target {
	if class == nil {
		return out
	}
	for _, w := range s.index.wild[headOf(name)] {
		if !strings.HasPrefix(name, w.stem) {
			continue
		}
		for i := range w.byClass {
			if w.byClass[i].class == class {
				out = append(out, &w.byClass[i].target)
			}
		}
	}
	return out
}

// numbersAbout are the statements about a resource, by its exact name or by a wildcard; sorted, which is by ref.
func (s *Snapshot) numbersAbout(resource string, byWildcard func(*statement) bool) []uint32 {
	var out []uint32
	if n := s.index.nodes[resource]; n != nil {
		out = append(out, n.statements...)
	}
	sorted := true
	for _, w := range s.index.wild[headOf(resource)] {
		if !strings.HasPrefix(resource, w.stem) {
			continue
		}
		for _, number := range w.statements {
			if byWildcard(s.statements[number]) {
				out, sorted = append(out, number), false
			}
		}
	}
	if !sorted {
		slices.Sort(out)
	}
	return slices.Compact(out)
}
