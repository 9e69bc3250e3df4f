package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

const bePortal = "TEST_BE_PORTAL"

// TestMain is the program itself when a test wants a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv(bePortal) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a portal in a process of its own.
type process struct {
	t            *testing.T
	cmd          *exec.Cmd
	base, health string
	log          *testenv.Output
	ended        chan error
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	return begin(t, exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]), args...) //nolint:gosec // it is this test's own program
}

// begin starts the command with addresses and the arguments.
func begin(t *testing.T, cmd *exec.Cmd, args ...string) *process {
	t.Helper()
	p := &process{t: t, log: &testenv.Output{}, ended: make(chan error, 1)}
	listen, health := testenv.FreeAddress(t), testenv.FreeAddress(t)
	p.base, p.health = "http://"+listen, "http://"+health
	p.cmd = cmd
	p.cmd.Args = append(append(p.cmd.Args, "--listen="+listen, "--health-address="+health), args...)
	p.cmd.Env = append(p.cmd.Environ(), bePortal+"=1")
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended, if all is well
		if t.Failed() {
			t.Log(p.log.String())
		}
	})
	eventually.True(t, "the portal is ready", func() bool { return p.probe("/readyz") == http.StatusOK })
	return p
}

// probe returns the status of a probe, or 0 if the program does not answer.
func (p *process) probe(path string) int {
	res, err := http.Get(p.health + path)
	if err != nil {
		return 0
	}
	defer func() { _ = res.Body.Close() }() // nothing is read
	return res.StatusCode
}

func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// wait until the process has ended, and return how long that took.
func (p *process) wait() time.Duration {
	p.t.Helper()
	began := time.Now()
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Errorf("the portal ended with %v", err)
		}
	case <-time.After(time.Minute):
		p.t.Error("the portal does not end")
	}
	return time.Since(began)
}

// slowHost passes requests to an API server, and holds those that create a policy until it is released.
func slowHost(t *testing.T, config *rest.Config) (slow *rest.Config, held chan struct{}, release func()) {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	held = make(chan struct{}, 1)
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/accesscontrolpolicies") {
			select {
			case held <- struct{}{}:
			default:
			}
			select {
			case <-gate:
			case <-r.Context().Done():
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	var once sync.Once
	release = func() { once.Do(func() { close(gate) }) }
	t.Cleanup(func() { release(); server.CloseClientConnections(); server.Close() })
	return &rest.Config{Host: server.URL}, held, release
}

func processArguments(t *testing.T, config *rest.Config, provider *portaltest.Provider) []string {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(portaltest.ClientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{
		"--kubeconfig=" + testenv.WriteKubeconfig(t, config),
		"--data-dir=" + dir,
		"--catalog=" + portaltest.Catalog(t),
		"--oidc-issuer=" + provider.URL,
		"--oidc-client-secret-file=" + secret,
		"--ledger-anchor=none",
	}
}

// TestEndsWithoutLosingWork: SIGTERM reaches the portal while a request is being sent and an approved change is being written. The
// portal is unready at once, still answers, and ends when both are done.
func TestEndsWithoutLosingWork(t *testing.T) {
	config := portaltest.APIServer(t, true)
	f := newFleet(t, config)
	provider := portaltest.NewProvider(t)
	slow, held, release := slowHost(t, config)
	p := startProcess(t, append(processArguments(t, slow, provider), "--shutdown-delay=1s", "--shutdown-grace=30s")...)
	people := map[string]*portaltest.Browser{}
	for _, who := range []string{"alice", "carol", "bob"} {
		people[who] = portaltest.NewBrowser(t, p.base)
		people[who].Login(provider, "/", who)
	}
	request := map[string]any{
		"reason": "checkout",
		"items":  []map[string]any{{"application": "app-888", "resource": "bobs-cluster", "actions": []string{"redis:connect"}}},
	}
	if a := people["alice"].Post("/api/v1/tickets", request); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for i, who := range []string{"carol", "bob"} {
		if a := people[who].Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "approve", "version": i + 1}); a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", who, a.Status, a.Body)
		}
	}
	<-held // the change is being written
	if p.probe("/startupz") != http.StatusOK || p.probe("/livez") != http.StatusOK {
		t.Error("a portal that serves has started and lives")
	}
	// Half of a request is sent.
	reading, writing := io.Pipe()
	answered := make(chan portaltest.Answer, 1)
	go func() {
		answered <- people["alice"].Raw(http.MethodPost, "/api/v1/tickets", reading, http.Header{"X-ACP-Request": {"1"}, "Content-Type": {"application/json"}})
	}()
	if _, err := io.WriteString(writing, `{"reason": "another", "items": [{"application": "app-888", `); err != nil {
		t.Fatal(err)
	}
	p.terminate()
	eventually.True(t, "the portal is unready", func() bool { return p.probe("/readyz") == http.StatusServiceUnavailable })
	if p.probe("/livez") != http.StatusOK {
		t.Error("a portal that ends in good order must not be killed for it")
	}
	if a := people["bob"].Get("/api/v1/me"); a.Status != http.StatusOK {
		t.Errorf("load balancers do not know yet, and a request gets %d", a.Status)
	}
	eventually.True(t, "new connections are refused", func() bool {
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(p.base + "/healthz")
		if err == nil {
			_ = res.Body.Close()
		}
		return err != nil
	})
	if _, err := io.WriteString(writing, `"resource": "bobs-cluster", "actions": ["redis:connect"]}]}`); err != nil {
		t.Fatal(err)
	}
	if err := writing.Close(); err != nil {
		t.Fatal(err)
	}
	if a := <-answered; a.Status != http.StatusCreated && a.Status != http.StatusConflict && a.Status != http.StatusUnprocessableEntity {
		t.Errorf("the request that was begun got %d %s", a.Status, a.Body)
	}
	select {
	case err := <-p.ended:
		t.Fatalf("the portal ended (%v) while a change was being written", err)
	case <-time.After(200 * time.Millisecond):
	}
	release()
	p.wait()
	if acp, err := f.policy(); err != nil || len(acp.Spec.Statements) != 1 {
		t.Errorf("the approved statement is not written: %v", err)
	}
}

// TestGraceIsKept checks that a host cluster that does not answer does not delay the end of the portal beyond its grace period.
func TestGraceIsKept(t *testing.T) {
	config := portaltest.APIServer(t, true)
	newFleet(t, config)
	provider := portaltest.NewProvider(t)
	slow, held, _ := slowHost(t, config)
	args := processArguments(t, slow, provider)
	p := startProcess(t, append(args, "--shutdown-grace=2s")...)
	for i, who := range []string{"alice", "carol", "bob"} {
		b := portaltest.NewBrowser(t, p.base)
		b.Login(provider, "/", who)
		if i == 0 {
			b.Post(
				"/api/v1/tickets",
				map[string]any{
					"reason": "r",
					"items":  []map[string]any{{"application": "app-888", "resource": "bobs-cluster", "actions": []string{"redis:connect"}}},
				},
			)
			continue
		}
		if a := b.Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "approve", "version": i}); a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", who, a.Status, a.Body)
		}
	}
	<-held
	p.terminate()
	began := time.Now()
	var exit *exec.ExitError
	if err := <-p.ended; !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v, though a change was not written", err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
	if !strings.Contains(p.log.String(), "--shutdown-grace 2s was over") {
		t.Error("the log does not say that something was left")
	}
	// The next portal takes the change up.
	f := &fleet{t: t, c: newFleetClient(t, config)}
	next := startProcess(t, append(args, "--kubeconfig="+testenv.WriteKubeconfig(t, config))...)
	eventually.True(t, "the next portal writes the statement", func() bool { acp, err := f.policy(); return err == nil && len(acp.Spec.Statements) == 1 })
	next.terminate()
	next.wait()
}

// TestRunsConfined: as in the pod of deploy/workloads, the portal is not root, has no capability, and can write to its data folder and the folder
// for temporary files alone.
func TestRunsConfined(t *testing.T) {
	config := portaltest.APIServer(t, true)
	newFleet(t, config)
	provider := portaltest.NewProvider(t)
	folder := t.TempDir()
	catalog := filepath.Join(folder, "catalog")
	if err := os.CopyFS(catalog, os.DirFS(portaltest.Catalog(t))); err != nil {
		t.Fatal(err)
	}
	args := processArguments(t, config, provider)
	for _, from := range args {
		name, path, _ := strings.Cut(from, "=")
		if name != "--kubeconfig" && name != "--oidc-client-secret-file" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, strings.TrimPrefix(name, "--")), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := begin(
		t,
		testenv.Confined(t, folder),
		"--kubeconfig="+filepath.Join(folder, "kubeconfig"),
		"--oidc-client-secret-file="+filepath.Join(folder, "oidc-client-secret-file"),
		"--data-dir="+filepath.Join(folder, "data"),
		"--catalog="+catalog,
		"--oidc-issuer="+provider.URL,
		"--ledger-anchor=none",
	)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil || !strings.Contains(string(status), "CapEff:\t0000000000000000") || !strings.Contains(string(status), "NoNewPrivs:\t1") {
		t.Fatalf("the test does not confine the program: %v\n%s", err, status)
	}
	b := portaltest.NewBrowser(t, p.base)
	b.Login(provider, "/", "alice")
	if a := b.Post(
		"/api/v1/tickets",
		map[string]any{"reason": "r", "items": []map[string]any{{"application": "app-888", "resource": "bobs-cluster", "actions": []string{"redis:connect"}}}},
	); a.Status != http.StatusCreated {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	p.terminate()
	p.wait()
	for _, problem := range []string{"read-only", "permission denied", "level=ERROR"} {
		if strings.Contains(p.log.String(), problem) {
			t.Errorf("the log has %q", problem)
		}
	}
}
