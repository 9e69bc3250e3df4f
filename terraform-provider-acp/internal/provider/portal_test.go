package provider

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/portalclient"
	"github.com/acp-io/acp/internal/testenv"
)

// site is a running portal with a host cluster: the real program on SQLite and a real API server. Only the adapter and its members are replaced by
// statuses that the test writes.
type site struct {
	t      *testing.T
	base   string
	oidc   *portaltest.Provider
	host   client.Client
	people map[string]*portaltest.Browser
	ended  chan struct{}
}

// newSite starts a portal. The program is that of ACP_PORTAL, or it is built.
func newSite(t *testing.T) *site {
	t.Helper()
	clearEnvironment(t)
	config := portaltest.APIServer(t, true)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	host, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:redis:clusters:*",
			LabelKey: "com.trip/redis-cluster", Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}}},
			Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}},
		&v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: "application"},
			Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"}},
		&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "bobs-cluster"},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeEnforce}},
	} {
		if err := host.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	x := &site{t: t, oidc: portaltest.NewProvider(t), host: host, people: map[string]*portaltest.Browser{}, ended: make(chan struct{})}
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	if err := os.WriteFile(file, []byte(portaltest.ClientSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := testenv.FreeAddress(t)
	x.base = "http://" + listen
	log := &testenv.Output{}
	portal := exec.CommandContext(context.WithoutCancel(t.Context()), portalProgram(t), "--listen="+listen, "--kubeconfig="+testenv.WriteKubeconfig(t, config),
		"--database=sqlite:"+filepath.Join(dir, "portal.db"), "--flow-store=sqlite:"+filepath.Join(dir, "flows.db"), "--catalog="+portaltest.Catalog(t),
		"--oidc-issuer="+x.oidc.URL, "--oidc-client-secret-file="+file)
	portal.Stderr = log
	if err := portal.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = portal.Process.Signal(syscall.SIGTERM) // it runs until here
		_ = portal.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	x.eventually("the portal is ready", func() bool {
		res, err := http.Get(x.base + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }() // nothing is read
		return res.StatusCode == http.StatusOK
	})
	ctx, cancel := context.WithCancel(context.Background())
	go x.adapter(ctx)
	t.Cleanup(func() { cancel(); <-x.ended })
	return x
}

// portalProgram returns the path of the portal's program.
func portalProgram(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("ACP_PORTAL"); p != "" {
		return p
	}
	p := filepath.Join(t.TempDir(), "portal")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", p, "./cmd/portal")
	build.Dir = testenv.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the portal: %v\n%s", err, out)
	}
	return p
}

// eventually polls, because what is waited for happens in another process.
func (x *site) eventually(what string, ok func() bool) {
	x.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout:
			x.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// adapter writes the statuses that the adapter writes, with one member in which everything is realized.
func (x *site) adapter(ctx context.Context) {
	defer close(x.ended)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := x.report(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			x.t.Errorf("write statuses: %v", err)
			return
		}
	}
}

func (x *site) report(ctx context.Context) error {
	accepted := func(generation int64) []metav1.Condition {
		return []metav1.Condition{
			{
				Type:               v1alpha1.ConditionAccepted,
				Status:             metav1.ConditionTrue,
				Reason:             "Accepted",
				ObservedGeneration: generation,
				LastTransitionTime: metav1.Now(),
			},
		}
	}
	var policies v1alpha1.AccessControlPolicyList
	if err := x.host.List(ctx, &policies); err != nil {
		return err
	}
	for _, p := range policies.Items {
		if p.Status.ObservedGeneration == p.Generation {
			continue
		}
		revision := fmt.Sprintf("rev-%d", p.Generation)
		u := v1alpha1.PolicyUnit{
			Resource: portaltest.BobsCluster,
			Revision: revision,
			Clusters: []v1alpha1.ClusterState{{Name: "m1", State: v1alpha1.MemberRealized,
				DesiredRevision: revision, Propagated: true}},
		}
		for _, s := range p.Spec.Statements {
			u.SIDs = append(u.SIDs, s.SID)
		}
		p.Status = v1alpha1.AccessControlPolicyStatus{ObservedGeneration: p.Generation, Units: []v1alpha1.PolicyUnit{u}}
		if err := x.host.Status().Update(ctx, &p); err != nil {
			return err
		}
	}
	var classes v1alpha1.ResourceClassList
	if err := x.host.List(ctx, &classes); err != nil {
		return err
	}
	for _, c := range classes.Items {
		if c.Status.ObservedGeneration == c.Generation {
			continue
		}
		c.Status.ObservedGeneration, c.Status.Conditions = c.Generation, accepted(c.Generation)
		if err := x.host.Status().Update(ctx, &c); err != nil {
			return err
		}
	}
	var approvals v1alpha1.ApprovalPolicyList
	if err := x.host.List(ctx, &approvals); err != nil {
		return err
	}
	for _, p := range approvals.Items {
		if p.Status.ObservedGeneration == p.Generation {
			continue
		}
		p.Status.ObservedGeneration, p.Status.Conditions = p.Generation, accepted(p.Generation)
		if err := x.host.Status().Update(ctx, &p); err != nil {
			return err
		}
	}
	var workloads v1alpha1.ExternalWorkloadList
	if err := x.host.List(ctx, &workloads); err != nil {
		return err
	}
	for _, w := range workloads.Items {
		if w.Status.ObservedGeneration == w.Generation {
			continue
		}
		w.Status.ObservedGeneration, w.Status.Conditions = w.Generation, accepted(w.Generation)
		if err := x.host.Status().Update(ctx, &w); err != nil {
			return err
		}
	}
	return nil
}

// as returns a browser in which a person is logged in.
func (x *site) as(who string) *portaltest.Browser {
	x.t.Helper()
	if x.people[who] == nil {
		b := portaltest.NewBrowser(x.t, x.base)
		if to := b.Login(x.oidc, "/", who); to != "/" {
			x.t.Fatalf("%s could not log in: %s", who, to)
		}
		x.people[who] = b
	}
	return x.people[who]
}

// core returns the provider with a new token of a person.
func (x *site) core(who string, scopes ...string) *core {
	x.t.Helper()
	return newCore(x.t, values{"address": x.base, "token": x.token(who, scopes...)})
}

func (x *site) token(who string, scopes ...string) string {
	x.t.Helper()
	var made struct{ Secret string }
	a := x.as(who).Post("/api/v1/me/tokens", map[string]any{"name": "terraform", "scopes": scopes, "expiresInSeconds": 3600})
	if a.Status != http.StatusCreated {
		x.t.Fatalf("create a token: %d %s", a.Status, a.Body)
	}
	a.Into(x.t, &made)
	return made.Secret
}

// ticketOf is a ticket as a person sees it.
type ticketOf struct {
	ID, State, Kind string
	Version         int64
	Items           []struct {
		Hours *portalclient.WeeklyHours
		Steps []struct {
			Name, State string
			Approvers   []struct{ ID string }
		}
	}
}

func (x *site) ticket(who, id string) (t ticketOf) {
	x.t.Helper()
	x.as(who).Get("/api/v1/tickets/"+id).Into(x.t, &t)
	return t
}

// decide lets people decide a ticket, one after another.
func (x *site) decide(id, decision string, people ...string) {
	x.t.Helper()
	if err := x.tryDecide(id, decision, people...); err != nil {
		x.t.Fatal(err)
	}
}

func (x *site) tryDecide(id, decision string, people ...string) error {
	for _, who := range people {
		body := map[string]any{"decision": decision, "version": x.ticket(who, id).Version}
		if decision == "reject" {
			body["comment"] = "not for this"
		}
		if a := x.as(who).Post("/api/v1/tickets/"+id+"/decision", body); a.Status != http.StatusOK {
			return fmt.Errorf("%s decides %s: %d %s", who, id, a.Status, a.Body)
		}
	}
	return nil
}

// meanwhile lets somebody decide the next ticket of a person while the test goes on. The function that it returns waits until that is done.
func (x *site) meanwhile(requester, decision string, people ...string) (done func()) {
	x.t.Helper()
	for _, who := range append(people, requester) {
		x.as(who) // a login in the test's own goroutine
	}
	result := make(chan error, 1)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for timeout := time.After(time.Minute); ; {
			select {
			case <-tick.C:
			case <-timeout:
				result <- fmt.Errorf("there is no ticket of %s", requester)
				return
			}
			var list struct{ Items []ticketOf }
			x.people[requester].Get("/api/v1/tickets?view=mine&state=pending").Into(x.t, &list)
			if len(list.Items) > 0 {
				result <- x.tryDecide(list.Items[0].ID, decision, people...)
				return
			}
		}
	}()
	return func() {
		x.t.Helper()
		if err := <-result; err != nil {
			x.t.Error(err)
		}
	}
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s: %q lacks %q", what, text, p)
		}
	}
}

func with(base values, change values) values {
	out := values{}
	for _, m := range []values{base, change} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func must(t *testing.T, what string, s said) {
	t.Helper()
	if s.failed {
		t.Fatal(cmp.Or(what, "failed") + ": " + s.text)
	}
}
