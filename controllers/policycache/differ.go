package policycache

import (
	"slices"

	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/internal/policy"
)

// differ wakes whoever tells of what differs between two views. What a change reaches is not always what it names: a
// refused deny reaches allows, a new name prefixes, an address the groups of others.
func (f *Queues) differ(before, now *View) {
	f.Units.Add(requestqueue.Grant, policy.Changed(before.Snapshot, now.Snapshot)...)
	f.Policies.Add(requestqueue.Observed, differing(before.refusals, now.refusals, slices.Equal)...)
	f.Groups.Add(requestqueue.Grant, differing(before.groups, now.groups, policy.ExternalGroup.Equal)...)
	for _, o := range differing(before.problems, now.problems, slices.Equal) {
		switch o.Kind {
		case "ExternalWorkload":
			f.Workloads.Add(requestqueue.Observed, o.Name)
		case "ResourceClass":
			f.ResourceClasses.Add(requestqueue.Observed, o.Name)
		case "SubjectClass":
			f.SubjectClasses.Add(requestqueue.Observed, o.Name)
		}
	}
}

// differing are the keys of values that only one of two maps has, or that are not the same.
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
