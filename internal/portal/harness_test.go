package portal

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	packagestore "github.com/acp-io/acp/internal/accesspackage/gormstore"
	"github.com/acp-io/acp/internal/accessreview"
	reviewstore "github.com/acp-io/acp/internal/accessreview/gormstore"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog"
	catalogstore "github.com/acp-io/acp/internal/catalog/gormstore"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/credential"
	credentialstore "github.com/acp-io/acp/internal/credential/gormstore"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	oncestore "github.com/acp-io/acp/internal/idempotency/gormstore"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/rollout"
	rolloutstore "github.com/acp-io/acp/internal/rollout/gormstore"
	savedviewstore "github.com/acp-io/acp/internal/savedview/gormstore"
)

// site is a running portal.
type site struct {
	*core.Server
	config   Config
	t        testing.TB
	base     string
	provider *portaltest.Provider
	host     *fakeHost
	flows    *flowStore
	insight  *rollout.Insight

	reviews     *accessreview.Service
	reviewStore accessreview.Store
	reviewer    *accessreview.Worker

	end context.CancelFunc

	credentials *credentialstore.Store
	registered  *registered
	files       string                 // of the catalog
	secret      atomic.Pointer[string] // client secret for the login provider; nil if the file cannot be read
	db          *database.DB
	broken      atomic.Bool // the ledger cannot be read to its end
	metrics     *prometheus.Registry
	stopped     atomic.Pointer[time.Time] // time of the stopped clock; nil while the clock runs
	ahead       atomic.Int64              // offset of the clock to the machine's, in nanoseconds
}

func (x *site) now() time.Time {
	if at := x.stopped.Load(); at != nil {
		return *at
	}
	return time.Now().Add(time.Duration(x.ahead.Load()))
}

// stopBudgets stops the portal's clock, so that the budgets of callers are not refilled while requests are made.
func (x *site) stopBudgets() {
	x.stopped.Store(new(x.now()))
}

// advance moves the portal's clock.
func (x *site) advance(d time.Duration) { x.ahead.Add(int64(d)) }

func (x *site) clientSecret() (string, error) {
	if s := x.secret.Load(); s != nil {
		return *s, nil
	}
	return "", errors.New("the file is not there")
}

func newSite(t testing.TB) *site {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	db, err := database.Open(t.Context(), databasetest.SQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	store := gormstore.New(db)
	files := portaltest.Catalog(t)
	directory, err := catalog.NewService(
		t.Context(),
		catalog.Config{Store: catalogstore.New(db), Sources: []catalog.Source{catalog.Folder{ID: "files", Dir: files}}, Now: time.Now, Log: log},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := directory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := &site{
		metrics:  prometheus.NewRegistry(),
		t:        t,
		files:    files,
		db:       db,
		provider: portaltest.NewProvider(t),
		flows:    newFlowStore(t),
		host: &fakeHost{input: policy.Input{
			ResourceClasses: []*v1alpha1.ResourceClass{
				{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
					Pattern:  "trnv1:rsc:trip-com:redis:clusters:*",
					LabelKey: "com.trip/redis-cluster",
					Actions:  []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}}},
				}},
			},
			SubjectClasses: []*v1alpha1.SubjectClass{
				{
					ObjectMeta: metav1.ObjectMeta{Name: "application"},
					Spec:       v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"},
				},
			},
			Resources: []*v1alpha1.ProtectedResource{
				{
					ObjectMeta: metav1.ObjectMeta{Name: "bobs-cluster", ResourceVersion: "1"},
					Spec:       v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeEnforce},
				},
			},
			Policies: []*v1alpha1.AccessControlPolicy{
				{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
					{
						SID:       "eight",
						Effect:    v1alpha1.EffectAllow,
						Subjects:  []v1alpha1.Subject{portaltest.App888},
						Actions:   []v1alpha1.Action{"redis:connect"},
						Resources: []v1alpha1.ResourceName{portaltest.BobsCluster},
					},
					{
						SID:       "nine",
						Effect:    v1alpha1.EffectAllow,
						Subjects:  []v1alpha1.Subject{portaltest.App889},
						Actions:   []v1alpha1.Action{"redis:connect"},
						Resources: []v1alpha1.ResourceName{portaltest.BobsCluster},
					},
				}}},
			},
		}},
	}
	x.secret.Store(new(portaltest.ClientSecret))
	front := httptest.NewUnstartedServer(nil)
	x.base = "http://" + front.Listener.Addr().String()
	public, err := url.Parse(x.base)
	if err != nil {
		t.Fatal(err)
	}
	credentials := credentialstore.New(db, ledgerstore.Append)
	x.credentials = credentials
	inbox := notifystore.New(db)
	x.registered = &registered{state: workloads.NewState()}
	x.registered.state.SetReady()
	registrar := workloads.New(
		workloads.Config{Cluster: x.registered, State: x.registered.state, Catalog: directory.Catalog, Covered: x.host.SubjectCovered, Now: x.now,
			Granted: func(application string) (bool, error) {
				r, err := x.host.Reached(application)
				return len(r.Resources)+len(r.Wildcards) > 0, err
			},
			Record: func(ctx context.Context, e ...ledger.Entry) error {
				return db.Write(ctx, func(tx *gorm.DB) error { return ledgerstore.Append(tx, e...) })
			}},
	)
	hub := core.NewHub()
	states := rolloutstore.New(db)
	x.insight = rollout.NewInsight(
		rollout.InsightConfig{
			Flows:     x.flows,
			Snapshot:  x.host.Snapshot,
			Fleet:     func() insight.Fleet { return insight.FleetOf(x.host.Members()) },
			Enforced:  x.host.Enforced,
			Store:     states,
			Window:    14 * 24 * time.Hour,
			Threshold: 70,
			Now:       x.now,
		},
	)
	tickets, err := approval.NewService(
		approval.Config{
			Store:       store,
			Delegations: store,
			Catalog:     directory.Catalog,
			Host:        x.host,
			Evidence:    x.insight,
			Workloads:   registrar,
			Packages:    packagestore.New(db),
			Now:         x.now,
			OnChange:    hub.Ticket,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.end = cancel
	rollouts := rollout.NewService(rollout.Config{Store: states, Writer: x.host, Host: x.host, Catalog: directory.Catalog, Organizations: tickets.Organizations,
		Now: x.now, Log: log})
	classOf := func(resource string) string {
		s, _ := x.host.Snapshot()
		if c, ok := s.ResourceClassOf(resource); ok {
			return c.Name
		}
		return ""
	}
	x.reviewStore = reviewstore.New(db)
	x.reviews = accessreview.NewService(accessreview.Config{Store: x.reviewStore, Grants: tickets, Catalog: directory.Catalog, ClassOf: classOf,
		HostKnown: func() bool { return true }, Now: x.now})
	x.reviewer = accessreview.NewWorker(x.reviews, "one", &accessreview.Flows{Reader: x.flows, Snapshot: x.host.Snapshot,
		Fleet: func() insight.Fleet { return insight.FleetOf(x.host.Members()) }}, time.Hour, log)
	x.config = Config{Host: x.host, Flows: x.flows, EvidenceWindow: 14 * 24 * time.Hour, Insight: x.insight, Rollout: rollouts,
		FleetDowngrader: &rollout.FleetDowngrader{Service: rollouts, Objects: x.host.protectedResources, ClassOf: classOf, MaxWait: 10 * time.Second,
			Running: ctx},
		Reviews: x.reviews, ReviewStore: x.reviewStore, Inbox: inbox, SavedViews: savedviewstore.New(db),
		Packages:  packagestore.New(db),
		Workloads: registrar, Ledger: breakable{ledgerstore.NewReader(db), &x.broken}}
	x.config.Config = core.Config{
		PublicURL:    public,
		Tickets:      tickets,
		Directory:    directory,
		Once:         oncestore.New(db),
		Sessions:     credentials.Manager(),
		Credentials:  &credential.Service{Store: credentials, Now: x.now},
		SessionIdle:  time.Hour,
		Issuer:       x.provider.URL,
		ClientID:     portaltest.ClientID,
		ClientSecret: x.clientSecret,
		Hub:          hub,
		Metrics:      x.metrics,
		Now:          x.now,
		Log:          log,
		Web: fstest.MapFS{
			"index.html":         {Data: []byte(`<meta name="csp-nonce" content="__CSP_NONCE__"><meta name="acp-embedded" content="__EMBEDDED__">`)},
			"assets/app-1a2b.js": {Data: []byte("js")},
			"favicon.svg":        {Data: []byte("<svg/>")},
			".gitkeep":           {},
		},
	}
	x.Server, err = New(ctx, x.config)
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

// as returns a browser in which a person is logged in; "" is without a login.
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

// token returns a new token of a person.
func (x *site) token(who string, scopes ...credential.Scope) string {
	x.t.Helper()
	_, secret, err := x.Credentials.Create(x.t.Context(), who, credential.Request{Name: "test", Scopes: scopes, Lifetime: time.Hour})
	if err != nil {
		x.t.Fatal(err)
	}
	return secret
}

type problemBody struct {
	Code, Detail, Ticket, RequestID string
	Status                          int
	Fields                          []struct{ Field, Code string }
}

func newTicket(app, resource string) map[string]any {
	return map[string]any{
		"reason": "checkout needs it",
		"items":  []map[string]any{{"application": app, "resource": resource, "actions": []string{"redis:connect"}}},
	}
}

// approveFirstTicket has Alice request access of app-888 to bobs-cluster by ticket T-1, which its approvers approve.
func (x *site) approveFirstTicket(t *testing.T) {
	t.Helper()
	if a := x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster")); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for i, who := range []string{"carol", "bob"} {
		if a := x.as(who).Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "approve", "version": i + 1}); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
}

// sessionData returns the stored data of the session of a cookie.
func (x *site) sessionData(t *testing.T, cookie string) ([]byte, bool, error) {
	return x.credentials.Manager().FindCtx(t.Context(), credential.SessionID(cookie))
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func sessionID(cookie string) string { return credential.SessionID(cookie) }

// leave removes a person from the catalog's files and synchronizes.
func (x *site) leave(t *testing.T, person string) {
	t.Helper()
	file := filepath.Join(x.files, "demo.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "{kind: User, metadata: {name: "+person+"}}\n---\n", "", 1)
	text = strings.Replace(text, "annotations: {acp.io/lead: "+person+"}", "annotations: {}", 1)
	text = strings.Replace(text, ", "+person+"]", "]", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := x.Directory.Sync(t.Context(), "files"); err != nil || st.Error != "" {
		t.Fatalf("%+v %v", st, err)
	}
	if _, ok := x.Catalog().Person(person); ok {
		t.Fatalf("%s is still there", person)
	}
}

func scope(s string) credential.Scope { return credential.Scope(s) }

// breakable is a ledger whose reading can fail after the first line.
type breakable struct {
	ledger.Reader
	broken *atomic.Bool
}

func (b breakable) Lines(ctx context.Context, from int64) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		for l, err := range b.Reader.Lines(ctx, from) {
			if !yield(l, err) {
				return
			}
			if b.broken.Load() {
				yield(ledger.Line{}, errors.New("disk I/O error"))
				return
			}
		}
	}
}
