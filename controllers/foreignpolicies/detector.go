// Package foreignpolicies records which protected workloads are opened by policies that ACP does not manage, in each member
// and for each dataplane. Package internal/federation/foreignpolicy decides what a policy opens.
package foreignpolicies

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/istiodistribution"
	"github.com/acp-io/acp/controllers/podlabels"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/startup"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/foreignpolicy"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
)

// Detectors records what policies of others open for each dataplane. Each dataplane decides separately: what one lets in
// must also be let in by the other. The zero value ignores requests.
type Detectors struct {
	cilium *detector[foreignpolicy.CiliumExposure]
	istio  *detector[federation.IstioExposure]
	groups *classGroups
}

// Config is the input of the Detectors.
type Config struct {
	// Fleet configures how the members are read; its Changed is not used.
	Fleet federation.FleetConfig
	Cache *policycache.Cache
	// Objects are ACP's own policies of Cilium on the host, Members those of the members, among which those of others are read, and Istio
	// distributes those of Istio. ClusterwideChanged has to be called for the events of Members.
	Objects   *federation.Objects
	Members   *federation.Fleet
	Istio     *istiodistribution.Distribution
	PodLabels *podlabels.Reader
	// OwnGroup reports whether ACP has an address group with that name on the host, or whether that is not known yet.
	OwnGroup func(name string) bool
	// IgnoresClusterNetworkPolicies reports whether a member's agents are known to ignore ClusterNetworkPolicies.
	IgnoresClusterNetworkPolicies func(cluster string) bool
	// Changed is called when the opened workloads changed, or became known or unknown.
	Changed func()
	// Pauses is the clock of the time between two evaluations.
	Pauses clock.WithTicker
}

// AddToManager adds the detectors of both dataplanes to a manager.
func AddToManager(mgr manager.Manager, config Config) (Detectors, error) {
	out := Detectors{
		cilium: newDetector[foreignpolicy.CiliumExposure](config.Objects, &config),
		istio:  newDetector[federation.IstioExposure](config.Istio.Objects, &config),
		groups: &classGroups{own: config.OwnGroup, changed: config.Changed, foreign: map[string]map[string]string{}},
	}
	reading := func(changed func(cluster string)) federation.FleetConfig {
		fleet := config.Fleet
		fleet.Changed = func(cluster, _ string) { changed(cluster) }
		return fleet
	}
	foreign, err := federation.NewForeignPolicies(reading(out.cilium.requeue), config.Objects, config.Members)
	if err != nil {
		return Detectors{}, err
	}
	istio, err := federation.NewIstioAllows(reading(out.istio.requeue))
	if err != nil {
		return Detectors{}, err
	}
	out.cilium.policies, out.istio.policies = foreign, istio
	out.cilium.find, out.istio.find = findForCilium(foreign, out.groups, &config), findForIstio(istio, &config)
	for _, run := range []startup.EveryReplica{
		startup.WhenListed(config.Objects, config.Pauses, foreign.Run), out.cilium.run,
		startup.WhenClosed(config.Istio.Supported(), istio.Run), out.istio.run,
	} {
		if err := mgr.Add(run); err != nil {
			return Detectors{}, err
		}
	}
	return out, nil
}

// Requeue requests a new evaluation of a member, or of all members for "".
func (d Detectors) Requeue(cluster string) {
	if d.cilium != nil {
		d.cilium.requeue(cluster)
		d.istio.requeue(cluster)
	}
}

// ClusterwideChanged requests a new evaluation of a member, or of all members for "", after an event about Cilium's clusterwide policies.
func (d Detectors) ClusterwideChanged(cluster string) {
	if d.cilium != nil {
		d.cilium.requeue(cluster)
	}
}

// OpenedBy returns the name of a policy that opens the pods with a label for a dataplane in a member, or "".
func (d Detectors) OpenedBy(dataplane v1alpha1.EnforcerName, cluster, key, value string) string {
	if dataplane == v1alpha1.EnforcerIstio {
		return d.istio.openedBy(cluster, key, value)
	}
	return d.cilium.openedBy(cluster, key, value)
}

// GroupInClass returns the name of an address group of others in a member that has the label of a subject class's groups, so that rules
// about the whole class apply to its addresses; "" if there is none.
func (d Detectors) GroupInClass(cluster, label string) string {
	if d.groups == nil {
		return ""
	}
	return d.groups.in(cluster, label)
}

// UnknownReason returns the reason why it is not known what is opened for a dataplane in a member, or zero.
func (d Detectors) UnknownReason(dataplane v1alpha1.EnforcerName, cluster string) message.Message {
	if dataplane == v1alpha1.EnforcerIstio {
		return d.istio.unknownReason(cluster)
	}
	return d.cilium.unknownReason(cluster)
}

// Cilium returns the members of which the policies for Cilium were evaluated.
func (d Detectors) Cilium() startup.Fleet { return d.cilium }

// classKeys returns the label keys of the classes that a dataplane enforces, and whether pods with the label always
// have identities with it. Labels that Cilium's identities lack cannot be enforced, which is reported separately; for
// classes without Cilium this is not known.
func classKeys(cache *policycache.Cache, dataplane v1alpha1.EnforcerName) map[string]bool {
	keys := map[string]bool{}
	for _, c := range cache.ClassesOnly().ResourceClasses {
		if preflight.EnforcedBy(c, dataplane) {
			keys[string(c.Spec.LabelKey)] = preflight.EnforcedBy(c, v1alpha1.EnforcerCilium)
		}
	}
	return keys
}

// findForIstio returns a function that computes what is opened for Istio in a member.
func findForIstio(foreign *federation.IstioAllows, config *Config) func(cluster string) (found federation.IstioExposure, pending bool) {
	own := &federation.OwnAllows{}
	return func(cluster string) (found federation.IstioExposure, pending bool) {
		if policies := foreign.In(cluster, config.Istio.Objects.IsOwn); len(policies) > 0 {
			found = federation.FindIstioExposure(policies, own.In(cluster, config.Istio.Objects), classKeys(config.Cache, v1alpha1.EnforcerIstio),
				func(do func([]federation.Handle)) { config.PodLabels.Identities.Each(cluster, do) })
		}
		return found, false
	}
}

// findForCilium returns a function that computes what is opened for Cilium in a member.
func findForCilium(
	foreign *federation.ForeignPolicies, classes *classGroups, config *Config,
) func(cluster string) (found foreignpolicy.CiliumExposure, pending bool) {
	own, detectors := &federation.OwnPolicies{}, map[string]*foreignpolicy.Detector{}
	var mu sync.Mutex
	return func(cluster string) (found foreignpolicy.CiliumExposure, pending bool) {
		mu.Lock()
		detector := detectors[cluster]
		if detector == nil {
			detector = foreignpolicy.NewDetector()
			detectors[cluster] = detector
		}
		mu.Unlock()
		in := foreignpolicy.Input{
			Keys: classKeys(config.Cache, v1alpha1.EnforcerCilium),
			Each: func(do func([]federation.Handle)) { config.PodLabels.Identities.Each(cluster, do) },
		}
		in.Foreign, in.Groups = foreign.In(cluster)
		classes.record(cluster, in.Groups)
		if config.IgnoresClusterNetworkPolicies(cluster) {
			in.Foreign = slices.DeleteFunc(in.Foreign, func(p *foreignpolicy.Policy) bool { return p.Kind == foreignpolicy.KindClusterNetworkPolicy })
		}
		if len(in.Foreign) > 0 {
			in.Own = own.In(cluster, config.Objects)
		}
		found = detector.Find(in)
		return found, detector.Pending()
	}
}

// opened describes what policies of others open in a member.
type opened[T any] interface {
	OpenedBy(key, value string) string
	Equal(T) bool
}

// maxEvaluations bounds how many members are evaluated at the same time for a dataplane. Others wait until one of these evaluations ends.
const maxEvaluations = 4

// detector records, for one dataplane, which workloads of ACP's classes are opened by a policy of others
// in their member. The members are evaluated independently of each other, so that one whose policies take long to evaluate does not delay
// what is known about the others.
type detector[T opened[T]] struct {
	policies interface {
		Registry() (bool, error)
		Clusters() []federation.Cluster
		Observe(cluster string) federation.Observation
	}
	objects *federation.Objects
	// pods reports whether the identities of a member's pods can be read.
	pods func(cluster string) federation.Observation
	// find computes what is opened in a member. It returns pending if it has to be called again, although nothing changed. It is called for
	// several members at the same time, and for each of them once at a time.
	find func(cluster string) (found T, pending bool)
	// changed is called when the opened workloads changed, or became known or unknown.
	changed func()
	// pauses is the clock of the time between two evaluations.
	pauses  clock.WithTicker
	trigger chan struct{}
	// slots has an element for each evaluation that is not waiting.
	slots chan struct{}
	// running are the goroutines of the evaluations.
	running sync.WaitGroup

	mu sync.RWMutex
	// requested are the members to evaluate; "" stands for all.
	requested map[string]bool
	// evaluations are those that have not ended yet, by member. beginning reports whether a round may add to them.
	evaluations map[string]*evaluation
	beginning   bool
	members     map[string]T
	unknown     map[string]message.Message
	// unreported reports whether members or unknown changed since changed was called.
	unreported bool
}

// evaluation is one evaluation of a member.
type evaluation struct {
	// unknown is the reason why the result may lack something, or zero.
	unknown message.Message
	// obsolete reports whether the member was removed meanwhile.
	obsolete bool
}

func newDetector[T opened[T]](objects *federation.Objects, config *Config) *detector[T] {
	return &detector[T]{objects: objects, pods: config.PodLabels.Identities.Observe, changed: config.Changed, pauses: config.Pauses,
		trigger: make(chan struct{}, 1), slots: make(chan struct{}, maxEvaluations), requested: map[string]bool{},
		evaluations: map[string]*evaluation{}, members: map[string]T{}, unknown: map[string]message.Message{}}
}

// requeue requests a new evaluation of a member, or of all members for "".
func (d *detector[T]) requeue(cluster string) {
	d.mu.Lock()
	d.requested[cluster] = true
	d.mu.Unlock()
	d.wake()
}

// wake begins a round after the pause that follows the last one.
func (d *detector[T]) wake() {
	select {
	case d.trigger <- struct{}{}:
	default:
	}
}

func (d *detector[T]) run(ctx context.Context) error {
	podlabels.Repeat(ctx, d.trigger, d.pauses, func() time.Duration {
		listed, _ := d.objects.State()
		if listed && d.evaluate() {
			return podlabels.MinReadInterval
		}
		return podlabels.FirstReadInterval
	})
	d.running.Wait()
	return nil
}

// evaluate begins to evaluate the members in which something changed, and does not wait for the results. A member whose last evaluation has not
// ended is evaluated when it has. It returns false if members are missing whose first read is still running.
func (d *detector[T]) evaluate() (complete bool) {
	complete, _ = d.policies.Registry()
	clusters := d.policies.Clusters()
	d.mu.Lock()
	d.beginning = true
	earlier, requested := d.unreported, d.requested
	d.requested = map[string]bool{}
	d.forgetAllBut(clusters)
	d.mu.Unlock()
	for _, c := range clusters {
		seen, pods := d.policies.Observe(c.Name), d.pods(c.Name)
		var unknown message.Message
		switch {
		case !seen.Reachable:
			unknown = seen.Message
		case !pods.Reachable: // the identities that were read last may lack pods that a policy opens
			unknown = pods.Message
		}
		if !d.begin(c.Name, requested[""] || requested[c.Name], seen.Unknown || pods.Unknown, unknown) {
			complete = false
		}
	}
	d.mu.Lock()
	d.beginning = false
	d.mu.Unlock()
	d.report(earlier)
	return complete
}

// begin begins to evaluate a member if that was requested or never done, and records whether what is opened there is unknown. It returns false
// if the member was never evaluated and cannot be yet, because its first read is still running.
func (d *detector[T]) begin(cluster string, requested, reading bool, unknown message.Message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, evaluated := d.members[cluster]
	running := d.evaluations[cluster]
	switch {
	case running != nil:
		if requested || unknown != running.unknown {
			d.requested[cluster] = true
		}
		if !unknown.IsZero() {
			running.unknown = unknown
		}
	case !evaluated && reading:
		return false
	case requested || !evaluated:
		e := &evaluation{unknown: unknown}
		d.evaluations[cluster] = e
		d.running.Go(func() { d.evaluateMember(cluster, e) })
	default:
		d.setUnknown(cluster, unknown)
	}
	if evaluated && !unknown.IsZero() { // it becomes known when an evaluation that began afterwards ends
		d.setUnknown(cluster, unknown)
	}
	return true
}

// evaluateMember evaluates a member and records the result.
func (d *detector[T]) evaluateMember(cluster string, e *evaluation) {
	d.slots <- struct{}{}
	found, pending := d.find(cluster)
	<-d.slots
	d.mu.Lock()
	delete(d.evaluations, cluster)
	if !e.obsolete {
		before, evaluated := d.members[cluster]
		d.unreported = d.unreported || !evaluated || !before.Equal(found)
		d.members[cluster] = found
		d.setUnknown(cluster, e.unknown)
	}
	if pending || e.obsolete {
		d.requested[cluster] = true
	}
	again := d.requested[cluster]
	d.mu.Unlock()
	if again {
		d.wake()
	}
	d.report(false)
}

// setUnknown records why it is not known what is opened in a member, or that it is known if the reason is zero. The caller holds the lock.
func (d *detector[T]) setUnknown(cluster string, reason message.Message) {
	d.unreported = d.unreported || d.unknown[cluster] != reason
	if reason.IsZero() {
		delete(d.unknown, cluster)
	} else {
		d.unknown[cluster] = reason
	}
}

// forgetAllBut removes the results of all other members. The caller holds the lock.
func (d *detector[T]) forgetAllBut(clusters []federation.Cluster) {
	registered := map[string]bool{}
	for _, c := range clusters {
		registered[c.Name] = true
	}
	for name := range d.members {
		if !registered[name] {
			d.unreported = true
			delete(d.members, name)
			delete(d.unknown, name)
		}
	}
	for name, e := range d.evaluations {
		e.obsolete = e.obsolete || !registered[name]
	}
}

// report calls changed if there are unreported changes. It leaves them to the next round while evaluations are running, which may add to
// them, so that changed is not called for each of many members. always is true for changes that were left to this round.
func (d *detector[T]) report(always bool) {
	d.mu.Lock()
	if d.beginning || !d.unreported {
		d.mu.Unlock()
		return
	}
	now := always || len(d.evaluations) == 0
	d.unreported = !now
	d.mu.Unlock()
	if now {
		d.changed()
	} else {
		d.wake()
	}
}

// openedBy returns the name of a policy that opens the pods with a label in a member, or "".
func (d *detector[T]) openedBy(cluster, key, value string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	found, ok := d.members[cluster]
	if !ok {
		return ""
	}
	return found.OpenedBy(key, value)
}

// unknownReason returns the reason why it is not known what is opened in a member, or the zero Message.
func (d *detector[T]) unknownReason(cluster string) message.Message {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if _, evaluated := d.members[cluster]; !evaluated {
		return message.MemberForeignUnread(cluster)
	}
	return d.unknown[cluster]
}

// Registry reports whether the members' registrations were listed.
func (d *detector[T]) Registry() (bool, error) { return d.policies.Registry() }

// Clusters returns the registered members.
func (d *detector[T]) Clusters() []federation.Cluster { return d.policies.Clusters() }

// Observe reports whether a member was evaluated.
func (d *detector[T]) Observe(cluster, _ string) federation.Observation {
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, evaluated := d.members[cluster]
	return federation.Observation{Registered: true, Unknown: !evaluated}
}
