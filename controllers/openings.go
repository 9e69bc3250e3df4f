package controllers

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/index"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// openings are those of each dataplane: what one lets in more has still to be let in by the other.
type openings map[v1alpha1.EnforcerName]*lookout

// again asks for a new look.
func (o openings) again() {
	for _, l := range o {
		l.again()
	}
}

// by names the policy that opens the pods with a label for a dataplane in a member; "": none does.
func (o openings) by(dataplane v1alpha1.EnforcerName, cluster, key, value string) string {
	return o[dataplane].by(cluster, key, value)
}

func setUpOpenings(mgr manager.Manager, host dynamic.Interface, config Config, all *wake) (openings, error) {
	out := openings{
		v1alpha1.EnforcerCilium: newLookout(v1alpha1.EnforcerCilium, all.objects, all),
		v1alpha1.EnforcerIstio:  newLookout(v1alpha1.EnforcerIstio, all.istio.objects, all),
	}
	watched := func(l *lookout) federation.FleetConfig {
		return federation.FleetConfig{
			Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
			Probing: config.Probing.Seldom(), Log: mgr.GetLogger().WithName("openings"), Changed: func(_, _ string) { l.again() },
		}
	}
	cilium, istio := out[v1alpha1.EnforcerCilium], out[v1alpha1.EnforcerIstio]
	var err error
	if cilium.policies, err = federation.NewCiliumOpenings(watched(cilium)); err != nil {
		return nil, err
	}
	if istio.policies, err = federation.NewIstioOpenings(watched(istio)); err != nil {
		return nil, err
	}
	mesh := always(func(ctx context.Context) error { return all.istio.whenCarried(ctx, istio.policies.Run) })
	for _, run := range []manager.Runnable{always(cilium.policies.Run), always(cilium.run), mesh, always(istio.run)} {
		if err := mgr.Add(run); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lookout knows which workloads of ACP's classes are opened for a dataplane by a policy in their member that is not ACP's.
type lookout struct {
	dataplane  v1alpha1.EnforcerName
	index      *index.Index
	policies   *federation.Openings
	identities *federation.Identities
	objects    *federation.Objects
	clusters   func() []federation.Cluster
	// changed is called when other workloads are opened than before.
	changed func()
	wake    chan struct{}

	mu      sync.RWMutex
	members map[string]federation.Opened
}

func newLookout(dataplane v1alpha1.EnforcerName, objects *federation.Objects, all *wake) *lookout {
	return &lookout{dataplane: dataplane, index: all.index, identities: all.names.identities, objects: objects, clusters: all.fleet.Clusters,
		changed: all.everything, wake: make(chan struct{}, 1)}
}

// again asks for a new look.
func (o *lookout) again() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *lookout) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.wake:
		}
		if listed, _ := o.objects.State(); listed {
			o.look()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rest):
		}
	}
}

// look finds out what is opened now. Without policies of others, which is how it should be, it costs nothing.
func (o *lookout) look() {
	// The keys of the classes, and whether pods that have them always have identities that do: what Cilium leaves out it cannot
	// enforce, which is told by itself, and of classes without Cilium nobody knows.
	keys := map[string]bool{}
	for _, c := range o.index.ClassesOnly().ResourceClasses {
		if preflight.EnforcedBy(c, o.dataplane) {
			keys[string(c.Spec.LabelKey)] = preflight.EnforcedBy(c, v1alpha1.EnforcerCilium)
		}
	}
	members := map[string]federation.Opened{}
	for _, c := range o.clusters() {
		if policies := o.policies.In(c.Name, o.objects.Ours); len(policies) > 0 {
			members[c.Name] = federation.FindOpened(policies, keys, func(do func([]federation.Handle)) { o.identities.Each(c.Name, do) })
		}
	}
	o.mu.Lock()
	same := maps.EqualFunc(o.members, members, federation.Opened.Equal)
	o.members = members
	o.mu.Unlock()
	if !same {
		o.changed()
	}
}

func (o *lookout) by(cluster, key, value string) string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.members[cluster].By(key, value)
}
