package federation

import (
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// WritesPerSecond is the number of objects of one kind that KubeFed writes into each member per second, the rate limit
// of its clients.
const WritesPerSecond = 20

// BulkDuration returns how long KubeFed takes to push n objects to the members, which it writes concurrently.
func BulkDuration(n int) time.Duration {
	return time.Duration(max(n, 0)) * time.Second / WritesPerSecond
}

// MembersOf returns the members in which the objects are created, updated or deleted, sorted.
func MembersOf(objects []*Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.EverPlaced()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// PendingMembers returns the members to which KubeFed has not yet pushed the current version of an object: those that
// can be read and lack it, or that were not read yet. It returns none if KubeFed reported the present generation as
// handled, with or without success. Quarantined members and those of other engines are left out.
func PendingMembers(o *Object, members Members) []string {
	if o == nil || o.Propagation.Seen || o.Meta.DeletionTimestamp != nil {
		return nil
	}
	skipped := map[string]bool{}
	for _, c := range members.Clusters() {
		skipped[c.Name] = c.Quarantined || !c.Engine.IsKubeFed()
	}
	return slices.DeleteFunc(o.EverPlaced(), func(name string) bool {
		if skipped[name] {
			return true
		}
		seen := members.Observe(name, o.Key())
		return !seen.Unknown && (!seen.Reachable || !o.lacks(name, seen.Object))
	})
}

// lacks compares the revision labels. Whether the spec matches its label is checked elsewhere.
func (o *Object) lacks(cluster string, found *Observed) bool {
	if !slices.Contains(o.Placement, cluster) {
		return found != nil
	}
	if found == nil {
		return true
	}
	revision := o.RevisionIn(cluster)
	if found.Label == "" {
		return found.Revision != revision
	}
	return found.Label != revision
}

// RevisionIn returns the revision that a member must have, or "" if the object is not placed there.
func (o *Object) RevisionIn(cluster string) string {
	if !slices.Contains(o.Placement, cluster) {
		return ""
	}
	if own, ok := o.Overrides[cluster].Labels[v1alpha1.LabelRevision]; ok {
		return own
	}
	if label, ok := o.TemplateLabels[v1alpha1.LabelRevision]; ok {
		return label
	}
	return o.Meta.Annotations[AnnotationRevision]
}
