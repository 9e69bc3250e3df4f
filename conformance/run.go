package conformance

import (
	"fmt"

	"github.com/acp-io/acp/internal/enforcer/ciliumtest"
	"github.com/acp-io/acp/internal/policy"
)

// Tally counts the comparisons.
type Tally struct {
	Worlds, Decisions int
	// Complete counts the worlds in which no statement is refused.
	Complete int
	// Changed counts the decisions that a refusal changes.
	Changed int
	Words   map[policy.Verdict]int
	// Requests counts the requests that were compared, on connections with a proxy.
	Requests int
	Pairs    *Pairs
}

// NewTally returns an empty tally.
func NewTally() *Tally { return &Tally{Words: map[policy.Verdict]int{}, Pairs: NewPairs()} }

// Run decides every connection of the world of a seed with both sides, and returns the first disagreement. It returns
// an error if the translation, or Cilium, rejects an object.
func Run(seed uint64, translate Translation, tally *Tally) (*Case, error) {
	d := newGenerator(seed)
	in := d.Input()
	sources, destinations := d.Sources(), d.Destinations(4)
	s := policy.NewSnapshot(in)
	objects, err := translate(s, noon)
	if err != nil {
		return nil, fmt.Errorf("translate the world of seed %d: %w", seed, err)
	}
	m, err := newMember(objects, sources, destinations)
	if err != nil {
		return nil, fmt.Errorf("load the world of seed %d: %w", seed, err)
	}
	tally.Worlds++
	if complete(s, noon) {
		tally.Complete++
	}
	for i, destination := range destinations {
		features := destinationFeatures(s, &in, destination)
		for j, source := range sources {
			onPort := map[Feature]int{}
			for _, at := range l4s {
				c := Connection{Source: source, Destination: destination, Protocol: at.Protocol, Port: at.Number}
				got, err := m.engine.decide(m.sources[j], m.destinations[i], protocols[c.Protocol], c.Port)
				if err != nil {
					return nil, fmt.Errorf("decide in the world of seed %d: %w", seed, err)
				}
				outcome, found := compareDecision(s, c, noon, got)
				if found != "" {
					return &Case{Why: string(found), At: noon, Connection: c, Word: outcome, Input: &in}, nil
				}
				tally.Decisions++
				tally.Words[outcome]++
				if s.Decide(ciliumtest.Query(s, c, noon)).Verdict != outcome {
					tally.Changed++
				}
				if got.Proxied {
					tally.Requests += len(requests)
				}
				onPort[portFeature(c.Protocol)]++
			}
			for f, n := range onPort {
				tally.Pairs.Add(append(features, sourceFeature(s, &in, source), f), n)
			}
		}
	}
	return nil, nil
}
