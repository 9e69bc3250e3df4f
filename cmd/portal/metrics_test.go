package main

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/metrictest"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

func TestMetricsAreDocumented(t *testing.T) {
	server := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/crds"}})
	o := testOptions(t, server.Config, portaltest.NewProvider(t))
	ctx, cancel := context.WithCancel(t.Context())
	registry, done := prometheus.NewRegistry(), make(chan error, 1)
	go func() { done <- operate(ctx, o, registry, slog.New(slog.DiscardHandler)) }()
	eventually.True(t, "the portal serves", func() bool {
		res, err := http.Get("http://" + o.listen + "/healthz")
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }() // nothing is read
		return res.StatusCode == http.StatusOK
	})
	metrictest.Compare(t, "portal", registry)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
