package charts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/deploy"
)

// rights returns the roles and bindings among objects, without their labels.
func rights(all []*unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for _, o := range all {
		switch o.GetKind() {
		case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
			out[id(o)] = map[string]any{
				"rules":       o.Object["rules"],
				"roleRef":     o.Object["roleRef"],
				"subjects":    o.Object["subjects"],
				"aggregation": o.Object["aggregationRule"],
			}
		}
	}
	return out
}

// TestRolesAreThoseThatAreTested compares the roles of the chart with deploy/rbac/host. Tests run each program with those roles alone
// (TestLeastPrivilege of cmd/portal, cmd/acp-adapter and cmd/flow-collector): they suffice, and nothing of them is unused.
func TestRolesAreThoseThatAreTested(t *testing.T) {
	text, err := deploy.Render("rbac/host", deploy.Names{})
	if err != nil {
		t.Fatal(err)
	}
	collector := map[string]any{
		"enabled": true,
		"hubble": map[string]any{
			"relays": map[string]any{"m1": "r:4245"}, "registrations": true, "tls": map[string]any{"existingSecret": "h", "serverName": "s"},
		},
	}
	got := rights(rendered(t, "acp", map[string]any{"collector": collector}))
	if d := cmp.Diff(rights(objects(t, text)), got); d != "" {
		t.Errorf("the chart grants something else than deploy/rbac/host: %s", d)
	}
	renamed := map[string]any{"collector": collector, "fullnameOverride": "fence", "kubefed": map[string]any{"namespace": "federation"}}
	if text, err = deploy.Render(
		"rbac/host",
		deploy.Names{KubeFedNamespace: "federation", Adapter: "fence-adapter", Portal: "fence-portal", Collector: "fence-flow-collector"},
	); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(rights(objects(t, text)), rights(rendered(t, "acp", renamed))); d != "" {
		t.Errorf("with other names the chart grants something else: %s", d)
	}
}

// TestAProgramThatDoesNotRunHasNoRights checks that no account or binding is left that another program could use.
func TestAProgramThatDoesNotRunHasNoRights(t *testing.T) {
	for name := range rights(rendered(t, "acp", map[string]any{"adapter": map[string]any{"enabled": false}})) {
		switch name {
		case "ClusterRole/acp-portal",
			"ClusterRoleBinding/acp-portal",
			"acp-system/Role/acp-portal",
			"acp-system/RoleBinding/acp-portal",
			"default/Role/acp-portal",
			"default/RoleBinding/acp-portal":
		default:
			t.Errorf("%s is rendered, though only the portal runs", name)
		}
	}
}
