package fleet

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/tracing/tracingtest"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// TestOneTraceFromTheRequestToTheMembers starts the real portal and the real adapter as processes of their own, on a fleet with
// the real KubeFed, and a collector. A ticket that two people approve is one trace in the collector, from the HTTP request that
// submitted it to the read-back of each member, and its revocation continues it.
func TestOneTraceFromTheRequestToTheMembers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	to, provider := tracingtest.NewReceiver(t), portaltest.NewProvider(t)
	f, s := newFleet(t, t.TempDir())
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	createDemoClasses(ctx, t, f)
	adapter := adapterSpec(t, f)
	adapter.Args = append(adapter.Args, "--tracing-endpoint="+to.URL)
	portal, address := portalSpec(t, f, provider, "--tracing-endpoint="+to.URL, "--trace-url=https://jaeger.example/trace/{traceId}")
	for _, spec := range []*supervisor.Spec{&adapter, &portal} {
		spec.Env = append(spec.Env, "OTEL_BSP_SCHEDULE_DELAY=100") // milliseconds
		if err := s.Add(*spec); err != nil {
			t.Fatal(err)
		}
		if err := s.StartAndWait(ctx, spec.Name); err != nil {
			t.Fatal(err)
		}
	}
	(&trap{ctx: ctx, t: t, f: f, s: s}).onboard("bobs-cluster")
	people := map[string]*portaltest.Browser{}
	for _, who := range []string{"alice", "carol", "bob"} {
		people[who] = portaltest.NewBrowser(t, "http://"+address)
		people[who].Login(provider, "/", who)
	}
	type ticket struct {
		ID, State, TraceID, TraceURL string
		Version                      int64
	}
	get := func() (x ticket) { people["alice"].Get("/api/v1/tickets/T-1").Into(t, &x); return x }
	until := func(state string) {
		t.Helper()
		if err := poll(ctx, "the ticket is not "+state, func(context.Context) error {
			if x := get(); x.State != state {
				return errors.New("it is " + x.State)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if a := people["alice"].Post("/api/v1/tickets", map[string]any{"reason": "checkout", "items": []map[string]any{
		{"application": "app-888", "resource": "bobs-cluster", "actions": []string{"redis:connect"}}}}); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for _, who := range []string{"carol", "bob"} {
		if a := people[who].Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "approve", "version": get().Version}); a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", who, a.Status, a.Body)
		}
	}
	until("effective")
	x := get()
	if len(x.TraceID) != 32 || x.TraceURL != "https://jaeger.example/trace/"+x.TraceID {
		t.Fatalf("the ticket shows the trace %q, %q", x.TraceID, x.TraceURL)
	}
	all := checkTrace(t, to, x.TraceID, map[string][]string{
		"acp-portal":  {"POST /api/v1/tickets", "ticket.submit", "ticket.step-approved", "ticket.approved", "outbox.apply", "host.write", "ticket.effective"},
		"acp-adapter": {"unit.reconcile", "unit.compile", "unit.write", "unit.realize", "member.realize", "member.realize"},
	})
	// The parts are below each other across the border of the programs.
	for child, parent := range map[string]string{"ticket.submit": "POST /api/v1/tickets", "outbox.apply": "ticket.submit",
		"host.write": "outbox.apply", "unit.reconcile": "host.write",
		"unit.compile": "unit.reconcile", "unit.realize": "unit.reconcile", "member.realize": "unit.realize"} {
		c := all[slices.IndexFunc(all, func(s tracingtest.Span) bool { return s.Name == child })]
		p := all[slices.IndexFunc(all, func(s tracingtest.Span) bool { return s.SpanID == c.ParentID })]
		if p.Name != parent {
			t.Errorf("%s is below %s, not below %s", child, p.Name, parent)
		}
	}

	if a := people["bob"].Post("/api/v1/tickets/T-1/revoke", map[string]any{"reason": "enough"}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	until("revoked")
	checkTrace(t, to, x.TraceID, map[string][]string{
		"acp-portal": {"ticket.revoke-requested", "outbox.remove", "host.write", "host.write", "ticket.revoked"},
		"acp-adapter": {
			"unit.reconcile",
			"unit.reconcile",
			"unit.write",
			"unit.write",
			"unit.realize",
			"unit.realize",
			"member.realize",
			"member.realize",
			"member.realize",
			"member.realize",
		},
	})
}

// checkTrace waits until a trace has at least these spans of each program, and returns all of its spans. Its parents must have
// arrived, too: a trace with a hole is not one trace.
func checkTrace(t *testing.T, to *tracingtest.Receiver, id string, want map[string][]string) []tracingtest.Span {
	t.Helper()
	of := func(all []tracingtest.Span) []tracingtest.Span {
		return slices.DeleteFunc(slices.Clone(all), func(s tracingtest.Span) bool { return s.TraceID != id })
	}
	return of(to.Until(t, time.Minute, func(all []tracingtest.Span) bool {
		all = of(all)
		for _, s := range all {
			if s.ParentID != "" && !slices.ContainsFunc(all, func(p tracingtest.Span) bool { return p.SpanID == s.ParentID }) {
				return false
			}
		}
		for service, names := range want {
			have := map[string]int{}
			for _, s := range all {
				if s.Service == service {
					have[s.Name]++
				}
			}
			for _, name := range names {
				if have[name]--; have[name] < 0 {
					return false
				}
			}
		}
		return true
	}))
}

// portalSpec returns the real portal with the people of portaltest, and its address.
func portalSpec(t *testing.T, f *Fleet, provider *portaltest.Provider, args ...string) (spec supervisor.Spec, address string) {
	t.Helper()
	dir := t.TempDir()
	binary, secret := buildProgram(t, f, "portal"), filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(portaltest.ClientSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	address = testenv.FreeAddress(t)
	return supervisor.Spec{
		Name:  "portal",
		Layer: LayerControlPlane,
		Path:  binary,
		Args: append([]string{
			"--listen=" + address,
			"--kubeconfig=" + f.Layout.Kubeconfig(Portal),
			"--database=sqlite:" + filepath.Join(
				dir,
				"portal.db",
			),
			"--flow-store=sqlite:" + filepath.Join(dir, "flows.db"),
			"--catalog=" + portaltest.Catalog(t),
			"--oidc-issuer=" + provider.URL,
			"--oidc-client-id=" + portaltest.ClientID,
			"--oidc-client-secret-file=" + secret,
		}, args...),
		Ready: func(ctx context.Context) error {
			return GetOK(ctx, http.DefaultClient, "http://"+address+"/readyz", "")
		},
	}, address
}
