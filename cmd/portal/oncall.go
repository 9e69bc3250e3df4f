package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/oncall"
	"github.com/acp-io/acp/internal/wallclock"
)

// openSchedules reads the file with the on-call schedules. It returns the source of who is on call, which is nil if there is no
// file, and the function that keeps it current.
func openSchedules(o options, company func() *catalog.Catalog, log *slog.Logger) (approval.OnCall, func(context.Context), error) {
	if o.onCall == "" {
		return nil, func(context.Context) {}, nil
	}
	s, err := oncall.New(oncall.Config{File: o.onCall, Catalog: company, Now: wallclock.Now, Log: log})
	if err != nil {
		return nil, nil, fmt.Errorf("--on-call: %w", err)
	}
	return s.OnCall, s.Run, nil
}
