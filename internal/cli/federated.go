package cli

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/manifest"
)

const (
	federatedVersion   = "types.kubefed.io/v1beta1"
	annotationResource = "acp.io/resource"
)

// labelPath escapes a label key for a JSON pointer.
var labelPath = strings.NewReplacer("~", "~0", "/", "~1")

// federated wraps an object as the adapter writes it for KubeFed. The second result tells that the members are not
// known: then the placement is the class's selector instead of names, and nobody is left out of it.
func (r *rendered) federated(members []manifest.Member) (map[string]any, bool, error) {
	targets, known, err := placed(&r.unit.Placement, members)
	if err != nil {
		return nil, false, err
	}
	o := &r.object.Object
	objectLabels := map[string]any{}
	for k, v := range o.Labels {
		objectLabels[k] = v
	}
	spec := map[string]any{
		"template": map[string]any{"metadata": map[string]any{"labels": objectLabels}, "spec": o.Spec},
	}
	differing := r.differing()
	if known {
		// A member in Observe has no object; the list is always there, since KubeFed takes its absence for "all".
		targets = slices.DeleteFunc(targets, func(c string) bool { return r.modeIn(c) == v1alpha1.ModeObserve })
		list := []any{}
		for _, c := range targets {
			list = append(list, map[string]any{"name": c})
		}
		spec["placement"] = map[string]any{"clusters": list}
		differing = slices.DeleteFunc(differing, func(c string) bool { return !slices.Contains(targets, c) })
	} else {
		spec["placement"] = map[string]any{"clusterSelector": r.unit.Placement.ClusterSelector}
	}
	var overrides []any
	for _, c := range differing {
		overrides = append(overrides, map[string]any{"clusterName": c, "clusterOverrides": []any{
			map[string]any{"op": "replace", "path": "/spec", "value": r.object.Overrides[c]},
			map[string]any{"op": "replace", "path": "/metadata/labels/" + labelPath.Replace(v1alpha1.LabelRevision), "value": r.object.Revisions[c]},
		}})
	}
	if len(overrides) > 0 {
		spec["overrides"] = overrides
	}
	return map[string]any{
		"apiVersion": federatedVersion, "kind": "Federated" + o.Kind,
		"metadata": map[string]any{
			"name": o.Name, "labels": objectLabels,
			"annotations": map[string]any{annotationResource: r.unit.Resource},
		},
		"spec": spec,
	}, !known, nil
}
