package watch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
)

// messageValid is the message of Cilium's operator for a valid policy.
const messageValid = "Policy validation succeeded"

// validity writes the condition Valid of policies, asynchronously to their enforcement.
type validity struct {
	client dynamic.ResourceInterface
	log    *slog.Logger
	queue  workqueue.TypedRateLimitingInterface[string]

	mu    sync.Mutex
	known map[string]string // name -> message, which is empty if it is valid
}

func newValidity(client dynamic.ResourceInterface, log *slog.Logger) *validity {
	return &validity{
		client: client, log: log, known: map[string]string{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
}

func (v *validity) set(name string, err error) {
	v.mu.Lock()
	v.known[name] = ""
	if err != nil {
		v.known[name] = err.Error()
	}
	v.mu.Unlock()
	v.queue.Add(name)
}

func (v *validity) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, v.queue.ShutDown)
	defer stop()
	for {
		name, closed := v.queue.Get()
		if closed {
			return
		}
		if err := v.write(ctx, name); err != nil && ctx.Err() == nil {
			v.log.Warn("cannot write the condition Valid", "policy", name, "error", err)
			v.queue.AddRateLimited(name)
		} else {
			v.queue.Forget(name)
		}
		v.queue.Done(name)
	}
}

func (v *validity) write(ctx context.Context, name string) error {
	u, err := v.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		v.mu.Lock()
		delete(v.known, name)
		v.mu.Unlock()
		return nil
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	message, ok := v.known[name]
	v.mu.Unlock()
	if !ok {
		return nil
	}
	state := "True"
	if message != "" {
		state = "False"
	} else {
		message = messageValid
	}
	if !setValid(u, state, message, time.Now()) {
		return nil
	}
	if _, err = v.client.UpdateStatus(ctx, u, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// setValid sets the condition and reports whether it changed. The transition time changes only with the state.
func setValid(u *unstructured.Unstructured, state, message string, now time.Time) bool {
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		conditions = nil
	}
	wanted := map[string]any{
		"type": string(ciliumv2.PolicyConditionValid), "status": state, "message": message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339),
	}
	for i, c := range conditions {
		present, ok := c.(map[string]any)
		if !ok || present["type"] != wanted["type"] {
			continue
		}
		if present["status"] == state && present["message"] == message {
			return false
		}
		if present["status"] == state {
			wanted["lastTransitionTime"] = present["lastTransitionTime"]
		}
		conditions[i] = wanted
		return unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions") == nil
	}
	return unstructured.SetNestedSlice(u.Object, append(conditions, wanted), "status", "conditions") == nil
}
