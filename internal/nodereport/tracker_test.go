package nodereport

import (
	"errors"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/nodereport/ciliumagent"
)

// agentState is what an agent answers at one time.
type agentState struct {
	revision  int64
	rules     map[string]string
	endpoints []ciliumagent.Endpoint
	unhealthy bool
}

func ready(realized ...int64) []ciliumagent.Endpoint {
	var out []ciliumagent.Endpoint
	for i, r := range realized {
		out = append(out, ciliumagent.Endpoint{ID: int64(i), State: "ready", Desired: r, Realized: r})
	}
	return out
}

func (a agentState) look(tr *Tracker, now time.Time) Report {
	if tr.NeedsPolicies(a.endpoints) {
		tr.Take(ciliumagent.Policies{Revision: a.revision, Rules: a.rules})
	}
	return tr.Report(now, ciliumagent.Health{OK: !a.unhealthy}, a.endpoints)
}

// settled returns a Tracker that has followed an agent for long enough.
func settled(t *testing.T, a agentState) *Tracker {
	t.Helper()
	tr := NewTracker("n1")
	if r := a.look(tr, instant.Add(-settleTime)); r.Healthy || r.Policies["acp-a"].Realized {
		t.Fatal("an agent that has just begun to answer counts")
	}
	if r := a.look(tr, instant); !r.Healthy {
		t.Fatalf("an agent that has answered for %s does not count: %s", settleTime, r.Message)
	}
	return tr
}

func TestTracker(t *testing.T) {
	a1, a2 := map[string]string{"acp-a": "r1"}, map[string]string{"acp-a": "r2"}
	start := agentState{revision: 5, rules: a1, endpoints: ready(5, 5)}
	for name, tc := range map[string]struct {
		then     []agentState
		want     Policy
		unusable bool
	}{
		"Followed":               {want: Policy{Revision: "r1", Realized: true}},
		"NewRulesNotYetEnforced": {then: []agentState{{revision: 6, rules: a2, endpoints: ready(6, 5)}}, want: Policy{Revision: "r2"}},
		"NewRulesEnforced": {
			then: []agentState{{revision: 6, rules: a2, endpoints: ready(6, 5)},
				{revision: 6, rules: a2, endpoints: ready(6, 6)}},
			want: Policy{Revision: "r2", Realized: true},
		},
		"LaterStateOfOtherRules": {then: []agentState{{revision: 6, rules: a1, endpoints: ready(6, 5)}}, want: Policy{Revision: "r1", Realized: true}},
		"EndpointWithoutRevision": {
			then: []agentState{{revision: 5, rules: a1, endpoints: append(ready(5), ciliumagent.Endpoint{ID: 9, State: "waiting-for-identity"})}},
			want: Policy{Revision: "r1"},
		},
		"EndpointIsRemoved": {
			then: []agentState{{revision: 5, rules: a1, endpoints: append(ready(5), ciliumagent.Endpoint{ID: 9, State: "disconnecting"})}},
			want: Policy{Revision: "r1", Realized: true},
		},
		"RulesWithoutLabel": {then: []agentState{{revision: 6, rules: map[string]string{"acp-a": ""}, endpoints: ready(6, 6)}}},
		"NotHealthy": {
			then:     []agentState{{revision: 5, rules: a1, endpoints: ready(5, 5), unhealthy: true}},
			want:     Policy{Revision: "r1"},
			unusable: true,
		},
		"NoEndpoints": {then: []agentState{{revision: 5, rules: a1}}, want: Policy{Revision: "r1"}, unusable: true},
		"Restarted":   {then: []agentState{{revision: 2, rules: a1, endpoints: ready(2)}}, want: Policy{Revision: "r1"}, unusable: true},
	} {
		t.Run(name, func(t *testing.T) {
			tr := settled(t, start)
			r := start.look(tr, instant)
			for i, a := range tc.then {
				r = a.look(tr, instant.Add(time.Duration(i)*time.Second))
			}
			if r.Policies["acp-a"] != tc.want || r.Healthy == tc.unusable {
				t.Errorf("%+v, want %+v", r, tc.want)
			}
		})
	}
}

// TestTrackerResetsAnAgentThatDoesNotAnswer checks that an agent that did not answer counts as restarted, with states that are numbered anew.
func TestTrackerResetsAnAgentThatDoesNotAnswer(t *testing.T) {
	a := agentState{revision: 5, rules: map[string]string{"acp-a": "r1"}, endpoints: ready(5)}
	tr := settled(t, a)
	if r := tr.Failed(instant, errors.New("no answer")); r.Healthy || len(r.Policies) > 0 || r.Message != "no answer" {
		t.Errorf("%+v", r)
	}
	if r := a.look(tr, instant.Add(time.Second)); r.Healthy || r.Policies["acp-a"].Realized {
		t.Errorf("the agent counts at once: %+v", r)
	}
}
