// Command portal serves ACP's web application and API, and writes approved changes to the host cluster.
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
	if len(os.Args) > 1 {
		if c, ok := commands()[os.Args[1]]; ok {
			os.Exit(runCommand(os.Args[1], c, os.Args[2:]))
		}
	}
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

// runCommand runs a command and returns the exit code.
func runCommand(name string, c command, args []string) int {
	o, err := parseCommand(name, c, args, os.Stdout)
	if errors.Is(err, configuration.ErrAnswered) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "portal %s: %s; see --help\n", name, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "portal %s: %s\n", name, o.explain(err))
		return 1
	}
	return 0
}

func logger(format string, level slog.Level, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
