package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

type ticket struct {
	ID, State string
	Version   int64
	Items     []struct {
		Message    message.Message
		Statement  string
		WaitingFor []string
		Clusters   []struct{ Cluster, State string }
		Steps      []struct{ Name, State string }
	}
	Events []struct {
		Kind, Cluster string
		At            time.Time
	}
	Can map[string]bool
}

// fleet stands for the adapter and its members.
type fleet struct {
	t testing.TB
	c client.Client
}

func newFleetClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newFleet(t testing.TB, config *rest.Config) *fleet {
	t.Helper()
	f := &fleet{t: t, c: newFleetClient(t, config)}
	for _, o := range []client.Object{
		&v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:redis:clusters:*",
			LabelKey: "com.trip/redis-cluster", Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}}},
			Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}},
		&v1alpha1.SubjectClass{
			ObjectMeta: metav1.ObjectMeta{Name: "application"},
			Spec:       v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"},
		},
		&v1alpha1.ProtectedResource{
			ObjectMeta: metav1.ObjectMeta{Name: "bobs-cluster"},
			Spec:       v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeEnforce},
		},
	} {
		if err := f.c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *fleet) policy() (*v1alpha1.AccessControlPolicy, error) {
	var p v1alpha1.AccessControlPolicy
	err := f.c.Get(f.t.Context(), client.ObjectKey{Name: policy.PolicyNameFor(portaltest.BobsCluster)}, &p)
	return &p, err
}

// report writes the status that the adapter would: the policy compiled, and each member's state.
func (f *fleet) report(states map[string]v1alpha1.MemberState) {
	f.t.Helper()
	p, err := f.policy()
	if err != nil {
		f.t.Fatal(err)
	}
	revision := fmt.Sprintf("rev-%d", p.Generation)
	u := v1alpha1.PolicyUnit{Resource: portaltest.BobsCluster, Revision: revision}
	for _, s := range p.Spec.Statements {
		u.SIDs = append(u.SIDs, s.SID)
	}
	for name, s := range states {
		c := v1alpha1.ClusterState{Name: v1alpha1.ClusterName(name), State: s, DesiredRevision: revision, Propagated: s == v1alpha1.MemberRealized}
		u.Clusters = append(u.Clusters, c)
	}
	slices.SortFunc(u.Clusters, func(a, b v1alpha1.ClusterState) int { return strings.Compare(string(a.Name), string(b.Name)) })
	p.Status = v1alpha1.AccessControlPolicyStatus{ObservedGeneration: p.Generation, Units: []v1alpha1.PolicyUnit{u}}
	if err := f.c.Status().Update(f.t.Context(), p); err != nil {
		f.t.Fatal(err)
	}
}

// program is a running portal.
type program struct {
	base string
	stop func()
}

func start(t testing.TB, o options) *program {
	t.Helper()
	return startLogged(t, o, configuration.NewLogger(t.Output(), "text", slog.LevelInfo))
}

func startLogged(t testing.TB, o options, log *slog.Logger) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, o, log) }()
	p := &program{base: "http://" + o.listen}
	stopped := false
	p.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the portal did not end well: %v", err)
		}
	}
	t.Cleanup(p.stop)
	eventually.True(t, "the portal is ready", func() bool {
		res, err := http.Get(p.base + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }() // nothing is read
		return res.StatusCode == http.StatusOK
	})
	return p
}

func testOptions(t testing.TB, config *rest.Config, provider *portaltest.Provider) options {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(portaltest.ClientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := testenv.FreeAddress(t)
	o, err := parse([]string{"--listen", address, "--kubeconfig", testenv.WriteKubeconfig(t, config), "--database", "sqlite:" + filepath.Join(dir, "portal.db"),
		"--flow-store", "sqlite:" + filepath.Join(dir, "flows.db"), "--catalog", portaltest.Catalog(t), "--oidc-issuer", provider.URL,
		"--oidc-client-secret-file", secret}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestStory is the mission's story from the portal's side, against a real API server.
func TestStory(t *testing.T) {
	config := portaltest.APIServer(t, true)
	f := newFleet(t, config)
	provider := portaltest.NewProvider(t)
	o := testOptions(t, config, provider)
	p := start(t, o)
	people := map[string]*portaltest.Browser{}
	for _, who := range []string{"alice", "carol", "bob"} {
		people[who] = portaltest.NewBrowser(t, p.base)
		if to := people[who].Login(provider, "/tickets", who); to != "/tickets" {
			t.Fatalf("%s was sent to %s", who, to)
		}
	}
	get := func(who, id string) (x ticket) {
		people[who].Get("/api/v1/tickets/"+id).Into(t, &x)
		return x
	}
	body := map[string]any{
		"reason":          "checkout",
		"durationSeconds": 86400,
		"items":           []map[string]any{{"application": "app-888", "resource": "bobs-cluster", "actions": []string{"redis:connect"}}},
	}
	made := people["alice"].Post("/api/v1/tickets", body)
	if made.Status != http.StatusCreated {
		t.Fatalf("create: %d %s", made.Status, made.Body)
	}
	var x ticket
	made.Into(t, &x)
	id := x.ID
	for _, who := range []string{"carol", "bob"} {
		x = get(who, id)
		if !x.Can["approve"] {
			t.Fatalf("%s should approve now: %+v", who, x)
		}
		if a := people[who].Post("/api/v1/tickets/"+id+"/decision", map[string]any{"decision": "approve", "version": x.Version}); a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", who, a.Status, a.Body)
		}
	}
	eventually.True(t, "the statement is written", func() bool { acp, err := f.policy(); return err == nil && len(acp.Spec.Statements) == 1 })
	acp, _ := f.policy()
	if st := acp.Spec.Statements[0]; st.SID != "t-1-1" || st.NotAfter == nil || st.Subjects[0] != portaltest.App888 ||
		acp.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByPortal {
		t.Errorf("statement: %+v in %+v", st, acp.ObjectMeta)
	}

	at := map[string]time.Time{}
	eventually.True(t, "the ticket says that it is written", func() bool { x = get("alice", id); return x.State == "applying" })
	for _, e := range x.Events {
		at[e.Kind] = e.At
	}
	t.Logf("from the last approval to the written statement: %s", at["written"].Sub(at["approved"]))

	f.report(map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberUnreachable})
	eventually.True(t, "the ticket says which member is missing", func() bool {
		x = get("alice", id)
		return x.State == "applying" && slices.Equal(x.Items[0].WaitingFor, []string{"m2"}) && strings.Contains(x.Items[0].Message.Text, "m2")
	})
	// The portal dies and comes back while a member is away.
	p.stop()
	start(t, o)
	f.report(map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberRealized})
	eventually.True(t, "the ticket is effective", func() bool { x = get("alice", id); return x.State == "effective" })
	realized := 0
	for _, e := range x.Events {
		if e.Kind == "realized" {
			realized++
		}
	}
	if realized != 2 {
		t.Errorf("each member was realized once, got %+v", x.Events)
	}

	if a := people["bob"].Post("/api/v1/tickets/"+id+"/revoke", map[string]any{"reason": "enough"}); a.Status != http.StatusOK {
		t.Fatalf("revoke: %d %s", a.Status, a.Body)
	}
	eventually.True(t, "the statement is gone", func() bool { acp, err := f.policy(); return err == nil && len(acp.Spec.Statements) == 0 })
	if x = get("alice", id); x.State != "revoking" {
		t.Errorf("until every member is without it, it is being revoked: %s", x.State)
	}
	f.report(map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending})
	f.report(map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberRealized})
	eventually.True(t, "the ticket is revoked", func() bool { return get("alice", id).State == "revoked" })
}

// TestVanishedStatement removes a granted statement with kubectl.
func TestVanishedStatement(t *testing.T) {
	config := portaltest.APIServer(t, true)
	f := newFleet(t, config)
	provider := portaltest.NewProvider(t)
	p := start(t, testOptions(t, config, provider))
	who := map[string]*portaltest.Browser{}
	for _, n := range []string{"alice", "carol", "bob"} {
		who[n] = portaltest.NewBrowser(t, p.base)
		who[n].Login(provider, "/", n)
	}
	who["alice"].Post(
		"/api/v1/tickets",
		map[string]any{"reason": "r", "items": []map[string]any{{"application": "app-888", "resource": "bobs-cluster", "actions": []string{"redis:connect"}}}},
	)
	for i, n := range []string{"carol", "bob"} {
		if a := who[n].Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "approve", "version": i + 1}); a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", n, a.Status, a.Body)
		}
	}
	state := func() (x ticket) { who["alice"].Get("/api/v1/tickets/T-1").Into(t, &x); return x }
	eventually.True(t, "the statement is written", func() bool { return state().State == "applying" })
	acp, err := f.policy()
	if err != nil {
		t.Fatal(err)
	}
	acp.Spec.Statements = nil
	if err := f.c.Update(t.Context(), acp); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the ticket says that it is no longer in force", func() bool {
		x := state()
		return x.State == "failed" && strings.Contains(x.Items[0].Message.Text, "No longer in force")
	})
	if acp, err := f.policy(); err != nil || len(acp.Spec.Statements) != 0 {
		t.Errorf("nothing is written again by itself: %v %v", acp.Spec.Statements, err)
	}
}

func TestClearStartErrors(t *testing.T) {
	config := portaltest.APIServer(t, false)
	provider := portaltest.NewProvider(t)
	for name, tc := range map[string]struct {
		reason string
		change func(*options)
		want   string
	}{
		"no CRD":     {"names the files", func(*options) {}, "kubectl apply -f deploy/crds/acp.io_accesscontrolpolicies.yaml"},
		"no catalog": {"says what it should be", func(o *options) { o.catalog = filepath.Join(t.TempDir(), "no") }, "does not exist: point --catalog"},
		"no folder": {
			"names the folder", func(o *options) { o.database = "sqlite:" + filepath.Join(t.TempDir(), "no", "x.db") },
			"its folder does not exist",
		},
		"no kubeconfig": {"names the flag", func(o *options) { o.kubeconfig = filepath.Join(t.TempDir(), "no") }, "--kubeconfig"},
		"plain http":    {"tokens would travel in the clear", func(o *options) { o.publicURL = "http://acp.example.com" }, "must be https"},
		"port in use":   {"names the port", func(o *options) { o.listen = provider.Listener.Addr().String() }, "is in use by another program"},
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions(t, config, provider)
			tc.change(&o)
			if name == "plain http" {
				o.kubeconfig = testenv.WriteKubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"})
			}
			err := run(t.Context(), o, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
