package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/policy"
)

var (
	worlds    = flag.Uint64("worlds", 1000, "how many random worlds to compare")
	firstSeed = flag.Uint64("seed", 0, "the seed of the first world; the others follow")
	pairsFile = flag.String("pairs", "", "write the table of pairs of features to this file")
	update    = flag.Bool("update", false, "write the cases of the mutants again")
)

const casesDir = "testdata/cases"

// leastDecisions is a lower bound of the compared decisions with the defaults, so that a change of the worlds cannot reduce the
// coverage unnoticed.
const leastDecisions = 200_000

func TestCiliumAgrees(t *testing.T) {
	tally := NewTally()
	t.Logf("seeds %d to %d", *firstSeed, *firstSeed+*worlds-1)
	for seed := *firstSeed; seed < *firstSeed+*worlds; seed++ {
		c, err := Run(seed, Translate, tally)
		if err != nil {
			t.Fatal(err)
		}
		if c != nil {
			why := c.Why
			c = Shrink(c, func(c *Case) bool { return failsFor(c, Translate) })
			t.Fatalf("seed %d: %s; shrunk to %s", seed, why, write(t, fmt.Sprintf("seed-%d", seed), c))
		}
	}
	t.Logf(
		"%d decisions in %d worlds, %d of them without refusals, and %d requests: %v",
		tally.Decisions,
		tally.Worlds,
		tally.Complete,
		tally.Requests,
		tally.Words,
	)
	if *worlds < 1000 {
		return // too few for the counts below, which are about the defaults
	}
	if tally.Decisions < leastDecisions {
		t.Errorf("%d decisions were compared, want at least %d", tally.Decisions, leastDecisions)
	}
	if tally.Requests < 5_000 {
		t.Errorf("only %d requests were compared", tally.Requests)
	}
	if tally.Complete < tally.Worlds/2 {
		t.Errorf("only in %d of %d worlds nothing was refused", tally.Complete, tally.Worlds)
	}
	if tally.Changed < leastDecisions/1000 {
		t.Errorf("refusals changed only %d decisions: a mistake in what the members lack would not be noticed", tally.Changed)
	}
	for _, w := range []policy.Verdict{policy.Allowed, policy.Denied, policy.DefaultDenied, policy.Audited, policy.Unmanaged} {
		if tally.Words[w] < leastDecisions/100 {
			t.Errorf("only %d decisions were %s: a mistake there would not be noticed", tally.Words[w], w)
		}
	}
	checkPairs(t, tally.Pairs)
}

func checkPairs(t *testing.T, p *Pairs) {
	t.Helper()
	all := p.Features()
	var table strings.Builder
	least, leastPair := -1, ""
	for i, a := range all {
		for _, b := range all[:i+1] {
			if Exclusive(a, b) {
				continue
			}
			n := p.Met(a, b)
			fmt.Fprintf(&table, "%d\t%s\t%s\n", n, b, a)
			if n == 0 {
				t.Errorf("%s and %s never met in a decision", b, a)
			}
			if least < 0 || n < least {
				least, leastPair = n, fmt.Sprintf("%s and %s", b, a)
			}
		}
	}
	t.Logf("%d features; the pair that met least: %s, %d times", len(all), leastPair, least)
	if *pairsFile == "" {
		return
	}
	if err := os.WriteFile(*pairsFile, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every mistake must be noticed in the random worlds, and in a small case that is kept.
func TestMutantsAreCaught(t *testing.T) {
	for _, m := range Mutants() {
		t.Run(m.Name, func(t *testing.T) {
			for seed := range uint64(400) {
				c, err := Run(seed, m.Translate, NewTally())
				if err != nil && !m.Refused {
					t.Fatalf("%s: Cilium refuses it, which is no proof that it would be noticed: %v", m.Why, err)
				}
				if c == nil && err == nil {
					continue
				}
				t.Logf("%s: noticed in the world of seed %d", m.Why, seed)
				if *update {
					writeSmallestCase(t, seed, &m, c)
				}
				return
			}
			t.Errorf("%s: not noticed", m.Why)
		})
	}
}

// writeSmallestCase writes the smallest case in which the correct translation decides as the engine and the mutant does not.
func writeSmallestCase(t *testing.T, seed uint64, m *Mutant, c *Case) {
	t.Helper()
	if c == nil { // Cilium refuses the world, so every connection shows it
		d := newGenerator(seed)
		in := d.Input()
		c = &Case{At: noon, Input: &in, Connection: Connection{Source: d.Sources()[0], Destination: d.Destinations(1)[0], Protocol: "TCP", Port: 6379}}
	}
	c = Shrink(c, func(c *Case) bool { return detects(m, c) && !failsFor(c, Translate) })
	word, _, err := c.Check(Translate)
	if err != nil {
		t.Fatal(err)
	}
	c.Why, c.Word = m.Why, word
	write(t, m.Name, c)
}

// detects reports whether the case shows the mistake, by a disagreement or, where that is expected, a refusal.
func detects(m *Mutant, c *Case) bool {
	_, d, err := c.Check(m.Translate)
	return d != "" || err != nil && m.Refused
}

// failsFor reports whether a translation disagrees or is refused.
func failsFor(c *Case, translate Translation) bool {
	_, d, err := c.Check(translate)
	return d != "" || err != nil
}

func write(t *testing.T, name string, c *Case) string {
	t.Helper()
	text, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(casesDir, name+".yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) *Case {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of the test
	if err != nil {
		t.Fatal(err)
	}
	c := new(Case)
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCases(t *testing.T) {
	mutants := Mutants()
	paths, err := filepath.Glob(filepath.Join(casesDir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		names = append(names, name)
		t.Run(name, func(t *testing.T) {
			c := read(t, path)
			word, d, err := c.Check(Translate)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.Word, word); diff != "" || d != "" {
				t.Errorf("%s: %s, word -want +got:\n%s", c.Why, d, diff)
			}
			if i := slices.IndexFunc(mutants, func(m Mutant) bool { return m.Name == name }); i >= 0 && !detects(&mutants[i], c) {
				t.Errorf("%s: the mutant is not noticed", c.Why)
			}
		})
	}
	for _, m := range mutants {
		if !slices.Contains(names, m.Name) {
			t.Errorf("mutant %s has no case: run this test with -update", m.Name)
		}
	}
}
