// Package host is the portal's side of the host cluster: a cache of ACP's kinds with the policy snapshot made of it,
// news of what changed, and the writer of the portal's own policies. It holds no member credentials and knows no
// tickets.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

// ErrKindMissing means that a CRD is not installed.
var ErrKindMissing = errors.New("a kind of ACP is not installed in the host cluster")

// kinds that the portal reads, with the plural that names the CRD's file.
var kinds = []struct {
	object client.Object
	plural string
}{
	{&v1alpha1.AccessControlPolicy{}, "accesscontrolpolicies"},
	{&v1alpha1.ProtectedResource{}, "protectedresources"},
	{&v1alpha1.ResourceClass{}, "resourceclasses"},
	{&v1alpha1.SubjectClass{}, "subjectclasses"},
	{&v1alpha1.ExternalWorkload{}, "externalworkloads"},
}

// Host is safe for concurrent use.
type Host struct {
	config *rest.Config
	client client.Client
	cache  cache.Cache
	log    *slog.Logger

	ready    atomic.Bool
	policies chan string // names of policies that changed
	onChange func(resource string)

	mu       sync.Mutex
	dirty    bool
	snapshot *policy.Snapshot
}

// New prepares the connection and connects nothing. onResource is called with the name of a resource whose protection
// changed; it must not block.
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
	ca, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make the host cluster's cache: %w", err)
	}
	// The channel only wakes the follower, which compares everything anyway; see notify.
	return &Host{config: config, client: cl, cache: ca, log: log, policies: make(chan string, 1024), onChange: onResource, dirty: true}, nil
}

// CheckKinds asks the API server for ACP's kinds. ErrKindMissing names the files to apply; other errors mean that the
// API server cannot be reached now.
func (h *Host) CheckKinds() error {
	d, err := discovery.NewDiscoveryClientForConfig(h.config)
	if err != nil {
		return fmt.Errorf("make the discovery client: %w", err)
	}
	list, err := d.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ask the host cluster for its kinds: %w", err)
	}
	have := map[string]bool{}
	if list != nil {
		for _, r := range list.APIResources {
			have[r.Name] = true
		}
	}
	var files []string
	for _, k := range kinds {
		if !have[k.plural] {
			files = append(files, "deploy/crds/acp.io_"+k.plural+".yaml")
		}
	}
	if len(files) > 0 {
		return fmt.Errorf("%w: kubectl apply -f %s", ErrKindMissing, strings.Join(files, " -f "))
	}
	return nil
}

// Run keeps the cache until the context ends. An API server that is away is waited for.
func (h *Host) Run(ctx context.Context) error {
	for _, k := range kinds {
		inf, err := h.cache.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", k.plural, err)
		}
		if _, err := inf.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { h.changed(nil, o) },
			UpdateFunc: func(before, o any) { h.changed(before, o) },
			DeleteFunc: func(o any) { h.changed(nil, o) },
		}); err != nil {
			return fmt.Errorf("watch %s: %w", k.plural, err)
		}
	}
	go func() {
		if h.cache.WaitForCacheSync(ctx) {
			h.ready.Store(true)
			h.log.Info("the host cluster's policies are known")
		}
	}()
	if err := h.cache.Start(ctx); err != nil {
		return fmt.Errorf("run the host cluster's cache: %w", err)
	}
	return nil
}

func (h *Host) changed(before, object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	o, ok := object.(client.Object)
	if !ok {
		return
	}
	// What the snapshot is made of is in specs; a status changes often and alters no decision.
	if old, ok := before.(client.Object); !ok || old.GetGeneration() != o.GetGeneration() {
		h.mu.Lock()
		h.dirty = true
		h.mu.Unlock()
	}
	switch o := o.(type) {
	case *v1alpha1.AccessControlPolicy:
		select {
		case h.policies <- o.Name:
		default: // the follower is far behind; its resync finds it
		}
	case *v1alpha1.ProtectedResource:
		h.onChange(string(o.Spec.Resource))
	}
}

// PolicyChanges are the names of policies that changed.
func (h *Host) PolicyChanges() <-chan string { return h.policies }

// Ready tells whether everything was seen once.
func (h *Host) Ready() bool { return h.ready.Load() }

// Snapshot of the policies as they are now; false: the host cluster was not seen yet.
func (h *Host) Snapshot() (*policy.Snapshot, bool) {
	if !h.Ready() {
		return nil, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dirty && h.snapshot != nil {
		return h.snapshot, true
	}
	in, err := h.input()
	if err != nil {
		h.log.Error("the host cluster's cache cannot be listed", "error", err)
		return h.snapshot, h.snapshot != nil
	}
	h.snapshot, h.dirty = policy.NewSnapshot(in), false
	return h.snapshot, true
}

func (h *Host) input() (policy.Input, error) {
	ctx := context.Background() // lists of a synced cache wait for nothing
	var in policy.Input
	var acps v1alpha1.AccessControlPolicyList
	var prs v1alpha1.ProtectedResourceList
	var rcs v1alpha1.ResourceClassList
	var scs v1alpha1.SubjectClassList
	var ews v1alpha1.ExternalWorkloadList
	for _, l := range []client.ObjectList{&acps, &prs, &rcs, &scs, &ews} {
		if err := h.cache.List(ctx, l); err != nil {
			return in, fmt.Errorf("list %T: %w", l, err)
		}
	}
	in.Policies, in.Resources = pointers(acps.Items), pointers(prs.Items)
	in.ResourceClasses, in.SubjectClasses, in.Workloads = pointers(rcs.Items), pointers(scs.Items), pointers(ews.Items)
	return in, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
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

// Protection of a resource; nil: it is not onboarded, or the host cluster was not seen yet. Of two objects for one
// name, the first by object name is shown; the adapter's status says that there are two.
func (h *Host) Protection(resource string) *v1alpha1.ProtectedResource {
	if !h.Ready() {
		return nil
	}
	var prs v1alpha1.ProtectedResourceList
	if err := h.cache.List(context.Background(), &prs); err != nil {
		return nil
	}
	var found *v1alpha1.ProtectedResource
	for i, p := range prs.Items {
		if string(p.Spec.Resource) == resource && (found == nil || p.Name < found.Name) {
			found = &prs.Items[i]
		}
	}
	return found
}

var errNotSeen = &approval.Error{Code: approval.CodeUnavailable, Detail: "The host cluster's policies are not known yet; try again in a moment."}

// ResourceActions implements approval.Classes.
func (h *Host) ResourceActions(resource string) ([]string, bool, error) {
	s, ok := h.Snapshot()
	if !ok {
		return nil, false, errNotSeen
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
		return false, errNotSeen
	}
	_, covered := s.SubjectClassOf(application)
	return covered, nil
}
