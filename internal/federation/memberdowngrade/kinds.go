package memberdowngrade

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/federation/objectkind"
)

// kind is a kind of policy. opened returns a spec that lets everything through.
type kind struct {
	objectkind.Kind
	opened func(spec map[string]any) map[string]any
}

// kinds returns the kinds that ACP pushes. A cluster without one of them has no objects of it.
func kinds() []kind {
	var out []kind
	for _, e := range objectkind.Policies() {
		out = append(out, kind{e.Kind, registry.Of(e.Enforcer).Audit})
	}
	return out
}

// managed reports whether ACP wrote an object. In namespaces the name alone is no proof, because tenants choose names,
// too.
func managed(u *unstructured.Unstructured) bool {
	return u.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy ||
		u.GetNamespace() == "" && strings.HasPrefix(u.GetName(), v1alpha1.ObjectPrefix)
}

// open returns the object in a form that lets everything through, and false if it does so already. Cilium reads rules
// from spec and from specs, of which ACP writes only the first.
func (k kind) open(u *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	next := u.DeepCopy()
	spec, _, err := unstructured.NestedMap(u.Object, "spec")
	if err != nil {
		return nil, false, fmt.Errorf("read the spec of %s: %w", u.GetName(), err)
	}
	opened := k.opened(spec)
	next.Object["spec"] = opened
	more, had := u.Object["specs"].([]any)
	if had {
		all := make([]any, 0, len(more))
		for _, s := range more {
			one, ok := s.(map[string]any)
			if !ok {
				return nil, false, fmt.Errorf("read the specs of %s: one is not an object", u.GetName())
			}
			all = append(all, k.opened(one))
		}
		next.Object["specs"] = all
		if spec == nil {
			delete(next.Object, "spec")
		}
	}
	same, err := equal(u.Object, next.Object)
	if err != nil || same {
		return nil, false, err
	}
	labels := next.GetLabels()
	if labels[v1alpha1.LabelRevision] != "" {
		// The label must match the content; otherwise the change would be reported as drift.
		labels[v1alpha1.LabelRevision] = enforcer.Revision(opened)
		next.SetLabels(labels)
	}
	return next, true, nil
}

func equal(a, b map[string]any) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("compare a policy: %w", err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("compare a policy: %w", err)
	}
	return string(x) == string(y), nil
}
