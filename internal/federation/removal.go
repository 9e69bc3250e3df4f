package federation

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Members is what is known of the members; Fleet is it, and tests have others.
type Members interface {
	Registry() (bool, error)
	Clusters() []Cluster
	Observe(cluster, object string) Observation
	Absent(ctx context.Context, cluster, object string) (bool, error)
}

// Host are the Federated objects of one kind; Objects is it, and tests have others.
type Host interface {
	State() (bool, error)
	Get(name string) (*Object, bool)
	Of(resource string) []*Object
	List() []*Object
	Apply(ctx context.Context, o *Object) (*Object, error)
	Delete(ctx context.Context, o *Object) error
}

// Ever are the members that may have the object, sorted: those it was placed in, those that KubeFed lists, and others that
// somebody knows of. Together they survive a restart, and a hand that edits one of them.
func (o *Object) Ever(others ...string) []string {
	out := append(SplitNames(o.Meta.Annotations[AnnotationEverPlaced]), o.Placement...)
	out = slices.AppendSeq(out, maps.Keys(o.Propagation.Clusters))
	out = append(out, others...)
	slices.Sort(out)
	return slices.Compact(out)
}

// Forgets tells whether the object itself names a member as gone for good. It counts only for one that is not registered.
func (o *Object) Forgets(cluster string) bool {
	return slices.Contains(SplitNames(o.Meta.Annotations[AnnotationForget]), cluster)
}

// SeenWithout tells that a member does not have the object, and will not get it from what KubeFed still has to do. A member
// that is not registered or cannot be read was not seen.
func (o *Object) SeenWithout(seen Observation) bool {
	return o.Propagation.Seen && seen.Registered && seen.Reachable && seen.Object == nil
}

// Releases tells that o remembers a member that is leaving, and next, which would be written in its place, does not: then it
// has to be written, because the member waits for that.
func (o *Object) Releases(next *Object, clusters []Cluster) bool {
	if o == nil {
		return false
	}
	remembered, kept := SplitNames(o.Meta.Annotations[AnnotationEverPlaced]), SplitNames(next.Meta.Annotations[AnnotationEverPlaced])
	return slices.ContainsFunc(clusters, func(c Cluster) bool {
		return c.Leaving && slices.Contains(remembered, c.Name) && !slices.Contains(kept, c.Name)
	})
}

// Nowhere is the object with an explicitly empty placement, that remembers who may still have it.
func (o *Object) Nowhere(ever []string) *Object {
	next := o.PlacedIn(nil, ever)
	next.Overrides = nil
	return next
}

// PlacedIn is the object with another placement, that remembers who may still have it.
func (o *Object) PlacedIn(clusters, ever []string) *Object {
	next := *o
	next.Meta = *o.Meta.DeepCopy()
	next.Placement, next.Foreign = clusters, false
	next.Meta.Annotations = Overlay(next.Meta.Annotations, map[string]string{AnnotationEverPlaced: JoinNames(ever)})
	return &next
}

// DeleteAbsent deletes an object of the host after every member that may have it was asked itself: a cache that stands
// still must not make a member forgotten.
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
