// Command portal serves ACP's web application and API, and brings approved requests into the host cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/acp-io/acp/internal/version"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "portal:", err)
		os.Exit(2)
	}
	if o.version {
		fmt.Println("portal", version.String())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, logger(o.logFormat, o.logLevel, os.Stderr)); err != nil {
		fmt.Fprintln(os.Stderr, "portal:", err)
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
