package preflight

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
)

// EnforcedBy tells whether a class names an enforcer; one that names none is Cilium's.
func EnforcedBy(c *v1alpha1.ResourceClass, name v1alpha1.EnforcerName) bool {
	return slices.Contains(c.Spec.Enforcers, name) || len(c.Spec.Enforcers) == 0 && name == v1alpha1.EnforcerCilium
}

// Keys are the labels by which Cilium would have to know pods, for classes that it enforces.
func Keys(resources []*v1alpha1.ResourceClass, subjects []*v1alpha1.SubjectClass) []Key {
	var out []Key
	enforced := false
	for _, c := range resources {
		if EnforcedBy(c, v1alpha1.EnforcerCilium) {
			enforced = true
			out = append(out, Key{Class: c.Name, Label: string(c.Spec.LabelKey)})
		}
	}
	for _, c := range subjects {
		if enforced {
			out = append(out, Key{Class: c.Name, Label: string(c.Spec.LabelKey)})
		}
	}
	return out
}

// Labels are those of keys, sorted, each once.
func Labels(keys []Key) []string {
	var out []string
	for _, k := range keys {
		out = append(out, k.Label)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
