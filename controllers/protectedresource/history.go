package protectedresource

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
)

// everPlaced returns the members that may have the object and, if there is no object, the members that the status lists.
func (f *facts) everPlaced(e *federation.Object) []string {
	if e == nil {
		e = &federation.Object{}
	}
	return slices.DeleteFunc(e.EverPlaced(f.StatusMembers...), f.forgotten)
}

// AnnotationForget lists members that no longer exist (see federation.AnnotationForget). It is set on the ProtectedResource or,
// for a wildcard, on the Federated object.
const AnnotationForget = federation.AnnotationForget

// forgotten reports whether an annotation declares that a member, which is not registered, does not exist any more.
func (f *facts) forgotten(cluster string) bool {
	named := slices.ContainsFunc(f.Objects, func(o *v1alpha1.ProtectedResource) bool {
		return slices.Contains(federation.SplitNames(o.Annotations[AnnotationForget]), cluster)
	}) || f.wildcard() && slices.ContainsFunc(f.Existing, func(e *federation.Object) bool { return e.IsForgotten(cluster) })
	return named && f.cluster(cluster) == nil
}

// notSeenWithout returns the members that may have the object and have not been seen without it since their engines were
// to remove it.
func (f *facts) notSeenWithout(e *federation.Object) []string {
	return slices.DeleteFunc(f.everPlaced(e), func(c string) bool {
		return !slices.Contains(e.Placement, c) && e.SeenWithout(c, f.Observed.of(c, e.Key()))
	})
}

// remainingPolicies returns the policies whose statements a member may still have from previous versions of the object. If
// every member was realized at the last report, these are only its own policies.
func (f *facts) remainingPolicies(e *federation.Object) []string {
	return slices.DeleteFunc(federation.SplitNames(e.Meta.Annotations[federation.AnnotationPolicies]), func(p string) bool {
		return f.LastReport.Resource != "" && f.LastReport.Realized() && len(f.LastReport.SIDs[p]) == 0
	})
}

// absentEverywhere reports whether no member has the object.
func (f *facts) absentEverywhere(e *federation.Object) bool {
	return e.Handled() && len(f.notSeenWithout(e)) == 0
}

// currentRevisions returns the revision that each placed member must have according to the current object.
func currentRevisions(e *federation.Object) map[string]string {
	out := map[string]string{}
	for _, c := range e.Placement {
		out[c] = enforcer.Revision(e.SpecIn(c))
	}
	return out
}

// revisionsObserved reports whether every desired revision was read back.
func (f *facts) revisionsObserved(desired map[string]map[string]string) bool {
	for _, clusters := range desired {
		for c := range clusters {
			if !f.revisionsObservedIn(c, desired) {
				return false
			}
		}
	}
	return true
}

// revisionsObservedIn reports whether every revision that is desired in a member was read back from it.
func (f *facts) revisionsObservedIn(cluster string, desired map[string]map[string]string) bool {
	for object, clusters := range desired {
		revision, wanted := clusters[cluster]
		if !wanted {
			continue
		}
		o := f.Observed.of(cluster, object)
		if !o.Reachable || o.Object == nil || o.Object.Revision != revision || o.Object.Invalid != "" {
			return false
		}
	}
	return true
}
