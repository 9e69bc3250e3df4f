package fleet

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// Fleet is a fleet in one state folder.
type Fleet struct {
	Layout Layout
	Ports  Ports
	PKI    *PKI
	Tokens Tokens
	// Repo is the root of the repository, whose deploy/ folder is applied.
	Repo  string
	Built parts.Built

	supervisor *supervisor.Supervisor
	guarded    bool
	between    func(member, address string) (string, error)
	appliers   map[string]*Applier
	nodes      string
	hostOnly   bool
	direct     []string
	pull       []string
}

// These are the layers of the processes. A process needs those in lower layers and is stopped before them.
const (
	// LayerStore contains the etcd servers.
	LayerStore = iota
	// LayerAPIServer contains the API servers, and the real nodes.
	LayerAPIServer
	// LayerFederation contains KubeFed and the dataplane emulators.
	LayerFederation
	// LayerControlPlane contains ACP's programs and the login provider.
	LayerControlPlane
)

// portPurposes returns the purposes of the fleet's ports.
func portPurposes() []string {
	p := []string{"etcd-host", "etcd-host-peer", "etcd-members", "etcd-members-peer", "kubefed-health", "kubefed-metrics"}
	for _, c := range Clusters() {
		p = append(p, "apiserver-"+c)
	}
	return p
}

// Config configures a Fleet.
type Config struct {
	Layout     Layout
	Repo       string
	Built      parts.Built
	Supervisor *supervisor.Supervisor
	// Guarded makes the members refuse changes of objects that ACP manages by every user but their engine's and the break-glass group,
	// including the administrator of the playground.
	Guarded bool
	// Between, when not nil, is called with the name of a member and the address of its API server, and returns the address under
	// which the member is registered, for example that of a proxy.
	Between func(member, address string) (string, error)
	// Direct are the members into which the adapter writes itself, and Pull those into which a work agent writes. KubeFed writes into all
	// others.
	Direct, Pull []string
	// Nodes is the path of acp-nodes, which runs the members as real Kubernetes nodes with Cilium. When it is empty, the members are
	// API servers only.
	Nodes string
	// HostOnly starts the host cluster alone, without members and KubeFed. The caller registers members of its own.
	HostOnly bool
	// ExtraPorts are additional port purposes of the caller; their ports are chosen together with those of the fleet.
	ExtraPorts []string
}

// New prepares a fleet: keys, tokens, ports, kubeconfigs, and the specs of its processes. It starts no process.
func New(c Config) (*Fleet, error) {
	f := &Fleet{
		Layout:     c.Layout,
		Repo:       c.Repo,
		Built:      c.Built,
		supervisor: c.Supervisor,
		guarded:    c.Guarded,
		between:    c.Between,
		appliers:   map[string]*Applier{},
		nodes:      c.Nodes,
		hostOnly:   c.HostOnly,
		direct:     c.Direct,
		pull:       c.Pull,
	}
	var err error
	if f.PKI, err = EnsurePKI(c.Layout.PKI()); err != nil {
		return nil, err
	}
	if f.Tokens, err = EnsureTokens(c.Layout); err != nil {
		return nil, err
	}
	if f.Ports, err = ChoosePorts(c.Layout.File("ports.json"), append(portPurposes(), c.ExtraPorts...)); err != nil {
		return nil, err
	}
	if err := f.writeKubeconfigs(); err != nil {
		return nil, err
	}
	for _, cluster := range Clusters() {
		if f.appliers[cluster], err = NewApplier(f.AdminConfig(cluster)); err != nil {
			return nil, fmt.Errorf("prepare the administration of %s: %w", cluster, err)
		}
	}
	specs, err := f.specs()
	if err != nil {
		return nil, err
	}
	for _, s := range specs {
		if err := c.Supervisor.Add(s); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Applier returns the applier of a cluster.
func (f *Fleet) Applier(cluster string) *Applier { return f.appliers[cluster] }

// Writer returns the short name of the user who writes into a member: KubeFed's, the direct engine's, or the work agent's.
func (f *Fleet) Writer(member string) string {
	switch {
	case slices.Contains(f.direct, member):
		return Direct
	case slices.Contains(f.pull, member):
		return WorkAgent
	}
	return KubeFed
}

// engine returns the engine of a member.
func (f *Fleet) engine(member string) federation.Engine {
	switch f.Writer(member) {
	case Direct:
		return federation.EngineDirect
	case WorkAgent:
		return federation.EngineOCM
	}
	return federation.EngineKubeFed
}

// byKubeFed returns the members into which KubeFed writes.
func (f *Fleet) byKubeFed() []string {
	return slices.DeleteFunc(Members(), func(m string) bool { return f.Writer(m) != KubeFed })
}

// SetUpMember applies the objects that a member needs again, as at the start.
func (f *Fleet) SetUpMember(ctx context.Context, member string) error {
	return f.setUpMember(ctx, member)
}

// Up starts the fleet and waits until KubeFed reports every member as ready, or the context ends. member, when not nil, is called
// for each member as soon as its API server serves the CRDs; calls for several members run concurrently.
func (f *Fleet) Up(ctx context.Context, member func(ctx context.Context, cluster string) error) error {
	clusters := Clusters()
	if f.hostOnly {
		clusters = []string{Host}
	}
	if err := f.each(clusters, func(cluster string) error {
		for _, name := range f.processesOf(cluster) {
			if err := f.supervisor.StartAndWait(ctx, name); err != nil {
				return err
			}
		}
		if cluster == Host {
			return f.setUpHost(ctx)
		}
		if err := f.setUpMember(ctx, cluster); err != nil {
			return err
		}
		if member != nil {
			return member(ctx, cluster)
		}
		return nil
	}); err != nil {
		return err
	}
	if f.hostOnly {
		return nil
	}
	for _, m := range f.pull {
		if err := f.supervisor.StartAndWait(ctx, AgentOf(m)); err != nil {
			return err
		}
	}
	return f.startKubeFed(ctx)
}

// processesOf returns the names of the processes of a cluster, in the order in which they start.
func (f *Fleet) processesOf(cluster string) []string {
	if cluster != Host && f.nodes != "" {
		return []string{nodesProcess}
	}
	return []string{sharedEtcd(cluster), "apiserver-" + cluster}
}

// each calls do for all clusters concurrently and returns the first error.
func (f *Fleet) each(clusters []string, do func(string) error) error {
	errs := make(chan error, len(clusters))
	for _, c := range clusters {
		go func() { errs <- do(c) }()
	}
	var first error
	for range clusters {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// ensureData creates the data folder of a process and returns its path.
func (f *Fleet) ensureData(name string) (string, error) {
	dir := f.Layout.Data(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the data folder of %s: %w", name, err)
	}
	return dir, nil
}

// sharedEtcd returns the name of the etcd process of a cluster. The members share one and the host has its own, so that load from
// the members does not affect the store of the control plane.
func sharedEtcd(cluster string) string {
	if slices.Contains(Members(), cluster) {
		return "etcd-members"
	}
	return "etcd-host"
}
