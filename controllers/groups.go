package controllers

import (
	"context"
	"strings"
	"sync"

	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
)

// setUpGroups adds the controller of groups, with its own view of the members: a member that cannot be read for groups
// must not count as unreachable for policies. The returned ready also waits until it is known whether the host can
// distribute groups, because before that a statement that needs one would be refused.
func setUpGroups(mgr manager.Manager, host dynamic.Interface, config Config, all *triggers, groups *requestqueue.Queue,
	ready func(context.Context) error) (*externalgroup.Reconciler, func(context.Context) error, error) {
	w := &wakeGroups{all: all, groups: groups, known: make(chan struct{})}
	w.objects = federation.NewObjects(host, federation.CiliumGroup, mgr.GetLogger(), w.federated)
	fleet, err := federation.NewFleet(federation.FleetConfig{
		Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
		Kind: federation.CiliumGroup, Revision: enforcer.Revision, Probing: config.Probing,
		Log: mgr.GetLogger().WithName("groups"), Changed: w.member,
	})
	if err != nil {
		return nil, nil, err
	}
	w.pacing = &pendingTracker{queue: writequeue.New("groups", config.WriteLimits), objects: w.objects, members: fleet, clock: config.Clock}
	if err := w.pacing.add(mgr, groups); err != nil {
		return nil, nil, err
	}
	for _, run := range []manager.Runnable{always(w.objects.Run), always(fleet.Run)} {
		if err := mgr.Add(run); err != nil {
			return nil, nil, err
		}
	}
	both := waitForPendingCounts(waitForInitialSync(after(ready, w.known), func() bool { return !all.inspector.Pending() && !all.names.waits() }, all.fleet, fleet, membersIfCarried{all.istio.fleet, all.istio.carries}, all.foreign.cilium), all.pending, w.pacing)
	r := &externalgroup.Reconciler{Index: all.cache, Fleet: fleet, Federated: w.objects, Render: cilium.RenderGroup, Effect: cilium.GroupEffectOf,
		Line: w.pacing.queue, PendingWrites: w.pacing.object, Subjects: groups, Clock: config.Clock}
	return r, both, r.SetupWithManager(mgr, both)
}

// wakeGroups maps events about groups to the subjects and the resources to reconcile.
type wakeGroups struct {
	all     *triggers
	groups  *requestqueue.Queue
	objects *federation.Objects
	pacing  *pendingTracker
	known   chan struct{}
	once    sync.Once
}

// federated handles an event about a Federated group, or about its kind.
func (w *wakeGroups) federated(name, subject string) {
	if name == "" {
		listed, _ := w.objects.State()
		w.all.cache.SetGroupsSupported(listed)
		w.once.Do(func() { close(w.known) })
		w.everything()
		return
	}
	w.pacing.object(name)
	w.look(name, subject)
}

// member handles an event about a group in a member, or about the member.
func (w *wakeGroups) member(_, object string) {
	if object == "" {
		w.everything()
		return
	}
	w.pacing.object(object)
	subject := ""
	if o, ok := w.objects.Get(object); ok {
		subject = o.Resource()
	}
	w.look(object, subject)
}

func (w *wakeGroups) look(name, subject string) {
	if subject == "" { // the object was deleted and may have to be created again
		subject = w.all.cache.View().SubjectOf(strings.TrimPrefix(name, v1alpha1.ObjectPrefix))
	}
	if subject != "" {
		w.groups.Add(requestqueue.Observed, subject)
	}
	w.all.units.Add(requestqueue.Observed, w.all.reports.UsersOf(name)...)
}

func (w *wakeGroups) everything() {
	w.pacing.everything()
	w.all.cache.EnqueueWorkloads()
	for _, o := range w.objects.List() {
		// This includes subjects without workloads.
		if subject := o.Resource(); subject != "" {
			w.groups.Add(requestqueue.Bulk, subject)
		}
		w.all.units.Add(requestqueue.Bulk, w.all.reports.UsersOf(o.Meta.Name)...)
	}
}
