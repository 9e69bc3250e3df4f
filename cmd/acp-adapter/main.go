// Command acp-adapter compiles access control policies, writes them as federated objects that KubeFed propagates to the
// member clusters, reads the members back, and reports in the objects' statuses what is in force in which member.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/acp-io/acp/internal/configuration"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 2 after a wrong call, 1 after another error.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, configuration.ErrAnswered):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "acp-adapter: %s; see --help\n", err)
		return 2
	}
	// Most of the heap is long-lived copies of API objects. A GC percentage of 50 limits memory at little CPU cost. The
	// environment variable GOGC overrides it.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if err := serve(ctx, o, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "acp-adapter: %s\n", o.explain(err))
		return 1
	}
	return 0
}
