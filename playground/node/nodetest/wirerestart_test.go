package nodetest

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/ciliumtest"
	"github.com/acp-io/acp/internal/policy"
)

const (
	// restartTimeout is how long a restarted agent may take until every endpoint enforces everything again: it loads its datapath, and
	// computes the policy of each endpoint.
	restartTimeout = 3 * time.Minute
	// restoredIdentities is how long an address that left its group without an agent may be let in: the agent's
	// --identity-restore-grace-period (30 s) and some time to start.
	restoredIdentities = 45 * time.Second
	// watchedConnections is the number of connections of each kind that are tried again and again while the agent restarts.
	watchedConnections = 400
)

// testKilledAgent kills the agent while connections are made all the time, and changes the policies before it is back.
func (m *wireMember) testKilledAgent(t *testing.T) {
	before, after := worldOfSeed(restartSeeds[0]), worldOfSeed(restartSeeds[1])
	tally := &wireTally{words: map[policy.Verdict]int{}}
	if wrong := m.compare(t, before, translate(t, before), tally); len(wrong) > 0 {
		t.Fatalf("before the agent is killed: %s", wrong[0])
	}
	closed, open := m.constant(before, after)
	if len(closed) < 100 || len(open) < 100 {
		t.Fatalf("%d connections are closed and %d open in both worlds: too few for this test", len(closed), len(open))
	}
	stop := m.watch(t, closed, open)
	agent := processOf(t, m.first, "cilium-agent")
	if err := syscall.Kill(agent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m.write(t, objectsOf(translate(t, after)))
	m.waitRealized(t, restartTimeout)
	t.Logf("every endpoint enforces the policies that were written without an agent %.1f s after the agent was killed", time.Since(began).Seconds())
	if now := processOf(t, m.first, "cilium-agent"); now == agent {
		t.Fatal("the agent was not killed")
	}
	stop()
	// The agent starts its health endpoint again, in another namespace.
	m.sources = slices.DeleteFunc(m.sources, func(s wireSource) bool { return s.Reserved == "health" })
	m.late = restoredIdentities
	if wrong := m.compare(t, after, translate(t, after), tally); len(wrong) > 0 {
		t.Errorf("after the agent is back, %d connections disagree, for example %s", len(wrong), wrong[0])
	}
}

// restartSeeds are the worlds before and after the agent is killed.
var restartSeeds = [2]uint64{0, 1}

// constant returns connections of the node's own pods that are closed in both worlds, and those that are open in both.
func (m *wireMember) constant(a, b policy.Input) (closed, open []*question) {
	first, second := m.questions(policy.NewSnapshot(a)), m.questions(policy.NewSnapshot(b))
	for i, q := range first {
		if q.port.Protocol != v1alpha1.ProtocolTCP || q.source.local.IsValid() || q.source.Cluster == "" {
			continue
		}
		switch was, is := ciliumtest.Passes(q.verdict), ciliumtest.Passes(second[i].verdict); {
		case was && is:
			open = append(open, q)
		case !was && !is:
			closed = append(closed, q)
		}
	}
	return spread(closed), spread(open)
}

// spread returns at most watchedConnections of a list, from all of its parts.
func spread(list []*question) []*question {
	step := max(1, len(list)/watchedConnections)
	var out []*question
	for i := 0; i < len(list) && len(out) < watchedConnections; i += step {
		out = append(out, list[i])
	}
	return out
}

// watch makes the connections again and again until stop is called, which fails the test if a closed one was let in or an open one was refused.
func (m *wireMember) watch(t *testing.T, closed, open []*question) (stop func()) {
	t.Helper()
	var all []*attempt
	for _, q := range slices.Concat(closed, open) {
		all = append(all, &q.attempt)
	}
	end := make(chan struct{})
	var done sync.WaitGroup
	var failed error
	rounds, letIn, refused, example := 0, 0, 0, ""
	done.Go(func() {
		for failed == nil {
			select {
			case <-end:
				return
			default:
			}
			if failed = connectBatch(all); failed != nil {
				return
			}
			rounds++
			for i, a := range all {
				switch {
				case i < len(closed) && a.err == nil:
					letIn++
					example = closed[i].String()
				case i >= len(closed) && a.err != nil:
					refused++
				}
			}
		}
	})
	return func() {
		t.Helper()
		close(end)
		done.Wait()
		if failed != nil || rounds == 0 {
			t.Fatalf("%d rounds of connections: %v", rounds, failed)
		}
		summary := fmt.Sprintf("%d rounds of %d closed and %d open connections", rounds, len(closed), len(open))
		t.Logf("%s: %d that are closed were let in, and %d that are open refused", summary, letIn, refused)
		if letIn > 0 {
			t.Errorf("%s: %d were let in without an agent, for example %s", summary, letIn, example)
		}
		if refused > 0 {
			t.Errorf("%s: %d that are open were refused without an agent", summary, refused)
		}
	}
}
