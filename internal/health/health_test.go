package health

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type answers struct{ Live, Healthz, Startup, Ready int }

func ask(p *Probes) (a answers, ready string) {
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		p.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	a.Live, _ = get("/livez")
	a.Healthz, _ = get("/healthz")
	a.Startup, _ = get("/startupz")
	a.Ready, ready = get("/readyz")
	return a, ready
}

func TestProbesFollowTheProgram(t *testing.T) {
	p := New()
	database := errors.New("away")
	p.Require("database", func(context.Context) error { return database })
	for _, step := range []struct {
		name  string
		do    func()
		want  answers
		ready string
	}{
		{
			"it starts", func() { p.Starting("migrating the database") }, answers{200, 200, 503, 503},
			"[-] process: not started yet: migrating the database\n[-] database: away\n",
		},
		{"it has started, and cannot work yet", p.Started, answers{200, 200, 200, 503}, "[+] process\n[-] database: away\n"},
		{"it can work", func() { database = nil }, answers{200, 200, 200, 200}, "[+] process\n[+] database\n"},
		{
			"a restart would not bring back what it depends on", func() { database = errors.New("away") },
			answers{200, 200, 200, 503}, "[+] process\n[-] database: away\n",
		},
		{
			"it ends: it lives, and takes nothing new", func() { database = nil; p.Stopping() },
			answers{200, 200, 200, 503}, "[-] process: shutting down\n[+] database\n",
		},
	} {
		step.do()
		got, ready := ask(p)
		if d := cmp.Diff(step.want, got); d != "" {
			t.Errorf("%s: %s", step.name, d)
		}
		if d := cmp.Diff(step.ready, ready); d != "" {
			t.Errorf("%s: %s", step.name, d)
		}
	}
}

// TestChecksEnd: a check that waits for something that does not answer does not keep the prober.
func TestChecksEnd(t *testing.T) {
	p := New()
	p.Started()
	p.Require("slow", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if text, ready := p.report(ctx); ready || text != "[+] process\n[-] slow: context canceled\n" {
		t.Errorf("%v %q", ready, text)
	}
}
