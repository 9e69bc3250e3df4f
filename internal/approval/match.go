package approval

// need is a number of different people out of a set.
type need struct {
	name   string
	people []string
	count  int
}

// fill reports whether every need can be met with different people who are not used yet, and otherwise names a need that
// cannot. It is Kuhn's algorithm for bipartite matching.
func fill(needs []need, used map[string]bool) (unmet string, ok bool) {
	place := map[string]int{} // the need that each person is assigned to
	for k, n := range needs {
		for range n.count {
			if !assign(needs, k, used, place, map[string]bool{}) {
				return n.name, false
			}
		}
	}
	return "", true
}

// assign adds one person to a need, and moves other people to other needs if necessary.
func assign(needs []need, k int, used map[string]bool, place map[string]int, tried map[string]bool) bool {
	for _, p := range needs[k].people {
		if used[p] || tried[p] {
			continue
		}
		tried[p] = true
		other, taken := place[p]
		if !taken || assign(needs, other, used, place, tried) {
			place[p] = k
			return true
		}
	}
	return false
}
