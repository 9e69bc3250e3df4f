package reporter

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/nodereport"
	"github.com/acp-io/acp/internal/nodereport/ciliumagent"
)

// fakeAgent answers what it contains, and counts how often its policies were read.
type fakeAgent struct {
	policies  ciliumagent.Policies
	endpoints []ciliumagent.Endpoint
	err       error
	read      int
}

func (a *fakeAgent) Health(context.Context) (ciliumagent.Health, error) {
	return ciliumagent.Health{OK: true}, a.err
}

func (a *fakeAgent) Policies(context.Context) (ciliumagent.Policies, error) {
	a.read++
	return a.policies, a.err
}

func (a *fakeAgent) Endpoints(context.Context) ([]ciliumagent.Endpoint, error) {
	return a.endpoints, a.err
}

// fakeWriter keeps the reports that were written.
type fakeWriter struct {
	reports []nodereport.Report
	err     error
}

func (w *fakeWriter) Write(_ context.Context, r *nodereport.Report) error {
	if w.err == nil {
		w.reports = append(w.reports, *r)
	}
	return w.err
}

type scene struct {
	*Reporter
	agent  *fakeAgent
	writer *fakeWriter
	now    time.Time
}

func newScene() *scene {
	s := &scene{now: time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC), writer: &fakeWriter{}, agent: &fakeAgent{
		policies:  ciliumagent.Policies{Revision: 5, Rules: map[string]string{"acp-a": "r1"}},
		endpoints: []ciliumagent.Endpoint{{ID: 1, State: "ready", Desired: 5, Realized: 5}},
	}}
	s.Reporter = New(Config{Node: "n1", Agent: s.agent, Writer: s.writer, Log: slog.New(slog.DiscardHandler), Interval: 5 * time.Second,
		Heartbeat: 30 * time.Second, Now: func() time.Time { return s.now }})
	return s
}

// steps looks at the agent for a time, and returns the last report that was written.
func (s *scene) steps(t *testing.T, d time.Duration) nodereport.Report {
	t.Helper()
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(5 * time.Second) {
		s.step(t.Context())
	}
	if len(s.writer.reports) == 0 {
		t.Fatal("nothing was reported")
	}
	return s.writer.reports[len(s.writer.reports)-1]
}

func TestReporterFollowsTheAgent(t *testing.T) {
	s := newScene()
	if r := s.steps(t, time.Minute); r.StateOf("acp-a", "r1", s.now) != nodereport.Realized {
		t.Errorf("%+v", r)
	}
	s.agent.policies = ciliumagent.Policies{Revision: 6, Rules: map[string]string{"acp-a": "r2"}}
	s.agent.endpoints[0].Desired = 6
	if r := s.steps(t, 10*time.Second); r.StateOf("acp-a", "r2", s.now) != nodereport.Lagging || r.StateOf("acp-a", "r1", s.now) != nodereport.Lagging {
		t.Errorf("new rules that no endpoint enforces: %+v", r)
	}
	s.agent.endpoints[0].Realized = 6
	if r := s.steps(t, 10*time.Second); r.StateOf("acp-a", "r2", s.now) != nodereport.Realized {
		t.Errorf("%+v", r)
	}
	s.agent.err = errors.New("no answer")
	if r := s.steps(t, 10*time.Second); r.StateOf("acp-a", "r2", s.now) != nodereport.Unknown || r.Message != "no answer" {
		t.Errorf("an agent that does not answer: %+v", r)
	}
}

// An unchanged report is written, and the policies are read, only once in a heartbeat.
func TestUnchangedReportsAreWrittenOncePerHeartbeat(t *testing.T) {
	s := newScene()
	s.steps(t, time.Minute)
	written, read := len(s.writer.reports), s.agent.read
	s.steps(t, 5*time.Minute)
	if n := len(s.writer.reports) - written; n < 9 || n > 11 {
		t.Errorf("%d reports in 5 minutes", n)
	}
	if n := s.agent.read - read; n < 9 || n > 11 {
		t.Errorf("the policies were read %d times in 5 minutes", n)
	}
	if age := s.now.Sub(s.writer.reports[len(s.writer.reports)-1].Time); age >= nodereport.StaleAfter/2 {
		t.Errorf("the last report is %s old", age)
	}
}

func TestReporterIsNotReadyWhenItCannotWrite(t *testing.T) {
	s := newScene()
	s.writer.err = errors.New("refused")
	s.step(t.Context())
	if err := s.Ready(t.Context()); err == nil || s.Reported() {
		t.Error("ready although nothing was written")
	}
	s.writer.err = nil
	s.step(t.Context())
	if err := s.Ready(t.Context()); err != nil || !s.Reported() || len(s.writer.reports) != 1 {
		t.Errorf("not ready although the report was written: %v", err)
	}
}
