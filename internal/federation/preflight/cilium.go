package preflight

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Cilium is what configures the agents of a cluster, which version runs, and whether it is ready.
type Cilium struct {
	// Unread says why the configuration is not known, or not all of it; "": it is.
	Unread string
	// Version of the agents' image, as v1.20.2; "" when it is not known.
	Version string
	// Sources are the places that agents take settings from. The first is the ConfigMap; each of the others overrides it on
	// some nodes, or on all of them. Without any, nothing was read.
	Sources []Source
	// Agents is the agents' DaemonSet. Envoy is that of the proxy, where it runs apart from them.
	Agents, Envoy Workload
}

// Source is one place that configures agents.
type Source struct {
	// Where is the place as people know it.
	Where    string
	Settings map[string]string
}

// Workload is how far a DaemonSet is.
type Workload struct {
	// Unread says why it is not known; "": it is.
	Unread string
	// Desired and Ready are numbers of pods.
	Desired, Ready int32
}

// unread says why the configuration is unknown; "": it is known.
func (c Cilium) unread() string {
	if c.Unread == "" && len(c.Sources) == 0 {
		return "nobody has read it yet"
	}
	return c.Unread
}

// base is a setting of the ConfigMap.
func (c Cilium) base(key string) string {
	if len(c.Sources) == 0 {
		return ""
	}
	return c.Sources[0].Settings[key]
}

// ClusterName is the name that the cluster has in a mesh.
func (c Cilium) ClusterName() string { return cmp.Or(c.base("cluster-name"), "default") }

// ClusterID is the number that the cluster has in a mesh; a cluster with the number 0 can be in none.
func (c Cilium) ClusterID() string { return cmp.Or(c.base("cluster-id"), noMeshID) }

const noMeshID = "0"

// NoHTTP says why rules about requests do not work in the cluster; "": they do. Agents without the proxy refuse a whole
// policy that has such a rule, and while no Envoy answers them one such rule holds up every change of policies on the node.
// So what is not known counts as not working.
func (c Cilium) NoHTTP() string {
	if why := c.unread(); why != "" {
		return "Cilium's configuration is unknown: " + why
	}
	external := false
	for _, s := range c.Sources {
		if v, ok := s.Settings["enable-l7-proxy"]; ok && mayBeFalse(v) {
			return fmt.Sprintf("Cilium's enable-l7-proxy is %q in %s", clip(v), s.Where)
		}
		if v, ok := s.Settings["external-envoy-proxy"]; ok && mayBeTrue(v) {
			external = true
		}
	}
	proxy, name := c.Agents, "Cilium's agents, which contain Envoy,"
	if external {
		proxy, name = c.Envoy, "cilium-envoy"
	}
	switch {
	case proxy.Unread != "":
		return "it is unknown whether Envoy runs: " + proxy.Unread
	case external && proxy.Ready == 0, proxy.Desired > 0 && proxy.Ready == 0:
		return "no pod of " + name + " is ready"
	}
	return ""
}

// ProxyRestarts reports whether rules about requests would work if some pod of the proxy were ready, which may be over in a
// moment.
func (c Cilium) ProxyRestarts() bool {
	if c.NoHTTP() == "" || c.Agents.Unread != "" || c.Envoy.Unread != "" {
		return false
	}
	c.Agents, c.Envoy = Workload{Desired: 1, Ready: 1}, Workload{Desired: 1, Ready: 1}
	return c.NoHTTP() == ""
}

// clusterPoliciesSetting makes agents take ClusterNetworkPolicies. Its default is false in every version before
// clusterPoliciesUnknown (pkg/defaults); that of later versions is not known here.
const clusterPoliciesSetting = "enable-k8s-cluster-network-policy"

var clusterPoliciesUnknown = version.MustParseGeneric("1.21.0")

// IgnoresClusterNetworkPolicies reports whether it is known that no agent of the cluster takes ClusterNetworkPolicies
// (policy.networking.k8s.io), so that they open nothing there. A configuration or a default that is not known may take them.
func (c Cilium) IgnoresClusterNetworkPolicies() bool {
	if c.unread() != "" {
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

// Limits of a policy map (pkg/maps/policymap, pkg/option). Agents correct what is outside of them.
const (
	defaultPolicyMapMax = 16384
	leastPolicyMapMax   = 1 << 8
	mostPolicyMapMax    = 1 << 16
)

// PolicyMapMax is how many entries the policy map of a workload has, on the node where it has the fewest. A number that
// cannot be read is the least.
func (c Cilium) PolicyMapMax() int {
	out := 0
	for i, s := range c.Sources {
		n := defaultPolicyMapMax
		v, ok := s.Settings["bpf-policy-map-max"]
		switch {
		case ok:
			if read, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
				n = min(max(read, leastPolicyMapMax), mostPolicyMapMax)
			} else {
				n = leastPolicyMapMax
			}
		case i > 0:
			continue
		}
		if out == 0 || n < out {
			out = n
		}
	}
	return cmp.Or(out, defaultPolicyMapMax)
}

// ParseCilium reads the agents' ConfigMap.
func ParseCilium(data map[string]string) Cilium {
	return Cilium{Sources: []Source{{Where: "the ConfigMap", Settings: data}}}
}
