package policy

import (
	"maps"
	"slices"
)

// ProtectedResources returns the names of the resources with a valid ProtectedResource, sorted.
func (s *Snapshot) ProtectedResources() []string { return slices.Sorted(maps.Keys(s.protected)) }

// IsProtected reports whether a valid ProtectedResource names the resource.
func (s *Snapshot) IsProtected(resource string) bool { return s.protected[resource] != nil }
