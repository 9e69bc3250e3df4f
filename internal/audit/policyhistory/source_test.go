package policyhistory

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

const bobs = "trnv1:rsc:trip-com:redis:clusters:bobs-cluster"

// host is as much of an API server as a client that lists and watches needs: a list at version 1, and one stream of
// changes for each kind.
type host struct {
	mu      sync.Mutex
	served  bool
	status  int // answers everything when set
	lists   map[string][]any
	changes map[string]chan metav1.WatchEvent
	kinds   map[string]string
}

func newHost() *host {
	h := &host{served: true, lists: map[string][]any{}, changes: map[string]chan metav1.WatchEvent{}, kinds: map[string]string{
		"accesscontrolpolicies": "AccessControlPolicy", "resourceclasses": "ResourceClass", "subjectclasses": "SubjectClass",
		"protectedresources": "ProtectedResource", "externalworkloads": "ExternalWorkload", "memberclusters": "MemberCluster"}}
	for name := range h.kinds {
		h.changes[name] = make(chan metav1.WatchEvent, 10)
	}
	return h
}

func (h *host) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	served, status := h.served, h.status
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status != 0 || !served {
		if status == 0 {
			status = http.StatusNotFound
		}
		reason := map[int]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
			http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusInternalServerError: metav1.StatusReasonInternalError}[status]
		w.WriteHeader(status)
		write(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Code: int32(status)})
		return
	}
	base := "/apis/" + v1alpha1.GroupVersion.String()
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, base), "/")
	switch {
	case r.URL.Path == base:
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: v1alpha1.GroupVersion.String()}
		for plural, kind := range h.kinds {
			list.APIResources = append(
				list.APIResources,
				metav1.APIResource{Name: plural, SingularName: strings.ToLower(kind), Kind: kind, Verbs: metav1.Verbs{"get", "list", "watch"}},
			)
		}
		write(w, list)
	case r.URL.Path == "/apis":
		v := metav1.GroupVersionForDiscovery{GroupVersion: v1alpha1.GroupVersion.String(), Version: v1alpha1.GroupVersion.Version}
		write(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups: []metav1.APIGroup{{Name: v1alpha1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}})
	case h.kinds[name] == "":
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Query().Get("watch") == "":
		h.mu.Lock()
		items := append([]any{}, h.lists[name]...)
		h.mu.Unlock()
		write(
			w,
			map[string]any{
				"kind":       h.kinds[name] + "List",
				"apiVersion": v1alpha1.GroupVersion.String(),
				"metadata":   map[string]any{"resourceVersion": "1"},
				"items":      items,
			},
		)
	case r.URL.Query().Get("sendInitialEvents") == "true":
		// As an API server without streaming lists answers; the client then lists.
		w.WriteHeader(http.StatusUnprocessableEntity)
		write(
			w,
			metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status:   "Failure",
				Reason:   metav1.StatusReasonInvalid,
				Code:     http.StatusUnprocessableEntity,
			},
		)
	default:
		h.watch(w, r, name)
	}
}

func (h *host) watch(w http.ResponseWriter, r *http.Request, name string) {
	flusher := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-h.changes[name]:
			write(w, e)
			flusher.Flush()
		}
	}
}

func write(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func resource(generation int64, version string, m v1alpha1.Mode) *v1alpha1.ProtectedResource {
	r := &v1alpha1.ProtectedResource{TypeMeta: metav1.TypeMeta{Kind: "ProtectedResource", APIVersion: v1alpha1.GroupVersion.String()},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: bobs, Mode: m}}
	r.Name, r.UID, r.Generation, r.ResourceVersion = "bobs", "u", generation, version
	return r
}

func class() *v1alpha1.ResourceClass {
	c := &v1alpha1.ResourceClass{TypeMeta: metav1.TypeMeta{Kind: "ResourceClass", APIVersion: v1alpha1.GroupVersion.String()},
		Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:redis:clusters:*", LabelKey: "com.trip/redis-cluster",
			Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}}}
	c.Name, c.UID, c.Generation, c.ResourceVersion = "redis", "c", 1, "1"
	return c
}

func start(t *testing.T, h *host) *Source {
	t.Helper()
	server := httptest.NewServer(h)
	s, err := New(
		Config{Host: &rest.Config{Host: server.URL}, Log: slog.New(slog.DiscardHandler), MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond},
	)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

func word(s *Source) policy.Verdict {
	return s.Snapshot().Decide(policy.Query{Resources: []string{bobs}, Cluster: "m1", Protocol: v1alpha1.ProtocolTCP, Port: 6379, At: time.Now()}).Verdict
}

func TestSnapshotFollowsTheHost(t *testing.T) {
	h := newHost()
	h.lists["resourceclasses"] = []any{class()}
	h.lists["protectedresources"] = []any{resource(1, "1", v1alpha1.ModeAudit)}
	s := start(t, h)
	if err := s.Wait(t.Context()); err != nil {
		t.Fatalf("Wait: %v", err)
	}
	if got := word(s); got != policy.Audited {
		t.Fatalf("decided %q with the first snapshot, want audited", got)
	}
	change := func(kind string, r *v1alpha1.ProtectedResource) {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		e := metav1.WatchEvent{Type: kind}
		e.Object.Raw = raw
		h.changes["protectedresources"] <- e
	}
	change("MODIFIED", resource(2, "2", v1alpha1.ModeEnforce))
	eventually.True(t, "the change of the mode is read", func() bool { return word(s) == policy.DefaultDenied })
	change("DELETED", resource(2, "3", v1alpha1.ModeEnforce))
	eventually.True(t, "the removal is read", func() bool { return word(s) == policy.Unmanaged })
}

func TestStatusAloneMakesNoSnapshot(t *testing.T) {
	s, err := New(Config{Host: &rest.Config{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.updated(resource(1, "1", v1alpha1.ModeAudit), resource(1, "2", v1alpha1.ModeAudit))
	if len(s.changed) != 0 {
		t.Error("a change of the status makes a rebuild")
	}
	s.updated(resource(1, "1", v1alpha1.ModeAudit), resource(2, "2", v1alpha1.ModeEnforce))
	s.touch() // more changes at once are one rebuild
	if len(s.changed) != 1 {
		t.Error("a change of the spec makes no rebuild")
	}
}

func TestHostProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		spoil  func(*host)
		want   string
	}{
		"NoCRDs":       {"the person has to apply them", func(h *host) { h.served = false }, "apply the CRDs"},
		"OneMissing":   {"the one that is missing is named", func(h *host) { delete(h.kinds, "externalworkloads") }, "no externalworkloads.acp.io"},
		"Unauthorized": {"the credentials are wrong", func(h *host) { h.status = http.StatusUnauthorized }, "refuses the credentials"},
		"Forbidden":    {"the role is missing", func(h *host) { h.status = http.StatusForbidden }, "bind the flow collector's role"},
		"Broken":       {"whatever else", func(h *host) { h.status = http.StatusInternalServerError }, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			tc.spoil(h)
			s := start(t, h)
			eventually.True(t, tc.reason, func() bool { return strings.Contains(s.Problem(), tc.want) })
			if s.Epochs() != nil {
				t.Error("there are policies to decide with, though none could be read")
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Wait(ctx); err == nil {
				t.Error("Wait returned though there is no snapshot")
			}
		})
	}
}

func TestHostBecomesAvailableAgain(t *testing.T) {
	h := newHost()
	h.served = false
	s := start(t, h)
	eventually.True(t, "the problem is reported", func() bool { return s.Problem() != "" })
	h.set(func() { h.served = true })
	if err := s.Wait(t.Context()); err != nil {
		t.Fatalf("Wait: %v", err)
	}
	if p := s.Problem(); p != "" {
		t.Errorf("Problem after it was solved: %q", p)
	}
}

func TestUnreachableHost(t *testing.T) {
	s, err := New(Config{Host: &rest.Config{Host: "http://127.0.0.1:1"}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.missing(t.Context()); !strings.Contains(got, "cannot be read") {
		t.Errorf("missing() = %q", got)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("New took a configuration without a host")
	}
}
