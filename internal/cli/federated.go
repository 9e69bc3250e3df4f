package cli

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/manifest"
)

// federated wraps an object as the adapter writes it for KubeFed. The second result reports whether the members are not
// known: the placement is then the class's selector instead of names, and leaves no member out.
func (r *rendered) federated(members []manifest.Member) (map[string]any, bool, error) {
	targets, known, err := r.placed(members)
	if err != nil {
		return nil, false, err
	}
	differing := r.differing()
	if known {
		targets = slices.DeleteFunc(targets, func(c string) bool { return r.modeIn(c) == v1alpha1.ModeObserve })
		differing = slices.DeleteFunc(differing, func(c string) bool { return !slices.Contains(targets, c) })
	}
	o := federation.Object{
		Kind: federation.Kind{
			Federated: schema.GroupVersionKind{Group: "types.kubefed.io", Version: "v1beta1", Kind: "Federated" + r.object.Object.Kind},
		},
		TemplateLabels: r.object.Object.Labels,
		TemplateSpec:   r.object.Object.Spec,
		Placement:      targets,
	}
	o.Meta.Namespace, o.Meta.Name, o.Meta.Labels = r.object.Object.Namespace, r.object.Object.Name, r.object.Object.Labels
	o.Meta.Annotations = map[string]string{federation.AnnotationResource: r.about}
	if _, ok := r.object.Object.Labels[v1alpha1.LabelRevision]; !ok {
		o.Meta.Annotations[federation.AnnotationRevision] = r.object.Revision
	}
	for _, c := range differing {
		if o.Overrides == nil {
			o.Overrides = map[string]federation.Override{}
		}
		o.Overrides[c] = federation.Override{Spec: r.object.Overrides[c], Labels: map[string]string{v1alpha1.LabelRevision: r.object.Revisions[c]}}
	}
	u, err := o.Unstructured()
	if err != nil {
		return nil, false, err
	}
	if !known {
		selector, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.selector())
		if err != nil {
			return nil, false, fmt.Errorf("encode the clusterSelector: %w", err)
		}
		if err := unstructured.SetNestedMap(u.Object, map[string]any{"clusterSelector": selector}, "spec", "placement"); err != nil {
			return nil, false, fmt.Errorf("set the placement: %w", err)
		}
	}
	return u.Object, !known, nil
}
