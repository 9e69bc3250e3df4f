package memberdowngrade

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// ErrUnknownVersion reports a version of Cilium for which the procedure was not verified.
var ErrUnknownVersion = errors.New("the procedure is known for Cilium 1.19 and 1.20")

// Nodes returns the procedure for each node of a cluster whose API server is unavailable, for a version of the agents.
//
// In the supported versions `cilium-dbg config` changes the agent's own setting, which new pods get, and that of every
// existing endpoint (daemon configuration handler: ApplyValidated, OverrideEndpointOpts), and regenerates their
// datapath. The setting is not persistent: an agent that restarts reads its ConfigMap.
func Nodes(ciliumVersion string) (string, error) {
	v, err := version.ParseGeneric(ciliumVersion)
	if err != nil {
		return "", fmt.Errorf("%w; %q is no version", ErrUnknownVersion, ciliumVersion)
	}
	if v.Major() != 1 || v.Minor() < 19 || v.Minor() > 20 {
		return "", fmt.Errorf("%w, not for %s: see its documentation on the policy audit mode", ErrUnknownVersion, ciliumVersion)
	}
	return strings.TrimLeft(fmt.Sprintf(procedure, v.String()), "\n"), nil
}

const procedure = `
Downgrade of every node, without API server and control plane (Cilium %s).
Everything that Cilium policies refuse on the node, also those that are not ACP's, is let through and reported as AUDIT.

On each node, as root:

1. Find the agent:
     agent=$(crictl ps --state Running --name '^cilium-agent$' -q)

2. Turn the agent and all its endpoints to audit. New pods of the node get it, too:
     crictl exec "$agent" cilium-dbg config PolicyAuditMode=Enabled

3. Look. The first says Enabled; the second shows "Disabled (Audit)" where it showed "Enabled"; in the third, connections that
   were refused show as "action audit":
     crictl exec "$agent" cilium-dbg config | grep PolicyAuditMode
     crictl exec "$agent" cilium-dbg endpoint list
     crictl exec "$agent" timeout 10 cilium-dbg monitor -t policy-verdict

One endpoint takes one to two seconds; a node with many takes longer. Do not restart the agents: one that restarts forgets it
and refuses again. Once the API server answers again, make it last before an agent restarts:
     kubectl -n kube-system patch configmap cilium-config --type merge -p '{"data":{"policy-audit-mode":"true"}}'

If there is no running agent, or its socket does not answer, the kernel keeps the last policies and only an agent can change
them: see why it is down (crictl ps -a --name '^cilium-agent$', crictl logs), bring it up, and begin again at 1.

Afterwards, when control plane and member are well:
     kubectl -n kube-system patch configmap cilium-config --type merge -p '{"data":{"policy-audit-mode":"false"}}'    # if you set it
     crictl exec "$agent" cilium-dbg config PolicyAuditMode=Disabled    # on each node
The member's preflight finds policy-audit-mode in the ConfigMap (AuditMode); what was set on a node alone, only that node tells.
`
