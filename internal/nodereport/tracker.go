package nodereport

import (
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/nodereport/ciliumagent"
)

// settleTime is how long an agent has to answer without interruption before its answers count. For about a second after
// a restart an agent has no endpoints, and would seem to have realized everything.
const settleTime = 10 * time.Second

// Tracker computes reports from what an agent answers. An agent numbers its states of all policies, and reports for each
// endpoint the number that the endpoint enforces, but not the number since which it has a policy. The tracker therefore
// records at which number it first saw each revision of each policy.
type Tracker struct {
	node string
	// since is when the agent began to answer without interruption; zero while it does not.
	since time.Time
	// revision is the number of the agent's newest state that was read.
	revision int64
	known    map[string]knownRules
}

// knownRules are the rules of a policy in the agent.
type knownRules struct {
	revision string
	// at is the number of the first state in which the tracker saw the rules. The agent may have them since an earlier one.
	at int64
}

// NewTracker returns a Tracker for a node.
func NewTracker(node string) *Tracker { return &Tracker{node: node} }

// Failed discards the state of the agent, and returns a report of an unknown state. An agent that was restarted
// numbers its states from the beginning.
func (t *Tracker) Failed(now time.Time, err error) Report {
	t.since, t.revision, t.known = time.Time{}, 0, nil
	return Report{Node: t.node, Time: now, Message: err.Error()}
}

// NeedsPolicies reports whether the agent has a newer state than the tracker has read, or is another one.
func (t *Tracker) NeedsPolicies(endpoints []ciliumagent.Endpoint) bool {
	newest := int64(0)
	for _, e := range endpoints {
		newest = max(newest, e.Desired, e.Realized)
	}
	return t.known == nil || newest != t.revision
}

// Take records the rules that the agent has.
func (t *Tracker) Take(p ciliumagent.Policies) {
	if t.known == nil || p.Revision < t.revision {
		t.known, t.since = map[string]knownRules{}, time.Time{} // another agent, or a restarted one
	}
	known := make(map[string]knownRules, len(p.Rules))
	for name, revision := range p.Rules {
		before, had := t.known[name]
		if !had || before.revision != revision {
			before = knownRules{revision: revision, at: p.Revision}
		}
		known[name] = before
	}
	t.revision, t.known = p.Revision, known
}

// Report returns the report of endpoints and a state of health that were read after the policies.
func (t *Tracker) Report(now time.Time, health ciliumagent.Health, endpoints []ciliumagent.Endpoint) Report {
	if t.since.IsZero() || now.Before(t.since) {
		t.since = now
	}
	r := Report{Node: t.node, Time: now, Policies: make(map[string]Policy, len(t.known))}
	enforced, counted := t.enforced(endpoints)
	switch {
	case !health.OK:
		r.Message = "the agent is not healthy: " + health.Message
	case counted == 0:
		r.Message = "the agent has no endpoints"
	case now.Sub(t.since) < settleTime:
		r.Message = fmt.Sprintf("the agent has answered for less than %s", settleTime)
	default:
		r.Healthy = true
	}
	for name, rules := range t.known {
		r.Policies[name] = Policy{Revision: rules.revision, Realized: r.Healthy && rules.revision != "" && rules.at <= enforced}
	}
	return r
}

// enforced returns the number of the newest state that every endpoint enforces, and the number of endpoints that count.
// An endpoint that is being removed does not count. The agent advances the number of an endpoint that a change does not
// concern at once, so one endpoint that does not follow makes every later change count as not realized.
func (t *Tracker) enforced(endpoints []ciliumagent.Endpoint) (revision int64, counted int) {
	for _, e := range endpoints {
		if e.Leaving() {
			continue
		}
		if counted++; counted == 1 || e.Realized < revision {
			revision = e.Realized
		}
	}
	return revision, counted
}
