package rollup

// room divides a limit among sources, so that none can take all of it: each has a share of one half for itself, and the
// other half is for whoever needs more.
type room struct {
	limit, share int
	used         map[string]int
	// total counts everything that is used, common what sources use beyond their shares.
	total, common int
}

// newRoom is for about as many sources; with more of them the limit holds all the same.
func newRoom(limit, sources int) *room {
	return &room{limit: limit, share: limit / 2 / max(sources, 1), used: map[string]int{}}
}

// take uses one place for a source; false: there is none for it.
func (r *room) take(source string) bool {
	n := r.used[source]
	switch {
	case r.total >= r.limit:
		return false
	case n < r.share:
	case r.common >= r.limit-r.limit/2:
		return false
	default:
		r.common++
	}
	r.used[source] = n + 1
	r.total++
	return true
}
