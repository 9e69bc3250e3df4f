package main

import (
	"testing"

	"github.com/acp-io/acp/bench/world"
	"github.com/acp-io/acp/internal/policy"
)

// TestPeersAgree checks that every engine gives the same answers, because times are compared only between equal results.
func TestPeersAgree(t *testing.T) {
	for seed := range uint64(3) {
		w := world.New(seed, 5000)
		s := policy.NewSnapshot(w.Input)
		asked := w.Questions(seed, 2000)
		for _, p := range allPeers {
			ask, err := p.prepare(&w, asked)
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			allowed := 0
			for i := range asked {
				want := decide(s, asked[i:i+1]) == 1
				if got, err := ask(i); err != nil || got != want {
					t.Fatalf("seed %d: %s says %v (%v) for %s to %s, and the snapshot %v", seed, p.name, got, err, asked[i].Subject, asked[i].Resource, want)
				}
				if want {
					allowed++
				}
			}
			if allowed < 200 || allowed > len(asked)-200 {
				t.Errorf("seed %d: %d of %d allowed: too few, or too few refused, to notice a mistake", seed, allowed, len(asked))
			}
		}
	}
}
