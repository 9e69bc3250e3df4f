package policy

import "hash/maphash"

// numbering assigns small consecutive numbers to names in the order of their insertion, so that data about names can be
// stored in slices. It is a hash map for names that are looked up often and never removed.
type numbering struct {
	names []string
	// text contains the names again, concatenated, which improves memory locality; ends are the end offsets in it,
	// after a leading 0.
	text []byte
	ends []uint32
	// slots has a power of two as length, and at least a third of them are empty.
	slots []nameSlot
	seed  maphash.Seed
}

// nameSlot contains a part of the name's hash, which nearly always distinguishes names, and the number plus one; 0
// means empty.
type nameSlot struct{ hash, number uint32 }

func newNumbering(names int) numbering {
	n := numbering{names: make([]string, 0, names), ends: make([]uint32, 1, names+1), seed: maphash.MakeSeed()}
	n.resize(names)
	return n
}

func (n *numbering) hash(name string) uint32 { return uint32(maphash.String(n.seed, name)) }

func (n *numbering) find(name string) (number uint32, ok bool) {
	return n.findHashed(name, n.hash(name))
}

func (n *numbering) findHashed(name string, hash uint32) (number uint32, ok bool) {
	mask := uint32(len(n.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		switch s := n.slots[i]; {
		case s.number == 0:
			return 0, false
		case s.hash == hash && n.is(s.number-1, name):
			return s.number - 1, true
		}
	}
}

func (n *numbering) is(number uint32, name string) bool {
	return string(n.text[n.ends[number]:n.ends[number+1]]) == name
}

// add returns the number of the name, and assigns one if the name is new.
func (n *numbering) add(name string) uint32 {
	hash := n.hash(name)
	if number, ok := n.findHashed(name, hash); ok {
		return number
	}
	n.names, n.text = append(n.names, name), append(n.text, name...)
	n.ends = append(n.ends, uint32(len(n.text)))
	if 3*len(n.names) > 2*len(n.slots) {
		n.resize(2 * len(n.names))
	} else {
		n.put(nameSlot{hash, uint32(len(n.names))})
	}
	return uint32(len(n.names) - 1)
}

// resize allocates slots for the given number of names and inserts the existing names.
func (n *numbering) resize(names int) {
	size := 8
	for 2*size < 3*names {
		size *= 2
	}
	n.slots = make([]nameSlot, size)
	for i, name := range n.names {
		n.put(nameSlot{n.hash(name), uint32(i + 1)})
	}
}

func (n *numbering) put(s nameSlot) {
	mask := uint32(len(n.slots) - 1)
	i := s.hash & mask
	for n.slots[i].number != 0 {
		i = (i + 1) & mask
	}
	n.slots[i] = s
}
