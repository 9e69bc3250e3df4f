package auditlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv/golden"
)

func flow(change ...func(*audit.Flow)) *audit.Flow {
	f := &audit.Flow{
		Time: time.Date(2026, 11, 2, 10, 0, 0, 123456789, time.UTC),
		Node: "m1/node-3",
		Edge: audit.Edge{
			Cluster:       "m1",
			SourceCluster: "m2",
			Subject:       "trnv1:rsc:trip-com:iam:sa:app/888",
			Resource:      "trnv1:rsc:trip-com:redis:clusters:bobs-cluster",
			Action:        "redis:connect",
			Port:          6379,
			Protocol:      "TCP",
			Decision:      policy.Allowed,
			Verdict:       audit.VerdictForwarded,
			Statement:     policy.Ref{Policy: "bobs", SID: "app888"},
		},
		SourceAddress: netip.MustParseAddr(
			"10.0.0.1",
		),
		DestinationAddress: netip.MustParseAddr("fd00::2"),
		SourcePort:         40000,
		Count:              1,
		Reason:             "an allow matches",
	}
	for _, c := range change {
		c(f)
	}
	return f
}

// TestGolden compares lines with a golden file. The schema is a contract with other systems; docs/flows.md describes what the
// file shows.
func TestGolden(t *testing.T) {
	var got bytes.Buffer
	for _, f := range []*audit.Flow{
		flow(),
		flow(func(f *audit.Flow) {
			f.Decision, f.Verdict, f.Statement, f.Reason = policy.DefaultDenied, audit.VerdictDropped, policy.Ref{},
				"nothing allows it, and the resource is enforced"
			f.Subject, f.Source, f.SourceCluster, f.SourceAddress = "", "203.0.113.0/24", "", netip.MustParseAddr("203.0.113.9")
		}),
		flow(func(f *audit.Flow) {
			f.Decision, f.Statement, f.Count, f.OtherSubjects = policy.Audited, policy.Ref{}, 5, "trnv1:rsc:trip-com:iam:sa:team/a"
		}),
		flow(func(f *audit.Flow) {
			f.Decision, f.Resource, f.Destination, f.Action, f.Statement, f.Port = policy.Unmanaged, "", "namespace=apps,app=web", "", policy.Ref{}, 80
		}),
	} {
		b, err := json.Marshal(RecordOf(f))
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(b, '\n'))
	}
	golden.Compare(t, filepath.Join("testdata", "audit-log.jsonl"), got.String())
}

// output is an Output that blocks on the gate, if it is set, and returns err.
type output struct {
	mu     sync.Mutex
	gate   chan struct{}
	err    error
	writes []string
	closed bool
}

func (o *output) Write(ctx context.Context, b []byte) error {
	if o.gate != nil {
		select {
		case <-o.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	o.writes = append(o.writes, string(b))
	return nil
}

func (o *output) Close() error { o.closed = true; return nil }

func start(t *testing.T, o Output, change ...func(*Config)) (*Writer, func()) {
	t.Helper()
	cfg := Config{Output: o, Log: slog.New(slog.DiscardHandler), BatchEvery: time.Hour}
	for _, c := range change {
		c(&cfg)
	}
	tp, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tp.Run(ctx) }()
	return tp, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestRunWritesTheQueueWhenTheContextEnds(t *testing.T) {
	o := &output{}
	tp, stop := start(t, o, func(c *Config) { c.BatchLines = 3 })
	for range 7 {
		tp.Flow(flow())
	}
	stop()
	var lines []int
	for _, w := range o.writes {
		lines = append(lines, strings.Count(w, "\n"))
	}
	if diff := cmp.Diff([]int{3, 3, 1}, lines); diff != "" || !o.closed {
		t.Errorf("lines of each write (-want +got), closed %v:\n%s", o.closed, diff)
	}
}

func TestSlowOutputDoesNotBlockFlow(t *testing.T) {
	o := &output{gate: make(chan struct{})}
	tp, stop := start(t, o, func(c *Config) { c.Queue, c.BatchLines = 10, 1 })
	const flows = 1000
	for range flows { // returns although nothing is written
		tp.Flow(flow())
	}
	close(o.gate)
	stop()
	// The output may refuse the write that is under way when the context ends. It is counted as well.
	dropped := testutil.ToFloat64(tp.dropped.WithLabelValues("queue")) + testutil.ToFloat64(tp.dropped.WithLabelValues("output"))
	if written := testutil.ToFloat64(tp.written); written+dropped != flows || dropped < flows-12 || int(written) != len(o.writes) {
		t.Errorf("got %v written, %v dropped and %d writes; want all %d flows accounted for", written, dropped, len(o.writes), flows)
	}
}

func TestLinesOfAFailingOutputAreCountedAsDropped(t *testing.T) {
	o := &output{err: errors.New("disk full")}
	tp, stop := start(t, o)
	tp.Flow(flow())
	stop()
	if n := testutil.ToFloat64(tp.dropped.WithLabelValues("output")); n != 1 {
		t.Errorf("got %v dropped lines, want 1", n)
	}
}

func TestFileRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f, err := NewFile(path, 10, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"1234\n", "5678\n", "abcd\n", "efgh\n", "ijkl\n", "mnop\n", "qrst\n"} {
		if err := f.Write(t.Context(), []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got[strings.TrimPrefix(name, path)] = string(b)
	}
	if diff := cmp.Diff(map[string]string{"": "qrst\n", ".1": "ijkl\nmnop\n", ".2": "abcd\nefgh\n"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestWebhook(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		answers []int
		posts   int
		ok      bool
	}{
		"OK":       {"the first post succeeds", []int{204}, 1, true},
		"Retry":    {"the server restarts", []int{503, 429, 200}, 3, true},
		"Token":    {"the token is replaced meanwhile", []int{401, 204}, 2, true},
		"Rejected": {"a permanent error is not retried", []int{400, 200}, 1, false},
		"Redirect": {"the log is sent to the configured address only", []int{302, 200}, 1, false},
		"Down":     {"the writer gives up after the last attempt", []int{500, 500, 500, 500, 200}, attempts, false},
	} {
		t.Run(name, func(t *testing.T) {
			var posts int
			var body, authorization string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				body, authorization = string(b), r.Header.Get("Authorization")
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.answers[posts])
				posts++
			}))
			defer server.Close()
			w, err := NewWebhook(server.URL, func() (string, error) { return fmt.Sprint("secret", posts), nil }, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			w.wait = time.Microsecond
			err = w.Write(t.Context(), []byte("{}\n"))
			if (err == nil) != tc.ok || posts != tc.posts || body != "{}\n" || authorization != fmt.Sprint("Bearer secret", posts-1) {
				t.Errorf("%s: got error %v after %d posts of %q with authorization %q", tc.reason, err, posts, body, authorization)
			}
		})
	}
}

func TestWebhookAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://siem.example/acp": true, "http://127.0.0.1:9/x": true, "http://localhost/x": true,
		"http://siem.example/acp": false, "https:///x": false, "ftp://siem.example": false, "::": false,
	} {
		if _, err := NewWebhook(address, nil, http.DefaultClient); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
