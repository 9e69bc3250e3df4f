package preflight

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/acp-io/acp/internal/message"
)

// Cilium contains the configuration of the agents of a cluster, their version, and their readiness.
type Cilium struct {
	// Unread is the reason why the configuration is not known completely, or zero.
	Unread message.Message
	// Version is the version of the agents' image, as v1.20.2, or "" if it is not known.
	Version string
	// Sources contains the places from which agents read settings. The first is the ConfigMap; each of the others overrides
	// it on some or all nodes. The last ones are the sources of outdated agents. Without sources, nothing was read.
	Sources []Source
	// Agents is the agents' DaemonSet. Envoy is the DaemonSet of the proxy, if it runs separately.
	Agents, Envoy Workload
	// Outdated are the agents that are older than their configuration.
	Outdated Outdated
	// Pods are the pods of the agents.
	Pods AgentPods
}

// Source is one place that configures agents.
type Source struct {
	// Where is the description of the place for messages.
	Where    string
	Settings map[string]string
	// Base reports whether the settings which it lacks have their defaults. Other places override it.
	Base bool
	// Earlier reports settings that were changed since, which agents may still use that did not start again.
	Earlier bool
}

// Workload is the readiness of a DaemonSet.
type Workload struct {
	// Unread is the reason why it is not known, or zero.
	Unread message.Message
	// Desired and Ready are numbers of pods.
	Desired, Ready int32
}

// Missing returns the number of pods that are not ready, or 0 if it is not known.
func (w Workload) Missing() int32 {
	if !w.Unread.IsZero() {
		return 0
	}
	return max(w.Desired-w.Ready, 0)
}

// unread returns the reason why the configuration is unknown, or the zero Message.
func (c Cilium) unread() message.Message {
	if c.Unread.IsZero() && len(c.Sources) == 0 {
		return message.PreflightCiliumNeverRead()
	}
	return c.Unread
}

// base returns a setting of the ConfigMap.
func (c Cilium) base(key string) string {
	if len(c.Sources) == 0 {
		return ""
	}
	return c.Sources[0].Settings[key]
}

// ClusterName returns the name of the cluster in a mesh.
func (c Cilium) ClusterName() string { return cmp.Or(c.base("cluster-name"), "default") }

// ClusterID returns the ID of the cluster in a mesh. A cluster with the ID 0 cannot be in a mesh.
func (c Cilium) ClusterID() string { return cmp.Or(c.base("cluster-id"), noMeshID) }

const noMeshID = "0"

// NoHTTP returns the reason why HTTP rules do not work in the cluster, or zero if they do. Agents without the proxy
// reject a whole policy that has such a rule, and while no Envoy answers them, one such rule blocks every change of
// policies on the node. Therefore an unknown configuration counts as not working.
func (c Cilium) NoHTTP() message.Message {
	if why := c.unread(); !why.IsZero() {
		return message.PreflightCiliumUnread(why)
	}
	for _, s := range c.Sources {
		if v, ok := s.Settings["enable-l7-proxy"]; ok && mayBeFalse(v) {
			return message.PreflightSettingValue("enable-l7-proxy", message.Quoted(clip(v)), s.Where)
		}
	}
	external := c.externalEnvoy()
	proxy, none := c.Agents, message.PreflightNoAgentEnvoy()
	if external {
		proxy, none = c.Envoy, message.PreflightNoEnvoy()
	}
	switch {
	case !proxy.Unread.IsZero():
		return message.PreflightEnvoyUnknown(proxy.Unread)
	case external && proxy.Ready == 0, proxy.Desired > 0 && proxy.Ready == 0:
		return none
	}
	return message.Message{}
}

// externalEnvoy reports whether Envoy runs in a DaemonSet of its own, on some nodes at least.
func (c Cilium) externalEnvoy() bool {
	return slices.ContainsFunc(c.Sources, func(s Source) bool {
		v, ok := s.Settings["external-envoy-proxy"]
		return ok && mayBeTrue(v)
	})
}

// EnvoyMissing reports whether HTTP rules work in the cluster, and no Envoy answers the agents of some nodes, so that these
// rules, and all changes after them, are not enforced there.
func (c Cilium) EnvoyMissing() bool {
	return c.NoHTTP().IsZero() && c.externalEnvoy() && c.Envoy.Missing() > 0
}

// ProxyRestarts reports whether HTTP rules would work if a pod of the proxy were ready, so that the failure may be
// short.
func (c Cilium) ProxyRestarts() bool {
	if c.NoHTTP().IsZero() || !c.Agents.Unread.IsZero() || !c.Envoy.Unread.IsZero() {
		return false
	}
	c.Agents, c.Envoy = Workload{Desired: 1, Ready: 1}, Workload{Desired: 1, Ready: 1}
	return c.NoHTTP().IsZero()
}

// clusterPoliciesSetting makes agents enforce ClusterNetworkPolicies. Its default is false in every version before
// clusterPoliciesUnknown (pkg/defaults); the default of later versions is not known here.
const clusterPoliciesSetting = "enable-k8s-cluster-network-policy"

var clusterPoliciesUnknown = version.MustParseGeneric("1.21.0")

// IgnoresClusterNetworkPolicies reports whether it is known that no agent of the cluster enforces
// ClusterNetworkPolicies (policy.networking.k8s.io), so that they open nothing there. With an unknown configuration or
// default, agents may enforce them.
func (c Cilium) IgnoresClusterNetworkPolicies() bool {
	if !c.unread().IsZero() {
		return false
	}
	for _, s := range c.Sources {
		if v, ok := s.Settings[clusterPoliciesSetting]; ok && mayBeTrue(v) {
			return false
		}
	}
	if _, ok := c.Sources[0].Settings[clusterPoliciesSetting]; ok {
		return true
	}
	return old(c.Version, clusterPoliciesUnknown)
}

// Limits of a policy map (pkg/maps/policymap, pkg/option). Agents clamp values to them.
const (
	defaultPolicyMapMax = 16384
	leastPolicyMapMax   = 1 << 8
	mostPolicyMapMax    = 1 << 16
)

// PolicyMapMax returns the size of a workload's policy map, on the node where it is smallest. A number that cannot be
// parsed counts as the minimum.
func (c Cilium) PolicyMapMax() int {
	out := 0
	for _, s := range c.Sources {
		n := defaultPolicyMapMax
		v, ok := s.Settings["bpf-policy-map-max"]
		switch {
		case ok:
			if read, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
				n = min(max(read, leastPolicyMapMax), mostPolicyMapMax)
			} else {
				n = leastPolicyMapMax
			}
		case !s.Base:
			continue
		}
		if out == 0 || n < out {
			out = n
		}
	}
	return cmp.Or(out, defaultPolicyMapMax)
}

// ParseCilium parses the agents' ConfigMap.
func ParseCilium(data map[string]string) Cilium {
	return Cilium{Sources: []Source{{Where: "the ConfigMap", Settings: data, Base: true}}}
}
