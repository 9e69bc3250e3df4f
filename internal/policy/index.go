package policy

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"
)

// node is an exact resource that is protected or named by a statement. It keeps the data of a decision together,
// because memory access is most of a decision's time.
type node struct {
	class *resourceClass // nil if no class covers the resource
	// covers is the number of the list in index.covers with the wildcards that cover the name, limited to its class.
	covers uint32
	target
	// mode is the strictness in all members and at all times, or dependsMode if it has to be computed from the
	// protection.
	mode int8
}

// dependsMode marks a mode that differs between members or over time.
const dependsMode = -1

// wildcard is a wildcard resource that a statement names.
type wildcard struct {
	stem string
	// statements are the numbers of all statements that name it.
	statements []uint32
	byClass    []classTarget
}

type classTarget struct {
	class *resourceClass
	// number is its position among the targets of wildcards.
	number uint32
	target
}

// index finds the statements about a subject and a resource.
type index struct {
	resources, subjects numbering
	// nodes, protections (nil if not onboarded) and byResource (the statements that name the resource) are indexed by
	// the resource's number.
	nodes       []node
	protections []*protection
	byResource  lists
	// bySubject contains the statements that name a subject exactly, by the subject's number. anySubject contains the
	// statements with wildcards or anyone.
	bySubject       lists
	anySubject      []uint32
	wildcards       map[string][]*wildcard // by the head of the stem
	wildcardTargets uint32                 // number of targets of wildcards
	// covers are distinct lists of wildcards; the first is empty.
	covers  [][]target
	entries []entry
}

// maxPairs bounds the subject-resource pairs of one statement that are indexed. A statement with more is scanned
// instead, because 256 times 256 entries would cost more memory than they save time.
const maxPairs = 2048

// wildcardFlag distinguishes the target of a wildcard from that of a resource while the numbers of both still grow.
const wildcardFlag = 1 << 31

func (s *Snapshot) buildIndex() {
	x := &s.index
	x.resources, x.subjects, x.wildcards = newNumbering(len(s.protected)), newNumbering(1024), map[string][]*wildcard{}
	for name, p := range s.protected {
		s.setProtection(s.resourceNumber(name), p)
	}
	b := indexBuilder{
		Snapshot:   s,
		entries:    make([]pendingEntry, 0, len(s.statements)),
		bySubject:  make([]listItem, 0, len(s.statements)),
		byResource: make([]listItem, 0, len(s.statements)),
	}
	for i, st := range s.statements {
		b.add(st, uint32(i))
	}
	x.bySubject, x.byResource = newLists(len(x.subjects.names), b.bySubject), newLists(len(x.nodes), b.byResource)
	for i := range b.entries {
		if t := &b.entries[i].target; *t&wildcardFlag != 0 {
			*t = *t&^wildcardFlag + uint32(len(x.nodes))
		}
	}
	targets, entries := buildTables(len(x.nodes)+int(x.wildcardTargets), b.entries)
	x.entries = entries
	for i := range x.nodes {
		x.nodes[i].target = targets[i]
	}
	for _, list := range x.wildcards {
		for _, w := range list {
			for i := range w.byClass {
				c := &w.byClass[i]
				c.target = targets[uint32(len(x.nodes))+c.number]
			}
		}
	}
	s.linkWildcards()
}

// setProtection stores the modes of the ProtectedResources of a resource.
func (s *Snapshot) setProtection(resource uint32, p *protection) {
	mode := int8(dependsMode)
	if len(p.objects) == 1 && p.objects[0].Spec.TemporaryAudit == nil && len(p.named()) == 0 {
		mode = strictness(objectMode(p.objects[0], "", time.Time{}))
	}
	s.index.protections[resource], s.index.nodes[resource].mode = p, mode
}

// resourceNumber returns the number of a resource, and adds the resource if it is new.
func (s *Snapshot) resourceNumber(name string) uint32 {
	x := &s.index
	number := x.resources.add(name)
	if int(number) == len(x.nodes) {
		class, _ := s.resources.of(name)
		x.nodes, x.protections = append(x.nodes, node{class: class}), append(x.protections, nil)
	}
	return number
}

// indexBuilder collects the entries of all statements, one statement after the other.
type indexBuilder struct {
	*Snapshot
	entries               []pendingEntry
	bySubject, byResource []listItem
	subjects              []uint32 // subjects of the current statement, numbered from 1
	last                  struct { // the resource that was looked up last; the next statement is likely to name it, too
		name   string
		number uint32
	}
}

func (b *indexBuilder) add(st *statement, number uint32) {
	x := &b.index
	b.subjects = b.subjects[:0]
	for _, name := range st.subjects.exact {
		id := x.subjects.add(name)
		b.bySubject = append(b.bySubject, listItem{group: id, number: number})
		b.subjects = append(b.subjects, id+1)
	}
	if !st.subjects.simple() || st.unresolvedSubject {
		x.anySubject = append(x.anySubject, number)
	}
	if st.isScanned() {
		b.subjects = append(b.subjects[:0], 0)
	}
	flagged := number
	if st.effect == Deny {
		flagged |= denyFlag
	}
	if st.isBounded() {
		flagged |= boundedFlag
	}
	for _, r := range st.exact {
		if r != b.last.name {
			b.last.name, b.last.number = r, b.resourceNumber(r)
		}
		b.byResource = append(b.byResource, listItem{group: b.last.number, number: number})
		b.entriesFor(b.last.number, x.nodes[b.last.number].class, st, flagged)
	}
	for _, stem := range st.wild {
		w := b.wildcardOf(stem)
		w.statements = append(w.statements, number)
		for i := range w.byClass {
			c := &w.byClass[i]
			b.entriesFor(c.number|wildcardFlag, c.class, st, flagged)
			if st.effect == Allow {
				name := longer(stem, c.class.stem) + "*"
				if list := b.wildUnits[name]; len(list) == 0 || list[len(list)-1] != st {
					b.wildUnits[name] = append(list, st)
				}
			}
		}
	}
}

func (b *indexBuilder) entriesFor(target uint32, c *resourceClass, st *statement, flagged uint32) {
	if c == nil {
		return
	}
	actions := c.actionsOf(st)
	if actions == 0 {
		return // the statement names no action of the class
	}
	for _, id := range b.subjects {
		b.entries = append(b.entries, pendingEntry{target, entry{subject: id, actions: actions, statement: flagged}})
	}
}

func (s *Snapshot) wildcardOf(stem string) *wildcard {
	x := &s.index
	head := headOf(stem)
	for _, w := range x.wildcards[head] {
		if w.stem == stem {
			return w
		}
	}
	w := &wildcard{stem: stem}
	if n, err := ParseName(stem + "*"); err == nil {
		for _, c := range s.resources.overlapping(n) {
			w.byClass = append(w.byClass, classTarget{class: c, number: x.wildcardTargets})
			x.wildcardTargets++
		}
	}
	x.wildcards[head] = append(x.wildcards[head], w)
	return w
}

func (st *statement) isScanned() bool {
	return st.unresolvedSubject || !st.subjects.simple() || len(st.subjects.exact)*(len(st.exact)+len(st.wild)) > maxPairs
}

// actionsOf returns a bit mask of the class's actions that the statement names.
func (c *resourceClass) actionsOf(st *statement) uint32 {
	var out uint32
	for i := range c.actions {
		if st.hasAction(c.actions[i].name) {
			out |= 1 << i
		}
	}
	return out
}

// linkWildcards stores for every known resource the wildcards that cover it.
func (s *Snapshot) linkWildcards() {
	x := &s.index
	x.covers = [][]target{nil}
	if len(x.wildcards) == 0 {
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

// covering appends the wildcards that cover a name, limited to its class.
func (s *Snapshot) covering(out []target, name string, class *resourceClass) []target {
	if class == nil {
		return out
	}
	for _, w := range s.index.wildcards[headOf(name)] {
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

// numbersOf returns the numbers of the statements that may match an exact subject and an exact resource, sorted.
func (x *index) numbersOf(subject, resource string) []uint32 {
	r, ok := x.resources.find(resource)
	if !ok {
		return nil
	}
	var out []uint32
	id, named := x.subjects.find(subject)
	visit := func(t *target) {
		if named && t.table < t.scanned {
			for i := t.slot(id + 1); x.entries[i].subject != 0; i = t.after(i) {
				if x.entries[i].subject == id+1 {
					out = append(out, x.entries[i].statement&numberMask)
				}
			}
		}
		for _, e := range x.entries[t.scanned:t.end] {
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

// numbersAbout returns the numbers of the statements about a resource, by its exact name or by a wildcard, sorted; the
// order is that of the refs.
func (s *Snapshot) numbersAbout(resource string, byWildcard func(*statement) bool) []uint32 {
	var out []uint32
	if n, ok := s.index.resources.find(resource); ok {
		out = append(out, s.index.byResource.of(n)...)
	}
	sorted := true
	for _, w := range s.index.wildcards[headOf(resource)] {
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
