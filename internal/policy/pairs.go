package policy

// entry is a statement as the targets of one class have it.
type entry struct {
	// subject is an exact subject's number plus one. It is 0 when the statement has other subjects, too, and in what is
	// empty.
	subject uint32
	// actions has a bit for each action of the class that the statement names.
	actions uint32
	// statement is its number, with flags.
	statement uint32
}

const (
	denyBit     = 31
	denyFlag    = 1 << denyBit
	boundedFlag = 1 << 30 // it has a beginning or an end
	numberMask  = boundedFlag - 1
)

// target is what statements are found by: an exact resource, or a wildcard as far as one class goes. It is its part of
// the index's entries: first a hash table of those with an exact subject, then those that are looked through.
type target struct{ table, broad, end uint32 }

// pending is an entry on its way to its target, by number.
type pending struct {
	target uint32
	entry
}

// place gives every target its part of the entries.
func place(targets int, in []pending) ([]target, []entry) {
	out := make([]target, targets)
	for _, p := range in {
		if t := &out[p.target]; p.subject != 0 {
			t.table++
		} else {
			t.broad++
		}
	}
	end := uint32(0)
	for i, count := range out {
		t := &out[i]
		t.table = end
		t.broad = t.table + 2*count.table // half empty, so that a search soon ends
		t.end = t.broad                   // grows as they come
		end = t.broad + count.broad
	}
	entries := make([]entry, end)
	for _, p := range in {
		t := &out[p.target]
		if p.subject == 0 {
			entries[t.end] = p.entry
			t.end++
			continue
		}
		i := t.slot(p.subject)
		for entries[i].subject != 0 {
			i = t.after(i)
		}
		entries[i] = p.entry
	}
	return out, entries
}

// slot is where the entries of a subject begin; it must not be asked of an empty table.
func (t *target) slot(subject uint32) uint32 {
	const golden = 0x9e3779b1
	return t.table + uint32(uint64(subject*golden)*uint64(t.broad-t.table)>>32)
}

func (t *target) after(slot uint32) uint32 {
	if slot++; slot == t.broad {
		return t.table
	}
	return slot
}
