package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/acp-io/acp/internal/configuration/configurationtest"
)

func TestPublishedConfiguration(t *testing.T) {
	var o options
	var g given
	configurationtest.Published(t, "flow-collector", settings(&o, &g))
}

// TestManifestIsValid: what deploy/workloads gives the program is taken, and listens where the probes ask.
func TestManifestIsValid(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "acp-hubble"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
		if err := os.WriteFile(filepath.Join(dir, "acp-hubble", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, err := parse([]string{"--config=" + configurationtest.FromManifest(t, "acp-flow-collector", dir)}, t.Output())
	if err != nil || o.healthAddress != ":8081" || o.metricsAddress != ":8082" || o.spoolDir != "/data/spool" {
		t.Errorf("%+v, %v", o, err)
	}
}
