package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/federation/objectkind"
)

// manifest is what the checks of kinds need of an object in a file.
type manifest struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Rules    []rbacv1.PolicyRule `json:"rules"`
	RoleRef  rbacv1.RoleRef      `json:"roleRef"`
	Subjects []rbacv1.Subject    `json:"subjects"`
}

// manifests reads the files that match patterns.
func manifests(t *testing.T, patterns ...string) []manifest {
	t.Helper()
	var out []manifest
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file matches %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for doc := range strings.SplitSeq(string(text), "\n---\n") {
				var m manifest
				if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				out = append(out, m)
			}
		}
	}
	return out
}

// lacking returns the verbs for a resource that no role grants to a subject, cluster-wide or in the namespace of the resource.
func lacking(objects []manifest, subject string, resource schema.GroupResource, namespace string, verbs []string) []string {
	granted := map[string]bool{}
	for _, binding := range objects {
		if !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Name == subject }) {
			continue
		}
		for _, role := range objects {
			if role.Kind != binding.RoleRef.Kind || role.Metadata.Name != binding.RoleRef.Name ||
				role.Kind == "Role" && role.Metadata.Namespace != binding.Metadata.Namespace ||
				binding.Kind == "RoleBinding" && (namespace == "" || binding.Metadata.Namespace != namespace) {
				continue
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.APIGroups, resource.Group) && slices.Contains(rule.Resources, resource.Resource) && len(rule.ResourceNames) == 0 {
					for _, v := range rule.Verbs {
						granted[v] = true
					}
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return granted[v] })
}

// missing returns what the files lack of a kind that ACP distributes.
func missing(t *testing.T, k objectkind.Kind) []string {
	t.Helper()
	read := []string{"get", "list", "watch"}
	write := []string{"create", "update", "patch", "delete"}
	var out []string
	for _, account := range []struct {
		name, subject string
		files         []string
		on            schema.GroupVersionResource
		verbs         []string
	}{
		{"the adapter on the host", "acp-adapter", []string{"rbac/host/*.yaml", "kubefed/istio/3-roles.yaml"}, k.FederatedResource,
			append(slices.Clone(read), "create", "update", "delete")},
		{"the adapter in a member", "acp-adapter", []string{"rbac/member/*.yaml", "istio/roles.yaml"}, k.TargetResource, read},
		{"KubeFed in a member", "acp-pusher", []string{"rbac/member/*.yaml", "istio/roles.yaml"}, k.TargetResource, slices.Concat(read, write)},
		{"the direct engine in a member", "acp-direct", []string{"rbac/direct/*.yaml"}, k.TargetResource, slices.Concat(read, write)},
		{"the work agent in a member", "klusterlet-work-sa", []string{"rbac/ocm/*.yaml"}, k.TargetResource, append([]string{"get"}, write...)},
		{"the break-glass group in a member", "acp:break-glass", []string{"rbac/member/*.yaml"}, k.TargetResource, []string{"get", "list", "update"}},
	} {
		if verbs := lacking(manifests(t, account.files...), account.subject, account.on.GroupResource(), k.Namespace, account.verbs); len(verbs) > 0 {
			out = append(out, fmt.Sprintf("%s may not %s %s (%s)", account.name, strings.Join(verbs, ", "), account.on.GroupResource(),
				strings.Join(account.files, ", ")))
		}
	}
	kubeFed := manifests(t, "kubefed/*.yaml", "kubefed/istio/*.yaml")
	for kind, name := range map[string]string{
		"CustomResourceDefinition": k.FederatedResource.GroupResource().String(), "FederatedTypeConfig": k.TargetResource.GroupResource().String(),
	} {
		if !slices.ContainsFunc(kubeFed, func(m manifest) bool { return m.Kind == kind && m.Metadata.Name == name }) {
			out = append(out, fmt.Sprintf("the host lacks the %s %s (kubefed)", kind, name))
		}
	}
	slices.Sort(out)
	return out
}

// TestEveryKindIsInstalled checks that the files have the rights and definitions that each registered kind needs, and that it reports all of
// them for a kind that is registered without files.
func TestEveryKindIsInstalled(t *testing.T) {
	for _, k := range objectkind.All() {
		for _, text := range missing(t, k) {
			t.Errorf("%s: %s", k.Target.Kind, text)
		}
	}
	toy := objectkind.Kind{TargetResource: schema.GroupVersionResource{Group: "toy.example", Version: "v1", Resource: "toypolicies"},
		FederatedResource: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedtoypolicies"}}
	if found := missing(t, toy); len(found) != 8 {
		t.Errorf("a kind without files lacks 6 accounts' rights and 2 definitions, and %d are reported: %q", len(found), found)
	}
}
