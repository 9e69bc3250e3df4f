package policy

import (
	"maps"
	"slices"
)

// Protected returns the names of the resources that have a ProtectedResource in use, sorted.
func (s *Snapshot) Protected() []string { return slices.Sorted(maps.Keys(s.protected)) }

// IsProtected reports whether a ProtectedResource that takes part names the resource.
func (s *Snapshot) IsProtected(resource string) bool { return s.protected[resource] != nil }
