package policy

// entry is a statement in the entries of one target, with the action mask of the target's class.
type entry struct {
	// subject is the number of an exact subject plus one. It is 0 for a statement with other kinds of subjects, and in
	// an empty slot.
	subject uint32
	// actions is a bit mask of the class's actions that the statement names.
	actions uint32
	// statement is the statement's number, with flags.
	statement uint32
}

const (
	denyBit     = 31
	denyFlag    = 1 << denyBit
	boundedFlag = 1 << 30 // the statement has a beginning, an end or hours
	numberMask  = boundedFlag - 1
)

// target identifies what statements are found by: an exact resource, or a wildcard limited to one class. It is a range
// of the index's entries: first a hash table of the entries with an exact subject, then the entries that are scanned.
type target struct{ table, scanned, end uint32 }

// pendingEntry is an entry with the number of its target, before the tables are built.
type pendingEntry struct {
	target uint32
	entry
}

// buildTables assigns every target its range of the entries.
func buildTables(targets int, in []pendingEntry) ([]target, []entry) {
	out := make([]target, targets)
	for _, p := range in {
		if t := &out[p.target]; p.subject != 0 {
			t.table++
		} else {
			t.scanned++
		}
	}
	end := uint32(0)
	for i, count := range out {
		t := &out[i]
		t.table = end
		t.scanned = t.table + 2*count.table // half empty, so that a search ends soon
		t.end = t.scanned                   // grows as they come
		end = t.scanned + count.scanned
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

// slot returns where the entries of a subject begin. It must not be called for an empty table.
func (t *target) slot(subject uint32) uint32 {
	const golden = 0x9e3779b1
	return t.table + uint32(uint64(subject*golden)*uint64(t.scanned-t.table)>>32)
}

func (t *target) after(slot uint32) uint32 {
	if slot++; slot == t.scanned {
		return t.table
	}
	return slot
}
