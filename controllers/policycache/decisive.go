package policycache

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// decisive has the objects of a cache in the version that last affected decisions. Snapshots compare objects by identity: with the present
// objects, each write of a status would make the next snapshot parse the object again and enqueue its units, and that of a class all units.
type decisive struct {
	policies  byName[*v1alpha1.AccessControlPolicy]
	resources byName[*v1alpha1.ProtectedResource]
	classes   byName[*v1alpha1.ResourceClass]
	subjects  byName[*v1alpha1.SubjectClass]
	workloads byName[*v1alpha1.ExternalWorkload]
}

// objects returns the objects for a snapshot.
func (d *decisive) objects() policy.Objects {
	return policy.Objects{Policies: slices.Clone(d.policies), Resources: slices.Clone(d.resources), ResourceClasses: slices.Clone(d.classes),
		SubjectClasses: slices.Clone(d.subjects), Workloads: slices.Clone(d.workloads)}
}

// byName are objects in the order of their names, in which snapshots need them.
type byName[T client.Object] []T

// update updates an object after the present one was stored or deleted.
func (l *byName[T]) update(present map[string]T, name string) {
	i, found := slices.BinarySearchFunc(*l, name, func(o T, name string) int { return strings.Compare(o.GetName(), name) })
	now, there := present[name]
	switch {
	case !there && found:
		*l = slices.Delete(*l, i, i+1)
	case there && !found:
		*l = slices.Insert(*l, i, now)
	case there && changed((*l)[i], now):
		(*l)[i] = now
	}
}
