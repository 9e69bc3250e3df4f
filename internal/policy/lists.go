package policy

// lists stores one list of numbers for each group in a single slice.
type lists struct {
	ends []uint32 // end of each group's list in the slice
	all  []uint32
}

// listItem is a number that belongs to the list of a group.
type listItem struct{ group, number uint32 }

// newLists builds the lists. The items of a group keep their order.
func newLists(groups int, members []listItem) lists {
	l := lists{ends: make([]uint32, groups), all: make([]uint32, len(members))}
	for _, m := range members {
		l.ends[m.group]++
	}
	next := uint32(0)
	for i, n := range l.ends {
		l.ends[i], next = next, next+n
	}
	for _, m := range members {
		l.all[l.ends[m.group]] = m.number
		l.ends[m.group]++
	}
	return l
}

func (l *lists) of(group uint32) []uint32 {
	first := uint32(0)
	if group > 0 {
		first = l.ends[group-1]
	}
	return l.all[first:l.ends[group]:l.ends[group]]
}
