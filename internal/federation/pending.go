package federation

import (
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// WritesPerSecond is how many objects of one kind KubeFed writes into each member: its clients are limited to that.
const WritesPerSecond = 20

// BulkDuration is how long KubeFed takes to bring n objects to the members, which it writes beside each other.
func BulkDuration(n int) time.Duration {
	return time.Duration(max(n, 0)) * time.Second / WritesPerSecond
}

// MembersOf are the members into which KubeFed writes objects, or from which it takes them, sorted.
func MembersOf(objects []*Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.Ever()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// PendingMembers returns the members to which KubeFed still has to bring an object as it is now: those that lack it and can be read, or
// were not read yet. It returns none when KubeFed reported the present generation as handled, with or without success.
func PendingMembers(o *Object, members Members) []string {
	if o == nil || o.Propagation.Seen || o.Meta.DeletionTimestamp != nil {
		return nil
	}
	held := map[string]bool{}
	for _, c := range members.Clusters() {
		held[c.Name] = c.Held
	}
	return slices.DeleteFunc(o.Ever(), func(name string) bool {
		if held[name] {
			return true
		}
		seen := members.Observe(name, o.Key())
		return !seen.Unknown && (!seen.Reachable || !o.lacks(name, seen.Object))
	})
}

// lacks compares revisions as the labels tell them: whether the spec is as it says is another question.
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

// RevisionIn is the revision that a member has to have; "": nothing.
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
