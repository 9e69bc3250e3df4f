package webhook

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/acp-io/acp/internal/externalchanges/event"
)

// PortalUser is the portal's user in the host cluster, as deploy/rbac/host defines it. The portal writes its changes to
// the ledger itself, with the names of people.
const PortalUser = "system:serviceaccount:acp-system:acp-portal"

// AdapterUser is the adapter's user. The adapter changes only finalizers and statuses.
const AdapterUser = "system:serviceaccount:acp-system:acp-adapter"

// User returns the user name that API servers give to a service account.
func User(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

func (h *Handler) own() []string {
	if h.Own == nil {
		return []string{PortalUser, AdapterUser}
	}
	return h.Own
}

// change returns the change that an admitted request makes, and false if the change is not reported.
func (h *Handler) change(req *ctrladmission.Request) (event.Change, bool) {
	if req.DryRun != nil && *req.DryRun || req.SubResource != "" || !slices.Contains(event.Kinds, req.Kind.Kind) ||
		slices.Contains(h.own(), req.UserInfo.Username) {
		return event.Change{}, false
	}
	old, now, ok := object(req.OldObject.Raw), object(req.Object.Raw), true
	c := event.Change{At: h.Now(), User: req.UserInfo.Username, Kind: req.Kind.Kind, Name: req.Name, Operation: event.Operation(req.Operation)}
	var of *unstructured.Unstructured
	switch req.Operation {
	case admissionv1.Create:
		of = now
	case admissionv1.Update:
		of, ok = now, old != nil && now != nil && old.GetGeneration() != now.GetGeneration()
	case admissionv1.Delete:
		of, ok = old, old != nil && old.GetDeletionTimestamp() == nil
	}
	if of == nil || !ok {
		return event.Change{}, false
	}
	c.UID, c.Generation = string(of.GetUID()), of.GetGeneration()
	if c.Name == "" {
		c.Name = of.GetName()
	}
	if req.Operation != admissionv1.Delete {
		digest, err := event.Digest(of.Object)
		if err != nil {
			return event.Change{}, false
		}
		c.Digest = digest
	}
	return c, c.UID != "" && c.User != ""
}

func object(raw []byte) *unstructured.Unstructured {
	var fields map[string]any
	if len(raw) == 0 || utiljson.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return &unstructured.Unstructured{Object: fields}
}

const (
	// maxQueued bounds the changes that wait to be reported. Further changes are dropped: the portal notices them, but
	// not who made them.
	maxQueued      = 1000
	reportQPS      = 20
	reportTimeout  = 5 * time.Second
	reportAttempts = 3
)

// Reporter creates the Events for changes. No review waits for it.
type Reporter struct {
	clients kubernetes.Interface
	// namespace is where the Events are created.
	namespace, instance string
	changes             chan event.Change
	dropped             atomic.Int64
}

// NewReporter returns a Reporter that creates Events in the namespace as the given instance.
func NewReporter(config *rest.Config, namespace, instance string) (*Reporter, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = reportQPS, 5*reportQPS
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	return &Reporter{clients: clients, namespace: namespace, instance: instance, changes: make(chan event.Change, maxQueued)}, nil
}

// Report queues a change, or drops it if the queue is full.
func (t *Reporter) Report(c event.Change) {
	select {
	case t.changes <- c:
	default:
		t.dropped.Add(1)
	}
}

// NeedLeaderElection returns false, because every replica answers reviews.
func (t *Reporter) NeedLeaderElection() bool { return false }

// Start creates Events until the context ends.
func (t *Reporter) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-t.changes:
			if err := t.create(ctx, c); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).
					Error(err, "The Event for a change could not be created; the ledger will not name its user", "kind", c.Kind, "name", c.Name)
			}
			if n := t.dropped.Swap(0); n > 0 {
				log.FromContext(ctx).Info("Too many changes at once; the ledger will not name the users of some", "dropped", n)
			}
		}
	}
}

func (t *Reporter) create(ctx context.Context, c event.Change) (err error) {
	for range reportAttempts {
		once, cancel := context.WithTimeout(ctx, reportTimeout)
		_, err = t.clients.EventsV1().Events(t.namespace).Create(once, event.Of(c, t.namespace, t.instance), metav1.CreateOptions{})
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}
