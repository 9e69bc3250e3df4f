package direct_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/propagation/direct"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

// TestLateChangeWhileAMemberMoves checks that a change of the engine that arrives after KubeFed has written a later version of the record
// does not undo that version: not for a moment, as the member's watch shows.
func TestLateChangeWhileAMemberMoves(t *testing.T) {
	f := shared
	eventually.NilWithin(t, timeout, "the members are read", func() error {
		if o := f.read.Observe("m1", ""); !o.Reachable {
			return errors.New(o.Message.Text)
		}
		return nil
	})
	f.registerWith(t, federation.PusherSecretName("m1"))
	defer f.registerWith(t, federation.DirectSecretName("m1"))
	for _, c := range []struct {
		name string
		// first is recorded and written, and late is recorded then; "" places the object nowhere. last is recorded, and written by
		// KubeFed, when the engine is about to write late.
		first, late, last string
	}{
		{"revoked", "888", "889", "887"},
		{"placed-again", "888", "", "887"},
		{"created", "", "889", "887"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &late{T: t, fleet: f, name: v1alpha1.ObjectPrefix + "moving-" + c.name}
			f.mu.Lock()
			f.engine = m.start()
			f.mu.Unlock()
			m.record(c.first)
			m.seen(c.first)
			versions := m.follow()
			m.before(func() {
				m.record(c.last)
				m.write(c.last)
			})
			m.record(c.late)
			m.untilLanded()
			m.seen(c.last)
			seen := versions()
			if len(seen) == 0 {
				t.Error("the watch showed nothing")
			}
			for _, v := range seen {
				if v != enforcer.Revision(m.spec(c.last)) {
					t.Errorf("the member had %s, want only what was recorded last", v)
				}
			}
			m.record("")
			m.seen("")
		})
	}
}

// registerWith makes the registration of m1 name a Secret of KubeFed or of the engine.
func (f *fleet) registerWith(t *testing.T, secret string) {
	t.Helper()
	patch := []byte(`{"spec":{"secretRef":{"name":"` + secret + `"}}}`)
	_, err := f.hostObjects.Resource(federation.ClusterResource).Namespace(kubeFedNamespace).Patch(context.WithoutCancel(t.Context()), "m1",
		types.MergePatchType, patch, metav1.PatchOptions{})
	f.must(t, err)
	eventually.NilWithin(t, timeout, "the registration is read", func() error {
		if c, _ := f.read.Cluster("m1"); c.Secret != secret {
			return errors.New(c.Secret)
		}
		return nil
	})
}

// late is an engine whose next change in m1 is delayed until something else has happened.
type late struct {
	*testing.T
	*fleet
	name string

	mu   sync.Mutex
	hook func()
	// landed reports whether the delayed change was answered.
	landed bool
}

// start starts an engine that calls the hook before a change in a member.
func (m *late) start() *direct.Engine {
	m.Helper()
	metrics, err := direct.NewMetrics(nil)
	m.must(m.T, err)
	engine, err := direct.New(direct.Config{Of: "policies", Host: m.read, Members: m.read, Clients: lateClients{m.clients, m}, Revision: enforcer.Revision,
		Log: logr.Discard(), Metrics: metrics})
	m.must(m.T, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- engine.Start(ctx) }()
	m.Cleanup(func() {
		cancel()
		m.must(m.T, <-ended)
	})
	return engine
}

// before sets what happens before the next change.
func (m *late) before(hook func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

// call calls the hook before the next change, and returns a function that has to be called after it.
func (m *late) call() (answered func()) {
	m.mu.Lock()
	hook := m.hook
	m.hook = nil
	m.mu.Unlock()
	if hook == nil {
		return func() {}
	}
	hook()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.landed = true
	}
}

// untilLanded waits until the delayed change was answered.
func (m *late) untilLanded() {
	m.Helper()
	eventually.NilWithin(m.T, timeout, "the delayed change was answered", func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.landed {
			return errors.New("it was not")
		}
		return nil
	})
}

func (m *late) spec(app string) map[string]any {
	return map[string]any{"endpointSelector": map[string]any{"matchLabels": map[string]any{"app": "redis"}},
		"ingress": []any{map[string]any{"fromEndpoints": []any{map[string]any{"matchLabels": map[string]any{"app": app}}}}}}
}

func (m *late) labels(app string) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelRevision: enforcer.Revision(m.spec(app))}
}

// record records the policy that admits an application in m1, or that is placed nowhere for "".
func (m *late) record(app string) {
	m.Helper()
	next := &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: m.name, Labels: m.labels(app),
		Annotations: map[string]string{federation.AnnotationEverPlaced: "m1"}}, TemplateLabels: m.labels(app), TemplateSpec: m.spec(app)}
	if app != "" {
		next.Placement = []string{"m1"}
	}
	eventually.NilWithin(m.T, timeout, "the object is recorded", func() error {
		if e, ok := m.store.Get(m.name); ok {
			next.Meta.ResourceVersion, next.Meta.UID, next.Meta.Finalizers = e.Meta.ResourceVersion, e.Meta.UID, e.Meta.Finalizers
		}
		_, err := m.store.Apply(context.WithoutCancel(m.Context()), next)
		return err
	})
}

// write writes the policy into m1 as KubeFed does.
func (m *late) write(app string) {
	m.Helper()
	policies := m.members["m1"].Resource(federation.CiliumPolicy.TargetResource)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": m.spec(app)}}
	u.SetGroupVersionKind(federation.CiliumPolicy.Target)
	u.SetName(m.name)
	u.SetLabels(m.labels(app))
	live, err := policies.Get(m.Context(), m.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = policies.Create(m.Context(), u, metav1.CreateOptions{})
	} else if err == nil {
		u.SetResourceVersion(live.GetResourceVersion())
		_, err = policies.Update(m.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		m.Error(err)
	}
}

// seen waits until m1 has the policy that admits an application, and the engine has handled it.
func (m *late) seen(app string) {
	m.Helper()
	eventually.NilWithin(m.T, timeout, "m1 has what admits "+app, func() error {
		o, _ := m.store.Get(m.name)
		seen := m.read.Observe("m1", m.name)
		switch {
		case o == nil || !seen.Reachable:
			return errors.New("it cannot be read")
		case (seen.Object == nil) != (app == "") || seen.Object != nil && seen.Object.Revision != enforcer.Revision(m.spec(app)):
			return fmt.Errorf("it has %+v", seen.Object)
		}
		return nil
	})
}

// follow records every version of the policy in m1 from now on, until the returned function is called, which returns their revisions; "" is a
// deletion.
func (m *late) follow() func() []string {
	m.Helper()
	policies := m.members["m1"].Resource(federation.CiliumPolicy.TargetResource)
	list, err := policies.List(m.Context(), metav1.ListOptions{})
	m.must(m.T, err)
	w, err := policies.Watch(m.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "metadata.name=" + m.name})
	m.must(m.T, err)
	var out []string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			switch {
			case !ok: // The watch was stopped.
			case e.Type == watch.Deleted:
				out = append(out, "")
			default:
				spec, _, _ := unstructured.NestedMap(u.Object, "spec")
				out = append(out, enforcer.Revision(spec))
			}
		}
	}()
	return func() []string {
		w.Stop()
		<-ended
		return out
	}
}

// lateClients are clients that call the hook before a change.
type lateClients struct {
	*direct.Clients
	m *late
}

func (c lateClients) Of(ctx context.Context, cluster federation.Cluster) (dynamic.Interface, error) {
	client, err := c.Clients.Of(ctx, cluster)
	return lateClient{client, c.m}, err
}

type lateClient struct {
	dynamic.Interface
	m *late
}

func (c lateClient) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return lateResource{c.Interface.Resource(r), c.m}
}

type lateResource struct {
	dynamic.NamespaceableResourceInterface
	m *late
}

func (r lateResource) Patch(ctx context.Context, name string, t types.PatchType, data []byte, o metav1.PatchOptions,
	sub ...string) (*unstructured.Unstructured, error) {
	defer r.m.call()()
	return r.NamespaceableResourceInterface.Patch(ctx, name, t, data, o, sub...)
}

func (r lateResource) Create(ctx context.Context, u *unstructured.Unstructured, o metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	defer r.m.call()()
	return r.NamespaceableResourceInterface.Create(ctx, u, o, sub...)
}

func (r lateResource) Delete(ctx context.Context, name string, o metav1.DeleteOptions, sub ...string) error {
	defer r.m.call()()
	return r.NamespaceableResourceInterface.Delete(ctx, name, o, sub...)
}
