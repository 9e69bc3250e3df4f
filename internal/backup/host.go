package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/hostcluster"
)

// pageOfObjects is the number of objects in one answer of the API server.
const pageOfObjects = 500

func hostFile(k hostcluster.Kind) string { return "host/" + k.Plural + ".jsonl" }

// hostKinds returns the kinds of a backup, in the order in which they are restored: what a grant refers to comes before it, and a
// resource is protected after it has its grants, so that nobody is cut off meanwhile. MemberClusters are written by the adapter.
func hostKinds() []hostcluster.Kind {
	byName := map[string]hostcluster.Kind{}
	for _, k := range hostcluster.KindsWithApprovals() {
		byName[k.Name] = k
	}
	var out []hostcluster.Kind
	kinds := []string{"Organization", "ResourceClass", "SubjectClass", "ExternalWorkload", "AccessControlPolicy", "ApprovalPolicy", "ProtectedResource"}
	for _, name := range kinds {
		out = append(out, byName[name])
	}
	return out
}

func exportObjects(ctx context.Context, c client.Client, w *writer) error {
	for _, k := range hostKinds() {
		if err := w.begin(hostFile(k)); err != nil {
			return err
		}
		list := listOf(k)
		for {
			if err := c.List(ctx, list, client.Limit(pageOfObjects), client.Continue(list.GetContinue())); err != nil {
				return fmt.Errorf("list the objects of kind %s: %w", k.Name, err)
			}
			for i := range list.Items {
				if list.Items[i].GetDeletionTimestamp() != nil {
					continue // it is being deleted, and must not come back
				}
				if err := w.add(portable(&list.Items[i])); err != nil {
					return err
				}
			}
			if list.GetContinue() == "" {
				break
			}
		}
	}
	return nil
}

func listOf(k hostcluster.Kind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.Name + "List"))
	return list
}

// portable returns what of an object can be created elsewhere: its name, labels, annotations and spec.
func portable(o *unstructured.Unstructured) map[string]any {
	meta := map[string]any{"name": o.GetName()}
	if l := o.GetLabels(); len(l) > 0 {
		meta["labels"] = l
	}
	a := maps.Clone(o.GetAnnotations())
	delete(a, "kubectl.kubernetes.io/last-applied-configuration") // of an object that is created anew
	if len(a) > 0 {
		meta["annotations"] = a
	}
	return map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": meta, "spec": o.Object["spec"]}
}

// objects reads the objects of a kind.
func objects[T any, O interface {
	*T
	client.Object
}](a *Archive, kind string) (out []O, err error) {
	for _, k := range hostKinds() {
		if k.Name != kind {
			continue
		}
		if k.Name == "Organization" && !a.has(hostFile(k)) {
			continue // backups before this kind have none
		}
		for text, err := range a.records(hostFile(k)) {
			if err != nil {
				return nil, err
			}
			o := O(new(T))
			if err := json.Unmarshal(text, o); err != nil {
				return nil, fmt.Errorf("an object of kind %s in the backup: %w", kind, err)
			}
			out = append(out, o)
		}
	}
	return out, nil
}

// place creates an object. One that is there with the same spec is left alone, so that a restore that was cut short can be run again.
func place(ctx context.Context, c client.Client, o client.Object) error {
	o.SetResourceVersion("")
	o.SetUID("")
	err := c.Create(ctx, o)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("create %s: %w", nameOf(o), err)
		}
		return nil
	}
	there := o.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), there); err != nil {
		return fmt.Errorf("read %s: %w", nameOf(o), err)
	}
	if !sameSpec(o, there) {
		return fmt.Errorf("%s is in the host cluster already, with another spec: restore into a cluster without ACP's objects", nameOf(o))
	}
	return nil
}

// check reports the objects that are in the host cluster and differ from those that are to be placed.
func check(ctx context.Context, c client.Client, wanted []client.Object) error {
	expected := map[string]client.Object{}
	for _, o := range wanted {
		expected[nameOf(o)] = o
	}
	for _, k := range hostKinds() {
		list := listOf(k)
		for {
			if err := c.List(ctx, list, client.Limit(pageOfObjects), client.Continue(list.GetContinue())); err != nil {
				return fmt.Errorf("list the objects of kind %s; are the CRDs of ACP installed? %w", k.Name, err)
			}
			for i := range list.Items {
				there := k.Object.DeepCopyObject().(client.Object)
				text, err := json.Marshal(list.Items[i].Object)
				if err != nil {
					return fmt.Errorf("read %s %s: %w", k.Name, list.Items[i].GetName(), err)
				}
				if err := json.Unmarshal(text, there); err != nil {
					return fmt.Errorf("read %s %s: %w", k.Name, list.Items[i].GetName(), err)
				}
				there.GetObjectKind().SetGroupVersionKind(list.Items[i].GroupVersionKind())
				if o, ok := expected[nameOf(there)]; !ok || !sameSpec(o, there) {
					return fmt.Errorf(
						"the host cluster has %s, which is not of this backup: restore into a cluster without ACP's objects, "+
							"or restore the database alone (docs/backup.md)",
						nameOf(there),
					)
				}
			}
			if list.GetContinue() == "" {
				break
			}
		}
	}
	return nil
}

func nameOf(o client.Object) string {
	return o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetName()
}

func sameSpec(a, b client.Object) bool {
	x, err := specOf(a)
	y, err2 := specOf(b)
	return errors.Join(err, err2) == nil && equality.Semantic.DeepEqual(x, y)
}

// specOf returns an object's spec as the API server would see it.
func specOf(o client.Object) (any, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var v struct {
		Spec any `json:"spec"`
	}
	err = json.Unmarshal(text, &v)
	return v.Spec, err
}
