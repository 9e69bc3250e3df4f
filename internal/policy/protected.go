package policy

import (
	"maps"
	"slices"
)

// Protected returns the names of the resources that have a ProtectedResource in use, sorted.
func (s *Snapshot) Protected() []string { return slices.Sorted(maps.Keys(s.protected)) }
