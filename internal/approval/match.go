package approval

// need is a number of different people out of some.
type need struct {
	name   string
	people []string
	count  int
}

// fill tells whether every need can be met with people of its own who are not used yet; else it names one that cannot.
// It is Kuhn's matching of places to people.
func fill(needs []need, used map[string]bool) (unmet string, ok bool) {
	place := map[string]int{} // person -> the need whose place he has
	for k, n := range needs {
		for range n.count {
			if !seat(needs, k, used, place, map[string]bool{}) {
				return n.name, false
			}
		}
	}
	return "", true
}

// seat gives a person to a need, moving others to other needs where it must.
func seat(needs []need, k int, used map[string]bool, place map[string]int, tried map[string]bool) bool {
	for _, p := range needs[k].people {
		if used[p] || tried[p] {
			continue
		}
		tried[p] = true
		other, taken := place[p]
		if !taken || seat(needs, other, used, place, tried) {
			place[p] = k
			return true
		}
	}
	return false
}
