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
func (c KindStores) of(key string) (KindStore, string) {
	for _, k := range c[1:] {
		if name, ok := strings.CutPrefix(key, k.Kind.Key("")); ok {
			return k, name
		}
	}
	return c[0], key
}

// State returns the state of the first kind.
func (c KindStores) State() (bool, error) { return c[0].Host.State() }

// Get returns the object of a key.
func (c KindStores) Get(key string) (*Object, bool) {
	k, name := c.of(key)
	return k.Host.Get(name)
}

// Of returns the objects about a resource, kind by kind.
func (c KindStores) Of(resource string) []*Object {
	var out []*Object
	for _, k := range c {
		out = append(out, k.Host.Of(resource)...)
	}
	return out
}

// List returns all objects, kind by kind.
func (c KindStores) List() []*Object {
	var out []*Object
	for _, k := range c {
		out = append(out, k.Host.List()...)
	}
	return out
}

// Apply writes the object with the store of its kind.
func (c KindStores) Apply(ctx context.Context, o *Object) (*Object, error) {
	k, err := c.storeOf(o)
	if err != nil {
		return nil, err
	}
	return k.Host.Apply(ctx, o)
}

// Delete deletes the object with the store of its kind.
func (c KindStores) Delete(ctx context.Context, o *Object) error {
	k, err := c.storeOf(o)
	if err != nil {
		return err
	}
	return k.Host.Delete(ctx, o)
}

func (c KindStores) storeOf(o *Object) (KindStore, error) {
	i := slices.IndexFunc(c, func(k KindStore) bool { return k.Kind == o.Kind })
	if i < 0 {
		return KindStore{}, fmt.Errorf("write %s: nothing carries the kind %s", o.Meta.Name, o.Kind.Federated.Kind)
	}
	return c[i], nil
}

// Registry returns the state of the registry of the first kind.
func (c KindStores) Registry() (bool, error) { return c[0].Members.Registry() }

// Clusters returns the registered members.
func (c KindStores) Clusters() []Cluster { return c[0].Members.Clusters() }

// Observe returns the observation of the object of a key in a member.
func (c KindStores) Observe(cluster, key string) Observation {
	k, name := c.of(key)
	return k.Members.Observe(cluster, name)
}

// Absent asks the member directly for the object of a key.
func (c KindStores) Absent(ctx context.Context, cluster, key string) (bool, error) {
	k, name := c.of(key)
	return k.Members.Absent(ctx, cluster, name)
}
