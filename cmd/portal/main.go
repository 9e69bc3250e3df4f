// Command portal serves ACP's web application and API, and brings approved requests into the host cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/acp-io/acp/internal/configuration"
)

func main() {
	o, err := parse(os.Args[1:], os.Stdout)
	if errors.Is(err, configuration.ErrAnswered) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "portal: %s; see --help\n", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, logger(o.logFormat, o.logLevel, os.Stderr)); err != nil {
		fmt.Fprintln(os.Stderr, "portal:", o.explain(err))
		stop()
		os.Exit(1)
	}
}

func logger(format string, level slog.Level, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
