package ticketapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/portal/core"
)

// specJSON returns the spec of an object, given as YAML or JSON, as JSON. It refuses anchors and aliases before they are expanded,
// because a text of some kilobytes can expand to gigabytes.
func specJSON(text string) (json.RawMessage, error) {
	if err := withoutAliases(text); err != nil {
		return nil, err
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	if len(data) > 4*maxSpec { // escapes make JSON longer than YAML, but not by this much
		return nil, fmt.Errorf("the spec becomes too large: %d bytes", len(data))
	}
	if err := core.CheckJSON(data); err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("the spec is no object: %w", err)
	}
	return data, nil
}

// withoutAliases accepts one YAML document without anchors and aliases. Decoding into a node keeps aliases as they are written,
// so that it takes memory in proportion to the text.
func withoutAliases(text string) error {
	d := yamlnodes.NewDecoder(strings.NewReader(text))
	var root yamlnodes.Node
	if err := d.Decode(&root); err != nil {
		return err
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
