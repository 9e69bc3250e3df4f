package istio

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/acp-io/acp/internal/jsonerror"
	"github.com/acp-io/acp/internal/message"
)

// ParseCapabilities parses what one member declares, as YAML or JSON. Unknown fields are errors. An entry of waypoints that cannot be used is no error,
// because it must not take away everything else from the member: it is in Unused.
func ParseCapabilities(text string) (Capabilities, error) {
	var c Capabilities
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		var ok bool
		if c, ok = decodeEachWaypoint(text); !ok {
			return Capabilities{}, message.IstioConfigurationInvalid(message.Verbatim(jsonerror.Describe(err))).WithKind(ErrInvalidConfig)
		}
	}
	c.dropWaypoints()
	if err := c.check(); err != nil {
		return Capabilities{}, message.IstioConfigurationInvalid(message.Of(err)).WithKind(ErrInvalidConfig)
	}
	return c, nil
}

// decodeEachWaypoint decodes a declaration of which entries of waypoints cannot be decoded, for example because of an unknown field: these are invalid
// entries. It returns false if anything else cannot be decoded.
func decodeEachWaypoint(declared string) (Capabilities, bool) {
	var fields map[string]any
	if yaml.UnmarshalStrict([]byte(declared), &fields) != nil {
		return Capabilities{}, false
	}
	waypoints := entries(fields["waypoints"])
	delete(fields, "waypoints")
	var out Capabilities
	rest, err := json.Marshal(fields)
	if err != nil || len(waypoints) == 0 || yaml.UnmarshalStrict(rest, &out) != nil {
		return Capabilities{}, false
	}
	for _, entry := range waypoints {
		var w Waypoint
		decoder := json.NewDecoder(strings.NewReader(text(entry)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&w); err != nil {
			w.unreadable = jsonerror.Describe(err)
		}
		out.Waypoints = append(out.Waypoints, w)
	}
	return out, true
}

// DeclaresNone reports whether a member declares that it has no Istio, so that it gets none of its objects. A member that declares nothing, or something
// that cannot be parsed, gets objects that close: a declaration that was removed by mistake must not open what they closed.
func DeclaresNone(text string) bool {
	if !strings.Contains(text, string(NoDataplane)) { // most declarations are not parsed
		return false
	}
	c, err := ParseCapabilities(text)
	return err == nil && c.Dataplane == NoDataplane
}

// Declaration is what one member declares about its Istio.
type Declaration struct {
	// Text are the Capabilities as YAML or JSON; "" means that the member declares nothing.
	Text string
	// OtherRoot is Istio's root namespace, or "" if it is the one that policies are carried to. A policy in another
	// namespace selects only pods of that namespace.
	OtherRoot string
}

// capabilities returns what a declaration means. One that cannot be parsed counts as no capability.
func (d Declaration) capabilities() Capabilities {
	if d.OtherRoot != "" {
		c, _ := ParseCapabilities(d.Text) // its pods and nodes have their addresses all the same
		return Capabilities{Dataplane: NoDataplane, Ranges: c.Ranges, Reason: message.IstioOtherRoot(d.OtherRoot, defaultRootNamespace)}
	}
	if d.Text == "" {
		return Capabilities{Dataplane: NoDataplane}
	}
	c, err := ParseCapabilities(d.Text)
	if err != nil {
		return Capabilities{Dataplane: NoDataplane, Reason: message.IstioDeclarationUnreadable(message.Of(err))}
	}
	return c
}

// Declared returns the configuration that the members declare, each for itself. Members that are not listed get the
// capabilities of most members, so that these need no overrides.
func Declared(members map[string]Declaration) Config {
	out := Config{Members: map[string]Capabilities{}, Complete: true}
	count := map[profile]int{}
	most := 0
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c := members[name].capabilities()
		out.Members[name] = c
		p := c.profile()
		if count[p]++; count[p] > most {
			most, out.Default = count[p], c
		}
	}
	out.dropSharedWaypoints()
	if most == 0 {
		out.Default = Capabilities{Dataplane: NoDataplane}
	}
	out.Default.Ranges, out.Default.Waypoints, out.Default.Unused = nil, nil, nil // They belong to a single member.
	return out
}

// UnsupportedReason returns the reason why a member can enforce nothing, or the zero Message if it can.
func (c *Config) UnsupportedReason(member string) message.Message {
	return c.profileOf(member).unsupported
}
