package conformance

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	v2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/client/crds/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv"
)

// validatedWorlds is the number of worlds that are validated. It is small, because the schema has far fewer cases than the engine.
const validatedWorlds = 40

// A member's API server must accept every object unchanged: a field that Cilium's CRD does not have, or a default that it adds,
// would change the revision that is read back, and be reported as drift permanently.
func TestAPIServerTakesObjects(t *testing.T) {
	members := memberClient(t)
	objects := 0
	for seed := range uint64(validatedWorlds) {
		s := policy.NewSnapshot(newGenerator(seed).Input())
		var renderings []enforcer.Rendering
		for _, u := range s.Compile(noon) {
			r, err := cilium.Enforcer{}.Render(u)
			if err != nil {
				t.Fatal(err)
			}
			renderings = append(renderings, r)
		}
		for _, g := range s.ExternalGroups() {
			r, err := cilium.RenderGroup(g)
			if err != nil {
				t.Fatal(err)
			}
			renderings = append(renderings, r)
		}
		for _, r := range renderings {
			for i := range r.Objects {
				o := &r.Objects[i]
				checkAccepted(t, members, o.Object, o.Object.Spec)
				objects++
				for _, spec := range o.Overrides {
					checkAccepted(t, members, o.Object, spec)
					objects++
				}
			}
		}
		if t.Failed() {
			t.Fatalf("in the world of seed %d", seed)
		}
	}
	t.Logf("%d objects", objects)
	if objects < 5*validatedWorlds {
		t.Errorf("only %d objects were checked", objects)
	}
}

func checkAccepted(t *testing.T, members client.Client, o enforcer.Object, spec map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": (&unstructured.Unstructured{Object: spec}).DeepCopy().Object}}
	u.SetAPIVersion(o.GroupVersion)
	u.SetKind(o.Kind)
	u.SetName(o.Name)
	u.SetLabels(o.Labels)
	if err := members.Create(t.Context(), u, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
		t.Errorf("%s %s is refused: %v", o.Kind, o.Name, err)
		return
	}
	back, _, err := unstructured.NestedMap(u.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := enforcer.Revision(back), enforcer.Revision(spec); got != want {
		t.Errorf("%s %s is read back with revision %s, rendered %s", o.Kind, o.Name, got, want)
	}
}

// memberClient returns a client of an API server with Cilium's own CRDs.
func memberClient(t *testing.T) client.Client {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ciliumclusterwidenetworkpolicies.yaml", "ciliumcidrgroups.yaml"} {
		text, err := fs.ReadFile(v2.EmbedFS, name)
		if err != nil {
			t.Fatal(fmt.Errorf("read Cilium's CRDs: %w", err))
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	crds, err := filepath.Rel(testenv.Root(), dir)
	if err != nil {
		t.Fatal(err)
	}
	config := testenv.Start(t, testenv.Options{CRDs: []string{crds}}).Config
	config.QPS = -1
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
