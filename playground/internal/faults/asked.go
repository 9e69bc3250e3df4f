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

// asked is what a Federated object asks of the members.
type asked struct {
	placement []string
	spec      any
	labels    map[string]string
	// specs and others are the overrides of members.
	specs  map[string]any
	others map[string]map[string]string
}

func parseAsked(u *unstructured.Unstructured) (asked, error) {
	a := asked{specs: map[string]any{}, others: map[string]map[string]string{}}
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
			return a, fmt.Errorf("%s has an override that is none", u.GetName())
		}
		member := fmt.Sprint(entry["clusterName"])
		patches, _, _ := unstructured.NestedSlice(entry, "clusterOverrides")
		for _, p := range patches {
			patch, ok := p.(map[string]any)
			if !ok {
				return a, fmt.Errorf("%s has an override that is none", u.GetName())
			}
			path := fmt.Sprint(patch["path"])
			if label, ok := strings.CutPrefix(path, "/metadata/labels/"); ok {
				if a.others[member] == nil {
					a.others[member] = map[string]string{}
				}
				a.others[member][strings.NewReplacer("~1", "/", "~0", "~").Replace(label)] = fmt.Sprint(patch["value"])
			} else {
				a.specs[member] = patch["value"]
			}
		}
	}
	return a, nil
}

// differs tells in what an object of a member is not as it is asked; "": it is.
func (a asked) differs(member string, u *unstructured.Unstructured) string {
	spec, labels := a.spec, a.labels
	if own, ok := a.specs[member]; ok {
		spec = own
	}
	if !equality.Semantic.DeepEqual(u.Object["spec"], spec) {
		return "its spec"
	}
	for k, v := range labels {
		if own, ok := a.others[member][k]; ok {
			v = own
		}
		if u.GetLabels()[k] != v {
			return "its label " + k
		}
	}
	return ""
}

// asAsked compares the objects in the healthy members with what the host asks for: nothing is left behind, and nothing that
// a hand changed stays.
func (d *drill) asAsked(ctx context.Context) error {
	all := map[string]asked{}
	for _, k := range kinds {
		list, err := d.host.Resource(k.federated).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("read the Federated objects: %w", err)
		}
		for i := range list.Items {
			if all[called(k.kind, &list.Items[i])], err = parseAsked(&list.Items[i]); err != nil {
				return err
			}
		}
	}
	for _, m := range d.healthy() {
		present, err := d.managed(ctx, m)
		if err != nil {
			return fmt.Errorf("read %s: %w", m, err)
		}
		there := map[string]bool{}
		for i := range present {
			u := &present[i]
			name := called(u.GetKind(), u)
			there[name] = true
			a := all[name]
			if !slices.Contains(a.placement, m) {
				return fmt.Errorf("%s leaked in %s", name, m)
			}
			if what := a.differs(m, u); what != "" {
				return fmt.Errorf("%s in %s is not as the host asks: %s", name, m, what)
			}
		}
		for object, a := range all {
			if slices.Contains(a.placement, m) && !there[object] {
				return fmt.Errorf("%s lacks %s, for which the host asks", m, object)
			}
		}
	}
	return nil
}
