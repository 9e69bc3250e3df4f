package preflight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
)

// TestAgentFindings checks what is reported about the work agent of a member, and that a member that the host cannot read is reported as
// that, not as one that does not answer.
func TestAgentFindings(t *testing.T) {
	asked := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		reason      string
		engine      federation.Engine
		agent       Agent
		unreachable string
		want        []string
	}{
		{"an agent that answers", federation.EngineOCM, Agent{}, "", nil},
		{"an agent that does not", federation.EngineOCM, Agent{Silent: true, SilentSince: asked}, "", []string{AgentSilent}},
		{"nothing is known about the agent", federation.EngineOCM, Agent{Unread: "forbidden"}, "", []string{AgentUnread}},
		{"no agent", federation.EngineDirect, Agent{}, "", nil},
		{"the host has no token", federation.EngineOCM, Agent{NoReader: true}, "no token", []string{NotReadByHost}},
		{"the host has no token, and the agent does not answer", federation.EngineOCM, Agent{NoReader: true, Silent: true, SilentSince: asked}, "no token",
			[]string{NotReadByHost, AgentSilent}},
		{"the member does not answer", federation.EngineOCM, Agent{Silent: true, SilentSince: asked}, "no route", []string{Unreachable, AgentSilent}},
	} {
		f := healthy()
		f.Member, f.Engine, f.Agent, f.Mesh = "m1", c.engine, c.agent, federation.NoMesh
		guarding, err := guard.Objects(guard.Credentials{}, c.engine.Writer())
		if err != nil {
			t.Fatal(err)
		}
		f.Guard.Objects = guarding
		if c.unreachable != "" {
			f.Unreachable, f.Kinds = c.unreachable, nil
		}
		var got []string
		for _, x := range Assess(f, needs) {
			got = append(got, x.Code)
			if x.Message.IsZero() || x.Remedy.IsZero() {
				t.Errorf("%s: %s has no text or no remedy", c.reason, x.Code)
			}
			if x.Code != Unreachable && (x.Severity != Warns || x.Invalidates() != 0) {
				t.Errorf("%s: %s is more than a warning", c.reason, x.Code)
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, d)
		}
	}
}
