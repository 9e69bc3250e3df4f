package federation

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// KindStore is one kind on its way: its Federated objects on the host, and what the members have of it.
type KindStore struct {
	Kind    Kind
	Host    Host
	Members Members
}

// KindStores are the kinds of several dataplanes as one Host and as one view of the Members. Objects are found by Kind.Key.
// What is asked of no object (the registry, whether the host's objects were listed, whether a member answers at all) is
// asked of the first.
type KindStores []KindStore

var (
	_ Host    = KindStores(nil)
	_ Members = KindStores(nil)
)

// of finds the kind of a key, and the object's name.
func (c KindStores) of(key string) (KindStore, string) {
	for _, k := range c[1:] {
		if name, ok := strings.CutPrefix(key, k.Kind.Key("")); ok {
			return k, name
		}
	}
	return c[0], key
}

// State is that of the first kind.
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

// Apply writes the object to where its kind is.
func (c KindStores) Apply(ctx context.Context, o *Object) (*Object, error) {
	k, err := c.carrying(o)
	if err != nil {
		return nil, err
	}
	return k.Host.Apply(ctx, o)
}

// Delete deletes it there.
func (c KindStores) Delete(ctx context.Context, o *Object) error {
	k, err := c.carrying(o)
	if err != nil {
		return err
	}
	return k.Host.Delete(ctx, o)
}

func (c KindStores) carrying(o *Object) (KindStore, error) {
	i := slices.IndexFunc(c, func(k KindStore) bool { return k.Kind == o.Kind })
	if i < 0 {
		return KindStore{}, fmt.Errorf("write %s: nothing carries the kind %s", o.Meta.Name, o.Kind.Federated.Kind)
	}
	return c[i], nil
}

// Registry is that of the first kind.
func (c KindStores) Registry() (bool, error) { return c[0].Members.Registry() }

// Clusters are the registered members.
func (c KindStores) Clusters() []Cluster { return c[0].Members.Clusters() }

// Observe tells what a member has of the object of a key.
func (c KindStores) Observe(cluster, key string) Observation {
	k, name := c.of(key)
	return k.Members.Observe(cluster, name)
}

// Absent asks the member itself for the object of a key.
func (c KindStores) Absent(ctx context.Context, cluster, key string) (bool, error) {
	k, name := c.of(key)
	return k.Members.Absent(ctx, cluster, name)
}
