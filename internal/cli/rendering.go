package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/policy"
)

// rendered is an object of a unit, as one enforcer renders it.
type rendered struct {
	enforcer v1alpha1.EnforcerName
	unit     *policy.Unit
	object   *enforcer.Rendered
}

// renderAll translates every unit with the enforcers of its class, or with the one that is named. The refusals are
// those of the statements, of single units and of the enforcers, each once.
func renderAll(units []policy.Unit, statements []policy.Refusal, only v1alpha1.EnforcerName) ([]rendered, []policy.Refusal, error) {
	var out []rendered
	refused := slices.Clone(statements)
	for i := range units {
		u := &units[i]
		for _, r := range u.Refused {
			if r.Reason == v1alpha1.RefusedShadowingDeny {
				refused = append(refused, r) // the others are among those of the statements
			}
		}
		names := u.Enforcers
		if only != "" {
			names = []v1alpha1.EnforcerName{only}
		}
		for _, name := range names {
			e, err := registry.Get(name)
			if err != nil {
				return nil, nil, usage("%w, and class %s wants it", err, u.Class)
			}
			rendering, err := e.Render(*u)
			if err != nil {
				return nil, nil, invalid(fmt.Errorf("render %s: %w", u.Resource, err))
			}
			for j := range rendering.Objects {
				out = append(out, rendered{enforcer: name, unit: u, object: &rendering.Objects[j]})
			}
			refused = append(refused, rendering.Refused...)
		}
	}
	slices.SortStableFunc(refused, func(a, b policy.Refusal) int {
		return cmp.Or(cmp.Compare(a.Ref.Policy, b.Ref.Policy), cmp.Compare(a.Ref.SID, b.Ref.SID),
			cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Message, b.Message))
	})
	return out, slices.Compact(refused), nil
}

// plain is the object as a member gets it; spec and revision may be those of an override.
func plain(o *enforcer.Object, spec map[string]any, revision string) map[string]any {
	objectLabels := map[string]any{}
	for k, v := range o.Labels {
		objectLabels[k] = v
	}
	objectLabels[v1alpha1.LabelRevision] = revision
	return map[string]any{
		"apiVersion": o.GroupVersion, "kind": o.Kind,
		"metadata": map[string]any{"name": o.Name, "labels": objectLabels},
		"spec":     spec,
	}
}

// in is the object as one member gets it; false: it gets none, because its mode is Observe there.
func (r *rendered) in(cluster string) (map[string]any, bool) {
	if r.modeIn(cluster) == v1alpha1.ModeObserve {
		return nil, false
	}
	spec := r.object.Object.Spec
	if other, ok := r.object.Overrides[cluster]; ok {
		spec = other
	}
	return plain(&r.object.Object, spec, r.object.RevisionIn(cluster)), true
}

func (r *rendered) modeIn(cluster string) v1alpha1.Mode {
	if m, ok := r.unit.ClusterModes[cluster]; ok {
		return m
	}
	return r.unit.Mode
}

// differing are the members with a spec of their own.
func (r *rendered) differing() []string { return slices.Sorted(maps.Keys(r.object.Overrides)) }

// placed are the members of a unit's placement; false: they are selected by label, and no member is known.
func placed(p *v1alpha1.Placement, members []manifest.Member) ([]string, bool, error) {
	if p.Clusters != nil {
		out := []string{}
		for _, c := range *p.Clusters {
			out = append(out, string(c))
		}
		slices.Sort(out)
		return out, true, nil
	}
	if len(members) == 0 {
		return nil, false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(p.ClusterSelector)
	if err != nil {
		return nil, false, fmt.Errorf("clusterSelector: %w", err)
	}
	out := []string{}
	for _, m := range members {
		if selector.Matches(labels.Set(m.Labels)) {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return out, true, nil
}
