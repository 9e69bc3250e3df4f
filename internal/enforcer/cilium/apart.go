package cilium

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// everywhere are all addresses. To a member, the pods of another cluster mesh are among them.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// DenyingAddresses is the enforcer that, in a unit in Enforce, denies every address outside the member's cluster mesh the ports given
// for the member. A deny of a subject cannot be expressed where pods of the subject come as addresses that nobody can tell from
// others; and a deny of addresses wins over whatever lets them in, in this unit or another.
func (e Enforcer) DenyingAddresses(ports map[string][]v1alpha1.Port) Enforcer {
	e.denied = ports
	return e
}

// ForUnit is the enforcer for one unit of a snapshot, where members do not know the pods of other cluster meshes by name, and what it
// cannot express there. Targets are the members that the unit goes to, of which some are in Enforce.
func (e Enforcer) ForUnit(s *policy.Snapshot, u *policy.Unit, m policy.Meshes, targets []string, enforces func(member string) bool, at time.Time) (Enforcer, policy.Apart) {
	if !m.Several() {
		return e, policy.Apart{}
	}
	apart := s.Apart(u, m, targets, enforces, at)
	return e.DenyingAddresses(apart.Denied), apart
}

// denyAddresses is the rule for the ports; nil: there are none.
func denyAddresses(ports []v1alpha1.Port) []policy.Rule {
	if len(ports) == 0 {
		return nil
	}
	return []policy.Rule{{Effect: policy.Deny, Prefixes: everywhere, Ports: ports}}
}

// portsKey is what lists of ports are compared by.
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
