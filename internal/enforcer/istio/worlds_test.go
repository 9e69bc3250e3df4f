package istio

import (
	"testing"

	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// testConfig returns what the members of the random worlds declare.
func testConfig() Config {
	c, err := ParseConfig([]byte(istiotest.Capabilities))
	if err != nil {
		panic(err)
	}
	return c
}

// TestCapabilitiesOfWorlds checks that the members of the random worlds differ as the comparisons need it.
func TestCapabilitiesOfWorlds(t *testing.T) {
	c := testConfig()
	if c.Default.Dataplane != Sidecar || c.Members["m2"].Dataplane != Ambient || !c.Members["m1"].StrictMTLS || len(c.Members) != 3 {
		t.Errorf("%+v", c)
	}
}
