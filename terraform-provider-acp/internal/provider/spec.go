package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	yamlnodes "go.yaml.in/yaml/v3"
)

// isSpec is a validator of the spec of an object.
type isSpec struct{}

// Description implements validator.Describer.
func (isSpec) Description(context.Context) string {
	return "an object in YAML or JSON, without anchors and aliases"
}

// MarkdownDescription implements validator.Describer.
func (s isSpec) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

// ValidateString implements validator.String.
func (isSpec) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if _, err := specJSON(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "The spec cannot be used", err.Error())
	}
}

// withoutAliases accepts one YAML document without anchors and aliases, as the portal does. A short text with aliases can expand to gigabytes.
func withoutAliases(text string) error {
	d := yamlnodes.NewDecoder(strings.NewReader(text))
	var root yamlnodes.Node
	if err := d.Decode(&root); err != nil {
		return fmt.Errorf("the spec is no YAML: %w", err)
	}
	if n := aliased(&root); n != nil {
		return fmt.Errorf("line %d has an anchor or an alias: write out what it stands for", n.Line)
	}
	if err := d.Decode(new(yamlnodes.Node)); !errors.Is(err, io.EOF) {
		return errors.New("a second document follows the spec")
	}
	return nil
}

// aliased returns a node below n that has an anchor or is an alias, or nil if there is none.
func aliased(n *yamlnodes.Node) *yamlnodes.Node {
	if n.Anchor != "" || n.Kind == yamlnodes.AliasNode {
		return n
	}
	for _, x := range n.Content {
		if found := aliased(x); found != nil {
			return found
		}
	}
	return nil
}
