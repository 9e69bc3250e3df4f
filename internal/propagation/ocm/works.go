package ocm

import (
	"cmp"
	"context"
	"crypto/rand"
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

// Heartbeats configures how a member is detected whose agent does not work.
type Heartbeats struct {
	// Interval is the time from an answer to the next question.
	Interval time.Duration
	// Timeout is how long an answer may take. A member without one counts as unreachable.
	Timeout time.Duration
}

// DefaultHeartbeats detects a stopped agent within 40 seconds. Each heartbeat is two writes on the host.
var DefaultHeartbeats = Heartbeats{Interval: 10 * time.Second, Timeout: 30 * time.Second}

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

// Works are the ManifestWorks of ACP on the host.
type Works struct {
	config   WorksConfig
	informer cache.SharedIndexInformer

	mu    sync.RWMutex
	beats map[string]*beat
	// contents maps a member's object to the version of it that was last seen with a known revision.
	contents map[place]content
}

// beat is the state of the heartbeats of a member.
type beat struct {
	// nonce is the last question.
	nonce string
	// since is the time of the first question without an answer, or zero, and next is the time of the next question.
	since, next time.Time
	// alive reports that the agent answered in time, and silent that it did not. Both are false before the first answer.
	alive, silent bool
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
	w := &Works{config: config, beats: map[string]*beat{}, contents: map[place]content{}}
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
	if w.found() == w.revision && w.revision != "" {
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
	s.mu.Unlock()
	s.config.Changed(w.cluster, w.key)
}

// beaten records the answer to a heartbeat. The agent need not have found the namespace: that it answered is what counts.
func (s *Works) beaten(w *work) {
	s.mu.Lock()
	b := s.beats[w.cluster]
	if b == nil || b.since.IsZero() || !w.answered() || w.nonce != b.nonce {
		s.mu.Unlock()
		return
	}
	found := !b.alive
	b.alive, b.silent, b.since, b.next = true, false, time.Time{}, s.config.Clock.Now().Add(s.config.Heartbeats.Interval)
	s.mu.Unlock()
	if found {
		s.config.Changed(w.cluster, "")
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

// ask sends the heartbeats that are due, and reports the members that did not answer in time.
func (s *Works) ask(ctx context.Context) {
	used := map[string]bool{}
	for _, c := range s.config.Members.Clusters() {
		if c.Engine != federation.EngineOCM {
			continue
		}
		used[c.Name] = true
		nonce, lost := s.question(c.Name)
		if lost {
			s.config.Changed(c.Name, "")
		}
		if nonce == "" {
			continue
		}
		d := heartbeat(c.Name)
		if err := s.write(ctx, &d, nonce); err != nil {
			s.config.Log.V(1).Info("Heartbeat was not written", "member", c.Name, "because", err.Error())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.beats {
		if !used[name] {
			delete(s.beats, name)
		}
	}
	for at := range s.contents {
		if !used[at.cluster] {
			delete(s.contents, at)
		}
	}
}

// question returns the nonce of the heartbeat that is due, or "", and whether the member is found not to answer.
func (s *Works) question(cluster string) (nonce string, lost bool) {
	now := s.config.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.beats[cluster]
	if b == nil {
		b = &beat{}
		s.beats[cluster] = b
	}
	if !b.since.IsZero() && !b.silent && now.Sub(b.since) > s.config.Heartbeats.Timeout {
		b.alive, b.silent, lost = false, true, true
	}
	if now.Before(b.next) {
		return "", lost
	}
	if b.since.IsZero() {
		b.since = now
	}
	// A question without an answer is repeated, because it may not have been written, or its ManifestWork was deleted.
	b.nonce, b.next = rand.Text(), now.Add(s.config.Heartbeats.Timeout)
	return b.nonce, lost
}

// alive reports whether the agent of a member answers, and whether that is known.
func (s *Works) alive(cluster string) (alive, known bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.beats[cluster]
	return b != nil && b.alive, b != nil && (b.alive || b.silent)
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

// write creates or replaces a ManifestWork.
func (s *Works) write(ctx context.Context, d *desired, nonce string) error {
	next := d.unstructured(nonce)
	now := s.get(d.cluster, d.name)
	if now == nil {
		_, err := s.client(d.cluster).Create(ctx, next, metav1.CreateOptions{FieldManager: v1alpha1.ManagedBy})
		// A question is only asked with a new ManifestWork, because the answer that an object is missing has no nonce.
		if !apierrors.IsAlreadyExists(err) || d.purpose == purposeRead {
			return wrap("create", d, err)
		}
	}
	// A replacement without the finalizers would let the ManifestWork go before the agent has removed the object, so only what the engine
	// owns is written.
	patch := []map[string]any{
		{"op": "add", "path": "/metadata/annotations", "value": next.GetAnnotations()},
		{"op": "add", "path": "/metadata/labels", "value": next.GetLabels()},
		{"op": "add", "path": "/spec", "value": next.Object["spec"]},
	}
	if now != nil {
		patch = append(patch, map[string]any{"op": "test", "path": "/metadata/uid", "value": string(now.uid)})
	}
	return wrap("update", d, s.patch(ctx, d.cluster, d.name, patch))
}

func (s *Works) patch(ctx context.Context, cluster, name string, patch []map[string]any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = s.client(cluster).Patch(ctx, name, types.JSONPatchType, raw, metav1.PatchOptions{FieldManager: v1alpha1.ManagedBy})
	return err
}

// suspend makes the agent only report on the object of a ManifestWork.
func (s *Works) suspend(ctx context.Context, w *work) error {
	nonce := rand.Text()
	annotation := func(k string) string { return "/metadata/annotations/" + strings.ReplaceAll(k, "/", "~1") }
	return wrap("suspend", &desired{cluster: w.cluster, name: w.name}, s.patch(ctx, w.cluster, w.name, []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": string(w.uid)},
		{"op": "add", "path": annotation(annotationPurpose), "value": string(purposeHold)},
		{"op": "add", "path": annotation(annotationNonce), "value": nonce},
		{"op": "add", "path": "/spec/manifestConfigs/0/updateStrategy", "value": map[string]any{"type": "ReadOnly"}},
		{"op": "add", "path": "/spec/manifestConfigs/0/conditionRules/0/messageExpression", "value": reportMessage(nonce)},
	}))
}

// Suspended reports whether the agent of a member has confirmed for every ManifestWork that it does not change the object any more.
func (s *Works) Suspended(cluster string) bool {
	return !slices.ContainsFunc(s.in(cluster), func(w *work) bool { return w.purpose.changes() || w.deleting || !w.applied })
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
	err := s.client(w.cluster).Delete(ctx, w.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &w.uid}})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("delete ManifestWork %s/%s: %w", w.cluster, w.name, err)
}
