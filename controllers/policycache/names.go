package policycache

import (
	"maps"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/internal/policy"
)

// Know tells the index which labels pods have in the members: sorted values by key. complete is false as long as nothing
// is known of any member, so that a prefix would stand for nobody.
func (x *Cache) Know(labels map[string][]string, complete bool) {
	x.mu.Lock()
	changed := x.lacks.Names == complete
	for key := range x.stems() {
		changed = changed || !slices.Equal(x.labels[key], labels[key])
	}
	x.labels, x.lacks.Names = labels, !complete
	if changed {
		x.bump()
	}
	x.mu.Unlock()
	if changed {
		x.View() // wakes the units that the names are in
	}
}

// Join tells the index which members there are, by name: estimates count an identity of each subject in each of them.
func (x *Cache) Join(clusters []policy.Cluster) {
	x.mu.Lock()
	defer x.mu.Unlock()
	same := func(a, b policy.Cluster) bool { return a.Name == b.Name && maps.Equal(a.Labels, b.Labels) }
	if x.clusters != nil && slices.EqualFunc(x.clusters, clusters, same) {
		return
	}
	x.clusters = clusters
	x.bump()
}

// fleet are the members as they are registered, with what is reported of their dataplanes, as every other program reads it; the
// caller holds the lock.
func (x *Cache) fleet() policy.Fleet {
	f := policy.FleetOf(values(x.members)).Registered(x.clusters)
	f.KnownNames, f.NamesUnknown, f.Lacks = x.knownNames(), false, x.lacks
	return f
}

// memberChanged takes in what is reported of a member.
func (x *Cache) memberChanged(old, now *v1alpha1.MemberCluster) {
	x.mu.Lock()
	store(x.members, either(old, now), now)
	same := old != nil && now != nil && policy.SameRoom(policy.FleetOf([]*v1alpha1.MemberCluster{old}).Clusters[0], policy.FleetOf([]*v1alpha1.MemberCluster{now}).Clusters[0])
	if !same {
		x.bump()
	}
	x.mu.Unlock()
	if !same {
		x.Everything(requestqueue.Bulk)
	}
}

// knownNames are the names that the labels stand for; the caller holds the lock.
func (x *Cache) knownNames() []string {
	var out []string
	for key, stems := range x.stems() {
		for stem := range stems {
			for _, value := range x.labels[key] {
				out = append(out, stem+value)
			}
		}
	}
	return out
}

// stems are the beginnings of the names that each label key stands for; the caller holds the lock.
func (x *Cache) stems() map[string]map[string]struct{} {
	out := map[string]map[string]struct{}{}
	add := func(key v1alpha1.LabelKey, pattern v1alpha1.NamePattern) {
		if out[string(key)] == nil {
			out[string(key)] = map[string]struct{}{}
		}
		out[string(key)][strings.TrimSuffix(string(pattern), "*")] = struct{}{}
	}
	for c := range maps.Values(x.classes) {
		add(c.Spec.LabelKey, c.Spec.Pattern)
	}
	for c := range maps.Values(x.subjects) {
		add(c.Spec.LabelKey, c.Spec.Pattern)
	}
	return out
}
