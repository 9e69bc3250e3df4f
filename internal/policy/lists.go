package policy

// lists are lists of numbers, one for each group, in one piece of memory.
type lists struct {
	ends []uint32 // of each group's list in all
	all  []uint32
}

// member is a number in the list of its group.
type member struct{ group, number uint32 }

// newLists keeps the members of a group in the order in which they are given.
func newLists(groups int, members []member) lists {
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
