package istio

import (
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

var _ policy.Translation = Enforcer{}

// Profile implements policy.Translation.
func (e Enforcer) Profile(member string) string {
	p := e.config.profileOf(member)
	if m := e.config.Members[member]; len(m.Waypoints)+len(m.Unused) > 0 {
		unused := map[string]string{} // printed in the order of its keys
		for _, u := range m.Unused {
			unused[u.Resource] = m.unusedOf(u.Resource)
		}
		return fmt.Sprintf("%t %t %s %v %v", p.ambient, p.strict, p.unsupported.Text, m.Waypoints, unused)
	}
	return fmt.Sprintf("%t %t %s", p.ambient, p.strict, p.unsupported.Text)
}

// Limits implements policy.Translation. It considers the same denies of other units as Render.
func (e Enforcer) Limits(u *policy.Unit, member string) policy.UnitLimits {
	return e.selectStatements(u, e.config.profileFor(member, u.Resource)).limits
}

// Enforces reports whether an AuthorizationPolicy can refuse connections of a protocol.
func Enforces(p v1alpha1.Protocol) bool { return p == v1alpha1.ProtocolTCP }

func (c *Config) profileOf(member string) profile {
	m, ok := c.Members[member]
	if !ok {
		m = c.Default
	}
	return m.profile()
}

// profileFor returns the profile of a member for the unit of a resource.
func (c *Config) profileFor(member, resource string) profile {
	p := c.profileOf(member)
	if m, listed := c.Members[member]; listed && p.ambient && p.unsupported.IsZero() {
		p.waypoint, p.unused = m.WaypointOf(resource), m.unusedOf(resource)
	}
	return p
}
