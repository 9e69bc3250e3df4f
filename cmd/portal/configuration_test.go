package main

import (
	"testing"

	"github.com/acp-io/acp/internal/configuration/configurationtest"
)

func TestPublishedConfiguration(t *testing.T) {
	var o options
	configurationtest.Published(t, "portal", settings(&o))
}

// TestManifestIsValid: what deploy/workloads gives the program is taken, and listens where the probes ask.
func TestManifestIsValid(t *testing.T) {
	o, err := parse([]string{"--config=" + configurationtest.FromManifest(t, "acp-portal", t.TempDir())}, t.Output())
	if err != nil || o.healthAddress != ":8081" || o.metricsAddress != ":8082" {
		t.Errorf("%+v, %v", o, err)
	}
}
