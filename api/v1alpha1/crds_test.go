package v1alpha1_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestShortNamesAreOneKind: kubectl takes a word for a category first, so a short name that is one too means many kinds,
// and `kubectl get acp NAME` fails.
func TestShortNamesAreOneKind(t *testing.T) {
	files, err := filepath.Glob("../../deploy/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("the CRDs: %v, %v", files, err)
	}
	short, categories := map[string]string{}, map[string]bool{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Names struct {
					Kind                   string
					ShortNames, Categories []string
				}
			}
		}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		names := crd.Spec.Names
		if len(names.ShortNames) == 0 || len(names.Categories) == 0 {
			t.Errorf("%s has no short name or no category", names.Kind)
		}
		for _, s := range names.ShortNames {
			if other, taken := short[s]; taken {
				t.Errorf("%s is short for %s and for %s", s, other, names.Kind)
			}
			short[s] = names.Kind
		}
		for _, c := range names.Categories {
			categories[c] = true
		}
	}
	for s, kind := range short {
		if categories[s] {
			t.Errorf("%s is short for %s and a category", s, kind)
		}
	}
}
