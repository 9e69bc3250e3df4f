package istio

import (
	"testing"

	"github.com/acp-io/acp/internal/enforcer/enforcertest"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/policy"
)

func TestSeam(t *testing.T) {
	for seed := range uint64(60) {
		d := istiotest.NewGenerator(seed, 10)
		units := policy.NewSnapshot(d.World(seed%2 == 0)).Compile(istiotest.Noon)
		enforcertest.Check(t, testEnforcer(t).WithUnits(units), units)
	}
}
