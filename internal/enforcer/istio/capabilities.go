package istio

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/acp-io/acp/internal/jsonerror"
)

// Dataplane is how a member's Istio carries traffic.
type Dataplane string

const (
	// Sidecar proxies enforce connections and requests.
	Sidecar Dataplane = "sidecar"
	// Ambient's node proxies enforce connections only.
	Ambient Dataplane = "ambient"
	// NoDataplane has no Istio that could enforce anything.
	NoDataplane Dataplane = "none"
)

// oldest is the first minor release of Istio 1 whose behaviour the translation relies on.
const oldest = 29

// ErrInvalidConfig is wrapped by the errors of ParseConfig and New.
var ErrInvalidConfig = errors.New("invalid Istio configuration")

// Capabilities are what a member declares about itself.
type Capabilities struct {
	Dataplane Dataplane `json:"dataplane"`
	// Version of Istio, for example "1.31" or "1.31.2".
	Version string `json:"version,omitempty"`
	// StrictMTLS declares that the mesh refuses plain text from pods everywhere. Without it a pod outside the mesh has no
	// identity, and what is allowed to anyone cannot be denied to it by name.
	StrictMTLS bool `json:"strictMTLS,omitempty"`
	// Ranges are the addresses of the member's pods and nodes. Without them no address range can be a subject, because
	// it may hold pods.
	Ranges []netip.Prefix `json:"ranges,omitempty"`

	// Why says why there is no dataplane, when it is not because none was declared.
	Why string `json:"-"`
}

// Config is what the enforcer has to know about the members.
type Config struct {
	// RootNamespace of Istio, the same in all members; its policies select pods in every namespace.
	RootNamespace string `json:"rootNamespace,omitempty"`
	// Default is for members that are not in Members.
	Default Capabilities `json:"default"`
	// Members by name.
	Members map[string]Capabilities `json:"members,omitempty"`
	// Complete: Members are all that there are, so that Default has no pods of its own.
	Complete bool `json:"-"`
}

// ParseConfig reads a Config as YAML or JSON. Unknown fields are errors: a misspelled one would be a capability that
// nobody declared.
func ParseConfig(text []byte) (Config, error) {
	var c Config
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return Config{}, fmt.Errorf("%w: %s", ErrInvalidConfig, jsonerror.Describe(err))
	}
	if err := c.check(); err != nil {
		return Config{}, err
	}
	return c, nil
}

func (c *Config) check() error {
	if err := c.Default.check(); err != nil {
		return fmt.Errorf("%w: default: %w", ErrInvalidConfig, err)
	}
	for name, m := range c.Members {
		if err := m.check(); err != nil {
			return fmt.Errorf("%w: member %s: %w", ErrInvalidConfig, name, err)
		}
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
		return fmt.Errorf("dataplane %q is not sidecar, ambient or none", c.Dataplane)
	}
	for _, p := range c.Ranges {
		if !p.IsValid() || p != p.Masked() {
			return fmt.Errorf("range %s has host bits", p)
		}
	}
	return nil
}

// minor is the second number of a version 1.x.
func minor(version string) (int, error) {
	parts := strings.Split(version, ".")
	if len(parts) >= 2 && parts[0] == "1" {
		if n, err := strconv.Atoi(parts[1]); err == nil && n >= 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("version %q is not one of Istio 1, such as 1.31", version)
}

// profile is what of a member's capabilities decides the translation. Members of one profile get the same objects.
type profile struct {
	// lacks says why the member can enforce nothing; "": it can.
	lacks   string
	ambient bool
	strict  bool
}

func (c *Capabilities) profile() profile {
	if c.Dataplane == NoDataplane {
		return profile{lacks: cmp.Or(c.Why, "the member declares no Istio that enforces")}
	}
	if n, err := minor(c.Version); err != nil || n < oldest {
		return profile{lacks: fmt.Sprintf("Istio %s is older than 1.%d", c.Version, oldest)}
	}
	return profile{ambient: c.Dataplane == Ambient, strict: c.StrictMTLS}
}
