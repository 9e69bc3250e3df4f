package protectedresource

import (
	"maps"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// ever are the members that may have the object: those it was placed in, those that KubeFed lists, and those that the
// status told. The three together survive a restart of the adapter and a hand that edits one of them.
func (f *facts) ever(e *federation.Object) []string {
	var out []string
	if e != nil {
		out = append(out, federation.SplitNames(e.Meta.Annotations[federation.AnnotationEverPlaced])...)
		out = append(out, e.Placement...)
		out = slices.AppendSeq(out, maps.Keys(e.Propagation.Clusters))
	}
	for _, o := range f.Objects {
		for i := range o.Status.Clusters {
			out = append(out, string(o.Status.Clusters[i].Name))
		}
	}
	out = slices.DeleteFunc(out, f.forgotten)
	slices.Sort(out)
	return slices.Compact(out)
}

// AnnotationForget is written on the ProtectedResource, or, for a wildcard, on the Federated object.
const AnnotationForget = federation.AnnotationForget

func (f *facts) forgotten(cluster string) bool {
	named := slices.ContainsFunc(f.Objects, func(o *v1alpha1.ProtectedResource) bool {
		return slices.Contains(federation.SplitNames(o.Annotations[AnnotationForget]), cluster)
	}) || f.wildcard() && slices.ContainsFunc(f.Existing, func(e *federation.Object) bool {
		return slices.Contains(federation.SplitNames(e.Meta.Annotations[AnnotationForget]), cluster)
	})
	return named && !f.Observe(cluster, "").Registered
}

// stillHeld are the members that may have the object and were not seen without it since KubeFed was told to remove it.
func (f *facts) stillHeld(e *federation.Object) []string {
	return slices.DeleteFunc(f.ever(e), func(c string) bool {
		return !slices.Contains(e.Placement, c) && f.seenWithout(e, c)
	})
}

// mayBeHeld are the policies whose statements some member may still have from what the object was until now. When the
// last report had every member realized, only its own policies can be.
func (f *facts) mayBeHeld(e *federation.Object) []string {
	return slices.DeleteFunc(federation.SplitNames(e.Meta.Annotations[federation.AnnotationPolicies]), func(p string) bool {
		return f.Before.Resource != "" && f.Before.Realized() && len(f.Before.SIDs[p]) == 0
	})
}

// seenWithout tells that a member does not have the object, and will not get it from what KubeFed still has to do. A
// member that is not registered or cannot be read was not seen.
func (f *facts) seenWithout(e *federation.Object, cluster string) bool {
	o := f.Observe(cluster, e.Meta.Name)
	return e.Propagation.Seen && o.Registered && o.Reachable && o.Object == nil
}

// goneEverywhere tells that no member has the object.
func (f *facts) goneEverywhere(e *federation.Object) bool {
	return e.Propagation.Seen && len(f.stillHeld(e)) == 0
}

// present is what each member that the object is placed in has to have, as the object stands.
func (f *facts) present(e *federation.Object) map[string]string {
	out := map[string]string{}
	for _, c := range e.Placement {
		spec := e.TemplateSpec
		if o := e.Overrides[c]; o.Spec != nil {
			spec = o.Spec
		}
		out[c] = f.Revision(spec)
	}
	return out
}

// realized tells whether every desired revision was read back.
func (f *facts) realized(desired map[string]map[string]string) bool {
	for object, clusters := range desired {
		for c, revision := range clusters {
			o := f.Observe(c, object)
			if !o.Reachable || o.Object == nil || o.Object.Revision != revision || o.Object.Invalid != "" {
				return false
			}
		}
	}
	return true
}
