package ciliumagent

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// These answers have the form of an agent of version 1.20.2; what the client does not read is left out.
const (
	rulesAnswer = `{"revision":7,"policy":"[` +
		`{\"Labels\":[{\"key\":\"acp.io/revision\",\"value\":\"r1\",\"source\":\"acp\"},` +
		`{\"key\":\"io.cilium.k8s.policy.derived-from\",\"value\":\"CiliumClusterwideNetworkPolicy\",\"source\":\"k8s\"},` +
		`{\"key\":\"io.cilium.k8s.policy.name\",\"value\":\"acp-a\",\"source\":\"k8s\"}],\"Ingress\":true}]"}`
	endpointsAnswer = `[{"id":12,"status":{"state":"ready","policy":{"realized":{"policy-revision":7},"spec":{"policy-revision":8}}}},` +
		`{"id":13,"status":{"state":"restoring","policy":null}},{"id":14}]`
	healthAnswer = `{"cilium":{"state":"Ok","msg":"1.20.2"}}`
)

func TestParsePolicies(t *testing.T) {
	rule := func(kind, name, more string) string {
		return `{\"labels\":[{\"key\":\"io.cilium.k8s.policy.derived-from\",\"value\":\"` + kind + `\",\"source\":\"k8s\"},` +
			`{\"key\":\"io.cilium.k8s.policy.name\",\"value\":\"` + name + `\",\"source\":\"k8s\"}` + more + `]}`
	}
	revision := func(source, value string) string {
		return `,{\"key\":\"acp.io/revision\",\"value\":\"` + value + `\",\"source\":\"` + source + `\"}`
	}
	const clusterwide = "CiliumClusterwideNetworkPolicy"
	answer := func(rules ...string) string { return `{"revision":1,"policy":"[` + strings.Join(rules, ",") + `]"}` }
	first, second := rule(clusterwide, "acp-a", revision("acp", "r1")), rule(clusterwide, "acp-a", revision("acp", "r2"))
	for name, tc := range map[string]struct {
		body string
		want map[string]string
		bad  bool
	}{
		"AsOfTheAgent":    {body: rulesAnswer, want: map[string]string{"acp-a": "r1"}},
		"None":            {body: `{"revision":1,"policy":"[]"}`, want: map[string]string{}},
		"SeveralRules":    {body: answer(first, first), want: map[string]string{"acp-a": "r1"}},
		"Contradiction":   {body: answer(first, second), want: map[string]string{"acp-a": ""}},
		"TwoLabels":       {body: answer(rule(clusterwide, "acp-a", revision("acp", "r1")+revision("acp", "r1"))), want: map[string]string{"acp-a": ""}},
		"NoLabel":         {body: answer(rule(clusterwide, "acp-a", "")), want: map[string]string{"acp-a": ""}},
		"LabelOfOthers":   {body: answer(rule(clusterwide, "acp-a", revision("unspec", "r1"))), want: map[string]string{"acp-a": ""}},
		"PolicyOfOthers":  {body: answer(rule(clusterwide, "theirs", revision("acp", "r1"))), want: map[string]string{}},
		"NamespacedKind":  {body: answer(rule("CiliumNetworkPolicy", "acp-a", revision("acp", "r1"))), want: map[string]string{}},
		"NoRevision":      {body: `{"policy":"[]"}`, bad: true},
		"NoRules":         {body: `{"revision":1}`, bad: true},
		"ErrorAsRules":    {body: `{"revision":1,"policy":"json: unsupported type"}`, bad: true},
		"NotJSON":         {body: `agent`, bad: true},
		"OtherTypes":      {body: `{"revision":1,"policy":"[{\"labels\":\"x\"}]"}`, bad: true},
		"LabelsAsStrings": {body: `{"revision":1,"policy":"[{\"labels\":[\"k8s:io.cilium.k8s.policy.name=acp-a\"]}]"}`, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePolicies([]byte(tc.body))
			if (err != nil) != tc.bad {
				t.Fatalf("%v, want an error: %v", err, tc.bad)
			}
			if d := cmp.Diff(tc.want, got.Rules); d != "" {
				t.Error(d)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, body := range []string{rulesAnswer, endpointsAnswer, healthAnswer, `{"revision":1,"policy":"[]"}`, `[]`, `null`, ``} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if p, err := ParsePolicies(body); err == nil && (p.Revision <= 0 || p.Rules == nil) {
			t.Errorf("%+v without an error", p)
		}
		if h, err := ParseHealth(body); err != nil && h.OK {
			t.Error("healthy with an error")
		}
		_, _ = ParseEndpoints(body)
	})
}

// serveAgent is an agent on a socket.
func serveAgent(t *testing.T, h http.Handler) *Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h} //nolint:gosec // a test
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	c := New(socket)
	t.Cleanup(func() {
		c.Close()
		_ = server.Close()
		<-done
	})
	return c
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func TestClient(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/policy", answer(rulesAnswer))
	mux.Handle("GET /v1/endpoint", answer(endpointsAnswer))
	mux.HandleFunc("GET /v1/healthz", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("brief") != "true" || r.Header.Get("require-k8s-connectivity") != "true" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(healthAnswer))
	})
	c := serveAgent(t, mux)
	if h, err := c.Health(t.Context()); err != nil || !h.OK {
		t.Errorf("%+v, %v", h, err)
	}
	if p, err := c.Policies(t.Context()); err != nil || p.Revision != 7 || p.Rules["acp-a"] != "r1" {
		t.Errorf("%+v, %v", p, err)
	}
	want := []Endpoint{{ID: 12, State: "ready", Desired: 8, Realized: 7}, {ID: 13, State: "restoring"}, {ID: 14}}
	got, err := c.Endpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestClientReportsWhatItCannotRead(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/policy", func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range maxBody>>20 + 1 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	c := serveAgent(t, mux)
	if _, err := c.Policies(t.Context()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v, want %v", err, ErrTooLarge)
	}
	if _, err := c.Endpoints(t.Context()); err == nil {
		t.Error("an answer 404 is no error")
	}
	if h, err := New(filepath.Join(t.TempDir(), "none")).Health(t.Context()); err == nil || h.OK {
		t.Error("an agent without a socket is healthy")
	}
}
