package faults

import (
	"maps"

	"github.com/acp-io/acp/api/v1alpha1"
)

// observableModels contains the models that the adapter may have observed since the last successful check. Each kind has a watch of
// its own, so the adapter may have the newest objects of one kind and older objects of another.
type observableModels struct {
	policies  []map[string]*v1alpha1.AccessControlPolicy
	resources []map[string]*v1alpha1.ProtectedResource
	classes   []map[string]*v1alpha1.ResourceClass
	workloads []map[string]*v1alpha1.ExternalWorkload
}

// reset discards all models but one that the adapter has observed completely.
func (s *observableModels) reset(w *model) {
	*s = observableModels{}
	s.add(w)
}

// add adds a model and returns the combinations of kinds that the adapter may observe because of it.
func (s *observableModels) add(w *model) []*model {
	changed := [4]bool{push(&s.policies, w.policies), push(&s.resources, w.resources), push(&s.classes, w.classes), push(&s.workloads, w.workloads)}
	var out []*model
	for p, policies := range s.policies {
		for r, resources := range s.resources {
			for c, classes := range s.classes {
				for e, workloads := range s.workloads {
					isNew := changed[0] && p == len(s.policies)-1 || changed[1] && r == len(s.resources)-1 ||
						changed[2] && c == len(s.classes)-1 || changed[3] && e == len(s.workloads)-1
					if isNew {
						out = append(out, &model{policies, resources, classes, w.subjects, workloads})
					}
				}
			}
		}
	}
	return out
}

// push appends the objects of a kind when they differ from the last ones, and reports whether it did.
func push[T any](all *[]map[string]*T, next map[string]*T) bool {
	if n := len(*all); n > 0 && maps.Equal((*all)[n-1], next) {
		return false
	}
	*all = append(*all, next)
	return true
}
