package main

import (
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/portal/accessrequest"
	"github.com/acp-io/acp/internal/wallclock"
)

// openAccessRequests returns the controller of AccessRequests; nil if they are not handled.
func openAccessRequests(o options, host *rest.Config, people func() *catalog.Catalog, log *slog.Logger) (*accessrequest.Controller, error) {
	if !o.accessRequests {
		return nil, nil
	}
	return accessrequest.NewController(host, accessrequest.Config{Catalog: people, URL: accessrequest.TicketURL(o.publicURL), Now: wallclock.Now, Log: log})
}
