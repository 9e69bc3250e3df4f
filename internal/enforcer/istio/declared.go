package istio

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/acp-io/acp/internal/jsonerror"
)

// ParseCapabilities reads what one member declares, as YAML or JSON. Unknown fields are errors.
func ParseCapabilities(text string) (Capabilities, error) {
	var c Capabilities
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		return Capabilities{}, fmt.Errorf("%w: %s", ErrInvalidConfig, jsonerror.Describe(err))
	}
	if err := c.check(); err != nil {
		return Capabilities{}, fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	return c, nil
}

// Declared is the configuration that members declare, each for itself; "": nothing. What cannot be read is nothing that a
// member can do. Everybody else is as most of the members are, so that these need no specs of their own.
func Declared(members map[string]string) Config {
	out := Config{Members: map[string]Capabilities{}, Complete: true}
	count := map[profile]int{}
	most := 0
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c := Capabilities{Dataplane: NoDataplane}
		if text := members[name]; text != "" {
			read, err := ParseCapabilities(text)
			if c = read; err != nil {
				c = Capabilities{Dataplane: NoDataplane, Why: fmt.Sprintf("what the member declares about its Istio cannot be read: %v", err)}
			}
		}
		out.Members[name] = c
		p := c.profile()
		if count[p]++; count[p] > most {
			most, out.Default = count[p], c
		}
	}
	if most == 0 {
		out.Default = Capabilities{Dataplane: NoDataplane}
	}
	out.Default.Ranges = nil // they are those of one member
	return out
}

// Lacks says why a member can enforce nothing; "": it can.
func (c *Config) Lacks(member string) string {
	m, ok := c.Members[member]
	if !ok {
		m = c.Default
	}
	return m.profile().lacks
}
