// Package health answers the probes of a program: whether it has started, whether it can be given work, and whether it
// is live.
package health

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// checkTimeout bounds all checks of one probe together.
const checkTimeout = 2 * time.Second

// Check returns why the program cannot be given work, or nil if it can.
type Check func(context.Context) error

// Probes is the state that the probes report. Its methods may be called at the same time.
type Probes struct {
	mu       sync.Mutex
	step     string
	stopping bool
	checks   []namedCheck
}

type namedCheck struct {
	name  string
	check Check
}

// New returns the probes of a program that begins to start.
func New() *Probes { return &Probes{step: "starting"} }

// Starting names the step that the program does before it has started, such as a migration of its database.
func (p *Probes) Starting(step string) { p.set(func() { p.step = step }) }

// Started records that the program has started. A later failure of a dependency does not change that.
func (p *Probes) Started() { p.set(func() { p.step = "" }) }

// Stopping records that the program ends and takes no new work.
func (p *Probes) Stopping() { p.set(func() { p.stopping = true }) }

// Require makes readiness depend on the check.
func (p *Probes) Require(name string, check Check) {
	p.set(func() { p.checks = append(p.checks, namedCheck{name, check}) })
}

func (p *Probes) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// Startup returns the step that the program is at, or nil if it has started.
func (p *Probes) Startup() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step != "" {
		return fmt.Errorf("not started yet: %s", p.step)
	}
	return nil
}

// Accepting returns an error while the program starts, and from the moment on in which it begins to end.
func (p *Probes) Accepting() error {
	p.mu.Lock()
	stopping := p.stopping
	p.mu.Unlock()
	if stopping {
		return fmt.Errorf("shutting down")
	}
	return p.Startup()
}

// report runs every check and returns a line for each.
func (p *Probes) report(ctx context.Context) (text string, ready bool) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	p.mu.Lock()
	checks := append([]namedCheck{{"process", func(context.Context) error { return p.Accepting() }}}, p.checks...)
	p.mu.Unlock()
	var b strings.Builder
	ready = true
	for _, c := range checks {
		if err := c.check(ctx); err != nil {
			ready = false
			fmt.Fprintf(&b, "[-] %s: %s\n", c.name, err)
			continue
		}
		fmt.Fprintf(&b, "[+] %s\n", c.name)
	}
	return b.String(), ready
}

// Handler serves /livez, /readyz and /startupz, and /healthz, which is another name of /livez.
func (p *Probes) Handler() *http.ServeMux {
	mux := http.NewServeMux()
	live := func(w http.ResponseWriter, _ *http.Request) { write(w, "ok\n", true) }
	mux.HandleFunc("GET /livez", live)
	mux.HandleFunc("GET /healthz", live)
	mux.HandleFunc("GET /startupz", func(w http.ResponseWriter, _ *http.Request) {
		if err := p.Startup(); err != nil {
			write(w, err.Error()+"\n", false)
			return
		}
		write(w, "ok\n", true)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		text, ready := p.report(r.Context())
		write(w, text, ready)
	})
	return mux
}

func write(w http.ResponseWriter, text string, ok bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write([]byte(text)) // a prober that is gone needs no answer
}

// Server returns an HTTP server for a handler that only probers and Prometheus call.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 8 << 10}
}
