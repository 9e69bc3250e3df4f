package policycache

import (
	"slices"

	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/internal/policy"
)

// enqueueDifferences enqueues everything that differs between two views. A change may affect more than what it names: a
// refused deny affects allows, a new name affects prefixes, and an address the groups of others.
func (q *Queues) enqueueDifferences(before, now *View) {
	q.Units.Add(requestqueue.Grant, policy.ChangedUnits(before.Snapshot, now.Snapshot)...)
	q.Policies.Add(requestqueue.Observed, differing(before.refusals, now.refusals, slices.Equal)...)
	q.Groups.Add(requestqueue.Grant, differing(before.groups, now.groups, policy.ExternalGroup.Equal)...)
	for _, o := range differing(before.problems, now.problems, slices.Equal) {
		switch o.Kind {
		case "ExternalWorkload":
			q.Workloads.Add(requestqueue.Observed, o.Name)
		case "ResourceClass":
			q.ResourceClasses.Add(requestqueue.Observed, o.Name)
		case "SubjectClass":
			q.SubjectClasses.Add(requestqueue.Observed, o.Name)
		}
	}
}

// differing returns the keys of values that only one of two maps contains, or that are not equal.
func differing[K comparable, V any](a, b map[K]V, same func(V, V) bool) []K {
	var out []K
	for k, v := range a {
		if w, ok := b[k]; !ok || !same(v, w) {
			out = append(out, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			out = append(out, k)
		}
	}
	return out
}
