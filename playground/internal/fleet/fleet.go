package fleet

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// Fleet is one fleet in one state folder.
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
}

// The layers of the processes: what is higher needs what is lower, and is stopped before it.
const (
	LayerStore = iota
	LayerAPIServer
	LayerFederation
	LayerControlPlane
)

// The purposes of the fleet's ports.
func portPurposes() []string {
	p := []string{"etcd-host", "etcd-host-peer", "etcd-members", "etcd-members-peer", "kubefed-health", "kubefed-metrics"}
	for _, c := range Clusters() {
		p = append(p, "apiserver-"+c)
	}
	return p
}

// Config of a Fleet.
type Config struct {
	Layout     Layout
	Repo       string
	Built      parts.Built
	Supervisor *supervisor.Supervisor
	// Guarded: the members refuse changes of what ACP manages by anybody but KubeFed and the break-glass group, also by the
	// playground's administrator.
	Guarded bool
	// Between, when not nil, puts something between the host and a member: it is given the address of the member's API
	// server and returns the one under which the member is registered.
	Between func(member, address string) (string, error)
	// Nodes is the path of acp-node, which runs the members as real Kubernetes nodes with Cilium; empty: the members are API servers.
	Nodes string
	// ExtraPorts are purposes of others, chosen together with the fleet's own.
	ExtraPorts []string
}

// New prepares a fleet: keys, tokens, ports, kubeconfigs, and the specs of its processes. It starts nothing.
func New(c Config) (*Fleet, error) {
	f := &Fleet{Layout: c.Layout, Repo: c.Repo, Built: c.Built, supervisor: c.Supervisor, guarded: c.Guarded, between: c.Between, appliers: map[string]*Applier{}, nodes: c.Nodes}
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

// Applier of a cluster.
func (f *Fleet) Applier(cluster string) *Applier { return f.appliers[cluster] }

// SetUpMember brings what a member needs back to what it was at the start.
func (f *Fleet) SetUpMember(ctx context.Context, member string) error {
	return f.setUpMember(ctx, member)
}

// Up starts the fleet and waits until KubeFed takes care of ready members. Children get at most the context's time.
// member, when not nil, is called for each member as soon as its API server serves the CRDs, beside the others.
func (f *Fleet) Up(ctx context.Context, member func(ctx context.Context, cluster string) error) error {
	if err := f.each(Clusters(), func(cluster string) error {
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
	return f.startKubeFed(ctx)
}

// processesOf names the processes that are a cluster, in the order in which they start.
func (f *Fleet) processesOf(cluster string) []string {
	if cluster != Host && f.nodes != "" {
		return []string{nodesProcess}
	}
	return []string{sharedEtcd(cluster), "apiserver-" + cluster}
}

// each runs f for all clusters together and returns the first error.
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

// ensureData makes the data folder of a process.
func (f *Fleet) ensureData(name string) (string, error) {
	dir := f.Layout.Data(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the data folder of %s: %w", name, err)
	}
	return dir, nil
}

// sharedEtcd names the etcd process of a cluster: the members share one, the host has its own, so that a crowd of
// members cannot take the control plane's store away.
func sharedEtcd(cluster string) string {
	if slices.Contains(Members(), cluster) {
		return "etcd-members"
	}
	return "etcd-host"
}
