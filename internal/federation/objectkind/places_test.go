package objectkind_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/testenv"
)

// places are the files that name a registered kind, with the reason why they cannot read the registry: each is about Cilium or Istio itself.
// A kind that is added concerns none of them but the registry.
var places = map[string]string{
	"controllers/externalgroup/objects.go":             "Cilium's groups: it writes them",
	"controllers/istiodistribution/distribution.go":    "Istio: what KubeFed needs for a kind with namespaces",
	"controllers/protectedresource/gather.go":          "Cilium: wildcards and groups",
	"controllers/protectedresource/groupdependency.go": "Cilium's groups: only its policies refer to them",
	"controllers/protectedresource/observe.go":         "Cilium's groups: their names in messages",
	"controllers/protectedresource/waiting.go":         "Cilium: the limit of a policy's entries",
	"controllers/setup.go":                             "Cilium's groups: their store",
	"internal/federation/fleet.go":                     "Istio: its kind is not needed in a member without Istio",
	"internal/federation/foreign.go":                   "Cilium: policies of others",
	"internal/federation/foreignpolicy/parse.go":       "Cilium: policies of others",
	"internal/federation/istioallow.go":                "Istio: policies of others",
	"internal/federation/istioallowown.go":             "Istio: policies of others",
	"internal/federation/istioallowparse.go":           "Istio: policies of others",
	"internal/federation/kinds.go":                     "names for packages that use one kind",
	"internal/federation/member.go":                    "Istio: its kind is not needed in a member without Istio",
	"internal/federation/membership/cilium.go":         "Cilium: its kinds in a member without Cilium",
	"internal/federation/membership/join.go":           "Istio: its kind in a member without Istio",
	"internal/federation/objectkind/registry.go":       "the registry",
	"internal/federation/preflight/assess.go":          "Istio: its kind is not needed in a member without Istio",
	"internal/federation/preflight/read.go":            "Istio: whether its policies can be read in a member without Istio",
	"internal/federation/preflight/unproxied.go":       "Istio: the namespace of dedicated waypoints",
	"internal/federation/preflight/waypoints.go":       "Istio: the namespace of dedicated waypoints",
	"internal/nodereport/ciliumagent/client.go":        "Cilium: what an agent reports",
}

// TestPlacesThatNameAKind fails if a file that is not listed names a registered kind, or if a listed one does not any more, so that a new
// kind needs no search for the places that know the kinds one by one.
func TestPlacesThatNameAKind(t *testing.T) {
	words := map[string]bool{}
	for _, k := range objectkind.All() {
		for _, w := range []string{k.Target.Kind, k.TargetResource.Resource, k.Federated.Kind, k.FederatedResource.Resource} {
			words[w] = true
		}
	}
	found := map[string]bool{}
	for _, dir := range []string{"api", "cmd", "controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join(testenv.Root(), dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(testenv.Root(), path)
			if err != nil || isEnforcer(filepath.ToSlash(name)) {
				return err
			}
			named, err := names(path, words)
			if named {
				found[filepath.ToSlash(name)] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if places[name] == "" {
			t.Errorf("%s names a kind: read package objectkind's registry, or list the file here with the reason", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(places)) {
		if !found[name] {
			t.Errorf("%s names no kind any more: remove it from the list", name)
		}
	}
}

// isEnforcer reports whether a file belongs to the translation of one enforcer, or to its tests.
func isEnforcer(name string) bool {
	dir, found := strings.CutPrefix(name, "internal/enforcer/")
	return found && (strings.HasPrefix(dir, "cilium") || strings.HasPrefix(dir, "istio"))
}

// names reports whether a file uses a variable of a kind, or contains the name of a kind or of its resource as a string.
func names(path string, words map[string]bool) (bool, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return false, err
	}
	named := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			named = named || n.Name == "CiliumPolicy" || n.Name == "CiliumGroup" || n.Name == "IstioPolicy"
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			named = named || n.Kind == token.STRING && err == nil && words[text]
		}
		return true
	})
	return named, nil
}
