package policy

import (
	"encoding/binary"
	"slices"
	"strings"
)

// node is an exact resource that is protected or named by a statement: what a decision needs of it, together, because
// finding it in memory is most of a decision's time.
type node struct {
	class *resourceClass // nil: none covers it
	// covers is which of the index's lists has the wildcards that cover the name, as far as its class goes.
	covers uint32
	target
	// mode is the strictness everywhere and at any time; dependsMode: ask the protection.
	mode int8
}

// dependsMode stands for a mode that is not the same in all members and at all times.
const dependsMode = -1

// wildcard is a wildcard resource that a statement names.
type wildcard struct {
	stem string
	// statements are all of them, by number.
	statements []uint32
	byClass    []classTarget
}

type classTarget struct {
	class *resourceClass
	// number among the targets of wildcards.
	number uint32
	target
}

// index finds the statements about a subject and a resource.
type index struct {
	resources, subjects numbering
	// nodes, protections (nil: not onboarded) and about (the statements that name it) are by the resource's number.
	nodes       []node
	protections []*protection
	about       lists
	// by are the statements that name a subject exactly, by its number, anySubject those with wildcards or anyone.
	by         lists
	anySubject []uint32
	wild       map[string][]*wildcard // by the head of the stem
	wilds      uint32                 // how many targets wildcards have
	// covers are distinct lists of wildcards; the first is empty.
	covers  [][]target
	entries []entry
}

// maxPairs bounds the pairs of one statement: one with more is looked through instead, because 256 times 256 entries
// would cost more memory than they save time.
const maxPairs = 2048

// wildFlag tells the target of a wildcard from that of a resource, as long as more of both may come.
const wildFlag = 1 << 31

func (s *Snapshot) buildIndex() {
	x := &s.index
	x.resources, x.subjects, x.wild = newNumbering(len(s.protected)), newNumbering(1024), map[string][]*wildcard{}
	for name, p := range s.protected {
		s.protect(s.resourceNumber(name), p)
	}
	b := indexing{Snapshot: s, entries: make([]pending, 0, len(s.statements)), by: make([]member, 0, len(s.statements)), about: make([]member, 0, len(s.statements))}
	for i, st := range s.statements {
		b.add(st, uint32(i))
	}
	x.by, x.about = newLists(len(x.subjects.names), b.by), newLists(len(x.nodes), b.about)
	for i := range b.entries {
		if t := &b.entries[i].target; *t&wildFlag != 0 {
			*t = *t&^wildFlag + uint32(len(x.nodes))
		}
	}
	targets, entries := place(len(x.nodes)+int(x.wilds), b.entries)
	x.entries = entries
	for i := range x.nodes {
		x.nodes[i].target = targets[i]
	}
	for _, list := range x.wild {
		for _, w := range list {
			for i := range w.byClass {
				c := &w.byClass[i]
				c.target = targets[uint32(len(x.nodes))+c.number]
			}
		}
	}
	s.linkWildcards()
}

// protect attaches what the ProtectedResources say.
func (s *Snapshot) protect(resource uint32, p *protection) {
	mode := int8(dependsMode)
	if len(p.objects) == 1 && len(p.objects[0].Spec.ClusterModes) == 0 && p.objects[0].Spec.TemporaryAudit == nil {
		mode = strictness(p.objects[0].Spec.Mode)
	}
	s.index.protections[resource], s.index.nodes[resource].mode = p, mode
}

// resourceNumber makes the resource known.
func (s *Snapshot) resourceNumber(name string) uint32 {
	x := &s.index
	number := x.resources.add(name)
	if int(number) == len(x.nodes) {
		class, _ := s.resources.of(name)
		x.nodes, x.protections = append(x.nodes, node{class: class}), append(x.protections, nil)
	}
	return number
}

// indexing gathers what the statements say, statement after statement.
type indexing struct {
	*Snapshot
	entries   []pending
	by, about []member
	subjects  []uint32 // of the statement, from 1
	last      struct { // the resource that was looked up last; the next statement is likely to be about it, too
		name   string
		number uint32
	}
}

func (b *indexing) add(st *statement, number uint32) {
	x := &b.index
	b.subjects = b.subjects[:0]
	for _, name := range st.subjects.exact {
		id := x.subjects.add(name)
		b.by = append(b.by, member{group: id, number: number})
		b.subjects = append(b.subjects, id+1)
	}
	if !st.subjects.simple() || st.vagueSubject {
		x.anySubject = append(x.anySubject, number)
	}
	if st.lookedThrough() {
		b.subjects = append(b.subjects[:0], 0)
	}
	flagged := number
	if st.effect == Deny {
		flagged |= denyFlag
	}
	if !st.notBefore.IsZero() || !st.notAfter.IsZero() {
		flagged |= boundedFlag
	}
	for _, r := range st.exact {
		if r != b.last.name {
			b.last.name, b.last.number = r, b.resourceNumber(r)
		}
		b.about = append(b.about, member{group: b.last.number, number: number})
		b.entriesFor(b.last.number, x.nodes[b.last.number].class, st, flagged)
	}
	for _, stem := range st.wild {
		w := b.wildcardOf(stem)
		w.statements = append(w.statements, number)
		for i := range w.byClass {
			c := &w.byClass[i]
			b.entriesFor(c.number|wildFlag, c.class, st, flagged)
			if st.effect == Allow {
				name := longer(stem, c.class.stem) + "*"
				if list := b.wildUnits[name]; len(list) == 0 || list[len(list)-1] != st {
					b.wildUnits[name] = append(list, st)
				}
			}
		}
	}
}

func (b *indexing) entriesFor(target uint32, c *resourceClass, st *statement, flagged uint32) {
	if c == nil {
		return
	}
	actions := c.actionsOf(st)
	if actions == 0 {
		return // no connection to the class's resources is any of its actions
	}
	for _, id := range b.subjects {
		b.entries = append(b.entries, pending{target, entry{subject: id, actions: actions, statement: flagged}})
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
			w.byClass = append(w.byClass, classTarget{class: c, number: x.wilds})
			x.wilds++
		}
	}
	x.wild[head] = append(x.wild[head], w)
	return w
}

func (st *statement) lookedThrough() bool {
	return st.vagueSubject || !st.subjects.simple() || len(st.subjects.exact)*(len(st.exact)+len(st.wild)) > maxPairs
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
	x := &s.index
	x.covers = [][]target{nil}
	if len(x.wild) == 0 {
		return
	}
	lists := map[string]uint32{"": 0}
	var found []target
	var key []byte
	for i, name := range x.resources.names {
		n := &x.nodes[i]
		found, key = s.covering(found[:0], name, n.class), key[:0]
		for _, t := range found {
			key = binary.LittleEndian.AppendUint32(key, t.table)
		}
		list, ok := lists[string(key)]
		if !ok {
			list = uint32(len(x.covers))
			lists[string(key)], x.covers = list, append(x.covers, slices.Clone(found))
		}
		n.covers = list
	}
}

// covering appends the wildcards that cover a name, as far as its class goes.
func (s *Snapshot) covering(out []target, name string, class *resourceClass) []target {
	if class == nil {
		return out
	}
	for _, w := range s.index.wild[headOf(name)] {
		if !strings.HasPrefix(name, w.stem) {
			continue
		}
		for i := range w.byClass {
			if t := w.byClass[i].target; w.byClass[i].class == class && t.table < t.end {
				out = append(out, t)
			}
		}
	}
	return out
}

// numbersOf are the statements that may match an exact subject and an exact resource, by number; sorted.
func (x *index) numbersOf(subject, resource string) []uint32 {
	r, ok := x.resources.find(resource)
	if !ok {
		return nil
	}
	var out []uint32
	id, named := x.subjects.find(subject)
	visit := func(t *target) {
		if named && t.table < t.broad {
			for i := t.slot(id + 1); x.entries[i].subject != 0; i = t.after(i) {
				if x.entries[i].subject == id+1 {
					out = append(out, x.entries[i].statement&numberMask)
				}
			}
		}
		for _, e := range x.entries[t.broad:t.end] {
			out = append(out, e.statement&numberMask)
		}
	}
	n := &x.nodes[r]
	visit(&n.target)
	for i := range x.covers[n.covers] {
		visit(&x.covers[n.covers][i])
	}
	return sortedNumbers(out)
}

func sortedNumbers(numbers []uint32) []uint32 {
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// numbersAbout are the statements about a resource, by its exact name or by a wildcard; sorted, which is by ref.
func (s *Snapshot) numbersAbout(resource string, byWildcard func(*statement) bool) []uint32 {
	var out []uint32
	if n, ok := s.index.resources.find(resource); ok {
		out = append(out, s.index.about.of(n)...)
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
