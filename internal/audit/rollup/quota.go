package rollup

// quota divides a limit among sources, so that none of them can use all of it. One half is divided into equal shares, one per
// source; the other half is shared by the sources that need more.
type quota struct {
	limit, share int
	used         map[string]int
	// total is the number of used places; shared is the number that sources use beyond their own shares.
	total, shared int
}

// newQuota returns a quota for the expected number of sources. The limit holds for a larger number as well.
func newQuota(limit, sources int) *quota {
	return &quota{limit: limit, share: limit / 2 / max(sources, 1), used: map[string]int{}}
}

// reserve uses one place for the source, and reports whether there was one.
func (q *quota) reserve(source string) bool {
	n := q.used[source]
	switch {
	case q.total >= q.limit:
		return false
	case n < q.share:
	case q.shared >= q.limit-q.limit/2:
		return false
	default:
		q.shared++
	}
	q.used[source] = n + 1
	q.total++
	return true
}
