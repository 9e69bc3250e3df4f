// Package membertally counts members of statuses, of which many list the same ones.
package membertally

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Tally counts something by member, for lists of members of which many are equal: its time depends on the number of lists.
type Tally struct {
	lists []list
	// last is the index of the list that was added last.
	last int
	// byEnds has the indexes of the lists with the same length, first and last member.
	byEnds map[listEnds][]int
}

type list struct {
	names []v1alpha1.ClusterName
	n     int
}

type listEnds struct {
	length      int
	first, last v1alpha1.ClusterName
}

// Add adds n to the number of each member of a list, which must not be changed afterwards.
func (t *Tally) Add(names []v1alpha1.ClusterName, n int) {
	if len(names) == 0 {
		return
	}
	if t.last < len(t.lists) && equalLists(t.lists[t.last].names, names) {
		t.lists[t.last].n += n
		return
	}
	ends := listEnds{len(names), names[0], names[len(names)-1]}
	for _, i := range t.byEnds[ends] {
		if equalLists(t.lists[i].names, names) {
			t.lists[i].n += n
			t.last = i
			return
		}
	}
	if t.byEnds == nil {
		t.byEnds = map[listEnds][]int{}
	}
	t.last = len(t.lists)
	t.lists = append(t.lists, list{names, n})
	t.byEnds[ends] = append(t.byEnds[ends], t.last)
}

// equalLists compares two lists that are not empty. Caches of the host let equal lists share their memory (hostcluster.ShareMemberLists).
func equalLists(a, b []v1alpha1.ClusterName) bool {
	return len(a) == len(b) && (&a[0] == &b[0] || slices.Equal(a, b))
}

// Counts returns the number of each member that was added.
func (t *Tally) Counts() map[string]int {
	out := map[string]int{}
	for _, x := range t.lists {
		for _, name := range x.names {
			out[string(name)] += x.n
		}
	}
	return out
}
