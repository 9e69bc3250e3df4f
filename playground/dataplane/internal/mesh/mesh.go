// Package mesh contains the state that a cluster mesh provides to the agents of a member: the pods of all members with their
// identities.
//
// The package allocates the numeric identities. It does not depend on policies and does not read from API servers.
package mesh

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/labels"
)

// These are the label keys that Cilium adds to the labels of every pod.
const (
	labelNamespace      = "io.kubernetes.pod.namespace"
	labelCluster        = "io.cilium.k8s.policy.cluster"
	labelServiceAccount = "io.cilium.k8s.policy.serviceaccount"
	labelNamespaceName  = "io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name"
)

// With up to 255 clusters, the lower 16 bits of an identity count within its cluster; below 256 all are reserved.
const (
	clusterShift = 16
	firstLocal   = 256
	localCount   = 1<<clusterShift - firstLocal
)

// Pod contains the fields of a pod that the mesh uses.
type Pod struct {
	Cluster, Namespace, Name string
	Labels                   map[string]string
	IP, Node, ServiceAccount string
}

func (p Pod) key() string { return p.Cluster + "/" + p.Namespace + "/" + p.Name }

// Endpoint is a pod with its identity.
type Endpoint struct {
	Pod
	Identity *identity.Identity
}

// IdentityUpdate contains the identities that were added and deleted.
type IdentityUpdate struct{ Added, Deleted identity.IdentityMap }

// Mesh contains all endpoints. It is safe for concurrent use.
type Mesh struct {
	clusterIDs map[string]uint32

	mu        sync.RWMutex
	endpoints map[string]Endpoint
	byLabels  map[string]*allocation
	byID      map[identity.NumericIdentity]*allocation
}

type allocation struct {
	id    *identity.Identity
	key   string
	users int
}

// New returns an empty mesh of the clusters, whose ids are their places in the sorted order, from 1.
func New(clusters []string) (*Mesh, error) {
	const most = 255
	if len(clusters) == 0 || len(clusters) > most {
		return nil, fmt.Errorf("a mesh has 1 to %d clusters, not %d", most, len(clusters))
	}
	m := &Mesh{
		clusterIDs: map[string]uint32{}, endpoints: map[string]Endpoint{},
		byLabels: map[string]*allocation{}, byID: map[identity.NumericIdentity]*allocation{},
	}
	for i, c := range slices.Sorted(slices.Values(clusters)) {
		m.clusterIDs[c] = uint32(i + 1)
	}
	return m, nil
}

// IdentityLabels returns the identity labels of a pod, as an agent computes them.
func IdentityLabels(p Pod) labels.LabelArray {
	all := maps.Clone(p.Labels)
	if all == nil {
		all = map[string]string{}
	}
	all[labelNamespace], all[labelNamespaceName], all[labelCluster] = p.Namespace, p.Namespace, p.Cluster
	all[labelServiceAccount] = "default"
	if p.ServiceAccount != "" {
		all[labelServiceAccount] = p.ServiceAccount
	}
	out := make(labels.LabelArray, 0, len(all))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, labels.NewLabel(k, all[k], labels.LabelSourceK8s))
	}
	return out
}

// Upsert adds or replaces a pod. A pod without an address is not on the network yet and counts as absent.
func (m *Mesh) Upsert(p Pod) (IdentityUpdate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	update := IdentityUpdate{Added: identity.IdentityMap{}, Deleted: identity.IdentityMap{}}
	clusterID, ok := m.clusterIDs[p.Cluster]
	if !ok {
		return update, fmt.Errorf("pod %s is of a cluster that is not in the mesh", p.key())
	}
	if p.IP == "" {
		m.remove(p.key(), update)
		return update, nil
	}
	id, err := m.allocate(clusterID, IdentityLabels(p), update)
	if err != nil {
		return update, err
	}
	// The old identity is released after the new one is acquired, so that an identity that stays in use is neither deleted nor
	// added.
	m.remove(p.key(), update)
	m.endpoints[p.key()] = Endpoint{Pod: p, Identity: id}
	return update, nil
}

// Delete removes a pod.
func (m *Mesh) Delete(cluster, namespace, name string) IdentityUpdate {
	m.mu.Lock()
	defer m.mu.Unlock()
	update := IdentityUpdate{Added: identity.IdentityMap{}, Deleted: identity.IdentityMap{}}
	m.remove(Pod{Cluster: cluster, Namespace: namespace, Name: name}.key(), update)
	return update
}

func (m *Mesh) remove(key string, update IdentityUpdate) {
	ep, ok := m.endpoints[key]
	if !ok {
		return
	}
	delete(m.endpoints, key)
	a := m.byID[ep.Identity.ID]
	if a.users--; a.users == 0 {
		delete(m.byID, ep.Identity.ID)
		delete(m.byLabels, a.key)
		update.Deleted[ep.Identity.ID] = ep.Identity.LabelArray
	}
}

// allocate returns the identity of a label set. The number is a hash of the labels, so that the emulators of all members, and every
// run, use the same number. When two label sets have the same hash, the later one gets the next free number.
func (m *Mesh) allocate(clusterID uint32, lbls labels.LabelArray, update IdentityUpdate) (*identity.Identity, error) {
	key := lbls.String()
	if a := m.byLabels[key]; a != nil {
		a.users++
		return a.id, nil
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	start := h.Sum32() % localCount
	for i := range uint32(localCount) {
		local := firstLocal + (start+i)%localCount
		n := identity.NumericIdentity(clusterID<<clusterShift | local)
		if m.byID[n] != nil {
			continue
		}
		a := &allocation{id: identity.NewIdentityFromLabelArray(n, lbls), key: key, users: 1}
		m.byLabels[key], m.byID[n] = a, a
		update.Added[n] = lbls
		return a.id, nil
	}
	return nil, fmt.Errorf("cluster %d has no identity left", clusterID)
}

// Identity returns the identity of a number, if any pod has it.
func (m *Mesh) Identity(n identity.NumericIdentity) (*identity.Identity, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	a, ok := m.byID[n]
	if !ok {
		return nil, false
	}
	return a.id, true
}

// Select returns the endpoints for which keep is true, sorted by cluster, namespace and name.
func (m *Mesh) Select(keep func(Endpoint) bool) []Endpoint {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []Endpoint
	for _, ep := range m.endpoints {
		if keep(ep) {
			out = append(out, ep)
		}
	}
	slices.SortFunc(out, func(a, b Endpoint) int {
		switch {
		case a.key() < b.key():
			return -1
		case a.key() > b.key():
			return 1
		}
		return 0
	})
	return out
}
