package nodetest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/enforcer/ciliumtest"
	"github.com/acp-io/acp/internal/policy"
)

var (
	worlds    = flag.Uint64("worlds", 20, "how many random worlds TestConformanceOnWire compares")
	firstSeed = flag.Uint64("seed", 0, "the seed of its first world; the others follow")
)

const (
	// leastConnections is a lower bound of the compared connections with the defaults.
	leastConnections = 40_000
	// lateTimeout is how long a disagreement may last. Groups of addresses have no revision that could be waited for.
	lateTimeout = 4 * time.Second
	// failuresDir gets a file with the objects of each world in which something disagrees.
	failuresDir = "testdata/failures"
	// shownDisagreements bounds how many disagreements of one world are printed.
	shownDisagreements = 10
)

// wireTally counts the comparisons.
type wireTally struct {
	worlds, connections int
	// late counts the connections that agreed only when they were tried again.
	late  int
	words map[policy.Verdict]int
	// settled is the time from the first write until every endpoint enforced everything.
	settled []time.Duration
}

// question is a connection with its decision.
type question struct {
	attempt
	source  *wireSource
	server  *wireServer
	verdict policy.Verdict
}

// agrees reports whether the wire did what was decided.
func (q *question) agrees() bool {
	passes := q.err == nil
	switch {
	case q.err != nil && !errors.Is(q.err, errNoAnswer): // neither was let through nor dropped
		return false
	case q.source.Reserved == "host": // the pod's own node always connects
		return passes
	case q.source.NoNamespace && !passes: // an allow does not match what is no pod (docs/conformance.md)
		return true
	}
	return passes == ciliumtest.Passes(q.verdict)
}

func (q *question) String() string {
	seen := "let it through"
	if q.err != nil {
		seen = "refused it: " + q.err.Error()
	}
	return fmt.Sprintf("from %+v (%s) to %v (%s) on %s %d: it is %s, and Cilium %s",
		q.source.Source, q.local, q.server.labels, q.to, q.port.Protocol, q.port.Number, q.verdict, seen)
}

// questions are all connections of a world, with the decision by what the member has.
func (m *wireMember) questions(s *policy.Snapshot) []*question {
	var out []*question
	for i := range m.sources {
		for j := range m.servers {
			source, server := &m.sources[i], &m.servers[j]
			for _, p := range wirePorts() {
				query := ciliumtest.Query(
					s,
					ciliumtest.Connection{Source: source.Source, Destination: server.labels, Protocol: p.Protocol, Port: p.Number},
					ciliumtest.Noon,
				)
				out = append(out, &question{
					attempt: attempt{from: source.from, local: source.local, to: server.address, port: p},
					source:  source, server: server, verdict: s.DecideEffective(&query).Verdict,
				})
			}
		}
	}
	return out
}

// compare gives the member a world, makes every connection, and returns those that disagree.
func (m *wireMember) compare(t *testing.T, in policy.Input, translated ciliumtest.Objects, tally *wireTally) []*question {
	t.Helper()
	m.ensureRemote(t)
	began := time.Now()
	m.give(t, objectsOf(translated))
	tally.settled = append(tally.settled, time.Since(began))
	all := m.questions(policy.NewSnapshot(in))
	connect(t, all)
	wrong := slices.DeleteFunc(slices.Clone(all), (*question).agrees)
	first := len(wrong)
	for deadline := time.Now().Add(m.late); len(wrong) > 0 && time.Now().Before(deadline); {
		m.ensureRemote(t)
		connect(t, wrong)
		wrong = slices.DeleteFunc(wrong, (*question).agrees)
	}
	tally.worlds++
	tally.connections += len(all)
	tally.late += first - len(wrong)
	for _, q := range all {
		tally.words[q.verdict]++
	}
	return wrong
}

func connect(t *testing.T, questions []*question) {
	t.Helper()
	attempts := make([]*attempt, len(questions))
	for i, q := range questions {
		attempts[i] = &q.attempt
	}
	connectAll(t, attempts)
}

// worldOfSeed returns a random world for the wire.
func worldOfSeed(seed uint64) policy.Input { return onWire(ciliumtest.NewGenerator(seed).Input()) }

func translate(t *testing.T, in policy.Input) ciliumtest.Objects {
	t.Helper()
	out, err := ciliumtest.Translate(policy.NewSnapshot(in), ciliumtest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestConformanceOnWire compares decisions with connections through the datapath of a real agent: `make conformance-wire`.
func TestConformanceOnWire(t *testing.T) {
	m := startWireMember(t)
	warmUp(t, m)
	t.Run("decisions", m.testDecisions)
	t.Run("mistakes are detected", m.testMistakes)
	t.Run("a killed agent", m.testKilledAgent)
}

// warmUp makes every connection once without any policy, so that no later one waits for a neighbour's address, and none fails for another
// reason than a policy.
func warmUp(t *testing.T, m *wireMember) {
	t.Helper()
	m.ensureRemote(t)
	m.give(t, nil)
	all := m.questions(policy.NewSnapshot(policy.Input{}))
	for deadline := time.Now().Add(wireTimeout); ; {
		connect(t, all)
		all = slices.DeleteFunc(all, func(q *question) bool { return q.err == nil })
		if len(all) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections fail without any policy, for example %s", len(all), all[0])
		}
	}
}

func (m *wireMember) testDecisions(t *testing.T) {
	if *worlds == 0 {
		t.Fatal("-worlds must be positive")
	}
	tally := &wireTally{words: map[policy.Verdict]int{}}
	t.Logf("seeds %d to %d, %d sources, %d servers, %d ports", *firstSeed, *firstSeed+*worlds-1, len(m.sources), len(m.servers), len(wirePorts()))
	began := time.Now()
	for seed := *firstSeed; seed < *firstSeed+*worlds; seed++ {
		in := worldOfSeed(seed)
		translated := translate(t, in)
		wrong := m.compare(t, in, translated, tally)
		if len(wrong) == 0 {
			continue
		}
		t.Errorf("seed %d: %d connections disagree; the objects are in %s", seed, len(wrong), writeFailure(t, seed, in, objectsOf(translated)))
		for _, q := range wrong[:min(len(wrong), shownDisagreements)] {
			t.Errorf("seed %d: %s", seed, q)
		}
	}
	slices.Sort(tally.settled)
	t.Logf(
		"%d connections in %d worlds in %.0f s, %d of them late: %v; enforced after %s (p50), %s (maximum)",
		tally.connections,
		tally.worlds,
		time.Since(began).
			Seconds(),
		tally.late,
		tally.words,
		quantile(tally.settled, 0.5).Round(time.Millisecond),
		tally.settled[len(tally.settled)-1].Round(time.Millisecond),
	)
	if *worlds < 20 {
		return // too few for the counts below, which are about the defaults
	}
	if tally.connections < leastConnections {
		t.Errorf("%d connections were compared, want at least %d", tally.connections, leastConnections)
	}
	for _, w := range []policy.Verdict{policy.Allowed, policy.Denied, policy.DefaultDenied, policy.Audited, policy.Unmanaged} {
		if tally.words[w] < leastConnections/100 {
			t.Errorf("only %d connections were %s: a mistake there would not be noticed", tally.words[w], w)
		}
	}
	if tally.late > tally.connections/100 {
		t.Errorf("%d of %d connections agreed only later: the wire is not settled when the test believes so", tally.late, tally.connections)
	}
}

// writeFailure writes the world of a seed and the objects that the member got.
func writeFailure(t *testing.T, seed uint64, in policy.Input, objects []*unstructured.Unstructured) string {
	t.Helper()
	if err := os.MkdirAll(failuresDir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(failuresDir, fmt.Sprintf("seed-%d.yaml", seed))
	text, err := yaml.Marshal(map[string]any{"seed": seed, "at": ciliumtest.Noon, "world": in, "objects": objects})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wireMistakes are the mistakes of a translation that the wire has to show: each is about another part of a policy or a group.
var wireMistakes = []string{"no-cluster-clause", "deny-in-audit", "no-default-deny", "default-deny-in-audit", "no-deny", "no-ports", "no-end-port",
	"any-protocol", "no-icmp", "no-cidr-in-deny", "no-group-class", "wildcard-for-one", "foreign-keys-ignored", "expired-counts"}

const (
	// mistakeWorlds is the number of worlds, of those that a mistake changes, in one of which it must show.
	mistakeWorlds = 12
	// mistakeSeeds bounds the search for such worlds.
	mistakeSeeds = 500
)

func (m *wireMember) testMistakes(t *testing.T) {
	mutants := slices.DeleteFunc(ciliumtest.Mutants(), func(m ciliumtest.Mutant) bool { return !slices.Contains(wireMistakes, m.Name) })
	if len(mutants) != len(wireMistakes) {
		t.Fatalf("%d of the mistakes exist, want %d", len(mutants), len(wireMistakes))
	}
	mutants = append(mutants, ciliumtest.Mutant{Name: "last-rule-dropped", Why: "each rule lets somebody in", Break: func(spec map[string]any) {
		if rules, ok := spec["ingress"].([]any); ok && len(rules) > 1 {
			spec["ingress"] = rules[:len(rules)-1]
		}
	}})
	for i := range mutants {
		t.Run(mutants[i].Name, func(t *testing.T) { m.testMistake(t, &mutants[i]) })
	}
}

// testMistake gives the member translations with a mistake until a connection shows it.
func (m *wireMember) testMistake(t *testing.T, mistake *ciliumtest.Mutant) {
	tried := 0
	for seed := uint64(0); tried < mistakeWorlds && seed < mistakeSeeds; seed++ {
		in := worldOfSeed(seed)
		correct := translate(t, in)
		broken, err := mistake.Translate(policy.NewSnapshot(in), ciliumtest.Noon)
		if err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(correct, broken) {
			continue // the mistake changes nothing in this world
		}
		tried++
		if wrong := m.compare(t, in, broken, &wireTally{words: map[policy.Verdict]int{}}); len(wrong) > 0 {
			t.Logf("%s: %d connections of seed %d show it, for example %s", mistake.Why, len(wrong), seed, wrong[0])
			return
		}
	}
	t.Errorf("%s: no connection shows it in %d worlds", mistake.Why, tried)
}
