package guard

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/golden"
)

// TestFilesAreWhatIsRendered compares deploy/guard, which is for users who apply files. The example of class labels is
// for reading only, because the keys depend on the fleet.
func TestFilesAreWhatIsRendered(t *testing.T) {
	for file, keys := range map[string]Credentials{
		"deploy/guard/guard.yaml": {},
		"internal/federation/guard/testdata/class-labels.yaml": {
			Labels: []string{"com.trip/redis-cluster", "com.trip/appid"}, ServiceAccounts: []string{"app-{id}"},
		},
	} {
		objects, err := Objects(keys)
		if err != nil {
			t.Fatal(err)
		}
		if !keys.Empty() {
			objects = objects[len(objects)-2:]
		}
		got := "# Rendered by internal/federation/guard; go test ./internal/federation/guard -update writes it again.\n"
		for i, o := range objects {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				got += "---\n"
			}
			got += string(text)
		}
		golden.Compare(t, filepath.Join(testenv.Root(), file), got)
	}
}

func TestJudge(t *testing.T) {
	keys := Credentials{Labels: []string{"com.trip/appid"}}
	plain, err := Objects(Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := Objects(keys)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Objects(Credentials{Labels: []string{"com.trip/other"}})
	if err != nil {
		t.Fatal(err)
	}
	edited := plain[1].DeepCopy()
	if err := unstructured.SetNestedStringSlice(edited.Object, []string{"Audit"}, "spec", "validationActions"); err != nil {
		t.Fatal(err)
	}
	foreign := &unstructured.Unstructured{Object: map[string]any{"kind": kindPolicy, "metadata": map[string]any{"name": "others"}}}
	for _, c := range []struct {
		reason string
		found  []*unstructured.Unstructured
		want   State
	}{
		{"nothing is there", nil, Missing},
		{"all is as rendered, others' policies do not matter", append([]*unstructured.Unstructured{foreign}, plain...), Present},
		{"the policy about class labels is nobody's duty", plain, Present},
		{"and is compared where it is", all, Present},
		{"with the keys of the classes", other, Changed},
		{"a policy without binding refuses nothing", []*unstructured.Unstructured{plain[0], plain[2], plain[3]}, Missing},
		{"a binding that only warns", []*unstructured.Unstructured{plain[0], edited, plain[2], plain[3]}, Changed},
		{"half of the policy about class labels", all[:len(all)-1], Missing},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got, why := Judge(c.found, keys)
			if got != c.want || (got == Present) != why.IsZero() {
				t.Errorf("%s, %q; want %s", got, why, c.want)
			}
		})
	}
}
