package faults

import (
	"maps"

	"github.com/acp-io/acp/api/v1alpha1"
)

// seen is what the adapter may have seen of the changes since the last judgement: the kinds are watched apart, so it may
// know the newest objects of one kind beside older ones of another.
type seen struct {
	policies  []map[string]*v1alpha1.AccessControlPolicy
	resources []map[string]*v1alpha1.ProtectedResource
	classes   []map[string]*v1alpha1.ResourceClass
	workloads []map[string]*v1alpha1.ExternalWorkload
}

// begin forgets what was before a world that was seen as a whole.
func (s *seen) begin(w *world) {
	*s = seen{}
	s.add(w)
}

// add takes a world in, and returns the worlds that may be seen because of it.
func (s *seen) add(w *world) []*world {
	changed := [4]bool{push(&s.policies, w.policies), push(&s.resources, w.resources), push(&s.classes, w.classes), push(&s.workloads, w.workloads)}
	var out []*world
	for p, policies := range s.policies {
		for r, resources := range s.resources {
			for c, classes := range s.classes {
				for e, workloads := range s.workloads {
					isNew := changed[0] && p == len(s.policies)-1 || changed[1] && r == len(s.resources)-1 ||
						changed[2] && c == len(s.classes)-1 || changed[3] && e == len(s.workloads)-1
					if isNew {
						out = append(out, &world{policies, resources, classes, w.subjects, workloads})
					}
				}
			}
		}
	}
	return out
}

// push adds what differs from the last.
func push[T any](all *[]map[string]*T, next map[string]*T) bool {
	if n := len(*all); n > 0 && maps.Equal((*all)[n-1], next) {
		return false
	}
	*all = append(*all, next)
	return true
}
