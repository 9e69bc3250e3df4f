package portaltest

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/testenv"
)

// APIServer starts a real API server that stops with the test, with ACP's kinds or without.
func APIServer(t testing.TB, kinds bool) *rest.Config {
	t.Helper()
	var o testenv.Options
	if kinds {
		o.CRDs = []string{"deploy/crds"}
	}
	return testenv.Start(t, o).Config
}
