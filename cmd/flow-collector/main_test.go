package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit/hubble"
	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/health"
	"github.com/acp-io/acp/internal/version"
)

func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// arguments returns valid arguments with changes: a new value for a flag, or "" to omit it.
func arguments(t *testing.T, changes map[string]string) []string {
	t.Helper()
	some := file(t, "")
	values := map[string]string{
		"kubeconfig":             some,
		"store":                  "sqlite:" + filepath.Join(t.TempDir(), "flows.db"),
		"hubble":                 "m1=127.0.0.1:1",
		"hubble-tls-ca":          some,
		"hubble-tls-cert":        some,
		"hubble-tls-key":         some,
		"hubble-tls-server-name": "relay.test",
		"health-address":         "127.0.0.1:0",
	}
	for k, v := range changes {
		values[k] = v
	}
	var out []string
	for k, v := range values {
		if v != "" {
			out = append(out, "--"+k+"="+v)
		}
	}
	return out
}

func TestInvalidFlagsPrintOneLine(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		changes map[string]string
		extra   []string
		want    string
	}{
		"NoStore":         {"the store is missing", map[string]string{"store": ""}, nil, "give it as sqlite:FILE"},
		"OtherStore":      {"the backend does not exist", map[string]string{"store": "mysql:x"}, nil, "give it as sqlite:FILE"},
		"ClickHouse":      {"it needs a database", map[string]string{"store": "clickhouse://h:9000"}, nil, "needs a host and a database"},
		"StoreFile":       {"a typing mistake", map[string]string{"store": "@no-such-file"}, nil, "no-such-file"},
		"Flows":           {"the value is not one of three", map[string]string{"flows": "some"}, nil, "use all, refused or none"},
		"FlowsLonger":     {"the roll-ups would be deleted first", map[string]string{"flow-retention": "999999h"}, nil, "--flow-retention"},
		"SpoolSize":       {"it could not hold a batch", map[string]string{"spool-size": "1"}, nil, "--spool-size"},
		"AuditLog":        {"the value is not one of three", map[string]string{"audit-log": "syslog:x"}, nil, "use stdout, file:PATH or the https address"},
		"AuditLogInClear": {"the log would be sent unencrypted", map[string]string{"audit-log": "http://siem.example/x"}, nil, "in the clear"},
		"AuditLogToken":   {"the token would not be used", map[string]string{"audit-log": "stdout", "audit-log-token-file": "x"}, nil, "is for a webhook"},
		"ExporterForm":    {"the error states the form", map[string]string{"exporter": "events.log"}, nil, "NAME=FILE"},
		"ExporterTwice":   {"its flows would be counted twice", map[string]string{"exporter": "m1=events.log"}, nil, "is given twice"},
		"StdinTwice":      {"a line belongs to one member only", map[string]string{"exporter": "m2=-"}, []string{"--exporter=m3=-"}, "only one source"},
		"StdinAgain": {"a change of the registrations would read it a second time", map[string]string{"exporter": "m2=-"}, []string{"--registrations"},
			"--registrations cannot be combined"},
		"NoMember":     {"nothing to collect", map[string]string{"hubble": ""}, nil, "--hubble is missing"},
		"MemberForm":   {"the error states the form", map[string]string{"hubble": "127.0.0.1:1"}, nil, "NAME=HOST:PORT"},
		"MemberName":   {"no cluster can have this name", map[string]string{"hubble": "M_1=127.0.0.1:1"}, nil, "NAME=HOST:PORT"},
		"MemberPort":   {"an address needs a port", map[string]string{"hubble": "m1=127.0.0.1"}, nil, "HOST:PORT"},
		"MemberTwice":  {"its flows would be counted twice", nil, []string{"--hubble=m1=127.0.0.1:2"}, "is given twice"},
		"NoCA":         {"never without mutual TLS", map[string]string{"hubble-tls-ca": ""}, nil, "--hubble-tls-ca is missing"},
		"NoServerName": {"never without checking the server", map[string]string{"hubble-tls-server-name": ""}, nil, "--hubble-tls-server-name is missing"},
		"Health":       {"an address needs a port", map[string]string{"health-address": "8083"}, nil, "--health-address"},
		"Metrics":      {"an address needs a port", map[string]string{"metrics-address": "8083"}, nil, "--metrics-address"},
		"MetricsTLS": {
			"the probes are served without it",
			map[string]string{"metrics-tls-cert-file": "c", "metrics-tls-key-file": "k"}, nil, "needs --metrics-address",
		},
		"Password":  {"other users see the command line", map[string]string{"store": "clickhouse://acp:hush@h:9000/d"}, nil, "put the address into a file"},
		"Grace":     {"counts could not be stored", map[string]string{"shutdown-grace": "0s"}, nil, "--shutdown-grace"},
		"Retention": {"evidence must be kept for some time", map[string]string{"retention": "1s"}, nil, "--retention"},
		"LogFormat": {"the value is not one of two", map[string]string{"log-format": "xml"}, nil, "use text or json"},
		"LogLevel":  {"the value is not one of four", map[string]string{"log-level": "loud"}, nil, `"--log-level" flag`},
		"Unknown":   {"a typing mistake", nil, []string{"--hubbel=x"}, "unknown flag: --hubbel"},
		"Argument":  {"arguments without a flag are not accepted", nil, []string{"m1"}, `unexpected argument "m1"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := newProgram().Run(t.Context(), append(arguments(t, tc.changes), tc.extra...), &out, &errs)
			if code != configuration.ExitUsage || !strings.Contains(errs.String(), tc.want) || strings.Count(errs.String(), "\n") != 1 {
				t.Errorf("%s: got code %d, %q; want %d and one line with %q", tc.reason, code, errs.String(), configuration.ExitUsage, tc.want)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for flag, want := range map[string]string{"--help": "--hubble-tls-server-name", "--version": "flow-collector " + version.String()} {
		var out, errs bytes.Buffer
		code := newProgram().Run(t.Context(), []string{flag}, &out, &errs)
		if code != configuration.ExitOK || !strings.Contains(out.String(), want) || errs.Len() > 0 {
			t.Errorf("%s: got code %d, %q, %q", flag, code, out.String(), errs.String())
		}
	}
}

const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "h",
 "clusters": [{"name": "h", "cluster": {"server": "http://127.0.0.1:1"}}], "contexts": [{"name": "h", "context": {"cluster": "h"}}]}`

func certificate(t *testing.T) map[string]string {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return certificateOf(t, s.TLS.Certificates[0])
}

// certificateOf returns the flags of a collector that has the certificate and trusts it alone.
func certificateOf(t testing.TB, c tls.Certificate) map[string]string {
	t.Helper()
	cert, key := pair(t, c)
	return map[string]string{"hubble-tls-ca": file(t, cert), "hubble-tls-cert": file(t, cert), "hubble-tls-key": file(t, key)}
}

func with(a map[string]string, kv ...string) map[string]string {
	out := map[string]string{"kubeconfig": ""}
	for k, v := range a {
		out[k] = v
	}
	for i := 0; i+1 < len(kv); i += 2 {
		out[kv[i]] = kv[i+1]
	}
	return out
}

func TestStartFailuresPrintOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tls, host := certificate(t), file(t, kubeconfig)
	for name, tc := range map[string]struct {
		reason  string
		changes map[string]string
		want    string
	}{
		"Certificate": {"no member could be read", with(tls, "kubeconfig", host, "hubble-tls-ca", file(t, "nonsense")), "holds no PEM certificate"},
		"Key": {
			"no member could be read", with(tls, "kubeconfig", host, "hubble-tls-key", file(t, "nonsense")),
			"read the collector's certificate",
		},
		"NoKubeconfig":      {"the host cluster is unknown", with(tls), "no --kubeconfig is given"},
		"KubeconfigMissing": {"a typing mistake", with(tls, "kubeconfig", "no-such-file"), "--kubeconfig no-such-file cannot be used"},
		"Kubeconfig":        {"the file is no kubeconfig", with(tls, "kubeconfig", file(t, "{")), "cannot be used"},
		"Folder": {
			"the store's folder is missing",
			with(tls, "kubeconfig", host, "store", "sqlite:"+filepath.Join(t.TempDir(), "no", "flows.db")), "create it first",
		},
		"Port": {"the port is in use", with(tls, "kubeconfig", host, "health-address", taken.Addr().String()), "--health-address"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := newProgram().Run(t.Context(), arguments(t, tc.changes), &out, &errs)
			if code != configuration.ExitError || !strings.Contains(errs.String(), tc.want) || strings.Count(errs.String(), "\n") != 1 {
				t.Errorf("%s: got code %d, %q; want %d and one line with %q", tc.reason, code, errs.String(), configuration.ExitError, tc.want)
			}
		})
	}
}

// log is a buffer that the program writes and the test reads concurrently.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestRunsWhileHostAndMembersAreUnreachable(t *testing.T) {
	var out, errs log
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- newProgram().Run(ctx, arguments(t, with(certificate(t), "kubeconfig", file(t, kubeconfig))), &out, &errs)
	}()
	address := regexp.MustCompile(`health=(\S+)`)
	for address.FindStringSubmatch(errs.String()) == nil || !strings.Contains(errs.String(), "the host cluster cannot be read") {
		select {
		case c := <-code:
			t.Fatalf("ended with %d: %s", c, errs.String())
		case <-time.After(time.Millisecond):
		}
	}
	base := "http://" + address.FindStringSubmatch(errs.String())[1]
	get := func(path string) (int, string) {
		t.Helper()
		r, err := http.Get(base + path)
		if err != nil {
			t.Fatalf("GET %s: %v", path, err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatalf("GET %s: %v", path, err)
		}
		return r.StatusCode, string(body)
	}
	if status, body := get("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: got %d %s", status, body)
	}
	if status, body := get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "the host cluster cannot be read") {
		t.Errorf("/readyz: got %d %s; want a problem of the host cluster", status, body)
	}
	if status, body := get("/metrics"); status != http.StatusOK || !strings.Contains(body, `acp_flow_source_connected{cluster="m1"} 0`) {
		t.Errorf("/metrics: got %d %s", status, body)
	}
	cancel()
	if c := <-code; c != configuration.ExitOK {
		t.Errorf("ended with %d: %s", c, errs.String())
	}
}

// TestStoppedWhileStarting checks that the end of the context while the collector opens its store is no failure.
func TestStoppedWhileStarting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := newProgram().Run(ctx, arguments(t, with(certificate(t), "kubeconfig", file(t, kubeconfig))), &out, &errs); code != configuration.ExitOK {
		t.Errorf("ended with %d: %s", code, errs.String())
	}
}

func TestUnlessStopped(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	canceled, full := fmt.Errorf("open the store: %w", context.Canceled), errors.New("disk full")
	for name, tc := range map[string]struct {
		reason string
		ctx    context.Context
		err    error
		failed bool
	}{
		"None":      {"nothing failed", stopped, nil, false},
		"Canceled":  {"it was stopped", stopped, canceled, false},
		"Both":      {"both parts were stopped", stopped, errors.Join(canceled, context.Canceled), false},
		"Other":     {"it failed while it was stopped", stopped, full, true},
		"Joined":    {"one part failed", stopped, fmt.Errorf("stop: %w", errors.Join(canceled, full)), true},
		"Running":   {"nobody has stopped it", t.Context(), canceled, true},
		"TimeLimit": {"the store did not answer", stopped, context.DeadlineExceeded, true},
	} {
		if err := unlessStopped(tc.ctx, tc.err); (err != nil) != tc.failed {
			t.Errorf("%s: %s: got %v", name, tc.reason, err)
		}
	}
}

func TestReadiness(t *testing.T) {
	good := sources{
		policiesRead:    func() bool { return true },
		policiesProblem: func() string { return "" },
		storeErr:        func() error { return nil },
		spooling:        func() error { return nil },
		members:         func() []hubble.State { return []hubble.State{{Member: "m1", Connected: true}} },
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*sources)
		ready  bool
		want   string
	}{
		"Good":       {"everything works", func(*sources) {}, true, `"policies":"ok"`},
		"Starting":   {"the collector has not started yet", func(*sources) {}, false, "not started yet"},
		"Ending":     {"the collector is shutting down", func(*sources) {}, false, "shutting down"},
		"NoPolicies": {"nothing can be decided", func(s *sources) { s.policiesRead = func() bool { return false } }, false, "not read yet"},
		"OldPolicies": {"flows are decided by the policies read before, and the problem is reported",
			func(s *sources) { s.policiesProblem = func() string { return "the host is away" } }, true,
			"the host is away"},
		"Spool": {"nothing is lost", func(s *sources) { s.spooling = func() error { return errors.New("no route") } }, true, "kept in the spool: no route"},
		"Store": {"counts cannot be stored", func(s *sources) { s.storeErr = func() error { return errors.New("disk full") } }, false, "disk full"},
		"NoRegistrations": {"members in use keep their sources, and the problem is reported",
			func(s *sources) { s.registrations = func() string { return "forbidden" } }, true, `"registrations":"forbidden"`},
		"MemberDown": {"the other members are followed", func(s *sources) {
			s.members = func() []hubble.State { return []hubble.State{{Member: "m1", Problem: "connection refused"}} }
		}, true, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s, started := good, health.New()
			if name != "Starting" {
				started.Started()
			}
			if name == "Ending" {
				started.Stopping()
			}
			tc.change(&s)
			w := httptest.NewRecorder()
			healthHandler(started, s).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			var body readiness
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatalf("body %q: %v", w.Body, err)
			}
			if body.Ready != tc.ready || (w.Code == http.StatusOK) != tc.ready || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("%s: got %d %s; want ready %v and %q", tc.reason, w.Code, w.Body, tc.ready, tc.want)
			}
		})
	}
}
