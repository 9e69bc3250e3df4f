package istio

import (
	"math/rand/v2"
	"testing"

	"github.com/acp-io/acp/internal/enforcer/enforcertest"
	"github.com/acp-io/acp/internal/policy"
)

func TestSeam(t *testing.T) {
	for seed := range uint64(60) {
		d := dice{rand.New(rand.NewPCG(seed, 10))}
		units := policy.NewSnapshot(d.world(seed%2 == 0)).Compile(goldenTime)
		enforcertest.Check(t, testEnforcer(t).WithUnits(units), units)
	}
}
