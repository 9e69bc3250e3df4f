package message

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// foreignTexts are the functions that make a message of a text that has no translation: one of another program or of a person, or a
// name. The value says whose text it is. A text of ACP's own needs an entry of the catalogue instead.
var foreignTexts = map[string]string{
	"controllers/protectedresource/assess.go objectState.fullName":     "kind and name of an object",
	"controllers/protectedresource/observe.go facts.ztunnelProblem":    "istiod's condition of the object",
	"controllers/protectedresource/waypoints.go facts.waypointProblem": "istiod's condition of the object",
	"internal/approval/linemessage.go LineMessage":                     "lines of other versions",
	"internal/approval/linemessage.go approverMessage":                 "an approver expression",
	"internal/approval/linemessage.go clientMessage":                   "name of a client",
	"internal/approval/step.go StepName":                               "name of a step of an approval policy",
	"internal/approval/progress.go Item.refused":                       "a reason of the API, which is a value",
	"internal/approval/rules/env.go located":                           "the CEL compiler",
	"internal/catalog/backstage.go SourceContent.AddJSON":              "the JSON parser",
	"internal/catalog/backstage.go SourceContent.AddYAML":              "the YAML parser",
	"internal/catalog/build.go otherPlace":                             "name of a file or of an upload",
	"internal/enforcer/istio/capabilities.go ParseConfig":              "the YAML parser",
	"internal/enforcer/istio/declared.go ParseCapabilities":            "the YAML parser",
	"internal/federation/preflight/assess.go apiText":                  "a member's API server, or its client",
	"internal/manifest/document.go document.describe":                  "the YAML or JSON parser",
	"internal/manifest/schema.go fieldMessage":                         "the API server's validation",
	"internal/notify/content.go contentData.commentMessage":            "the comment of a person",
	"internal/portal/host/workloads.go Workloads.userError":            "the host's API server",
	"internal/portal/host/writer.go refused":                           "the host's API server",
}

// TestOnlyForeignTextsAreVerbatim fails if a text of ACP's own is sent without a code: it finds every use of Verbatim in programs, which
// must be listed with the author of the text.
func TestOnlyForeignTextsAreVerbatim(t *testing.T) {
	found := map[string]bool{}
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			others := []string{"node_modules", "testdata", "web"}
			if path != root && (strings.HasPrefix(name, ".") || strings.HasSuffix(name, "test") || slices.Contains(others, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, use := range verbatimUses(file) {
			found[filepath.ToSlash(relative)+" "+use] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range slices.Sorted(maps.Keys(found)) {
		if foreignTexts[use] == "" {
			t.Errorf("%s uses message.Verbatim: give the text an entry in catalogue.json, or list here which other program or person wrote it", use)
		}
	}
	for use := range foreignTexts {
		if !found[use] {
			t.Errorf("%s does not use message.Verbatim any more: remove it from the list", use)
		}
	}
}

// verbatimUses returns the names of the functions of a file that use message.Verbatim.
func verbatimUses(file *ast.File) []string {
	local := ""
	for _, i := range file.Imports {
		if strings.HasSuffix(strings.Trim(i.Path.Value, `"`), "/internal/message") {
			local = "message"
			if i.Name != nil {
				local = i.Name.Name
			}
		}
	}
	if local == "" {
		return nil
	}
	var out []string
	for _, d := range file.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok || selector.Sel.Name != "Verbatim" {
				return true
			}
			if x, ok := selector.X.(*ast.Ident); ok && x.Name == local {
				out = append(out, nameOf(d))
			}
			return true
		})
	}
	return out
}

// nameOf returns the name of a function, with its receiver's type in front, or "variable" for another declaration.
func nameOf(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return "variable"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if x, ok := receiver.(*ast.Ident); ok {
		return x.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// TestVerbatimUses checks that uses are found under another name of the package, as a value, and in a variable.
func TestVerbatimUses(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
import m "github.com/acp-io/acp/internal/message"
var a = m.Verbatim("text")
func (t *T) b() { each(m.Verbatim) }
func c() { func() { m.Verbatim("text") }() }
func d() { m.SpecTrailing(); other.Verbatim("text") }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := verbatimUses(file), []string{"variable", "T.b", "c"}; !slices.Equal(got, want) {
		t.Errorf("uses in %q, want %q", got, want)
	}
}
