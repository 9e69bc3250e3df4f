package membership

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
)

// Done is what became of an object.
type Done string

// What becomes of objects.
const (
	Created   Done = "created"
	Changed   Done = "changed"
	Unchanged Done = "unchanged"
	Removed   Done = "removed"
	Absent    Done = "absent"
	// Would be written, if it were no dry run.
	Would Done = "to be written"
	// WouldGo is what would be removed.
	WouldGo Done = "to be removed"
	// Unserved is what a cluster that is too old cannot have.
	Unserved Done = "not served there"
)

// Step is one object that was brought into one cluster, or taken out of it.
type Step struct {
	// In is "host" or the member's name.
	In     string `json:"in"`
	Object string `json:"object"`
	Done   Done   `json:"done"`
}

// resources of the kinds that are brought, and whether they have namespaces.
var resources = map[string]schema.GroupVersionResource{
	"Namespace":          {Version: "v1", Resource: "namespaces"},
	"ServiceAccount":     {Version: "v1", Resource: "serviceaccounts"},
	"Secret":             {Version: "v1", Resource: "secrets"},
	"ClusterRole":        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding": {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"Role":               {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	"RoleBinding":        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"KubeFedCluster":     federation.ClusterResource,

	"ValidatingAdmissionPolicy":        guard.PolicyResource,
	"ValidatingAdmissionPolicyBinding": guard.BindingResource,
}

func client(c dynamic.Interface, o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvr, ok := resources[o.GetKind()]
	if !ok {
		return nil, fmt.Errorf("nothing is known of the kind %s", o.GetKind())
	}
	if o.GetNamespace() != "" {
		return c.Resource(gvr).Namespace(o.GetNamespace()), nil
	}
	return c.Resource(gvr), nil
}

func title(o *unstructured.Unstructured) string {
	if o.GetNamespace() != "" {
		return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}

// bring makes an object as it has to be. What others wrote of it, and ACP does not, stays.
func bring(ctx context.Context, c dynamic.Interface, in string, o *unstructured.Unstructured, dry bool) (Step, error) {
	step := Step{In: in, Object: title(o), Done: Would}
	r, err := client(c, o)
	if err != nil {
		return step, err
	}
	before, err := r.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		before, err = nil, nil
	}
	if err != nil {
		return step, fmt.Errorf("read %s in %s: %w", step.Object, in, err)
	}
	if dry {
		return step, nil
	}
	if before != nil && o.GetKind() == "Namespace" {
		step.Done = Unchanged // others put things there, too
		return step, nil
	}
	after, err := r.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return step, fmt.Errorf("write %s in %s: %w", step.Object, in, err)
	}
	switch {
	case before == nil:
		step.Done = Created
	case before.GetResourceVersion() == after.GetResourceVersion():
		step.Done = Unchanged
	default:
		step.Done = Changed
	}
	return step, nil
}

// take removes an object, if it is there.
func take(ctx context.Context, c dynamic.Interface, in string, o *unstructured.Unstructured, dry bool) (Step, error) {
	step := Step{In: in, Object: title(o), Done: WouldGo}
	r, err := client(c, o)
	if err != nil {
		return step, err
	}
	if dry {
		return step, nil
	}
	err = r.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		step.Done = Absent
	case err != nil:
		return step, fmt.Errorf("remove %s in %s: %w", step.Object, in, err)
	default:
		step.Done = Removed
	}
	return step, nil
}

// manifests reads the objects of YAML files, in the order of their names.
func manifests(files fs.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the manifests: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read the manifest %s: %w", name, err)
		}
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
				return nil, fmt.Errorf("read the manifest %s: %w", name, err)
			}
			if len(o.Object) > 0 {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

func toUnstructured(o runtime.Object) (*unstructured.Unstructured, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", o, err)
	}
	unstructured.RemoveNestedField(m, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: m}, nil
}
