package charts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/testenv"
)

// storedVersions checks that no object can be stored in a version that a CRD does not serve.
func (u *upgrade) storedVersions() {
	u.Helper()
	list, err := u.host.resource(u.T, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "").List(u.Context(), metav1.ListOptions{})
	if err != nil {
		u.Fatal(err)
	}
	checked := 0
	for _, o := range list.Items {
		if !strings.HasSuffix(o.GetName(), ".acp.io") {
			continue
		}
		checked++
		stored, _, _ := unstructured.NestedStringSlice(o.Object, "status", "storedVersions")
		for _, v := range stored {
			if !slices.Contains(versionsOf(&o, "served"), v) {
				u.Errorf("objects of %s are stored as %s, which it does not serve", o.GetName(), v)
			}
		}
	}
	if checked < 7 {
		u.Errorf("%d kinds of ACP, want more", checked)
	}
}

// versionsOf returns the versions of a CRD that are served or that are its storage version.
func versionsOf(crd *unstructured.Unstructured, what string) (out []string) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if m := v.(map[string]any); m[what] == true {
			out = append(out, m["name"].(string))
		}
	}
	return out
}

// definitions returns the CRDs in deploy/crds of a source tree, by name.
func definitions(t *testing.T, tree string) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tree, "deploy/crds/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no CRDs: %v", tree, err)
	}
	out := map[string]*unstructured.Unstructured{}
	for _, f := range files {
		text, err := os.ReadFile(f) //nolint:gosec // of the repository
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			t.Fatal(err)
		}
		out[o.GetName()] = o
	}
	return out
}

// compareDefinitions checks the policy of CRD versions (docs/operations/maintenance.md) against the previous release: this version serves each
// version that the previous release stores, and its schema has every field.
func compareDefinitions(t *testing.T, old previousRelease) {
	now := definitions(t, testenv.Root())
	for name, before := range definitions(t, old.tree) {
		after, ok := now[name]
		if !ok {
			t.Errorf("%s is gone, so that an upgrade would delete its objects", name)
			continue
		}
		if n := versionsOf(after, "storage"); len(n) != 1 {
			t.Errorf("%s has the storage versions %v", name, n)
		}
		for _, v := range versionsOf(before, "served") {
			if !slices.Contains(versionsOf(after, "served"), v) {
				t.Errorf("%s does not serve %s any more, which programs of %s use", name, v, old.name)
			}
		}
		for _, v := range versionsOf(after, "storage") {
			if !slices.Contains(versionsOf(before, "served"), v) {
				t.Errorf("%s stores %s, which %s does not serve: a rollback would lose the objects", name, v, old.name)
			}
		}
		have := fields(after)
		for _, f := range fields(before) {
			if !slices.Contains(have, f) {
				t.Errorf("%s has no field %s any more, which programs of %s use", name, f, old.name)
			}
		}
	}
}

// fields returns the paths of all fields of a CRD's versions.
func fields(crd *unstructured.Unstructured) (out []string) {
	var walk func(path string, schema map[string]any)
	walk = func(path string, schema map[string]any) {
		for _, inner := range []string{"items", "additionalProperties"} {
			if s, ok := schema[inner].(map[string]any); ok {
				walk(path+"[]", s)
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		for name, s := range properties {
			out = append(out, path+"."+name)
			walk(path+"."+name, s.(map[string]any))
		}
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		m := v.(map[string]any)
		schema, _, _ := unstructured.NestedMap(m, "schema", "openAPIV3Schema")
		walk(m["name"].(string), schema)
	}
	return out
}
