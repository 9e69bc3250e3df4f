package cluster

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/acp-io/acp/playground/internal/parts"
)

// MaxNodes is the maximum number of nodes at one switch. Addresses are derived from the numbers of nodes.
const MaxNodes = 60

// Config describes a node. It is passed on to the program in the sandbox.
type Config struct {
	// Name is that of the node and, if it is the first one of its cluster, of the cluster.
	Name string `json:"name"`
	// Number is unique among connected nodes, from 1; that of the first node is also Cilium's cluster ID.
	Number int `json:"number"`
	// Join is the first node of the cluster, which has its control plane; nil means that this is the first node.
	Join *Config `json:"join,omitempty"`
	// Server is the address of the API server on the machine.
	Server string `json:"server"`
	// Options are the settings that a user may choose.
	Options
}

// Options contains the optional settings of a cluster. Paths are those of the machine.
type Options struct {
	// Nodes is the number of the cluster's nodes; 0 means one. The others are called NAME-2, NAME-3 and so on.
	Nodes int `json:"nodes,omitempty"`
	// APIPort is the port of 127.0.0.1 that is forwarded to the API server; 0 selects a free port.
	APIPort int `json:"apiPort,omitempty"`
	// Authority signs the certificates of the cluster; without one, the cluster makes its own.
	Authority *Pair `json:"authority,omitempty"`
	// TokenFile lists further users of the API server, as --token-auth-file of kube-apiserver reads it.
	TokenFile string `json:"tokenFile,omitempty"`
	// Hubble exposes the flows of the agent on the machine; nil does not.
	Hubble *Hubble `json:"hubble,omitempty"`
	// PreviousCilium starts the node with the part cilium-previous. A test upgrades it while the node runs.
	PreviousCilium bool `json:"previousCilium,omitempty"`
}

// Cilium returns the name of the part with the version of Cilium with which the node starts.
func (o Options) Cilium() string {
	if o.PreviousCilium {
		return parts.CiliumPrevious
	}
	return parts.Cilium
}

// Pair names the files of a certificate and its key.
type Pair struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Hubble configures the flow server, which uses TLS and requires a client certificate of the authority.
type Hubble struct {
	// Port is the port of 127.0.0.1 that is forwarded to the agent.
	Port int `json:"port"`
	// CA is the file of the certificate authority of clients.
	CA string `json:"ca"`
	Pair
}

// Gateway returns the address of the switch, which is the default route of every node.
func Gateway() *net.IPNet { return nodeNet(254) }

// first returns the first node of the cluster.
func (c Config) first() Config {
	if c.Join != nil {
		return *c.Join
	}
	return c
}

// NodeNet returns the address of the node with the length of the nodes' network.
func (c Config) NodeNet() *net.IPNet { return nodeNet(c.Number) }

// NodeIP returns the address of the node. All nodes share a network that contains nothing else.
func (c Config) NodeIP() string { return c.NodeNet().IP.String() }

func nodeNet(host int) *net.IPNet {
	return &net.IPNet{IP: net.IPv4(172, 29, 0, byte(host)), Mask: net.CIDRMask(24, 32)}
}

// ServerIP returns the address of the node with the cluster's API server.
func (c Config) ServerIP() string { return c.first().NodeIP() }

// Pods returns the range of the addresses of the cluster's pods, of which each node has a part.
func (c Config) Pods() netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", 100+c.first().Number))
}

// Services returns the range of the addresses of Services.
func (c Config) Services() netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", 160+c.first().Number))
}

// DNS returns the address of the cluster's DNS Service.
func (c Config) DNS() string { return c.service(10) }

// APIService returns the address of the Service kubernetes.
func (c Config) APIService() string { return c.service(1) }

func (c Config) service(n byte) string {
	a := c.Services().Addr().As4()
	a[3] = n
	return netip.AddrFrom4(a).String()
}

// The folders of a node, as it sees them.
const (
	pkiDir      = "/node/pki"
	imagesDir   = "/node/images"
	configDir   = "/node/etc"
	cniConfDir  = "/etc/cni/net.d"
	cniDraftDir = "/run/cilium-cni"
	cniBinDir   = "/opt/cni/bin"

	// ciliumPrograms is a link to the part with the version of Cilium that runs. Processes that start again use what it leads to then.
	ciliumPrograms = "/run/cilium-programs"

	containerdSocket = "/run/containerd/containerd.sock"
	ciliumSocket     = "/run/cilium/cilium.sock"
)

// PartsDir is the folder with the parts, as a node sees it.
const PartsDir = "/parts"

// Environment returns the environment variables of every program in a node.
func Environment() []string {
	return []string{
		"PATH=/parts/kubernetes:/parts/kubernetes-node:" + ciliumPrograms + ":/usr/local/bin:/usr/sbin:/usr/bin",
		"HOME=/root", "LC_ALL=C.UTF-8", "KUBECONFIG=" + adminKubeconfig,
		"CONTAINERD_ADDRESS=" + containerdSocket, "CONTAINERD_NAMESPACE=k8s.io",
	}
}

const adminKubeconfig = pkiDir + "/admin.kubeconfig"
