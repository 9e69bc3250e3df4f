package index

import (
	"slices"

	"github.com/acp-io/acp/controllers/feed"
	"github.com/acp-io/acp/internal/policy"
)

// differ wakes whoever tells of what differs between two views. What a change reaches is not always what it names: a
// refused deny reaches allows, a new name prefixes, an address the groups of others.
func (f *Feeds) differ(before, now *View) {
	f.Units.Add(feed.Urgent, policy.Changed(before.Snapshot, now.Snapshot)...)
	f.Policies.Add(feed.Urgent, differing(before.refusals, now.refusals, slices.Equal)...)
	f.Groups.Add(feed.Urgent, differing(before.groups, now.groups, sameGroup)...)
	for _, o := range differing(before.problems, now.problems, slices.Equal) {
		switch o.Kind {
		case "ExternalWorkload":
			f.Workloads.Add(feed.Urgent, o.Name)
		case "ResourceClass":
			f.ResourceClasses.Add(feed.Urgent, o.Name)
		case "SubjectClass":
			f.SubjectClasses.Add(feed.Urgent, o.Name)
		}
	}
}

func sameGroup(a, b policy.ExternalGroup) bool {
	return a.ID == b.ID && a.Class == b.Class && a.ClassID == b.ClassID &&
		slices.Equal(a.Prefixes, b.Prefixes) && slices.Equal(a.Contested, b.Contested)
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
