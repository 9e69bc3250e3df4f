package istio

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv/golden"
)

// A case is two files: the ACP objects, and what the members get; a third one describes the members where they are not
// those of members.yaml. The comments at the end of the output name what is refused.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, path := range inputs {
		stem := strings.TrimSuffix(path, ".in.yaml")
		t.Run(filepath.Base(stem), func(t *testing.T) {
			golden.Compare(t, stem+".out.yaml", string(render(t, readEnforcer(t, stem), readInput(t, path))))
		})
	}
}

func readEnforcer(t *testing.T, stem string) Enforcer {
	t.Helper()
	text, err := os.ReadFile(stem + ".members.yaml")
	if errors.Is(err, os.ErrNotExist) {
		text, err = os.ReadFile("testdata/members.yaml")
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func readInput(t *testing.T, path string) policy.Input {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var in policy.Input
	for i, doc := range bytes.Split(text, []byte("---\n")) {
		var meta struct{ Kind string }
		if err := yaml.Unmarshal(doc, &meta); err != nil {
			t.Fatalf("%s, document %d: %v", path, i, err)
		}
		switch meta.Kind {
		case "AccessControlPolicy":
			in.Policies = append(in.Policies, parse[v1alpha1.AccessControlPolicy](t, doc))
		case "ResourceClass":
			in.ResourceClasses = append(in.ResourceClasses, parse[v1alpha1.ResourceClass](t, doc))
		case "SubjectClass":
			in.SubjectClasses = append(in.SubjectClasses, parse[v1alpha1.SubjectClass](t, doc))
		case "ProtectedResource":
			in.Resources = append(in.Resources, parse[v1alpha1.ProtectedResource](t, doc))
		case "ExternalWorkload":
			in.Workloads = append(in.Workloads, parse[v1alpha1.ExternalWorkload](t, doc))
		default:
			t.Fatalf("%s, document %d: kind %q is not read here", path, i, meta.Kind)
		}
	}
	return in
}

func parse[T any](t *testing.T, doc []byte) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict(doc, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func render(t *testing.T, e Enforcer, in policy.Input) []byte {
	t.Helper()
	units := policy.NewSnapshot(in).Compile(istiotest.Noon)
	e = e.WithUnits(units)
	var out, refused bytes.Buffer
	for _, u := range units {
		r, err := e.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Objects {
			only := ""
			if o.Only != nil {
				only = fmt.Sprintf("# only in %s\n", strings.Join(o.Only, ", "))
			}
			write(t, &out, only, o.Object)
			for _, cluster := range slices.Sorted(maps.Keys(o.Overrides)) {
				o.Object.Spec = o.Overrides[cluster]
				write(t, &out, fmt.Sprintf("# in %s, with revision %s\n", cluster, o.Revisions[cluster]), o.Object)
			}
			for _, cluster := range slices.Sorted(maps.Keys(o.Interim)) {
				h := o.Interim[cluster]
				o.Object.Spec = h.Spec
				write(t, &out, fmt.Sprintf("# in %s until %s are in force, with revision %s\n", cluster, strings.Join(h.Objects, ", "), h.Revision), o.Object)
			}
		}
		writeRefused(&refused, "", r.Refused)
		for _, cluster := range slices.Sorted(maps.Keys(r.RefusedIn)) {
			writeRefused(&refused, "in "+cluster+", ", r.RefusedIn[cluster])
		}
	}
	out.Write(refused.Bytes())
	return out.Bytes()
}

func writeRefused(out *bytes.Buffer, where string, refused []policy.Refusal) {
	if len(refused) == 0 && where != "" {
		fmt.Fprintf(out, "# %snothing is refused\n", where)
	}
	for _, r := range refused {
		fmt.Fprintf(out, "# %srefused %s in %s: %s: %s\n", where, r.Ref, r.Resource, r.Reason, r.Message)
	}
}

func write(t *testing.T, out *bytes.Buffer, comment string, o enforcer.Object) {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": o.GroupVersion, "kind": o.Kind,
		"metadata": map[string]any{"namespace": o.Namespace, "name": o.Name, "labels": o.Labels},
		"spec":     o.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		out.WriteString("---\n")
	}
	out.WriteString(comment)
	out.Write(text)
}
