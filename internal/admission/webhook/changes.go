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

// PortalUser is the portal's user in the host cluster by deploy/rbac/host. The portal writes its changes to the ledger
// itself, with the names of people.
const PortalUser = "system:serviceaccount:acp-system:acp-portal"

// AdapterUser is the adapter's. It changes finalizers and statuses only.
const AdapterUser = "system:serviceaccount:acp-system:acp-adapter"

// User is the name of a service account as the user that API servers know.
func User(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

func (h *Handler) own() []string {
	if h.Own == nil {
		return []string{PortalUser, AdapterUser}
	}
	return h.Own
}

// change reads what an admitted request changes; false: nothing that is told.
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
	// tellAtOnce bounds the changes that wait to be told. More are dropped: who changed those is unknown then, while that
	// they were changed is seen by the portal.
	tellAtOnce  = 1000
	tellQPS     = 20
	tellTimeout = 5 * time.Second
	tellTries   = 3
)

// Teller creates the Events of changes. Nothing waits for it.
type Teller struct {
	clients kubernetes.Interface
	// namespace is where the Events are created.
	namespace, instance string
	changes             chan event.Change
	dropped             atomic.Int64
}

// NewTeller returns a Teller that writes Events into the namespace as the given instance.
func NewTeller(config *rest.Config, namespace, instance string) (*Teller, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = tellQPS, 5*tellQPS
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	return &Teller{clients: clients, namespace: namespace, instance: instance, changes: make(chan event.Change, tellAtOnce)}, nil
}

// Tell takes a change, or drops it when too many wait.
func (t *Teller) Tell(c event.Change) {
	select {
	case t.changes <- c:
	default:
		t.dropped.Add(1)
	}
}

// NeedLeaderElection is false: every replica answers reviews.
func (t *Teller) NeedLeaderElection() bool { return false }

// Start tells until the context ends.
func (t *Teller) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-t.changes:
			if err := t.create(ctx, c); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Who changed an object does not come into the portal's ledger", "kind", c.Kind, "name", c.Name)
			}
			if n := t.dropped.Swap(0); n > 0 {
				log.FromContext(ctx).Info("Too many objects were changed at once; who changed some does not come into the portal's ledger", "dropped", n)
			}
		}
	}
}

func (t *Teller) create(ctx context.Context, c event.Change) (err error) {
	for range tellTries {
		once, cancel := context.WithTimeout(ctx, tellTimeout)
		_, err = t.clients.EventsV1().Events(t.namespace).Create(once, event.Of(c, t.namespace, t.instance), metav1.CreateOptions{})
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}
