package controllers

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/foreignpolicy"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// foreignPolicies are what policies of others open for each dataplane: what one lets in more has still to be let in by the other.
type foreignPolicies struct {
	cilium *foreignPolicyDetector[foreignpolicy.Opened]
	istio  *foreignPolicyDetector[federation.Opened]
}

// recheck asks for a new look at a member; "": at all.
func (o foreignPolicies) recheck(cluster string) {
	if o.cilium != nil {
		o.cilium.again(cluster)
		o.istio.again(cluster)
	}
}

// openedBy names the policy that opens the pods with a label for a dataplane in a member; "": none does.
func (o foreignPolicies) openedBy(dataplane v1alpha1.EnforcerName, cluster, key, value string) string {
	if dataplane == v1alpha1.EnforcerIstio {
		return o.istio.by(cluster, key, value)
	}
	return o.cilium.by(cluster, key, value)
}

// unknownReason says why it is not known what is opened for a dataplane in a member; "": it is known.
func (o foreignPolicies) unknownReason(dataplane v1alpha1.EnforcerName, cluster string) string {
	if dataplane == v1alpha1.EnforcerIstio {
		return o.istio.unjudged(cluster)
	}
	return o.cilium.unjudged(cluster)
}

func setUpForeignPolicies(mgr manager.Manager, host dynamic.Interface, config Config, all *triggers) (foreignPolicies, error) {
	out := foreignPolicies{cilium: newForeignPolicyDetector[foreignpolicy.Opened](all.objects, all), istio: newForeignPolicyDetector[federation.Opened](all.istio.objects, all)}
	watched := func(again func(cluster string)) federation.FleetConfig {
		return federation.FleetConfig{
			Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
			Probing: config.Probing.Seldom(), Log: mgr.GetLogger().WithName("openings"), Changed: func(cluster, _ string) { again(cluster) },
		}
	}
	foreign, err := federation.NewForeign(watched(out.cilium.again), all.objects)
	if err != nil {
		return foreignPolicies{}, err
	}
	istio, err := federation.NewIstioOpenings(watched(out.istio.again))
	if err != nil {
		return foreignPolicies{}, err
	}
	out.cilium.policies, out.istio.policies = foreign, istio
	out.cilium.find = ciliumOpenings(foreign, all)
	own := &federation.OwnAllows{}
	out.istio.find = func(cluster string) (found federation.Opened) {
		if policies := istio.In(cluster, all.istio.objects.Ours); len(policies) > 0 {
			found = federation.FindOpened(policies, own.In(cluster, all.istio.objects), classKeys(all.cache, v1alpha1.EnforcerIstio), func(do func([]federation.Handle)) { all.names.identities.Each(cluster, do) })
		}
		return found
	}
	read := always(func(ctx context.Context) error { return whenListed(ctx, all.objects, foreign.Run) })
	mesh := always(func(ctx context.Context) error { return all.istio.whenCarried(ctx, istio.Run) })
	for _, run := range []manager.Runnable{read, always(out.cilium.run), mesh, always(out.istio.run)} {
		if err := mgr.Add(run); err != nil {
			return foreignPolicies{}, err
		}
	}
	return out, nil
}

// whenListed runs once the host's objects are listed: what is ACP's is told from what is not by them.
func whenListed(ctx context.Context, objects *federation.Objects, run func(context.Context) error) error {
	for {
		if listed, _ := objects.State(); listed {
			return run(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(initialSyncPoll):
		}
	}
}

// classKeys are the labels of the classes that a dataplane enforces, and whether pods that have them always have identities
// that do: what Cilium leaves out it cannot enforce, which is told by itself, and of classes without Cilium nobody knows.
func classKeys(x *policycache.Cache, dataplane v1alpha1.EnforcerName) map[string]bool {
	keys := map[string]bool{}
	for _, c := range x.ClassesOnly().ResourceClasses {
		if preflight.EnforcedBy(c, dataplane) {
			keys[string(c.Spec.LabelKey)] = preflight.EnforcedBy(c, v1alpha1.EnforcerCilium)
		}
	}
	return keys
}

// ciliumOpenings finds what is opened for Cilium, with a detector for each member.
func ciliumOpenings(foreign *federation.Foreign, all *triggers) func(cluster string) foreignpolicy.Opened {
	own, detectors := &federation.OwnPolicies{}, map[string]*foreignpolicy.Detector{}
	return func(cluster string) foreignpolicy.Opened {
		detector := detectors[cluster]
		if detector == nil {
			detector = foreignpolicy.NewDetector()
			detectors[cluster] = detector
		}
		in := foreignpolicy.Input{Keys: classKeys(all.cache, v1alpha1.EnforcerCilium), Each: func(do func([]federation.Handle)) { all.names.identities.Each(cluster, do) }}
		in.Foreign, in.Groups = foreign.In(cluster)
		if all.inspector.IgnoresClusterNetworkPolicies(cluster) {
			in.Foreign = slices.DeleteFunc(in.Foreign, func(p *foreignpolicy.Policy) bool { return p.Kind == foreignpolicy.KindClusterNetworkPolicy })
		}
		if len(in.Foreign) > 0 {
			in.Own = own.In(cluster, all.objects)
		}
		return detector.Find(in)
	}
}

// opened is what policies of others open in a member.
type opened[T any] interface {
	By(key, value string) string
	Equal(T) bool
}

// foreignPolicyDetector keeps, for one dataplane, which workloads of ACP's classes are opened by a policy in their member that is not ACP's.
type foreignPolicyDetector[T opened[T]] struct {
	policies interface {
		Registry() (bool, error)
		Clusters() []federation.Cluster
		Observe(cluster string) federation.Observation
	}
	objects *federation.Objects
	// pods tells whether the identities of a member's pods were read.
	pods func(cluster string) federation.Observation
	// find looks for what is opened in a member.
	find func(cluster string) T
	// changed is called when other workloads are opened than before, or when it is known or unknown of others.
	changed func()
	wake    chan struct{}

	mu sync.RWMutex
	// asked are the members to look at; "": all.
	asked   map[string]bool
	members map[string]T
	unknown map[string]string
}

func newForeignPolicyDetector[T opened[T]](objects *federation.Objects, all *triggers) *foreignPolicyDetector[T] {
	return &foreignPolicyDetector[T]{objects: objects, pods: all.names.identities.Observe, changed: all.requeueAll, wake: make(chan struct{}, 1),
		asked: map[string]bool{}, members: map[string]T{}, unknown: map[string]string{}}
}

// again asks for a new look at a member; "": at all.
func (o *foreignPolicyDetector[T]) again(cluster string) {
	o.mu.Lock()
	o.asked[cluster] = true
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *foreignPolicyDetector[T]) run(ctx context.Context) error {
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

// look finds out what is opened now in the members of which something changed.
func (o *foreignPolicyDetector[T]) look() {
	o.mu.Lock()
	asked := o.asked
	o.asked = map[string]bool{}
	members, unknown := map[string]T{}, map[string]string{}
	before, beforeUnknown := o.members, o.unknown
	o.mu.Unlock()
	for _, c := range o.policies.Clusters() {
		known, looked := before[c.Name]
		seen := o.policies.Observe(c.Name)
		if !looked && (seen.Unknown || o.pods(c.Name).Unknown) {
			continue // it is being read for the first time
		}
		if !seen.Reachable {
			unknown[c.Name] = seen.Message
		}
		if asked[""] || asked[c.Name] || !looked {
			known = o.find(c.Name)
		}
		members[c.Name] = known
	}
	o.mu.Lock()
	same := maps.Equal(beforeUnknown, unknown) && maps.EqualFunc(before, members, func(a, b T) bool { return a.Equal(b) })
	o.members, o.unknown = members, unknown
	o.mu.Unlock()
	if !same {
		o.changed()
	}
}

func (o *foreignPolicyDetector[T]) by(cluster, key, value string) string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	found, ok := o.members[cluster]
	if !ok {
		return ""
	}
	return found.By(key, value)
}

// unjudged says why it is not known what is opened in a member; "": it is known.
func (o *foreignPolicyDetector[T]) unjudged(cluster string) string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if _, looked := o.members[cluster]; !looked {
		return "policies of others in member " + cluster + " were not read yet"
	}
	return o.unknown[cluster]
}

// Registry tells whether the members' registrations were listed.
func (o *foreignPolicyDetector[T]) Registry() (bool, error) { return o.policies.Registry() }

// Clusters returns the registered members.
func (o *foreignPolicyDetector[T]) Clusters() []federation.Cluster { return o.policies.Clusters() }

// Observe tells whether a member was looked at.
func (o *foreignPolicyDetector[T]) Observe(cluster, _ string) federation.Observation {
	o.mu.RLock()
	defer o.mu.RUnlock()
	_, looked := o.members[cluster]
	return federation.Observation{Registered: true, Unknown: !looked}
}
