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
	"github.com/acp-io/acp/internal/message"
)

// foreignPolicies records what policies of others open for each dataplane. Each dataplane decides separately: what one
// lets in must also be let in by the other.
type foreignPolicies struct {
	cilium *foreignPolicyDetector[foreignpolicy.OpenedPods]
	istio  *foreignPolicyDetector[federation.OpenedPods]
}

// recheck requests a new evaluation of a member, or of all members for "".
func (o foreignPolicies) recheck(cluster string) {
	if o.cilium != nil {
		o.cilium.requeue(cluster)
		o.istio.requeue(cluster)
	}
}

// openedBy returns the name of a policy that opens the pods with a label for a dataplane in a member, or zero.
func (o foreignPolicies) openedBy(dataplane v1alpha1.EnforcerName, cluster, key, value string) string {
	if dataplane == v1alpha1.EnforcerIstio {
		return o.istio.by(cluster, key, value)
	}
	return o.cilium.by(cluster, key, value)
}

// unknownReason returns the reason why it is not known what is opened for a dataplane in a member, or zero.
func (o foreignPolicies) unknownReason(dataplane v1alpha1.EnforcerName, cluster string) message.Message {
	if dataplane == v1alpha1.EnforcerIstio {
		return o.istio.unjudged(cluster)
	}
	return o.cilium.unjudged(cluster)
}

func setUpForeignPolicies(mgr manager.Manager, host dynamic.Interface, config Config, all *triggers) (foreignPolicies, error) {
	out := foreignPolicies{cilium: newForeignPolicyDetector[foreignpolicy.OpenedPods](all.objects, all), istio: newForeignPolicyDetector[federation.OpenedPods](all.istio.objects, all)}
	watched := func(again func(cluster string)) federation.FleetConfig {
		return federation.FleetConfig{
			Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
			Probing: config.Probing.Slow(), Log: mgr.GetLogger().WithName("openings"), Changed: func(cluster, _ string) { again(cluster) },
		}
	}
	foreign, err := federation.NewForeignPolicies(watched(out.cilium.requeue), all.objects)
	if err != nil {
		return foreignPolicies{}, err
	}
	istio, err := federation.NewIstioAllows(watched(out.istio.requeue))
	if err != nil {
		return foreignPolicies{}, err
	}
	out.cilium.policies, out.istio.policies = foreign, istio
	out.cilium.find = ciliumOpenings(foreign, all)
	own := &federation.OwnAllows{}
	out.istio.find = func(cluster string) (found federation.OpenedPods) {
		if policies := istio.In(cluster, all.istio.objects.IsOwn); len(policies) > 0 {
			found = federation.FindOpenedPods(policies, own.In(cluster, all.istio.objects), classKeys(all.cache, v1alpha1.EnforcerIstio), func(do func([]federation.Handle)) { all.names.identities.Each(cluster, do) })
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

// whenListed calls run once the host's objects are listed, because they determine which policies are ACP's.
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

// classKeys returns the label keys of the classes that a dataplane enforces, and whether pods with the label always
// have identities with it. Labels that Cilium's identities lack cannot be enforced, which is reported separately; for
// classes without Cilium this is not known.
func classKeys(x *policycache.Cache, dataplane v1alpha1.EnforcerName) map[string]bool {
	keys := map[string]bool{}
	for _, c := range x.ClassesOnly().ResourceClasses {
		if preflight.EnforcedBy(c, dataplane) {
			keys[string(c.Spec.LabelKey)] = preflight.EnforcedBy(c, v1alpha1.EnforcerCilium)
		}
	}
	return keys
}

// ciliumOpenings computes what is opened for Cilium, with a detector for each member.
func ciliumOpenings(foreign *federation.ForeignPolicies, all *triggers) func(cluster string) foreignpolicy.OpenedPods {
	own, detectors := &federation.OwnPolicies{}, map[string]*foreignpolicy.Detector{}
	return func(cluster string) foreignpolicy.OpenedPods {
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

// openedPods describes what policies of others open in a member.
type openedPods[T any] interface {
	OpenedBy(key, value string) string
	Equal(T) bool
}

// foreignPolicyDetector records, for one dataplane, which workloads of ACP's classes are opened by a policy of others
// in their member.
type foreignPolicyDetector[T openedPods[T]] struct {
	policies interface {
		Registry() (bool, error)
		Clusters() []federation.Cluster
		Observe(cluster string) federation.Observation
	}
	objects *federation.Objects
	// pods returns whether the identities of a member's pods were read.
	pods func(cluster string) federation.Observation
	// find computes what is opened in a member.
	find func(cluster string) T
	// changed is called when the opened workloads changed, or became known or unknown.
	changed func()
	wake    chan struct{}

	mu sync.RWMutex
	// asked are the members to evaluate; "" stands for all.
	asked   map[string]bool
	members map[string]T
	unknown map[string]message.Message
}

func newForeignPolicyDetector[T openedPods[T]](objects *federation.Objects, all *triggers) *foreignPolicyDetector[T] {
	return &foreignPolicyDetector[T]{objects: objects, pods: all.names.identities.Observe, changed: all.requeueAll, wake: make(chan struct{}, 1),
		asked: map[string]bool{}, members: map[string]T{}, unknown: map[string]message.Message{}}
}

// requeue requests a new evaluation of a member, or of all members for "".
func (o *foreignPolicyDetector[T]) requeue(cluster string) {
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
		case <-time.After(minReadInterval):
		}
	}
}

// look evaluates the members in which something changed.
func (o *foreignPolicyDetector[T]) look() {
	o.mu.Lock()
	asked := o.asked
	o.asked = map[string]bool{}
	members, unknown := map[string]T{}, map[string]message.Message{}
	before, beforeUnknown := o.members, o.unknown
	o.mu.Unlock()
	for _, c := range o.policies.Clusters() {
		known, looked := before[c.Name]
		seen := o.policies.Observe(c.Name)
		if !looked && (seen.Unknown || o.pods(c.Name).Unknown) {
			continue // the first read is still running
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
	return found.OpenedBy(key, value)
}

// unjudged returns the reason why it is not known what is opened in a member, or the zero Message.
func (o *foreignPolicyDetector[T]) unjudged(cluster string) message.Message {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if _, looked := o.members[cluster]; !looked {
		return message.MemberForeignUnread(cluster)
	}
	return o.unknown[cluster]
}

// Registry reports whether the members' registrations were listed.
func (o *foreignPolicyDetector[T]) Registry() (bool, error) { return o.policies.Registry() }

// Clusters returns the registered members.
func (o *foreignPolicyDetector[T]) Clusters() []federation.Cluster { return o.policies.Clusters() }

// Observe reports whether a member was evaluated.
func (o *foreignPolicyDetector[T]) Observe(cluster, _ string) federation.Observation {
	o.mu.RLock()
	defer o.mu.RUnlock()
	_, looked := o.members[cluster]
	return federation.Observation{Registered: true, Unknown: !looked}
}
