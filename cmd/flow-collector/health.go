package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/acp-io/acp/internal/audit/hubble"
	"github.com/acp-io/acp/internal/health"
)

// readiness is the body of /readyz. An unreachable member does not make the collector unready: the other members are followed,
// and a restart would not help.
type readiness struct {
	Ready    bool   `json:"ready"`
	Process  string `json:"process"`
	Policies string `json:"policies"`
	Store    string `json:"store"`
	// Registrations is "ok", "not read yet", or why they cannot be read; absent if they are not used.
	Registrations string         `json:"registrations,omitempty"`
	Members       []memberHealth `json:"members"`
}

type memberHealth struct {
	Name      string     `json:"name"`
	Connected bool       `json:"connected"`
	Position  *time.Time `json:"position,omitempty"`
	Problem   string     `json:"problem,omitempty"`
}

// sources are functions that return the state of the parts, so that only the wiring depends on their types.
type sources struct {
	policiesRead    func() bool
	policiesProblem func() string
	storeErr        func() error
	// spooling returns the error of the store while batches are kept in the spool; nil otherwise.
	spooling func() error
	members  func() []hubble.State
	// registrations is nil if registrations are not used.
	registrations func() string
}

func (s sources) readiness() readiness {
	r := readiness{Ready: true, Process: "ok", Policies: "ok", Store: "ok", Members: []memberHealth{}}
	if problem := s.policiesProblem(); problem != "" {
		r.Policies = problem
	}
	if !s.policiesRead() {
		r.Ready = false
		if r.Policies == "ok" {
			r.Policies = "not read yet"
		}
	}
	if err := s.spooling(); err != nil {
		r.Store = "kept in the spool: " + err.Error()
	}
	if err := s.storeErr(); err != nil {
		r.Ready, r.Store = false, err.Error()
	}
	if s.registrations != nil {
		r.Registrations = s.registrations()
	}
	for _, m := range s.members() {
		h := memberHealth{Name: m.Member, Connected: m.Connected, Problem: m.Problem}
		if !m.Position.IsZero() {
			h.Position = &m.Position
		}
		r.Members = append(r.Members, h)
	}
	return r
}

// healthHandler returns the handler of the probes. The response of /readyz has the state of each part.
func healthHandler(probes *health.Probes, s sources) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/", probes.Handler())
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		r := s.readiness()
		if err := probes.Accepting(); err != nil {
			r.Ready, r.Process = false, err.Error()
		}
		w.Header().Set("Content-Type", "application/json")
		if !r.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(r) // the client may be gone
	})
	return mux
}

func metricsHandler(reg *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg})
}
