package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// federatedSpec is the content of a Federated object: the members it is placed in, and the spec and labels that each must have.
type federatedSpec struct {
	placement []string
	spec      any
	labels    map[string]string
	// specOverrides and labelOverrides contain the overrides by member.
	specOverrides  map[string]any
	labelOverrides map[string]map[string]string
}

// parseFederated reads the placement, template and overrides of a Federated object.
func parseFederated(u *unstructured.Unstructured) (federatedSpec, error) {
	a := federatedSpec{specOverrides: map[string]any{}, labelOverrides: map[string]map[string]string{}}
	placement, _, err := unstructured.NestedSlice(u.Object, "spec", "placement", "clusters")
	if err != nil {
		return a, fmt.Errorf("read the placement of %s: %w", u.GetName(), err)
	}
	for _, c := range placement {
		if entry, ok := c.(map[string]any); ok {
			a.placement = append(a.placement, fmt.Sprint(entry["name"]))
		}
	}
	a.spec, _, _ = unstructured.NestedMap(u.Object, "spec", "template", "spec")
	a.labels, _, _ = unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
	overrides, _, _ := unstructured.NestedSlice(u.Object, "spec", "overrides")
	for _, o := range overrides {
		entry, ok := o.(map[string]any)
		if !ok {
			return a, fmt.Errorf("%s has a malformed override", u.GetName())
		}
		member := fmt.Sprint(entry["clusterName"])
		patches, _, _ := unstructured.NestedSlice(entry, "clusterOverrides")
		for _, p := range patches {
			patch, ok := p.(map[string]any)
			if !ok {
				return a, fmt.Errorf("%s has a malformed override", u.GetName())
			}
			path := fmt.Sprint(patch["path"])
			if label, ok := strings.CutPrefix(path, "/metadata/labels/"); ok {
				if a.labelOverrides[member] == nil {
					a.labelOverrides[member] = map[string]string{}
				}
				a.labelOverrides[member][strings.NewReplacer("~1", "/", "~0", "~").Replace(label)] = fmt.Sprint(patch["value"])
			} else {
				a.specOverrides[member] = patch["value"]
			}
		}
	}
	return a, nil
}

// difference returns which part of an object of a member differs from the Federated object, or "" when none does.
func (a federatedSpec) difference(member string, u *unstructured.Unstructured) string {
	spec, labels := a.spec, a.labels
	if own, ok := a.specOverrides[member]; ok {
		spec = own
	}
	if !equality.Semantic.DeepEqual(u.Object["spec"], spec) {
		return "its spec"
	}
	for k, v := range labels {
		if own, ok := a.labelOverrides[member][k]; ok {
			v = own
		}
		if u.GetLabels()[k] != v {
			return "its label " + k
		}
	}
	return ""
}

// checkObjects compares the objects in the healthy members with the Federated objects of the host. It returns an error when an
// object is left behind, missing, or still differs after a manual change.
func (d *drill) checkObjects(ctx context.Context) error {
	all := map[string]federatedSpec{}
	for _, k := range kinds {
		list, err := d.host.Resource(k.federated).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("read the Federated objects: %w", err)
		}
		for i := range list.Items {
			if all[displayName(k.kind, &list.Items[i])], err = parseFederated(&list.Items[i]); err != nil {
				return err
			}
		}
	}
	for _, m := range d.healthy() {
		present, err := d.managedObjects(ctx, m)
		if err != nil {
			return fmt.Errorf("read %s: %w", m, err)
		}
		found := map[string]bool{}
		for i := range present {
			u := &present[i]
			name := displayName(u.GetKind(), u)
			found[name] = true
			a := all[name]
			if !slices.Contains(a.placement, m) {
				return fmt.Errorf("%s leaked in %s", name, m)
			}
			if what := a.difference(m, u); what != "" {
				return fmt.Errorf("%s in %s differs from its Federated object: %s", name, m, what)
			}
		}
		for object, a := range all {
			if slices.Contains(a.placement, m) && !found[object] {
				return fmt.Errorf("%s lacks %s, which a Federated object requires", m, object)
			}
		}
	}
	return nil
}
