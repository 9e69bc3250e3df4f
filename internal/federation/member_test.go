package federation

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/backoff"
)

// halfDead answers probes, and whole lists only while it is well.
type halfDead struct {
	dynamic.ResourceInterface
	mu      sync.Mutex
	ill     bool
	watches []*watch.FakeWatcher
}

func (h *halfDead) List(_ context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}
	if o.Limit == 1 {
		return list, nil
	}
	if h.ill {
		return nil, errors.New("the storage cannot decode an object")
	}
	list.Items = []unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "acp-x", "resourceVersion": "6"}}}}
	return list, nil
}

func (h *halfDead) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ill { // also for who listed before it fell ill and begins to watch only now
		return nil, apierrors.NewResourceExpired("too old")
	}
	w := watch.NewFake()
	h.watches = append(h.watches, w)
	return w, nil
}

// set makes it ill or well; the watches break either way, as too old.
func (h *halfDead) set(ill bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ill = ill
	for _, w := range h.watches {
		go func() {
			w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
			w.Stop()
		}()
	}
	h.watches = nil
}

// start runs a member until the returned function is called.
func start[T any](t *testing.T, m *member[T]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestViewThatCannotBeRenewedIsNotShown(t *testing.T) {
	server := &halfDead{}
	changed := make(chan struct{}, 1000)
	m := &member[Observed]{cluster: Cluster{Name: "m1"}, probing: Probing{Interval: time.Millisecond, Timeout: time.Second, Failures: 2}, log: logr.Discard(),
		changed: func(string) { changed <- struct{}{} }, client: server, http: &http.Client{}, why: errNotProbed}
	m.watch = NewWatch(m.client, "policies", logr.Discard(), Revision(func(map[string]any) string { return "r" }).parse, m.changed)
	defer start(t, m)()
	until := func(reason string, is func(Observation) bool) {
		t.Helper()
		limit := time.NewTimer(30 * time.Second)
		defer limit.Stop()
		for !is(withObject(m.observe(), m, "acp-x")) {
			select {
			case <-changed:
			case <-limit.C:
				t.Fatalf("%s: %+v", reason, m.observe())
			}
		}
	}
	until("the object is read", func(o Observation) bool { return o.Reachable && o.Object != nil })
	server.set(true)
	until("an unreadable state is not reported as the current one", func(o Observation) bool { return !o.Reachable && !o.Message.IsZero() })
	server.set(false)
	until("it is read again", func(o Observation) bool { return o.Reachable && o.Object != nil })
}

// busyServer is an API server on a machine that is too busy.
type busyServer struct {
	dynamic.ResourceInterface
	slow      atomic.Bool // no probe is answered in time
	slowPages bool        // each page of a list takes two seconds
	events    *watch.FakeWatcher
	lists     atomic.Int32 // lists of all objects that were begun
}

// busyPages is the number of pages of a list of all objects of a busyServer.
const busyPages = 12

func (b *busyServer) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}
	if o.Limit == 1 {
		if b.slow.Load() {
			<-ctx.Done()
			return nil, fmt.Errorf("list: %w", ctx.Err())
		}
		return list, nil
	}
	if o.Continue == "" {
		b.lists.Add(1)
	}
	if b.slowPages && !backoff.Pause(ctx, clock.RealClock{}, 2*time.Second) {
		return nil, fmt.Errorf("list: %w", ctx.Err())
	}
	page, _ := strconv.Atoi(o.Continue)
	name := fmt.Sprint("acp-", page)
	list.Items = []unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": name, "resourceVersion": "6"}}}}
	if page++; page < busyPages {
		list.SetContinue(strconv.Itoa(page))
	}
	return list, nil
}

func (b *busyServer) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return b.events, nil
}

// TestBusyServerIsNotLost checks that a member whose probes take too long is kept while its API server answers the list or the watch, for a
// limited time, and that it is lost as soon as ever if nothing is answered.
func TestBusyServerIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		listing bool          // whether it is busy from the first list on
		events  time.Duration // the time for which it sends an event each second
		others  time.Duration // the time for which it answers something about another kind each second
		kept    time.Duration // it is reachable until then
		lost    time.Duration // it is not reachable any more then
	}{
		"nothing is answered":               {lost: 11 * time.Second},
		"events are sent for a while":       {events: 20 * time.Second, kept: 20 * time.Second, lost: 31 * time.Second},
		"events are sent again and again":   {events: time.Hour, kept: 29 * time.Second, lost: 41 * time.Second},
		"another kind is answered":          {others: time.Hour, kept: 29 * time.Second, lost: 41 * time.Second},
		"the list is answered page by page": {listing: true, kept: 25 * time.Second, lost: 36 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &busyServer{events: watch.NewFake(), slowPages: c.listing}
				m := &member[Observed]{cluster: Cluster{Name: "m1"}, probing: DefaultProbing, log: logr.Discard(), changed: func(string) {}, client: server,
					http: &http.Client{}, why: errNotProbed}
				m.watch = NewWatch(m.client, "policies", logr.Discard(), Revision(func(map[string]any) string { return "r" }).parse, m.changed)
				answers := NewAnswers()
				m.watch.answers = answers.of(m.cluster)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					m.run(ctx)
				}()
				defer func() {
					cancel()
					<-done
				}()
				if c.listing {
					time.Sleep(time.Millisecond) // the first probe is answered
					server.slow.Store(true)
				}
				synctest.Wait()
				if !c.listing {
					time.Sleep(5 * time.Second)
					synctest.Wait()
					server.slow.Store(true)
				}
				began := time.Now()
				alive := func() bool {
					m.mu.RLock()
					defer m.mu.RUnlock()
					return m.alive
				}
				for version := 8; time.Since(began) < c.lost; version++ {
					if time.Since(began) < c.events && alive() {
						server.events.Modify(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "acp-0",
							"resourceVersion": strconv.Itoa(version)}}})
					}
					if time.Since(began) < c.others {
						answers.of(Cluster{Name: "m1 by another name"}).Add(1)
					}
					time.Sleep(time.Second)
					synctest.Wait()
					if since := time.Since(began); since <= c.kept && !alive() {
						t.Fatalf("it is lost after %v", since)
					}
				}
				if alive() {
					t.Errorf("it is not lost after %v", c.lost)
				}
				if n := server.lists.Load(); n != 1 {
					t.Errorf("it was listed %d times", n)
				}
			})
		})
	}
}

func TestOnlyTheSameServersViewIsInherited(t *testing.T) {
	for _, c := range []struct {
		reason string
		now    Cluster
		alive  bool
	}{
		{"a new token or authority is a rotation", Cluster{Name: "m1", Endpoint: "https://a", CABundle: []byte("new")}, true},
		{"another address may be another cluster", Cluster{Name: "m1", Endpoint: "https://b"}, false},
		{"another proxy may lead to another cluster", Cluster{Name: "m1", Endpoint: "https://a", ProxyURL: "http://p"}, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			make := func(c Cluster) *member[Observed] {
				return &member[Observed]{cluster: c, why: errNotProbed, watch: NewWatch(nil, "policies", logr.Discard(), Revision(nil).parse, nil)}
			}
			old := make(Cluster{Name: "m1", Endpoint: "https://a"})
			old.alive, old.watch.synced = true, true
			now := make(c.now)
			now.inherit(old)
			if got := now.observe().Reachable; got != c.alive {
				t.Errorf("reachable %v", got)
			}
		})
	}
}

// TestMemberWithoutIstioHasNoObjects checks that a member that declares no Istio counts as read, without objects, if its API server does not serve
// Istio's kind, and not if this is not known, or the member declares an Istio.
func TestMemberWithoutIstioHasNoObjects(t *testing.T) {
	const (
		none   = `{"dataplane": "none"}`
		groups = `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps"}%s]}`
		istio  = `, {"name": "security.istio.io", "versions": [{"groupVersion": "security.istio.io/v1beta1", "version": "v1beta1"}]}`
		kinds  = `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "security.istio.io/v1beta1", "resources": [{"name": "%s"}]}`
	)
	without := map[string]string{"/apis": fmt.Sprintf(groups, "")}
	with := func(kind string) map[string]string {
		return map[string]string{"/apis": fmt.Sprintf(groups, istio), "/apis/security.istio.io/v1beta1": fmt.Sprintf(kinds, kind)}
	}
	for _, c := range []struct {
		reason, declared string
		kind             Kind
		status           int // of the answer about the kind
		answers          map[string]string
		reachable        bool
		says             string
	}{
		{"it does not serve the kind", none, IstioPolicy, http.StatusNotFound, without, true, ""},
		{"nobody has a permission for a kind that it does not serve", none, IstioPolicy, http.StatusForbidden, without, true, ""},
		{"it serves another kind of the group", none, IstioPolicy, http.StatusNotFound, with("requestauthentications"), true, ""},
		{"it serves the kind in another version", none, IstioPolicy, http.StatusNotFound, with("authorizationpolicies"), false, ""},
		{
			"there is no permission for the kind", none, IstioPolicy, http.StatusForbidden, with("authorizationpolicies"), false,
			"declares no Istio, but serves authorizationpolicies",
		},
		{
			"there is no permission for the kind of an Istio", `{"dataplane": "ambient", "version": "1.31"}`, IstioPolicy, http.StatusForbidden,
			with("authorizationpolicies"), false, "cluster check m1 --fix --istio, which applies deploy/istio",
		},
		{"there is no permission for another kind", none, CiliumPolicy, http.StatusForbidden, without, false, "apply deploy/rbac/member"},
		{"it declares an Istio", `{"dataplane": "ambient", "version": "1.31"}`, IstioPolicy, http.StatusNotFound, without, false, ""},
		{"it declares nothing", "", IstioPolicy, http.StatusNotFound, without, false, ""},
		{"another kind is missing", none, CiliumPolicy, http.StatusNotFound, without, false, ""},
		{"a proxy finds nothing", none, IstioPolicy, http.StatusNotFound, nil, false, ""},
		{"a proxy finds everything", none, IstioPolicy, http.StatusNotFound, map[string]string{"/apis": "{}"}, false, ""},
		{"the token is refused", none, IstioPolicy, http.StatusUnauthorized, without, false, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if text, ok := c.answers[r.URL.Path]; ok {
					_, _ = w.Write([]byte(text))
				} else if strings.Contains(r.URL.Path, c.kind.TargetResource.Resource) {
					w.WriteHeader(c.status)
				} else {
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			defer server.Close()
			authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			m, err := newMember(Cluster{Name: "m1", Endpoint: server.URL, CABundle: authority, Istio: c.declared}, "token", c.kind,
				Revision(nil).parse, DefaultProbing, logr.Discard(), new(atomic.Uint64), func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			defer m.closeIdleConnections()
			f := &Fleet{fleet: &fleet[Observed]{config: FleetConfig{Kind: c.kind}, members: map[string]*member[Observed]{"m1": m}}}
			m.setAlive(false, m.probe(t.Context()))
			o := f.Observe("m1", "acp-x")
			if !o.Registered || o.Reachable != c.reachable || o.Object != nil || o.Reachable != o.Message.IsZero() ||
				!strings.Contains(o.Message.Text, c.says) {
				t.Errorf("%+v", o)
			}
			if got := f.Reserved("m1"); len(got) > 0 {
				t.Errorf("it has %v", got)
			}
		})
	}
}

// TestIdleConnectionsAreClosed checks that nothing stays connected to a member that is not used any more. A member that is reached through a proxy has
// connections of its own, which nothing else would use or close.
func TestIdleConnectionsAreClosed(t *testing.T) {
	closed := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicyList", "metadata": {"resourceVersion": "7"}, "items": []}`))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	server.StartTLS()
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	m, err := newMember(Cluster{Name: "m1", Endpoint: server.URL, CABundle: authority}, "token", CiliumPolicy, Revision(nil).parse, DefaultProbing,
		logr.Discard(), new(atomic.Uint64), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.closeIdleConnections()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the connection is still open")
	}
}
