package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/internal/configuration"
)

// These are the exit codes of the program.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, configuration.ErrAnswered):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "flow-collector: %v (see --help)\n", err)
		return exitUsage
	}
	log := logger(o, stderr)
	if err := collect(ctx, o, prometheus.NewRegistry(), stdout, log); err != nil {
		fmt.Fprintf(stderr, "flow-collector: %v\n", o.explain(err))
		return exitError
	}
	return exitOK
}

func logger(o options, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: o.logLevel}
	var h slog.Handler = slog.NewTextHandler(w, opts)
	if o.logFormat == "json" {
		h = slog.NewJSONHandler(w, opts)
	}
	log := slog.New(h)
	klog.SetSlogLogger(log.With("component", "kubernetes-client"))
	ctrllog.SetLogger(logr.FromSlogHandler(h))
	return log
}
