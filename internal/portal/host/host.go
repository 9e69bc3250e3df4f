// Package host connects the portal to the host cluster: a cache of ACP's kinds with their policy snapshot, notifications about changes,
// and the writer of the portal's policies. It has no credentials of members and does not depend on tickets.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/wallclock"
)

// ErrKindMissing means that a CRD is not installed.
var ErrKindMissing = errors.New("a kind of ACP is not installed in the host cluster")

// Host is safe for concurrent use.
type Host struct {
	config *rest.Config
	client client.Client
	urgent client.Client // without a rate limit
	cache  cache.Cache
	log    *slog.Logger

	ready    atomic.Bool
	away     atomic.Pointer[time.Time] // since when the API server does not answer; nil while it answers
	policies chan string               // names of policies that changed
	// changedNames contains what is sent to policies next.
	changedNames *nameQueue
	onChange     func(resource string)
	// onObject is nil if there is no receiver.
	onObject func(externalchanges.Row, bool, func() externalchanges.Content)
	note     func(context.Context, externalchanges.OwnChange) error // nil if the portal's own changes are not recorded
	// onInstruction is nil if there is no receiver, and noteInstruction if the portal's own instructions are not recorded.
	onInstruction   func(externalchanges.Instructed)
	noteInstruction func(context.Context, externalchanges.Instructed)

	workloads *Workloads
	namespace string // see InNamespace

	mu       sync.Mutex
	dirty    bool
	snapshot *policy.Snapshot
}

// New returns a Host without connecting to the API server. onResource is called with the name of a resource whose protection has
// changed, and must not block.
func New(config *rest.Config, onResource func(resource string), log *slog.Logger) (*Host, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register ACP's kinds: %w", err)
	}
	mapper := staticMapper()
	cl, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make the host cluster's client: %w", err)
	}
	h := &Host{config: config, client: cl, log: log, policies: make(chan string), changedNames: newNameQueue(), onChange: onResource, dirty: true}
	patient, err := hostcluster.NewRetryingClient(config, h.reached)
	if err != nil {
		return nil, err
	}
	h.cache, err = cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper, HTTPClient: patient, DefaultTransform: hostcluster.ShareMemberLists()})
	if err != nil {
		return nil, fmt.Errorf("make the host cluster's cache: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // writes of workloads have their own rate limit, and a downgrade must not wait
	unpaced, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make the host cluster's client: %w", err)
	}
	h.urgent = unpaced
	h.workloads = newWorkloads(unpaced, h.cache, log)
	return h, nil
}

// reached records whether the API server answers.
func (h *Host) reached(problem error) {
	if problem != nil {
		now := wallclock.Now()
		h.away.Store(&now)
		h.log.Warn("the host cluster does not answer; retrying", "problem", problem)
		return
	}
	h.away.Store(nil)
	h.log.Info("the host cluster answers again")
}

// AwaySince returns the time since which the host cluster has not answered, which is the age of the cache, or zero if it answers.
func (h *Host) AwaySince() time.Time {
	if at := h.away.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// CheckKinds checks that the API server serves ACP's kinds. ErrKindMissing names the files to apply. Other errors mean that the API
// server cannot be reached.
func (h *Host) CheckKinds(ctx context.Context) error {
	missing, err := hostcluster.Unserved(ctx, h.config, hostcluster.AllKinds())
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return nil
	}
	files := make([]string, 0, len(missing))
	for _, k := range missing {
		files = append(files, "deploy/crds/acp.io_"+k.Plural+".yaml")
	}
	return fmt.Errorf("%w: kubectl apply -f %s", ErrKindMissing, strings.Join(files, " -f "))
}

// indexResource is the index of ProtectedResources by resource name.
const indexResource = "spec.resource"

func resourceOf(o client.Object) []string {
	p, ok := o.(*v1alpha1.ProtectedResource)
	if !ok {
		return nil
	}
	return []string{string(p.Spec.Resource)}
}

// Run updates the cache until the context ends. It waits while the API server is not available.
func (h *Host) Run(ctx context.Context) error {
	if err := h.cache.IndexField(ctx, &v1alpha1.ExternalWorkload{}, indexSubject, subjectOf); err != nil {
		return fmt.Errorf("index external workloads: %w", err)
	}
	if err := h.cache.IndexField(ctx, &v1alpha1.ProtectedResource{}, indexResource, resourceOf); err != nil {
		return fmt.Errorf("index protected resources: %w", err)
	}
	for _, k := range hostcluster.AllKinds() {
		inf, err := h.cache.GetInformer(ctx, k.Object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", k.Plural, err)
		}
		if _, err := inf.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { h.changed(nil, o, false) },
			UpdateFunc: func(before, o any) { h.changed(before, o, false) },
			DeleteFunc: func(o any) { h.changed(nil, o, true) },
		}); err != nil {
			return fmt.Errorf("watch %s: %w", k.Plural, err)
		}
		if _, ok := k.Object.(*v1alpha1.ExternalWorkload); ok {
			kept, err := inf.AddEventHandler(h.workloads.handler())
			if err != nil {
				return fmt.Errorf("watch %s: %w", k.Plural, err)
			}
			go func() {
				if toolscache.WaitForCacheSync(ctx.Done(), kept.HasSynced) {
					h.workloads.State.SetReady()
				}
			}()
		}
	}
	go func() {
		if h.cache.WaitForCacheSync(ctx) {
			h.ready.Store(true)
			h.log.Info("the host cluster's policies are known")
			h.changedNames.deliver(ctx, h.policies)
		}
	}()
	if err := h.cache.Start(ctx); err != nil {
		return fmt.Errorf("run the host cluster's cache: %w", err)
	}
	return nil
}

func (h *Host) changed(before, object any, gone bool) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	o, ok := object.(client.Object)
	if !ok {
		return
	}
	old, ok := before.(client.Object)
	h.notifyObject(old, o, gone)
	if !gone {
		h.notifyInstruction(old, o)
	}
	if !ok || hostcluster.AffectsDecisions(old, o) {
		h.mu.Lock()
		h.dirty = true
		h.mu.Unlock()
	}
	if _, ok := o.(*v1alpha1.AccessControlPolicy); ok {
		h.notify(o.GetName())
	}
	for _, k := range changeable {
		if k.is(o) && (k.ours == nil || k.ours(o)) { // platforms register tens of thousands of workloads, which no ticket concerns
			h.notify(k.name + "/" + o.GetName())
		}
	}
	if r, ok := o.(*v1alpha1.ProtectedResource); ok {
		h.onChange(string(r.Spec.Resource))
	}
}

// notify notifies the follower of a change. No change is dropped, because only a notification leads to the search for ended statements that were
// restored; see approval.Follower.
func (h *Host) notify(name string) { h.changedNames.add(name) }

// PolicyChanges returns a channel with the names of changed policies, and "<kind>/<name>" of other changed objects. All objects count as changed when
// the cache has been filled. Nothing is sent before that.
func (h *Host) PolicyChanges() <-chan string { return h.policies }

// Ready reports whether the cache has been filled.
func (h *Host) Ready() bool { return h.ready.Load() }

// Snapshot returns the snapshot of the current policies, and false if the host cluster was not read yet.
func (h *Host) Snapshot() (*policy.Snapshot, bool) {
	if !h.Ready() {
		return nil, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dirty && h.snapshot != nil {
		return h.snapshot, true
	}
	in, err := hostcluster.Input(context.Background(), h.cache) // lists of a synced cache do not block
	if err != nil {
		h.log.Error("the host cluster's cache cannot be listed", "error", err)
		return h.snapshot, h.snapshot != nil
	}
	h.snapshot, h.dirty = policy.NewSnapshot(in), false
	return h.snapshot, true
}

// Cached implements approval.Policies.
func (h *Host) Cached(name string) (*v1alpha1.AccessControlPolicy, bool) {
	if !h.Ready() {
		return nil, false
	}
	var p v1alpha1.AccessControlPolicy
	if err := h.cache.Get(context.Background(), client.ObjectKey{Name: name}, &p); err != nil {
		return nil, false
	}
	return &p, true
}

// Live implements approval.Policies.
func (h *Host) Live(ctx context.Context, name string) (*v1alpha1.AccessControlPolicy, error) {
	var p v1alpha1.AccessControlPolicy
	err := h.client.Get(ctx, client.ObjectKey{Name: name}, &p)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w", name, err)
	}
	return &p, nil
}

// Protection returns the ProtectedResource of a resource, or nil if it is not onboarded or the host cluster was not read yet. Of two
// objects for one resource it returns the first by name; the adapter's status reports the duplicate.
func (h *Host) Protection(resource string) *v1alpha1.ProtectedResource {
	if !h.Ready() {
		return nil
	}
	var prs v1alpha1.ProtectedResourceList
	if err := h.cache.List(context.Background(), &prs, client.MatchingFields{indexResource: resource}); err != nil {
		h.log.Error("the host cluster's cache cannot be listed", "error", err)
		return nil
	}
	var found *v1alpha1.ProtectedResource
	for i := range prs.Items {
		if found == nil || prs.Items[i].Name < found.Name {
			found = &prs.Items[i]
		}
	}
	return found
}

// ResourceActions implements approval.Classes.
func (h *Host) ResourceActions(resource string) ([]string, bool, error) {
	s, ok := h.Snapshot()
	if !ok {
		return nil, false, approval.HostUnknown()
	}
	c, ok := s.ResourceClassOf(resource)
	if !ok {
		return nil, false, nil
	}
	out := make([]string, 0, len(c.Spec.Actions))
	for _, a := range c.Spec.Actions {
		out = append(out, a.Name)
	}
	return out, true, nil
}

// SubjectCovered implements approval.Classes.
func (h *Host) SubjectCovered(application string) (bool, error) {
	s, ok := h.Snapshot()
	if !ok {
		return false, approval.HostUnknown()
	}
	_, covered := s.SubjectClassOf(application)
	return covered, nil
}
