package main

import (
	"context"
	"io"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/metrictest"
)

func TestMetricsAreDocumented(t *testing.T) {
	dir := t.TempDir()
	o, err := parse(
		arguments(t, with(certificate(t), "kubeconfig", file(t, kubeconfig), "spool", filepath.Join(dir, "spool"),
			"audit-log", "file:"+filepath.Join(dir, "audit-log"), "share-as", "one")),
		io.Discard,
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	registry, done := prometheus.NewRegistry(), make(chan error, 1)
	var said log
	go func() { done <- collect(ctx, o, registry, io.Discard, logger(o, &said)) }()
	for started := regexp.MustCompile(`health=(\S+)`); !started.MatchString(said.String()); {
		select {
		case err := <-done:
			t.Fatalf("ended with %v: %s", err, said.String())
		case <-time.After(time.Millisecond):
		}
	}
	metrictest.Compare(t, "collector", registry)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
