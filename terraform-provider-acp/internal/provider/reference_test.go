package provider

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

var update = flag.Bool("update", false, "write REFERENCE.md")

// TestReference checks that the published reference is that of the schemas. With -update it writes the reference.
func TestReference(t *testing.T) {
	clearEnvironment(t)
	c := newCore(t, values{"address": "https://acp.example.com", "token": secret})
	b := &strings.Builder{}
	b.WriteString(
		"# Reference of the Terraform provider\n\nThis page is generated from the schemas (`go test ./internal/provider -run '^TestReference$' -update`). " +
			"The [README](README.md) has an example.\n",
	)
	section(b, "## The provider", c.schemas.Provider)
	b.WriteString("\n## Resources\n")
	for _, name := range slices.Sorted(maps.Keys(c.schemas.ResourceSchemas)) {
		section(b, "### "+name, c.schemas.ResourceSchemas[name])
	}
	b.WriteString("\n## Data sources\n")
	for _, name := range slices.Sorted(maps.Keys(c.schemas.DataSourceSchemas)) {
		section(b, "### data "+name, c.schemas.DataSourceSchemas[name])
	}
	file := filepath.Join("..", "..", "REFERENCE.md")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	published, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(published) != b.String() {
		t.Error("REFERENCE.md is not that of the schemas: run this test with -update")
	}
}

func section(b *strings.Builder, title string, s *tfprotov6.Schema) {
	fmt.Fprintf(b, "\n%s\n\n%s\n\n| attribute | type | | description |\n| --- | --- | --- | --- |\n", title, s.Block.Description)
	rows(b, "", s.Block.Attributes)
}

func rows(b *strings.Builder, prefix string, attributes []*tfprotov6.SchemaAttribute) {
	attributes = slices.SortedFunc(slices.Values(attributes), func(x, y *tfprotov6.SchemaAttribute) int {
		return strings.Compare(order(x)+x.Name, order(y)+y.Name)
	})
	for _, a := range attributes {
		kind := "list of objects"
		switch {
		case a.NestedType != nil && a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
			kind = "object"
		case a.NestedType == nil:
			kind = strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(a.Type.String(), "tftypes.", ""), "[String]", " of strings"))
		}
		use := map[string]string{"1": "required", "2": "optional", "3": "read-only"}[order(a)]
		if a.Sensitive {
			use += ", sensitive"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", prefix, a.Name, kind, use, strings.ReplaceAll(a.Description, "|", `\|`))
		if a.NestedType != nil {
			rows(b, prefix+a.Name+".", a.NestedType.Attributes)
		}
	}
}

func order(a *tfprotov6.SchemaAttribute) string {
	switch {
	case a.Required:
		return "1"
	case a.Optional:
		return "2"
	}
	return "3"
}
