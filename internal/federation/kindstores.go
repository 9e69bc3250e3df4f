package federation

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// KindStore contains the Federated objects of one kind on the host, and the members' objects of that kind.
type KindStore struct {
	Kind    Kind
	Host    Host
	Members Members
}

// KindStores combines the kinds of several dataplanes into one Host and one Members. Objects are identified by
// Kind.Key. Queries about no particular object (the registry, whether the host's objects were listed, whether a member
// answers at all) use the first kind.
type KindStores []KindStore

var (
	_ Host    = KindStores(nil)
	_ Members = KindStores(nil)
)

// of returns the kind of a key, and the object's name.
func (s KindStores) of(key string) (KindStore, string) {
	for _, k := range s[1:] {
		if name, ok := strings.CutPrefix(key, k.Kind.Key("")); ok {
			return k, name
		}
	}
	return s[0], key
}

// State returns the state of the first kind.
func (s KindStores) State() (bool, error) { return s[0].Host.State() }

// Get returns the object of a key.
func (s KindStores) Get(key string) (*Object, bool) {
	k, name := s.of(key)
	return k.Host.Get(name)
}

// Of returns the objects about a resource, kind by kind.
func (s KindStores) Of(resource string) []*Object {
	var out []*Object
	for _, k := range s {
		out = append(out, k.Host.Of(resource)...)
	}
	return out
}

// List returns all objects, kind by kind.
func (s KindStores) List() []*Object {
	var out []*Object
	for _, k := range s {
		out = append(out, k.Host.List()...)
	}
	return out
}

// Apply writes the object with the store of its kind.
func (s KindStores) Apply(ctx context.Context, o *Object) (*Object, error) {
	k, err := s.storeOf(o)
	if err != nil {
		return nil, err
	}
	return k.Host.Apply(ctx, o)
}

// Delete deletes the object with the store of its kind.
func (s KindStores) Delete(ctx context.Context, o *Object) error {
	k, err := s.storeOf(o)
	if err != nil {
		return err
	}
	return k.Host.Delete(ctx, o)
}

func (s KindStores) storeOf(o *Object) (KindStore, error) {
	i := slices.IndexFunc(s, func(k KindStore) bool { return k.Kind == o.Kind })
	if i < 0 {
		return KindStore{}, fmt.Errorf("write %s: nothing carries the kind %s", o.Meta.Name, o.Kind.Federated.Kind)
	}
	return s[i], nil
}

// Registry returns the state of the registry of the first kind.
func (s KindStores) Registry() (bool, error) { return s[0].Members.Registry() }

// Clusters returns the registered members.
func (s KindStores) Clusters() []Cluster { return s[0].Members.Clusters() }

// Cluster returns a registered member.
func (s KindStores) Cluster(name string) (Cluster, bool) {
	// The list grows with the fleet, and every event in a member looks up all members of an object.
	if lookup, ok := s[0].Members.(interface{ Cluster(string) (Cluster, bool) }); ok {
		return lookup.Cluster(name)
	}
	clusters := s[0].Members.Clusters()
	i := slices.IndexFunc(clusters, func(c Cluster) bool { return c.Name == name })
	if i < 0 {
		return Cluster{}, false
	}
	return clusters[i], true
}

// Observe returns the observation of the object of a key in a member.
func (s KindStores) Observe(cluster, key string) Observation {
	k, name := s.of(key)
	return k.Members.Observe(cluster, name)
}

// Absent reads the object of a key from the member, without a cache.
func (s KindStores) Absent(ctx context.Context, cluster, key string) (bool, error) {
	k, name := s.of(key)
	return k.Members.Absent(ctx, cluster, name)
}
