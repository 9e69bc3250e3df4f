package protectedresource

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// ever are the members that may have the object, and, of what there is no object for, those that the status told.
func (f *facts) ever(e *federation.Object) []string {
	if e == nil {
		e = &federation.Object{}
	}
	return slices.DeleteFunc(e.Ever(f.listed()...), f.forgotten)
}

// listed returns the names of the members that the statuses of the ProtectedResources list.
func (f *facts) listed() []string {
	if f.names == nil {
		names := []string{}
		for _, o := range f.Objects {
			for c := range o.Status.All() {
				names = append(names, string(c.Name))
			}
		}
		f.names = &names
	}
	return *f.names
}

// AnnotationForget is written on the ProtectedResource, or, for a wildcard, on the Federated object.
const AnnotationForget = federation.AnnotationForget

func (f *facts) forgotten(cluster string) bool {
	named := slices.ContainsFunc(f.Objects, func(o *v1alpha1.ProtectedResource) bool {
		return slices.Contains(federation.SplitNames(o.Annotations[AnnotationForget]), cluster)
	}) || f.wildcard() && slices.ContainsFunc(f.Existing, func(e *federation.Object) bool { return e.Forgets(cluster) })
	return named && !f.Observe(cluster, "").Registered
}

// stillHeld are the members that may have the object and were not seen without it since KubeFed was told to remove it.
func (f *facts) stillHeld(e *federation.Object) []string {
	return slices.DeleteFunc(f.ever(e), func(c string) bool {
		return !slices.Contains(e.Placement, c) && e.SeenWithout(f.Observe(c, e.Key()))
	})
}

// mayBeHeld are the policies whose statements some member may still have from what the object was until now. When the
// last report had every member realized, only its own policies can be.
func (f *facts) mayBeHeld(e *federation.Object) []string {
	return slices.DeleteFunc(federation.SplitNames(e.Meta.Annotations[federation.AnnotationPolicies]), func(p string) bool {
		return f.Before.Resource != "" && f.Before.Realized() && len(f.Before.SIDs[p]) == 0
	})
}

// goneEverywhere tells that no member has the object.
func (f *facts) goneEverywhere(e *federation.Object) bool {
	return e.Propagation.Seen && len(f.stillHeld(e)) == 0
}

// present is what each member that the object is placed in has to have, as the object stands.
func (f *facts) present(e *federation.Object) map[string]string {
	out := map[string]string{}
	for _, c := range e.Placement {
		out[c] = f.Revision(e.SpecIn(c))
	}
	return out
}

// realized tells whether every desired revision was read back.
func (f *facts) realized(desired map[string]map[string]string) bool {
	for _, clusters := range desired {
		for c := range clusters {
			if !f.realizedIn(c, desired) {
				return false
			}
		}
	}
	return true
}

// realizedIn tells whether every revision that is desired in a member was read back from it.
func (f *facts) realizedIn(cluster string, desired map[string]map[string]string) bool {
	for object, clusters := range desired {
		revision, wanted := clusters[cluster]
		if !wanted {
			continue
		}
		o := f.Observe(cluster, object)
		if !o.Reachable || o.Object == nil || o.Object.Revision != revision || o.Object.Invalid != "" {
			return false
		}
	}
	return true
}
