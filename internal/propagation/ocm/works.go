package ocm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// Registry returns the registered members, which name their engines. federation.Fleet implements it.
type Registry interface {
	Registry() (bool, error)
	Clusters() []federation.Cluster
	Cluster(name string) (federation.Cluster, bool)
}

// WorksConfig configures Works.
type WorksConfig struct {
	// Host is a client of the host.
	Host    dynamic.Interface
	Members Registry
	// Changed is called with the key of an object whose ManifestWork in a member's namespace changed, and with key "" when the member's
	// agent was lost or found. It must return quickly.
	Changed func(cluster, key string)
	// Heartbeats is DefaultHeartbeats if it is zero.
	Heartbeats Heartbeats
	Log        logr.Logger
	// Clock is the clock; nil means the machine's.
	Clock clock.WithTicker
}

// Works are the ManifestWorks of ACP on the host. They run in one process at a time, the leader.
type Works struct {
	config   WorksConfig
	informer cache.SharedIndexInformer

	mu    sync.RWMutex
	beats map[string]*beat
	// contents maps a member's object to the version of it that was last seen with a known revision.
	contents map[place]content
	// sightings is how often Absent found an object in a member.
	sightings map[place]int
}

// place identifies an object in a member.
type place struct{ cluster, key string }

// content is a version of an object in a member whose revision is known.
type content struct{ uid, version, revision string }

// NewWorks returns Works that are idle until Run.
func NewWorks(config WorksConfig) (*Works, error) {
	if config.Host == nil || config.Members == nil || config.Changed == nil {
		return nil, errors.New("ocm: Host, Members and Changed are needed")
	}
	if config.Heartbeats == (Heartbeats{}) {
		config.Heartbeats = DefaultHeartbeats
	}
	config.Clock = cmp.Or[clock.WithTicker](config.Clock, clock.RealClock{})
	w := &Works{config: config, beats: map[string]*beat{}, contents: map[place]content{}, sightings: map[place]int{}}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(config.Host, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.LabelSelector = v1alpha1.LabelManagedBy + "=" + v1alpha1.ManagedBy
	})
	w.informer = factory.ForResource(WorkResource).Informer()
	if err := w.informer.SetTransform(func(in any) (any, error) {
		if u, ok := in.(*unstructured.Unstructured); ok {
			return cached{parseWork(u)}, nil
		}
		return in, nil
	}); err != nil {
		return nil, fmt.Errorf("ocm: configure the watch: %w", err)
	}
	changed := func(in any) {
		if c, ok := in.(cached); ok {
			w.seen(c.work)
		}
	}
	if _, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: func(in any) {
			if last, ok := in.(cache.DeletedFinalStateUnknown); ok {
				in = last.Obj
			}
			if c, ok := in.(cached); ok {
				w.gone(c.work)
			}
		}}); err != nil {
		return nil, fmt.Errorf("ocm: configure the watch: %w", err)
	}
	return w, nil
}

// cached is a ManifestWork in the cache, which needs only the accessors of its identity.
type cached struct{ *work }

// GetObjectMeta returns the identity of the ManifestWork.
func (c cached) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: c.cluster, Name: c.name, UID: c.uid, ResourceVersion: c.resourceVersion}
}

// seen handles an event of a ManifestWork.
func (s *Works) seen(w *work) {
	if w.purpose == purposeHeartbeat {
		s.beaten(w)
		return
	}
	if w.exact() && w.revision != "" {
		s.mu.Lock()
		s.contents[place{w.cluster, w.key}] = content{w.report.uid, w.report.version, w.revision}
		s.mu.Unlock()
	}
	s.config.Changed(w.cluster, w.key)
}

// gone handles the end of a ManifestWork.
func (s *Works) gone(w *work) {
	s.mu.Lock()
	if w.name == nameOf(w.key) {
		delete(s.contents, place{w.cluster, w.key})
	}
	if b := s.beats[w.cluster]; b != nil && w.purpose == purposeHeartbeat {
		b.next = time.Time{} // A heartbeat that was deleted is repeated at once.
	}
	s.mu.Unlock()
	if w.purpose != purposeHeartbeat {
		s.config.Changed(w.cluster, w.key)
	}
}

// Run watches the ManifestWorks and sends heartbeats until the context ends.
func (s *Works) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { s.informer.RunWithContext(ctx) })
	defer running.Wait()
	if !cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced) {
		return nil
	}
	s.config.Changed("", "")
	tick := s.config.Clock.NewTicker(max(s.config.Heartbeats.Interval/4, 50*time.Millisecond))
	defer tick.Stop()
	for {
		s.ask(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// of returns the ManifestWork of an object in a member, or nil.
func (s *Works) of(cluster, key string) *work { return s.get(cluster, nameOf(key)) }

func (s *Works) get(cluster, name string) *work {
	in, ok, err := s.informer.GetIndexer().GetByKey(cluster + "/" + name)
	c, isWork := in.(cached)
	if err != nil || !ok || !isWork {
		return nil
	}
	return c.work
}

// in returns the ManifestWorks of objects in a member.
func (s *Works) in(cluster string) []*work {
	found, err := s.informer.GetIndexer().ByIndex(cache.NamespaceIndex, cluster)
	if err != nil {
		return nil
	}
	var out []*work
	for _, in := range found {
		if c, ok := in.(cached); ok && c.purpose != purposeHeartbeat {
			out = append(out, c.work)
		}
	}
	slices.SortFunc(out, func(a, b *work) int { return cmp.Compare(a.key, b.key) })
	return out
}

func (s *Works) client(cluster string) dynamic.ResourceInterface {
	return s.config.Host.Resource(WorkResource).Namespace(cluster)
}

// errSuperseded reports that a ManifestWork has another version than the one that a change was decided on. Nothing was changed, and an event
// of that version follows.
var errSuperseded = errors.New("the ManifestWork changed meanwhile")

// write creates or replaces a ManifestWork.
func (s *Works) write(ctx context.Context, d *desired, nonce string) error {
	next := d.unstructured(nonce)
	now := s.get(d.cluster, d.name)
	if now == nil {
		_, err := s.client(d.cluster).Create(ctx, next, metav1.CreateOptions{FieldManager: v1alpha1.ManagedBy})
		if !apierrors.IsAlreadyExists(err) {
			return wrap("create", d, err)
		}
		// The cache is behind, or the label by which ManifestWorks are watched was removed.
		found, e := s.client(d.cluster).Get(ctx, d.name, metav1.GetOptions{})
		switch {
		case e != nil:
			return wrap("read", d, e)
		case d.purpose != purposeRead:
			now = parseWork(found)
		case found.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy:
			return errSuperseded
		default: // A question is only asked with a new ManifestWork, because the answer that an object is missing has no nonce.
			return wrap("create", d, err)
		}
	}
	// A replacement without the finalizers would let the ManifestWork go before the agent has removed the object, so only what the engine
	// owns is written.
	return wrap("update", d, s.patch(ctx, now, []map[string]any{
		{"op": "add", "path": "/metadata/annotations", "value": next.GetAnnotations()},
		{"op": "add", "path": "/metadata/labels", "value": next.GetLabels()},
		{"op": "add", "path": "/spec", "value": next.Object["spec"]},
	}))
}

// patch changes a ManifestWork if its spec is still the given one: a request without an answer, or one of an earlier leader, that arrives
// late must not replace a later version.
func (s *Works) patch(ctx context.Context, now *work, patch []map[string]any) error {
	raw, err := json.Marshal(append([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": string(now.uid)},
		{"op": "test", "path": "/metadata/generation", "value": now.generation},
	}, patch...))
	if err != nil {
		return err
	}
	_, err = s.client(now.cluster).Patch(ctx, now.name, types.JSONPatchType, raw, metav1.PatchOptions{FieldManager: v1alpha1.ManagedBy})
	if !apierrors.IsInvalid(err) {
		return err
	}
	// The host refuses a failed test and an invalid content alike.
	live, e := s.client(now.cluster).Get(ctx, now.name, metav1.GetOptions{})
	if e == nil && (live.GetUID() != now.uid || live.GetGeneration() != now.generation) {
		return errSuperseded
	}
	return err
}

// suspend makes the agent only report on the object of a ManifestWork.
func (s *Works) suspend(ctx context.Context, w *work) error {
	return wrap("suspend", &desired{cluster: w.cluster, name: w.name}, s.again(ctx, w, []map[string]any{
		{"op": "add", "path": annotationPath(annotationPurpose), "value": string(purposeHold)},
		{"op": "add", "path": "/spec/manifestConfigs/0/updateStrategy", "value": map[string]any{"type": readOnly}},
	}))
}

// refresh makes the agent report on a ManifestWork again, whose content stays as it is.
func (s *Works) refresh(ctx context.Context, w *work) error {
	return wrap("refresh", &desired{cluster: w.cluster, name: w.name}, s.again(ctx, w, nil))
}

// again gives a ManifestWork a new nonce and other changes.
func (s *Works) again(ctx context.Context, w *work, changes []map[string]any) error {
	nonce := s.nonce(w.cluster)
	return s.patch(ctx, w, append(changes,
		map[string]any{"op": "add", "path": annotationPath(annotationNonce), "value": nonce},
		map[string]any{"op": "add", "path": "/spec/manifestConfigs/0/conditionRules/0/messageExpression", "value": reportMessage(nonce)}))
}

func annotationPath(key string) string {
	return "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1")
}

// Suspended reports whether the agent of a member has confirmed for every ManifestWork that it does not change the object any more.
func (s *Works) Suspended(cluster string) bool {
	return !slices.ContainsFunc(s.in(cluster), func(w *work) bool { return !w.readOnly || w.deleting || !w.applied })
}

// sighted records that an object was found in a member, and makes the engine handle it again.
func (s *Works) sighted(at place) {
	s.mu.Lock()
	s.sightings[at]++
	s.mu.Unlock()
	s.config.Changed(at.cluster, at.key)
}

// seenTimes returns how often an object was found in a member by Absent.
func (s *Works) seenTimes(at place) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.sightings[at]
}

// forget deletes a ManifestWork that asked a question.
func (s *Works) forget(ctx context.Context, cluster, name string) {
	err := s.client(cluster).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // it is deleted when it is old
		s.config.Log.V(1).Info("ManifestWork was not deleted", "member", cluster, "name", name, "because", err.Error())
	}
}

func wrap(action string, d *desired, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s ManifestWork %s/%s: %w", action, d.cluster, d.name, err)
}

// remove deletes a ManifestWork, which makes the agent delete the object if it owns it.
func (s *Works) remove(ctx context.Context, w *work) error {
	err := s.client(w.cluster).Delete(ctx, w.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &w.uid, ResourceVersion: &w.resourceVersion}})
	switch {
	case apierrors.IsConflict(err):
		return errSuperseded
	case err == nil || apierrors.IsNotFound(err):
		return nil
	}
	return fmt.Errorf("delete ManifestWork %s/%s: %w", w.cluster, w.name, err)
}
