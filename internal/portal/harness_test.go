package portal

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// fakeHost is a host cluster in memory.
type fakeHost struct {
	mu    sync.Mutex
	input policy.Input
	away  time.Time
}

func (h *fakeHost) AwaySince() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.away
}

func (h *fakeHost) Ready() bool { return true }

func (h *fakeHost) Snapshot() (*policy.Snapshot, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return policy.NewSnapshot(h.input), true
}

func (h *fakeHost) Cached(name string) (*v1alpha1.AccessControlPolicy, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.input.Policies {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

func (h *fakeHost) Protection(resource string) *v1alpha1.ProtectedResource {
	for _, r := range h.input.Resources {
		if string(r.Spec.Resource) == resource {
			return r
		}
	}
	return nil
}

func (h *fakeHost) ResourceActions(resource string) ([]string, bool, error) {
	s, _ := h.Snapshot()
	if _, ok := s.ResourceClassOf(resource); !ok {
		return nil, false, nil
	}
	return []string{"redis:connect"}, true, nil
}

func (h *fakeHost) SubjectCovered(application string) (bool, error) {
	s, _ := h.Snapshot()
	_, ok := s.SubjectClassOf(application)
	return ok, nil
}

type fakeFlows struct{ err error }

func (f *fakeFlows) Connections(_ context.Context, q audit.ConnectionQuery) ([]audit.Connection, error) {
	all := []audit.Connection{
		{Cluster: "m1", Subject: portaltest.App888, Resource: portaltest.BobsCluster, Port: 6379, Protocol: "TCP", Decision: policy.DefaultDenied, Verdict: audit.VerdictDropped, Count: 3},
		{Cluster: "m2", Subject: portaltest.App889, Resource: portaltest.BobsCluster, Port: 6379, Protocol: "TCP", Decision: policy.DefaultDenied, Verdict: audit.VerdictDropped, Count: 5},
	}
	var out []audit.Connection
	for _, c := range all {
		if (q.Subject == "" || q.Subject == c.Subject) && (q.Resource == "" || q.Resource == c.Resource) {
			out = append(out, c)
		}
	}
	return out, f.err
}

func (f *fakeFlows) Denied(context.Context, audit.DeniedQuery) (map[string]int64, error) {
	return map[string]int64{portaltest.App888: 3, portaltest.BobsCluster: 8}, f.err
}

func (f *fakeFlows) LastFlow(context.Context) (map[string]time.Time, error) {
	return map[string]time.Time{"m1": time.Unix(1700000000, 0)}, f.err
}

// site is a running portal.
type site struct {
	*Server
	t        *testing.T
	base     string
	provider *portaltest.Provider
	host     *fakeHost
	flows    *fakeFlows
	end      context.CancelFunc
}

func newSite(t *testing.T) *site {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	source, err := catalog.Open(portaltest.Catalog(t), log)
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(t.Context(), databasetest.SQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	store := gormstore.New(db)
	x := &site{t: t, provider: portaltest.NewProvider(t), flows: &fakeFlows{}, host: &fakeHost{input: policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:redis:clusters:*",
			LabelKey: "com.trip/redis-cluster", Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}}}}}},
		SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "application"}, Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"}}},
		Resources:      []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Name: "bobs-cluster"}, Spec: v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeEnforce}}},
		Policies: []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
			{SID: "eight", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{portaltest.App888}, Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{portaltest.BobsCluster}},
			{SID: "nine", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{portaltest.App889}, Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{portaltest.BobsCluster}},
		}}}},
	}}}
	front := httptest.NewUnstartedServer(nil)
	x.base = "http://" + front.Listener.Addr().String()
	public, err := url.Parse(x.base)
	if err != nil {
		t.Fatal(err)
	}
	hub := NewHub()
	tickets, err := approval.NewService(approval.Config{Store: store, Catalog: source.Catalog, Classes: x.host, Now: time.Now, OnChange: hub.Ticket})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.end = cancel
	x.Server, err = New(ctx, Config{PublicURL: public, Tickets: tickets, Host: x.host, Flows: x.flows, Catalog: source.Catalog, Sessions: store.Sessions(), SessionIdle: time.Hour,
		Issuer: x.provider.URL, ClientID: portaltest.ClientID, ClientSecret: portaltest.ClientSecret, Hub: hub, Now: time.Now, Log: log,
		Web: fstest.MapFS{"index.html": {Data: []byte(`<meta name="csp-nonce" content="__CSP_NONCE__">`)}, "assets/app-1a2b.js": {Data: []byte("js")}, "favicon.svg": {Data: []byte("<svg/>")}, ".gitkeep": {}}})
	if err != nil {
		t.Fatal(err)
	}
	front.Config.Handler = x.Server
	front.Start()
	t.Cleanup(func() {
		cancel()
		front.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// as is a browser in which somebody is logged in; "" is nobody.
func (x *site) as(who string) *portaltest.Browser {
	x.t.Helper()
	b := portaltest.NewBrowser(x.t, x.base)
	if who != "" {
		if to := b.Login(x.provider, "/", who); to != "/" {
			x.t.Fatalf("%s could not log in: %s", who, to)
		}
	}
	return b
}

type problemBody struct {
	Code, Detail, Ticket, RequestID string
	Status                          int
	Fields                          []struct{ Field, Message string }
}

func newTicket(app, resource string) map[string]any {
	return map[string]any{"reason": "checkout needs it", "items": []map[string]any{{"application": app, "resource": resource, "actions": []string{"redis:connect"}}}}
}
