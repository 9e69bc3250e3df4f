package main

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/acp-io/acp/internal/approval/gormstore"
	credentialstore "github.com/acp-io/acp/internal/credential/gormstore"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/wallclock"
)

// metricsHandler serves the metrics at a separate address, because not everyone who reaches the portal may see them.
func metricsHandler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

func counted(tickets *gormstore.Store, credentials *credentialstore.Store) func(context.Context) (core.Stats, error) {
	return func(ctx context.Context) (s core.Stats, err error) {
		if s.Tickets, s.Outbox, s.Oldest, err = tickets.Stats(ctx); err != nil {
			return s, err
		}
		s.Sessions, s.Tokens, err = credentials.Count(ctx, wallclock.Now())
		return s, err
	}
}
