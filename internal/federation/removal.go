package federation

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Members is a read view of the members. Fleet implements it.
type Members interface {
	Registry() (bool, error)
	// Clusters returns the registered members, sorted by name. Callers must not change them.
	Clusters() []Cluster
	Observe(cluster, object string) Observation
	Absent(ctx context.Context, cluster, object string) (bool, error)
}

// Host is the store of the Federated objects. Objects implements it.
type Host interface {
	State() (bool, error)
	Get(name string) (*Object, bool)
	Of(resource string) []*Object
	List() []*Object
	Apply(ctx context.Context, o *Object) (*Object, error)
	Delete(ctx context.Context, o *Object) error
}

// EverPlaced returns the members that may have the object, sorted: those in its placement and its annotation, those
// that KubeFed lists, and the given others. Together these sources survive a restart, and an edit of one of them.
func (o *Object) EverPlaced(others ...string) []string {
	out := append(SplitNames(o.Meta.Annotations[AnnotationEverPlaced]), o.Placement...)
	out = slices.AppendSeq(out, maps.Keys(o.Propagation.Clusters))
	out = append(out, others...)
	slices.Sort(out)
	return slices.Compact(out)
}

// WasPlacedIn reports whether EverPlaced contains a member. It allocates nothing: it is called for every object in every member.
func (o *Object) WasPlacedIn(cluster string) bool {
	if _, listed := o.Propagation.Clusters[cluster]; listed || o.IsPlacedIn(cluster) {
		return true
	}
	return cluster != "" && containsName(o.Meta.Annotations[AnnotationEverPlaced], cluster)
}

// IsForgotten reports whether the object's annotation names a member as no longer existing. It counts only for a member
// that is not registered.
func (o *Object) IsForgotten(cluster string) bool {
	return containsName(o.Meta.Annotations[AnnotationForget], cluster)
}

// SeenWithout reports whether a member does not have the object and its engine will not create it. It is false for a
// member that is not registered or cannot be read.
func (o *Object) SeenWithout(cluster string, seen Observation) bool {
	return seen.Registered && seen.Reachable && seen.Object == nil && o.ReportIn(cluster).Handled
}

// ReleasesMember reports whether o lists a member that is leaving as placed before, and next, which replaces it, does not.
// Then next must be written, because the leaving of the member waits for it.
func (o *Object) ReleasesMember(next *Object, clusters []Cluster) bool {
	if o == nil {
		return false
	}
	remembered, kept := SplitNames(o.Meta.Annotations[AnnotationEverPlaced]), SplitNames(next.Meta.Annotations[AnnotationEverPlaced])
	return slices.ContainsFunc(clusters, func(c Cluster) bool {
		return c.Leaving && slices.Contains(remembered, c.Name) && !slices.Contains(kept, c.Name)
	})
}

// WithoutPlacement returns the object with an explicitly empty placement, and with ever as the members that may still
// have it.
func (o *Object) WithoutPlacement(ever []string) *Object {
	next := o.PlacedIn(nil, ever)
	next.Overrides = nil
	return next
}

// PlacedIn returns the object with another placement, and with ever as the members that may still have it.
func (o *Object) PlacedIn(clusters, ever []string) *Object {
	next := *o
	next.Meta = *o.Meta.DeepCopy()
	next.Placement, next.ForeignFields = clusters, false
	next.Meta.Annotations = Overlay(next.Meta.Annotations, map[string]string{AnnotationEverPlaced: JoinNames(ever)})
	return &next
}

// DeleteAbsent deletes an object of the host after every member that may have it confirmed directly that it does not,
// because a stale cache must not lead to an orphan in a member.
func DeleteAbsent(ctx context.Context, host Host, members Members, o *Object, ever []string) error {
	for _, c := range ever {
		absent, err := members.Absent(ctx, c, o.Key())
		if err == nil && !absent {
			err = fmt.Errorf("member %s still has it", c)
		}
		if err != nil {
			return fmt.Errorf("before deleting %s: %w", o.Meta.Name, err)
		}
	}
	return host.Delete(ctx, o)
}

// WithoutKubeFedFinalizer records an object without the finalizer that KubeFed's controller would have to remove, and returns it.
func WithoutKubeFedFinalizer(ctx context.Context, host Host, o *Object) (*Object, error) {
	if !slices.Contains(o.Meta.Finalizers, finalizerKubeFed) {
		return o, nil
	}
	next := *o
	next.Meta = *o.Meta.DeepCopy()
	next.Meta.Finalizers = slices.DeleteFunc(next.Meta.Finalizers, func(f string) bool { return f == finalizerKubeFed })
	return host.Apply(ctx, &next)
}
