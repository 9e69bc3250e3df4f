package propagation

import (
	"context"
	"slices"

	"github.com/acp-io/acp/internal/federation"
)

// Store is a federation.Host that passes every object that is recorded to the engines, and whose objects have the engines' reports.
type Store struct {
	federation.Host
	Engines *Engines
}

var _ federation.Host = Store{}

// Get returns the object of a key.
func (s Store) Get(key string) (*federation.Object, bool) {
	o, ok := s.Host.Get(key)
	if !ok {
		return nil, false
	}
	return s.reported(o, isOutdated(o) && !s.Engines.UsesKubeFed()), true
}

// Of returns the objects about a resource.
func (s Store) Of(resource string) []*federation.Object { return s.all(s.Host.Of(resource)) }

// List returns all objects.
func (s Store) List() []*federation.Object { return s.all(s.Host.List()) }

// Apply records the object on the host and then passes it to the engines: what is in the members is always recorded before.
func (s Store) Apply(ctx context.Context, o *federation.Object) (*federation.Object, error) {
	written, err := s.Host.Apply(ctx, o)
	if err != nil {
		return nil, err
	}
	s.Engines.Deliver(written)
	return s.reported(written, isOutdated(written) && !s.Engines.UsesKubeFed()), nil
}

// Delete deletes the record. If no member depends on KubeFed, its controller need not run, and its finalizer is removed with the
// record; the caller has read from every member that it does not have the object.
func (s Store) Delete(ctx context.Context, o *federation.Object) error {
	if !s.Engines.UsesKubeFed() {
		released, err := federation.WithoutKubeFedFinalizer(ctx, s.Host, o)
		if err != nil {
			return err
		}
		o = released
	}
	return s.Host.Delete(ctx, o)
}

func (s Store) all(objects []*federation.Object) []*federation.Object {
	left := slices.ContainsFunc(objects, isOutdated) && !s.Engines.UsesKubeFed()
	out := make([]*federation.Object, len(objects))
	for i, o := range objects {
		out[i] = s.reported(o, left && isOutdated(o))
	}
	return out
}

// isOutdated reports whether KubeFed has a status of an earlier version of the object.
func isOutdated(o *federation.Object) bool {
	return !o.Propagation.Seen && len(o.Propagation.Clusters) > 0
}

// reported returns the object with the engines' reports, and without KubeFed's status if the fleet has left KubeFed.
func (s Store) reported(o *federation.Object, left bool) *federation.Object {
	if left {
		o = o.WithoutKubeFed()
	}
	return o.WithReporter(s.Engines)
}
