package federation

import (
	"strings"
	"sync"
)

// stringTable returns one copy of equal strings, as long as they are among those that were asked for most recently. Each of many members contains the
// same names and revisions; the garbage collector would otherwise visit a copy for each object of each member.
// Package unique would keep a copy only as long as something holds its Handle, which the readers of these objects do not.
type stringTable struct {
	// limit is the largest number of recent strings.
	limit int

	mu sync.Mutex
	// former are the strings that were recent until there were too many.
	recent, former map[string]string
}

// shared has the names and revisions of the objects that are read.
var shared = &stringTable{limit: 1 << 16}

// share returns the copy of a string in the table, which never refers to the memory of a larger string.
func (t *stringTable) share(s string) string {
	if s == "" {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.recent[s]; ok {
		return known
	}
	known, ok := t.former[s]
	if !ok {
		known = strings.Clone(s)
	}
	if t.recent == nil || len(t.recent) >= t.limit {
		t.recent, t.former = map[string]string{}, t.recent
	}
	t.recent[known] = known
	return known
}
