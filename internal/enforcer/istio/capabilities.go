package istio

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/acp-io/acp/internal/jsonerror"
	"github.com/acp-io/acp/internal/message"
)

// Dataplane is how a member's Istio carries traffic.
type Dataplane string

const (
	// Sidecar proxies enforce connections and requests.
	Sidecar Dataplane = "sidecar"
	// Ambient is the mode in which node proxies enforce rules about connections only.
	Ambient Dataplane = "ambient"
	// NoDataplane has no Istio that could enforce anything.
	NoDataplane Dataplane = "none"
)

// oldest is the first minor release of Istio 1 whose behaviour the translation relies on.
const oldest = 29

// ErrInvalidConfig is wrapped by the errors of ParseConfig and New.
var ErrInvalidConfig = errors.New("invalid Istio configuration")

// Capabilities are the capabilities that a member declares.
type Capabilities struct {
	Dataplane Dataplane `json:"dataplane"`
	// Version is the version of Istio, for example "1.31" or "1.31.2".
	Version string `json:"version,omitempty"`
	// StrictMTLS declares that the mesh refuses plain text from pods everywhere. Without it, a pod outside the mesh has
	// no identity, so that it cannot be denied by name what every source is allowed.
	StrictMTLS bool `json:"strictMTLS,omitempty"`
	// Ranges are the addresses of the member's pods and nodes. Without them no address range can be a subject, because
	// it may contain pods.
	Ranges []netip.Prefix `json:"ranges,omitempty"`
	// Waypoints are dedicated to one resource each, in ambient. They enforce what node proxies cannot see.
	Waypoints []Waypoint `json:"waypoints,omitempty"`
	// Unused are declared waypoints that have no effect, each with the reason.
	Unused []UnusedWaypoint `json:"-"`

	// Reason is the reason why there is no dataplane, if one was declared but cannot be used.
	Reason message.Message `json:"-"`
}

// Config contains the capabilities of the members.
type Config struct {
	// RootNamespace is Istio's root namespace, the same in all members. Its policies select pods in every namespace.
	RootNamespace string `json:"rootNamespace,omitempty"`
	// Default applies to members that are not in Members.
	Default Capabilities `json:"default"`
	// Members are the capabilities by member.
	Members map[string]Capabilities `json:"members,omitempty"`
	// Complete reports whether Members lists all members, so that Default has no pods of its own.
	Complete bool `json:"-"`
}

// ParseConfig parses a Config as YAML or JSON. Unknown fields are errors, because a misspelled capability would not be
// declared.
func ParseConfig(text []byte) (Config, error) {
	var c Config
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return Config{}, message.IstioConfigurationInvalid(message.Verbatim(jsonerror.Describe(err))).WithKind(ErrInvalidConfig)
	}
	if err := c.check(); err != nil {
		return Config{}, err
	}
	return c, nil
}

func (c *Config) check() error {
	if err := c.Default.check(); err != nil {
		return message.IstioConfigurationDefault(message.Of(err)).WithKind(ErrInvalidConfig)
	}
	if len(c.Default.Waypoints) > 0 {
		return message.IstioConfigurationDefault(message.IstioWaypointsOfOne()).WithKind(ErrInvalidConfig)
	}
	for name, m := range c.Members {
		if err := m.check(); err != nil {
			return message.IstioConfigurationMember(name, message.Of(err)).WithKind(ErrInvalidConfig)
		}
	}
	shared := c.sharedGateways()
	if gateways := slices.Sorted(maps.Keys(shared)); len(gateways) > 0 {
		uses := shared[gateways[0]]
		use := uses[1]
		why := Waypoint{Gateway: gateways[0], Resource: use.resource}.sharedBecause(uses)
		return message.IstioConfigurationMember(use.member, why).WithKind(ErrInvalidConfig)
	}
	return nil
}

func (c *Capabilities) check() error {
	switch c.Dataplane {
	case NoDataplane:
	case Sidecar, Ambient:
		if _, err := minor(c.Version); err != nil {
			return err
		}
	default:
		return message.IstioDataplane(message.Quoted(string(c.Dataplane))).Err()
	}
	if err := c.checkWaypoints(); err != nil {
		return err
	}
	for _, p := range c.Ranges {
		if !p.IsValid() || p != p.Masked() {
			return message.IstioHostBits(p.String()).Err()
		}
	}
	return nil
}

// minor returns the second number of a version 1.x.
func minor(version string) (int, error) {
	parts := strings.Split(version, ".")
	if len(parts) >= 2 && parts[0] == "1" {
		if n, err := strconv.Atoi(parts[1]); err == nil && n >= 0 {
			return n, nil
		}
	}
	return 0, message.IstioVersion(message.Quoted(version)).Err()
}

// profile contains the capabilities of a member that affect the translation. Members with the same profile get the same
// objects.
type profile struct {
	// unsupported is the reason why the member can enforce nothing, or zero if it can.
	unsupported message.Message
	ambient     bool
	strict      bool
	// waypoint is the one that is dedicated to the resource of the unit; zero if there is none.
	waypoint Waypoint
	// unused are the names of the Gateways that the member declares for the resource of the unit and that are not used, separated by spaces.
	unused string
}

// direct returns the profile without waypoints.
func (p profile) direct() profile {
	p.waypoint, p.unused = Waypoint{}, ""
	return p
}

// refuses reports whether a Gateway is one of those that the member declares for the resource of the unit and that are not used.
func (p profile) refuses(gateway string) bool {
	return slices.Contains(strings.Fields(p.unused), gateway)
}

func (c *Capabilities) profile() profile {
	if c.Dataplane == NoDataplane {
		return profile{unsupported: cmp.Or(c.Reason, message.IstioNotDeclared())}
	}
	if n, err := minor(c.Version); err != nil || n < oldest {
		return profile{unsupported: message.IstioTooOld(c.Version, oldest)}
	}
	return profile{ambient: c.Dataplane == Ambient, strict: c.StrictMTLS}
}
