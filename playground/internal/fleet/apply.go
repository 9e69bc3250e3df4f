package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const (
	fieldManager = "acp-playground"
	// appliedAnnotation holds the hash of the object that was applied last, so that an unchanged object costs a single read at the
	// next start.
	appliedAnnotation = "playground.acp.io/applied"
)

// Applier creates and updates objects in one cluster.
type Applier struct {
	Client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// NewApplier returns an applier for the cluster of the config.
func NewApplier(config *rest.Config) (*Applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	return &Applier{Client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

// Resource returns the client for the kind of the object.
func (a *Applier) Resource(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := obj.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset()
		mapping, err = a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return a.Client.Resource(mapping.Resource).Namespace(obj.GetNamespace()), nil
	}
	return a.Client.Resource(mapping.Resource), nil
}

// Apply creates or updates the objects in dependency order (namespaces and CRDs first). It skips objects that are equal to those it
// applied last.
func (a *Applier) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	first, rest := partition(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Namespace" || o.GetKind() == "CustomResourceDefinition"
	})
	for _, group := range [][]*unstructured.Unstructured{first, rest} {
		var crds []string
		for _, obj := range group {
			if err := a.applyOne(ctx, obj); err != nil {
				return fmt.Errorf("apply %s %s: %w", obj.GetKind(), obj.GetName(), err)
			}
			if obj.GetKind() == "CustomResourceDefinition" {
				crds = append(crds, obj.GetName())
			}
		}
		for _, name := range crds {
			if err := a.waitEstablished(ctx, name); err != nil {
				return err
			}
		}
		if len(crds) > 0 {
			a.mapper.Reset()
		}
	}
	return nil
}

// applyOne applies an object unless its hash equals that of the object that was applied last.
func (a *Applier) applyOne(ctx context.Context, obj *unstructured.Unstructured) error {
	client, err := a.Resource(obj)
	if err != nil {
		return err
	}
	desired := obj.DeepCopy()
	data, err := json.Marshal(desired)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:8])
	present, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err == nil && present.GetAnnotations()[appliedAnnotation] == hash {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	annotations := desired.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[appliedAnnotation] = hash
	desired.SetAnnotations(annotations)
	_, err = client.Apply(ctx, obj.GetName(), desired, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// CreateAbsent creates the objects that do not exist and returns how many. It never changes an existing object.
func (a *Applier) CreateAbsent(ctx context.Context, objects []*unstructured.Unstructured) (created int, err error) {
	for _, obj := range objects {
		client, err := a.Resource(obj)
		if err != nil {
			return created, err
		}
		if _, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{}); err == nil {
			continue
		}
		_, err = client.Create(ctx, obj, metav1.CreateOptions{FieldManager: fieldManager})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return created, fmt.Errorf("create %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		created++
	}
	return created, nil
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// waitEstablished waits until a CRD has the condition Established.
func (a *Applier) waitEstablished(ctx context.Context, name string) error {
	return poll(ctx, fmt.Sprintf("CRD %s is not established", name), func(ctx context.Context) error {
		crd, err := a.Client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !isTrue(crd, "Established") {
			return errors.New("its condition Established is not True")
		}
		return nil
	})
}

// poll calls f until it returns nil or the context ends.
func poll(ctx context.Context, what string, f func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last answer: %w", what, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// isTrue reports whether an object has a condition that is True.
func isTrue(obj *unstructured.Unstructured, condition string) bool {
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == condition && m["status"] == "True"
	})
}

// partition splits a slice into the elements for which first is true and the others, and keeps their order.
func partition[T any](in []T, first func(T) bool) (yes, no []T) {
	for _, x := range in {
		if first(x) {
			yes = append(yes, x)
		} else {
			no = append(no, x)
		}
	}
	return yes, no
}

// Parse returns the objects of a YAML stream. source names the stream in errors.
func Parse(source string, data []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := dec.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", source, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" || obj.GetName() == "" {
			return nil, fmt.Errorf("read %s: an object lacks apiVersion, kind or metadata.name", source)
		}
		out = append(out, obj)
	}
}

// ParseDir returns the objects of all YAML files of a folder, in the order of the file names. A folder that does not exist has no
// objects.
func ParseDir(dir string) ([]*unstructured.Unstructured, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".yaml") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		objects, err := Parse(path, data)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}
