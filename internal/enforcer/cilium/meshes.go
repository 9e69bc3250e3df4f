package cilium

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// everywhere contains all addresses. For a member, pods of another cluster mesh are among them.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// DenyingAddresses returns an enforcer that, in a unit in Enforce, denies all addresses outside the member's cluster
// mesh on the ports given for the member. A deny of a subject cannot be expressed if pods of the subject appear as
// addresses that cannot be distinguished from others. A deny of addresses overrides whatever allows them, in this unit or
// another.
func (e Enforcer) DenyingAddresses(ports map[string][]v1alpha1.Port) Enforcer {
	e.denied = ports
	return e
}

// ForUnit returns the enforcer for one unit of a snapshot, for members that cannot identify the pods of other cluster
// meshes, and what it cannot express there. Targets are the members in which the unit is placed, of which some are in
// Enforce.
func (e Enforcer) ForUnit(
	s *policy.Snapshot,
	u *policy.Unit,
	m policy.Meshes,
	targets []string,
	enforces func(member string) bool,
	at time.Time,
) (Enforcer, policy.CrossMeshLimits) {
	if !m.HasSeveral() {
		return e, policy.CrossMeshLimits{}
	}
	limits := s.CrossMeshLimits(u, m, targets, enforces, at)
	return e.DenyingAddresses(limits.Denied), limits
}

// denyAddresses returns the rule that denies all addresses on the ports, or nil without ports.
func denyAddresses(ports []v1alpha1.Port) []policy.Rule {
	if len(ports) == 0 {
		return nil
	}
	return []policy.Rule{{Effect: policy.Deny, Prefixes: everywhere, Ports: ports}}
}

// portsKey returns a key for comparing lists of ports.
func portsKey(ports []v1alpha1.Port) string {
	key := ""
	for _, p := range ports {
		end := p.Port
		if p.EndPort != nil {
			end = *p.EndPort
		}
		key += fmt.Sprintf("%s/%d-%d ", p.Protocol, p.Port, end)
	}
	return key
}
