package conformance

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// TestForeignPolicies checks that the detector reports exactly what policies of others let in beyond ACP's policies.
func TestForeignPolicies(t *testing.T) {
	tally, over := NewForeignTally(), 0
	for seed := *firstSeed; seed < *firstSeed+max(1, *worlds/2); seed++ {
		wrong, err := RunForeign(seed, Detect, tally)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range wrong {
			text, err := yaml.Marshal(c.Foreign)
			if err != nil {
				t.Fatal(err)
			}
			if c.Missed {
				t.Fatalf("%s\n%s", c, text)
			}
			if over++; over <= 5 {
				t.Errorf("%s\n%s", c, text)
			}
		}
	}
	t.Logf(
		"%d connections in %d worlds, in %d of which Cilium refuses a policy: %d labels opened %v, %d not, %d reported without need",
		tally.Connections,
		tally.Worlds,
		tally.Refused,
		tally.Opened,
		tally.Kinds,
		tally.Closed,
		tally.Overreported,
	)
}

// Every mistake of a detector must be noticed in the random worlds.
func TestFaultyDetectorsAreFound(t *testing.T) {
	for _, b := range FaultyDetectors() {
		t.Run(b.Name, func(t *testing.T) {
			for seed := range uint64(2000) {
				wrong, err := RunForeign(seed, b.Detector, NewForeignTally())
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range wrong {
					if c.Missed != b.Overreports {
						t.Logf("%s: noticed in the world of seed %d", b.Why, seed)
						return
					}
				}
			}
			t.Errorf("%s: not noticed", b.Why)
		})
	}
}
