package otlp

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"

	"github.com/acp-io/acp/internal/tracing"
	"github.com/acp-io/acp/internal/tracing/tracingtest"
)

// environment is the environment of a program in a test.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		in      Settings
		environ []string
		want    string // the URL; empty if tracing is off
		refused string
	}{
		"default": {reason: "off", in: Settings{SampleRatio: 1}},
		"endpoint": {
			reason: "the standard path", in: Settings{Endpoint: "https://otel.example:4318", SampleRatio: 1},
			want: "https://otel.example:4318/v1/traces",
		},
		"path": {
			reason: "a gateway may have another", in: Settings{Endpoint: "https://otel.example/otlp/x", SampleRatio: 1},
			want: "https://otel.example/otlp/x",
		},
		"loopback": {
			reason: "nobody listens on the way", in: Settings{Endpoint: "http://127.0.0.1:4318", SampleRatio: 1},
			want: "http://127.0.0.1:4318/v1/traces",
		},
		"plain": {reason: "others could read it", in: Settings{Endpoint: "http://otel.example:4318", SampleRatio: 1}, refused: "--tracing-insecure"},
		"plain, allowed": {
			reason: "it was said", in: Settings{Endpoint: "http://otel.example:4318", Insecure: true, SampleRatio: 1},
			want: "http://otel.example:4318/v1/traces",
		},
		"host and port": {reason: "that is the form for gRPC", in: Settings{Endpoint: "otel.example:4317", SampleRatio: 1}, refused: "give a URL"},
		"password": {
			reason: "others can read settings", in: Settings{Endpoint: "https://u:hush@otel.example", SampleRatio: 1},
			refused: "--tracing-headers-file",
		},
		"query":         {reason: "it may hold a token", in: Settings{Endpoint: "https://otel.example/?token=hush", SampleRatio: 1}, refused: "give a URL"},
		"ratio":         {reason: "a share", in: Settings{SampleRatio: 1.5}, refused: "between 0 and 1"},
		"headers alone": {reason: "they would be ignored", in: Settings{HeadersFile: "x", SampleRatio: 1}, refused: "--tracing-endpoint is required"},
		"variable": {
			reason: "the standard one", in: Settings{SampleRatio: 1},
			environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://otel.example:4318/base/"},
			want:    "https://otel.example:4318/base/v1/traces",
		},
		"variable, plain": {
			reason: "it is no different", in: Settings{SampleRatio: 1},
			environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel.example:4318"}, refused: "OTEL_EXPORTER_OTLP_ENDPOINT",
		},
		"variable, traces": {
			reason: "it is taken as it is", in: Settings{SampleRatio: 1},
			environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://b/t"},
			want:    "https://b/t",
		},
		"setting over both": {
			reason: "ACP's own counts", in: Settings{Endpoint: "https://own", SampleRatio: 1},
			environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://a"},
			want:    "https://own/v1/traces",
		},
		"disabled": {reason: "the standard says so", in: Settings{Endpoint: "https://own", SampleRatio: 1}, environ: []string{"OTEL_SDK_DISABLED", "true"}},
		"no exporter": {
			reason: "the standard says so", in: Settings{Endpoint: "https://own", SampleRatio: 1},
			environ: []string{"OTEL_TRACES_EXPORTER", "none"},
		},
		"gRPC": {
			reason: "it is not spoken", in: Settings{Endpoint: "https://own", SampleRatio: 1},
			environ: []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, refused: "http/protobuf only",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Environ = environment(tc.environ...)
			err := tc.in.Validate()
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) || strings.Contains(err.Error(), "u:hush") {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			u, err := tc.in.url()
			if err != nil || tc.in.On() != (tc.want != "") || tc.want == "" && u != nil || tc.want != "" && u.String() != tc.want {
				t.Errorf("%s: %v, %v", tc.reason, u, err)
			}
		})
	}
}

// Nothing is created, and nothing is contacted, unless it is configured.
func TestOffByDefault(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
	}
	p, err := Open(t.Context(), Config{Settings: Settings{SampleRatio: 1}, Log: slog.New(slog.DiscardHandler)})
	if err != nil || p != nil || p.Tracer() != nil {
		t.Fatalf("%v, %v", p, err)
	}
	p.Close(t.Context())
}

func open(t *testing.T, s Settings, log *slog.Logger, registry prometheus.Registerer) *Provider {
	t.Helper()
	if s.SampleRatio == 0 {
		s.SampleRatio = 1
	}
	p, err := Open(t.Context(), Config{Settings: s, Service: "acp-test", Version: "v1", Log: log, Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSpansArrive(t *testing.T) {
	to := tracingtest.NewReceiver(t)
	headers := filepath.Join(t.TempDir(), "headers")
	write(t, headers, "Authorization: Bearer one\n\nX-Scope-OrgID:  acp \n")
	registry := prometheus.NewRegistry()
	p := open(t, Settings{Endpoint: to.URL, HeadersFile: headers}, slog.New(slog.DiscardHandler), registry)
	ctx, span := p.Tracer().Start(t.Context(), "outer")
	_, inner := p.Tracer().Continue(t.Context(), tracing.Position(ctx), "inner")
	inner.SetAttributes(tracing.Ticket.String("T-1"), attribute.Int("n", 1))
	tracing.Fail(inner, "it failed")
	inner.End()
	span.End()
	p.Close(t.Context())
	all := to.Until(t, 10*time.Second, func(s []tracingtest.Span) bool { return len(s) == 2 })
	if all[0].Name != "outer" || all[1].Name != "inner" || all[0].TraceID != all[1].TraceID || all[1].ParentID != all[0].SpanID ||
		all[0].Service != "acp-test" ||
		!all[1].Failed ||
		all[1].Attributes["acp.ticket"] != "T-1" {
		t.Errorf("%+v", all)
	}
	if h := to.Headers()[0]; h.Get("Authorization") != "Bearer one" || h.Get("X-Scope-OrgID") != "acp" {
		t.Errorf("%v", h)
	}
	const want = `# HELP acp_tracing_spans_total Spans by what became of them: recorded, sent, or failed to be sent. ` +
		`Recorded ones that are neither sent nor failed were dropped, or wait for at most some seconds.
# TYPE acp_tracing_spans_total counter
acp_tracing_spans_total{outcome="failed"} 0
acp_tracing_spans_total{outcome="recorded"} 2
acp_tracing_spans_total{outcome="sent"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// The files of headers and authorities are read again for each batch.
func TestFilesAreReadAgain(t *testing.T) {
	var authorization atomic.Value
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { authorization.Store(r.Header.Get("Authorization")) }))
	defer server.Close()
	dir := t.TempDir()
	s := Settings{HeadersFile: filepath.Join(dir, "headers"), CAFile: filepath.Join(dir, "ca.crt")}
	write(t, s.HeadersFile, "Authorization: one")
	write(t, s.CAFile, certificate(server))
	through, err := newTransport(&s)
	if err != nil {
		t.Fatal(err)
	}
	send := func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
		if err != nil {
			return err
		}
		res, err := through.RoundTrip(req)
		if err == nil {
			_ = res.Body.Close() // it is empty
		}
		return err
	}
	if err := send(); err != nil || authorization.Load() != "one" {
		t.Fatalf("%v, %v", err, authorization.Load())
	}
	write(t, s.HeadersFile, "Authorization: two")
	if err := send(); err != nil || authorization.Load() != "two" {
		t.Errorf("%v, %v", err, authorization.Load())
	}
	write(t, s.CAFile, "no certificate")
	if err := send(); err == nil || !strings.Contains(err.Error(), "--tracing-ca-file") {
		t.Errorf("an unusable authority: %v", err)
	}
	write(t, s.CAFile, certificate(server))
	write(t, s.HeadersFile, "Authorization")
	if err := send(); err == nil || !strings.Contains(err.Error(), "line 1: write NAME: VALUE") {
		t.Errorf("an unusable header: %v", err)
	}
}

func certificate(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// A collector that never answers delays nothing: spans are dropped when the queue is full, and the end waits a bounded time.
func TestCollectorThatDoesNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections are accepted and never read
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }() // nothing is lost
	var log bytes.Buffer
	registry := prometheus.NewRegistry()
	p := open(t, Settings{Endpoint: "http://" + silent.Addr().String()}, slog.New(slog.NewTextHandler(&log, nil)), registry)
	begin := time.Now()
	const n = 10_000
	for i := range n {
		_, span := p.Tracer().Start(t.Context(), fmt.Sprint("span", i))
		span.End()
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("%d spans took %s", n, took)
	}
	begin = time.Now()
	p.Close(t.Context())
	if took := time.Since(begin); took > closeTimeout+2*time.Second {
		t.Errorf("the end took %s", took)
	}
	if got := testutil.ToFloat64(p.sender.spans.WithLabelValues(outcomeRecorded)); got != n {
		t.Errorf("%v spans were counted", got)
	}
	if got := testutil.ToFloat64(p.sender.spans.WithLabelValues(outcomeSent)); got != 0 {
		t.Errorf("%v spans were sent", got)
	}
}

// Failures are logged once in a while, and so is the end of them.
func TestFailuresAreLoggedAtABoundedRate(t *testing.T) {
	var log bytes.Buffer
	e := &failing{err: context.DeadlineExceeded}
	s := newSender(e, "https://otel.example", slog.New(slog.NewTextHandler(&log, nil)), Spans())
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return now }
	lines := func() int { return strings.Count(log.String(), "\n") }
	for range 100 {
		if err := s.ExportSpans(t.Context(), nil); err != nil {
			t.Fatalf("the SDK would log it, too: %v", err)
		}
		now = now.Add(time.Second)
	}
	if lines() != 1 {
		t.Errorf("%s", log.String())
	}
	now = now.Add(logInterval)
	_ = s.ExportSpans(t.Context(), nil)
	if lines() != 2 {
		t.Errorf("%s", log.String())
	}
	e.err = nil
	_ = s.ExportSpans(t.Context(), nil)
	_ = s.ExportSpans(t.Context(), nil)
	if lines() != 3 || !strings.Contains(log.String(), "traces are sent again") {
		t.Errorf("%s", log.String())
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
