package policycache

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
)

// SetLabels sets the labels of pods in the members: sorted values by key. complete is false while no member was read,
// so that a prefix would match nothing.
func (x *Cache) SetLabels(labels map[string][]string, complete bool) {
	x.mu.Lock()
	changed := x.unsupported.Names == complete
	for key := range x.namePrefixes() {
		changed = changed || !slices.Equal(x.labels[key], labels[key])
	}
	x.labels, x.unsupported.Names = labels, !complete
	if changed {
		x.nextVersion()
	}
	x.mu.Unlock()
	if changed {
		x.View() // enqueues the units that contain the names
	}
}

// SetClusters sets the members, by name, and reports whether that affects decisions. Estimates count an identity of each subject in each of them.
func (x *Cache) SetClusters(clusters []policy.Cluster) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	same := func(a, b policy.Cluster) bool {
		return a.Name == b.Name && a.Istio == b.Istio && a.IstioRoot == b.IstioRoot && maps.Equal(a.Labels, b.Labels)
	}
	if x.clusters != nil && slices.EqualFunc(x.clusters, clusters, same) {
		return false
	}
	x.clusters = clusters
	x.nextVersion()
	return true
}

// fleet returns the registered members with the reports about their dataplanes, as other programs read them. The caller
// must hold the lock.
func (x *Cache) fleet() policy.Fleet {
	f := registry.FleetOf(values(x.members)).WithClusters(x.clusters)
	f.KnownNames, f.NamesUnknown, f.Unsupported = x.knownNames(), false, x.unsupported
	return f
}

// memberChanged stores the report about a member.
func (x *Cache) memberChanged(old, now *v1alpha1.MemberCluster) {
	x.mu.Lock()
	store(x.members, either(old, now), now)
	same := old != nil && now != nil &&
		policy.SameCapacity(registry.FleetOf([]*v1alpha1.MemberCluster{old}).Clusters[0], registry.FleetOf([]*v1alpha1.MemberCluster{now}).Clusters[0])
	if !same {
		x.nextVersion()
	}
	x.mu.Unlock()
	if !same {
		x.EnqueueAll(requestqueue.BulkChange)
	}
}

// knownNames returns the names that the labels stand for. The caller must hold the lock.
func (x *Cache) knownNames() []string {
	var out []string
	for key, stems := range x.namePrefixes() {
		for stem := range stems {
			for _, value := range x.labels[key] {
				out = append(out, stem+value)
			}
		}
	}
	return out
}

// namePrefixes returns the prefixes of the names that each label key stands for. The caller must hold the lock.
func (x *Cache) namePrefixes() map[string]sets.Set[string] {
	out := map[string]sets.Set[string]{}
	add := func(key v1alpha1.LabelKey, pattern v1alpha1.NamePattern) {
		if out[string(key)] == nil {
			out[string(key)] = sets.New[string]()
		}
		out[string(key)].Insert(strings.TrimSuffix(string(pattern), "*"))
	}
	for c := range maps.Values(x.classes) {
		add(c.Spec.LabelKey, c.Spec.Pattern)
	}
	for c := range maps.Values(x.subjects) {
		add(c.Spec.LabelKey, c.Spec.Pattern)
	}
	return out
}
