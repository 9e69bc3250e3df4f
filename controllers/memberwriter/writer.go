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
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// DefaultPerMember is the number of concurrent writes into each member. A slow member delays only its own writes.
const DefaultPerMember = 8

const (
	// attempts is how often the write of one object into one member is tried, each time against the current revision.
	attempts = 3
	// retryPause is the pause between two attempts.
	retryPause = 100 * time.Millisecond
	// requestTimeout bounds one request. Writes into a slower member are left to KubeFed.
	requestTimeout = 5 * time.Second
	// clientLifetime is how long a client is used before its token is read again.
	clientLifetime = time.Minute
	// tokenKey is the key in KubeFed's Secrets.
	tokenKey = "token"
)

// Writer writes into members. It runs on the leader.
type Writer struct {
	// Members returns what the members have, and Host the current Federated objects.
	Members interface {
		Clusters() []federation.Cluster
		Observe(cluster, key string) federation.Observation
	}
	Host interface {
		Get(key string) (*federation.Object, bool)
	}
	// Secrets accesses the host's Secrets; KubeFed's are in KubeFedNamespace.
	Secrets          typedv1.SecretsGetter
	KubeFedNamespace string
	// Behind reports whether KubeFed has so much to propagate that urgent objects are written directly at once.
	Behind func() bool
	// Timeout is how long KubeFed may take for an urgent object although it does not seem to be behind. It may have
	// stopped working.
	Timeout time.Duration
	// PerMember is the number of concurrent writes into each member; 0 is DefaultPerMember.
	PerMember int
	// Pauses is the clock of Timeout, of the pauses between attempts and of the age of clients; nil means the real one.
	Pauses  clock.WithTicker
	Log     logr.Logger
	Metrics *Metrics

	// running are the workers of all members.
	running sync.WaitGroup

	mu sync.Mutex
	// serve starts the workers of a queue. Before Start it does nothing, and after Start has ended it shuts the queue
	// down.
	serve func(workqueue.TypedInterface[place])
	// queues has a queue for each member, with workers of its own once Start runs.
	queues map[string]workqueue.TypedInterface[place]
	// urgent are the urgent objects that are left to KubeFed for the time being, by key.
	urgent map[string]pendingObject
	// wanted are the objects that wait in the queues.
	wanted map[place]*federation.Object
	// sent are the writes that have not been observed yet.
	sent    map[place]sent
	clients map[string]client
}

// sent is a revision that was written, and the one observed before the write. While the observation is still the
// earlier one, it does not show what the member has: a change that was reverted at once would look as if there were
// nothing to do.
type sent struct{ onto, revision string }

type pendingObject struct {
	object *federation.Object
	since  time.Time
}

// place identifies an object in a member.
type place struct{ cluster, key string }

type client struct {
	dynamic dynamic.Interface
	// of is the registration that the client was created from.
	of     federation.Cluster
	before time.Time
}

// Prepare validates and initialises a writer.
func (w *Writer) Prepare() error {
	if w.Members == nil || w.Host == nil || w.Secrets == nil || w.Behind == nil || w.Metrics == nil || w.KubeFedNamespace == "" || w.Timeout <= 0 {
		return errors.New("memberwriter: Members, Host, Secrets, Behind, Metrics, Timeout and KubeFedNamespace are needed")
	}
	w.begin()
	return nil
}

func (w *Writer) begin() {
	if w.PerMember <= 0 {
		w.PerMember = DefaultPerMember
	}
	if w.Pauses == nil {
		w.Pauses = clock.RealClock{}
	}
	w.queues, w.serve = map[string]workqueue.TypedInterface[place]{}, func(workqueue.TypedInterface[place]) {}
	w.urgent, w.wanted, w.sent, w.clients = map[string]pendingObject{}, map[place]*federation.Object{}, map[place]sent{}, map[string]client{}
}

// Send schedules the writes of an urgent object, which was just written to the host, into its members: at once if KubeFed
// is behind (see Behind), otherwise as soon as KubeFed is behind or after Timeout, unless KubeFed has propagated it. It does
// not block.
func (w *Writer) Send(o *federation.Object) {
	if w.Behind() {
		w.enqueue(o)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.urgent[o.Key()] = pendingObject{o, w.Pauses.Now()}
}

// overdue enqueues the objects that KubeFed has not propagated in time, and removes those that it has.
func (w *Writer) overdue() {
	behind, now := w.Behind(), w.Pauses.Now()
	var late []*federation.Object
	w.mu.Lock()
	for key, e := range w.urgent {
		newest := w.newest(e.object)
		switch {
		case newest == nil || newest.Propagation.Seen:
			delete(w.urgent, key)
		case behind || now.Sub(e.since) >= w.Timeout:
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
		if !c.Engine.IsKubeFed() || c.Quarantined || c.Leaving || o.SpecIn(c.Name) == nil {
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

// queueOf returns the queue of a member, and creates it the first time. The caller holds w.mu.
func (w *Writer) queueOf(cluster string) workqueue.TypedInterface[place] {
	q := w.queues[cluster]
	if q == nil {
		q = workqueue.NewTyped[place]()
		w.queues[cluster] = q
		w.serve(q)
	}
	return q
}

// release shuts down the queues of members that are no longer registered.
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
					w.process(ctx, at)
					q.Done(at)
				}
			})
		}
	}
	for _, q := range w.queues {
		w.serve(q)
	}
	w.mu.Unlock()
	look := w.Pauses.NewTicker(min(w.Timeout, time.Second))
	defer look.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-look.C():
			w.overdue()
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

// process writes an object into a member, unless the member has it by then.
func (w *Writer) process(ctx context.Context, at place) {
	w.mu.Lock()
	o := w.wanted[at]
	delete(w.wanted, at)
	w.mu.Unlock()
	for i := 0; o != nil && i < attempts && ctx.Err() == nil; i++ {
		if i > 0 {
			select {
			case <-ctx.Done():
				return
			case <-w.Pauses.After(retryPause):
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
		w.Log.V(1).Info("Object was not written directly; KubeFed will write it", "member", at.cluster, "object", at.key, "because", err.Error())
		if !apierrors.IsInvalid(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err) {
			w.Metrics.failures.WithLabelValues(at.cluster).Inc()
			return
		}
	}
	if o != nil {
		w.Metrics.failures.WithLabelValues(at.cluster).Inc()
	}
}

// newest returns the object as the host has it now, which may be newer than the one to be written, or the latter if the
// cache is older. It returns nil if the object was deleted, or may have been: an object that was created under the same
// name has another content, and the deleted object's content, which may have admitted everybody, must not be written
// over it.
func (w *Writer) newest(o *federation.Object) *federation.Object {
	now, ok := w.Host.Get(o.Key())
	if !ok {
		return nil
	}
	if now.Meta.UID != o.Meta.UID {
		if c, err := resourceversion.CompareResourceVersion(o.Meta.ResourceVersion, now.Meta.ResourceVersion); err != nil || c <= 0 {
			return nil
		}
		return o // The cache still has the earlier object.
	}
	if now.Meta.Generation < o.Meta.Generation {
		return o
	}
	return now
}

// errNothing means that there is nothing to write.
var errNothing = errors.New("there is nothing to write")

func (w *Writer) write(ctx context.Context, at place, o *federation.Object) error {
	clusters := w.Members.Clusters()
	i := slices.IndexFunc(clusters, func(c federation.Cluster) bool { return c.Name == at.cluster })
	if i < 0 || !clusters[i].Engine.IsKubeFed() || clusters[i].Quarantined || clusters[i].Leaving {
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
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c, err := w.client(ctx, clusters[i])
	if err != nil {
		return err
	}
	var to dynamic.ResourceInterface = c.Resource(o.Kind.TargetResource)
	if o.Kind.Namespace != "" {
		to = c.Resource(o.Kind.TargetResource).Namespace(o.Kind.Namespace)
	}
	// It is recorded before the write, because it is not always known whether a failed write was made.
	w.recordSent(at, sent{seen.Object.Label, o.RevisionIn(at.cluster)})
	_, err = to.Patch(ctx, o.Meta.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if apierrors.IsUnauthorized(err) {
		w.forget(at.cluster)
	}
	if refused := apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) &&
		!apierrors.IsInternalError(err); refused {
		w.recordSent(at, sent{})
	}
	return err
}

func (w *Writer) recordSent(at place, s sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s == (sent{}) {
		delete(w.sent, at)
		return
	}
	w.sent[at] = s
}

// FieldManager is the field manager of the writes in the members, the same as that of the engine direct, so that a member
// can be moved to that engine. The account is KubeFed's, which the guard admits.
const FieldManager = "acp-adapter-direct"

// patchOf returns the patch from what was observed, or written since, to what an object has for a member. Only an
// existing, unmodified policy of ACP is changed: KubeFed creates new ones, and repairs those that were changed manually.
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

// client returns a client of a member with KubeFed's token.
func (w *Writer) client(ctx context.Context, c federation.Cluster) (dynamic.Interface, error) {
	w.mu.Lock()
	have, ok := w.clients[c.Name]
	w.mu.Unlock()
	if ok && w.Pauses.Now().Before(have.before) && have.of.SameConnection(c) {
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
	w.clients[c.Name] = client{made, c, w.Pauses.Now().Add(clientLifetime)}
	return made, nil
}

func (w *Writer) forget(cluster string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.clients, cluster)
}
