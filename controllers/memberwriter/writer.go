package memberwriter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// DefaultPerMember is how many objects are written at the same time into each member. A member that is slow occupies only its
// own writes.
const DefaultPerMember = 8

const (
	// attempts at one object in one member, each onto what is seen there then.
	attempts = 3
	// pause between them.
	pause = 100 * time.Millisecond
	// limit of one request: a member that is slow is left to KubeFed.
	limit = 5 * time.Second
	// keep is how long a client is used before its token is looked at again.
	keep = time.Minute
	// tokenKey is the key in KubeFed's Secrets.
	tokenKey = "token"
)

// Writer writes into members. It runs on the leader.
type Writer struct {
	// Members tells what is there, Host the Federated objects as they are now.
	Members interface {
		Clusters() []federation.Cluster
		Observe(cluster, key string) federation.Observation
	}
	Host interface {
		Get(key string) (*federation.Object, bool)
	}
	// Secrets are those of the host; KubeFed's are in the namespace.
	Secrets          typedv1.SecretsGetter
	KubeFedNamespace string
	// Behind tells whether KubeFed is.
	Behind func() bool
	// Patience is how long KubeFed has for an urgent object while it does not seem to be behind: it may stand still.
	Patience time.Duration
	// PerMember is how many objects are written at the same time into each member; 0 is DefaultPerMember.
	PerMember int
	Log       logr.Logger
	Metrics   *Metrics

	// running are the workers of all members.
	running sync.WaitGroup

	mu sync.Mutex
	// serve starts the workers of a queue. Before Start it does nothing, and after Start has ended it shuts the queue down.
	serve func(workqueue.TypedInterface[place])
	// queues are what waits for each member, with workers of its own once Start runs.
	queues map[string]workqueue.TypedInterface[place]
	// urgent are the objects that KubeFed was trusted with, by key.
	urgent map[string]entrusted
	// wanted are the objects that wait in the queue.
	wanted map[place]*federation.Object
	// sent are the writes that were not seen yet.
	sent    map[place]sent
	clients map[string]client
}

// sent is a revision that was written, and the one that was seen there before. As long as that is still what is seen, what is there
// is not known from it: a change that was taken back at once would look as if there were nothing to do.
type sent struct{ onto, revision string }

type entrusted struct {
	object *federation.Object
	since  time.Time
}

// place is an object in a member.
type place struct{ cluster, key string }

type client struct {
	dynamic dynamic.Interface
	// of is what it was made of.
	of     federation.Cluster
	before time.Time
}

// Prepare completes a writer.
func (w *Writer) Prepare() error {
	if w.Members == nil || w.Host == nil || w.Secrets == nil || w.Behind == nil || w.Metrics == nil || w.KubeFedNamespace == "" || w.Patience <= 0 {
		return errors.New("direct: Members, Host, Secrets, Behind, Metrics, Patience and KubeFedNamespace are needed")
	}
	w.begin()
	return nil
}

func (w *Writer) begin() {
	if w.PerMember <= 0 {
		w.PerMember = DefaultPerMember
	}
	w.queues, w.serve = map[string]workqueue.TypedInterface[place]{}, func(workqueue.TypedInterface[place]) {}
	w.urgent, w.wanted, w.sent, w.clients = map[string]entrusted{}, map[place]*federation.Object{}, map[place]sent{}, map[string]client{}
}

// Send has an urgent object that was just written to the host written into its members: now if KubeFed is behind, or when KubeFed was not
// done with it in time. It does not wait for that.
func (w *Writer) Send(o *federation.Object) {
	if w.Behind() {
		w.enqueue(o)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.urgent[o.Key()] = entrusted{o, time.Now()}
}

// overdue sends what KubeFed was trusted with and has not done, and forgets what it has.
func (w *Writer) overdue(now time.Time) {
	behind := w.Behind()
	var late []*federation.Object
	w.mu.Lock()
	for key, e := range w.urgent {
		newest := w.newest(e.object)
		switch {
		case newest == nil || newest.Propagation.Seen:
			delete(w.urgent, key)
		case behind || now.Sub(e.since) >= w.Patience:
			delete(w.urgent, key)
			late = append(late, newest)
		}
	}
	for at, s := range w.sent {
		if there := w.Members.Observe(at.cluster, at.key).Object; there == nil || there.Label != s.onto {
			delete(w.sent, at)
		}
	}
	w.mu.Unlock()
	for _, o := range late {
		w.enqueue(o)
	}
}

func (w *Writer) enqueue(o *federation.Object) {
	for _, c := range w.Members.Clusters() {
		if c.Held || c.Leaving || o.SpecIn(c.Name) == nil {
			continue
		}
		at := place{c.Name, o.Key()}
		w.mu.Lock()
		if has := w.wanted[at]; has == nil || has.Meta.UID != o.Meta.UID || has.Meta.Generation <= o.Meta.Generation {
			w.wanted[at] = o
		}
		w.queueOf(c.Name).Add(at)
		w.mu.Unlock()
	}
}

// queueOf returns the queue of a member, which it makes the first time. w.mu is held.
func (w *Writer) queueOf(cluster string) workqueue.TypedInterface[place] {
	q := w.queues[cluster]
	if q == nil {
		q = workqueue.NewTyped[place]()
		w.queues[cluster] = q
		w.serve(q)
	}
	return q
}

// release ends the queues of members that are no longer registered.
func (w *Writer) release() {
	clusters := w.Members.Clusters()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, q := range w.queues {
		if !slices.ContainsFunc(clusters, func(c federation.Cluster) bool { return c.Name == name }) {
			q.ShutDown()
			delete(w.queues, name)
		}
	}
}

// Start writes until the context ends.
func (w *Writer) Start(ctx context.Context) error {
	w.mu.Lock()
	w.serve = func(q workqueue.TypedInterface[place]) {
		for range w.PerMember {
			w.running.Go(func() {
				for {
					at, over := q.Get()
					if over {
						return
					}
					w.one(ctx, at)
					q.Done(at)
				}
			})
		}
	}
	for _, q := range w.queues {
		w.serve(q)
	}
	w.mu.Unlock()
	look := time.NewTicker(min(w.Patience, time.Second))
	defer look.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-look.C:
			w.overdue(now)
			w.release()
		}
	}
	w.mu.Lock()
	w.serve = func(q workqueue.TypedInterface[place]) { q.ShutDown() }
	for _, q := range w.queues {
		q.ShutDown()
	}
	w.mu.Unlock()
	w.running.Wait()
	return nil
}

// one writes an object into a member, unless that has it by then.
func (w *Writer) one(ctx context.Context, at place) {
	w.mu.Lock()
	o := w.wanted[at]
	delete(w.wanted, at)
	w.mu.Unlock()
	for i := 0; o != nil && i < attempts && ctx.Err() == nil; i++ {
		if i > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
		if o = w.newest(o); o == nil {
			return
		}
		err := w.write(ctx, at, o)
		switch {
		case errors.Is(err, errNothing):
			return
		case err == nil:
			w.Metrics.writes.WithLabelValues(at.cluster).Inc()
			return
		}
		w.Log.V(1).Info("Not written directly, KubeFed will", "member", at.cluster, "object", at.key, "because", err.Error())
		if !apierrors.IsInvalid(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err) {
			w.Metrics.failures.WithLabelValues(at.cluster).Inc()
			return
		}
	}
	if o != nil {
		w.Metrics.failures.WithLabelValues(at.cluster).Inc()
	}
}

// newest returns what the host has now of an object, which may be more than was to be written; the cache may also be behind what
// was written. It returns nil when the object was deleted, or may have been: another one of its name says something else, and
// what the deleted one said, perhaps that everybody is let in, must not be written over it.
func (w *Writer) newest(o *federation.Object) *federation.Object {
	now, ok := w.Host.Get(o.Key())
	if !ok {
		return nil
	}
	if now.Meta.UID != o.Meta.UID {
		if c, err := resourceversion.CompareResourceVersion(o.Meta.ResourceVersion, now.Meta.ResourceVersion); err != nil || c <= 0 {
			return nil
		}
		return o // the cache still has the one before
	}
	if now.Meta.Generation < o.Meta.Generation {
		return o
	}
	return now
}

// errNothing: there is nothing to write there.
var errNothing = errors.New("there is nothing to write")

func (w *Writer) write(ctx context.Context, at place, o *federation.Object) error {
	clusters := w.Members.Clusters()
	i := slices.IndexFunc(clusters, func(c federation.Cluster) bool { return c.Name == at.cluster })
	if i < 0 || clusters[i].Held || clusters[i].Leaving {
		return errNothing
	}
	seen := w.Members.Observe(at.cluster, at.key)
	w.mu.Lock()
	last := w.sent[at]
	w.mu.Unlock()
	patch, err := patchOf(o, at.cluster, seen, last)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := w.client(ctx, clusters[i])
	if err != nil {
		return err
	}
	var to dynamic.ResourceInterface = c.Resource(o.Kind.TargetResource)
	if o.Kind.Namespace != "" {
		to = c.Resource(o.Kind.TargetResource).Namespace(o.Kind.Namespace)
	}
	w.note(at, sent{seen.Object.Label, o.RevisionIn(at.cluster)}) // before it is: whether a write that fails was done is not always known
	_, err = to.Patch(ctx, o.Meta.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if apierrors.IsUnauthorized(err) {
		w.forget(at.cluster)
	}
	if refused := apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsInternalError(err); refused {
		w.note(at, sent{})
	}
	return err
}

func (w *Writer) note(at place, s sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s == (sent{}) {
		delete(w.sent, at)
		return
	}
	w.sent[at] = s
}

// FieldManager is who wrote, as managedFields in the members tell it; the account is KubeFed's, which the guard lets in.
const FieldManager = "acp-adapter-direct"

// patchOf turns what was seen, or what was written since, into what an object has for a member. Only a policy of ours that is there is
// changed: KubeFed makes new ones, and mends those that a hand changed.
func patchOf(o *federation.Object, cluster string, seen federation.Observation, last sent) ([]byte, error) {
	spec, labels := o.SpecIn(cluster), maps.Clone(o.TemplateLabels)
	maps.Copy(labels, o.Overrides[cluster].Labels)
	there := seen.Object
	if !seen.Reachable || there == nil || !there.Managed || there.Label == "" || there.Label != there.Revision || spec == nil {
		return nil, errNothing
	}
	from := there.Label
	if last.onto == from {
		from = last.revision
	}
	if labels[v1alpha1.LabelRevision] == from {
		return nil, errNothing
	}
	type op struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	path := func(label string) string {
		return "/metadata/labels/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(label)
	}
	ops := []op{{"test", path(v1alpha1.LabelRevision), from}, {"replace", "/spec", spec}}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		ops = append(ops, op{"add", path(k), labels[k]})
	}
	out, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("write %s into %s: %w", o.Key(), cluster, err)
	}
	return out, nil
}

// client of a member, with KubeFed's token.
func (w *Writer) client(ctx context.Context, c federation.Cluster) (dynamic.Interface, error) {
	w.mu.Lock()
	have, ok := w.clients[c.Name]
	w.mu.Unlock()
	if ok && time.Now().Before(have.before) && have.of.SameConnection(c) {
		return have.dynamic, nil
	}
	secret, err := w.Secrets.Secrets(w.KubeFedNamespace).Get(ctx, c.Secret, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read KubeFed's token of %s: %w", c.Name, err)
	}
	config, err := federation.RESTConfig(c, string(secret.Data[tokenKey]))
	if err != nil {
		return nil, err
	}
	made, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", c.Name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients[c.Name] = client{made, c, time.Now().Add(keep)}
	return made, nil
}

func (w *Writer) forget(cluster string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.clients, cluster)
}
