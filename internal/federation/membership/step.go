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

// Outcome is the outcome for an object.
type Outcome string

// Outcomes.
const (
	// Created means that the object was created.
	Created Outcome = "created"
	// Changed means that the object existed and was changed.
	Changed Outcome = "changed"
	// Unchanged means that the object was already as it should be.
	Unchanged Outcome = "unchanged"
	// Removed means that the object was removed.
	Removed Outcome = "removed"
	// Absent means that an object to be removed did not exist.
	Absent Outcome = "absent"
	// WouldWrite means that a dry run would write the object.
	WouldWrite Outcome = "to be written"
	// WouldRemove means that a dry run would remove the object.
	WouldRemove Outcome = "to be removed"
	// Unserved means that the cluster is too old for the kind.
	Unserved Outcome = "not served there"
)

// Step is one object that was applied to a cluster or removed from it.
type Step struct {
	// In is "host" or the member's name.
	In      string  `json:"in"`
	Object  string  `json:"object"`
	Outcome Outcome `json:"done"`
}

// resources has the resources of the kinds that are applied.
var resources = map[string]schema.GroupVersionResource{
	"Namespace":          {Version: "v1", Resource: "namespaces"},
	"ServiceAccount":     {Version: "v1", Resource: "serviceaccounts"},
	"Secret":             {Version: "v1", Resource: "secrets"},
	"ClusterRole":        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding": {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"Role":               {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	"RoleBinding":        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"KubeFedCluster":     federation.ClusterResource,

	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},

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

// applyObject applies an object. Fields that others wrote and ACP does not write stay.
func applyObject(ctx context.Context, c dynamic.Interface, in string, o *unstructured.Unstructured, dry bool) (Step, error) {
	step := Step{In: in, Object: title(o), Outcome: WouldWrite}
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
		step.Outcome = Unchanged // Others create objects in it, too.
		return step, nil
	}
	after, err := r.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return step, fmt.Errorf("write %s in %s: %w", step.Object, in, err)
	}
	switch {
	case before == nil:
		step.Outcome = Created
	case before.GetResourceVersion() == after.GetResourceVersion():
		step.Outcome = Unchanged
	default:
		step.Outcome = Changed
	}
	return step, nil
}

// applyMissing applies those of the objects that do not exist. An existing object stays as it is.
func applyMissing(ctx context.Context, c dynamic.Interface, in string, objects []*unstructured.Unstructured, dry bool, record func(Step, error) error) error {
	for _, o := range objects {
		r, err := client(c, o)
		if err != nil {
			return err
		}
		_, err = r.Get(ctx, o.GetName(), metav1.GetOptions{})
		switch {
		case err == nil:
			err = record(Step{In: in, Object: title(o), Outcome: Unchanged}, nil)
		case apierrors.IsNotFound(err):
			err = record(applyObject(ctx, c, in, o, dry))
		default:
			err = fmt.Errorf("read %s in %s: %w", title(o), in, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeObject removes an object, if it exists.
func removeObject(ctx context.Context, c dynamic.Interface, in string, o *unstructured.Unstructured, dry bool) (Step, error) {
	step := Step{In: in, Object: title(o), Outcome: WouldRemove}
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
		step.Outcome = Absent
	case err != nil:
		return step, fmt.Errorf("remove %s in %s: %w", step.Object, in, err)
	default:
		step.Outcome = Removed
	}
	return step, nil
}

// manifests reads the objects of YAML files, in the order of the files' names.
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
		objects, err := documents(name, text)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// documents reads the objects of one YAML file.
func documents(name string, text []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			return nil, fmt.Errorf("read the manifest %s: %w", name, err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
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
