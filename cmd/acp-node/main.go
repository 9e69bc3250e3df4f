// Command acp-node runs on each node of a member. It asks the node's Cilium agent which revision of ACP's policies it has and
// whether every endpoint enforces it, and writes the answer to the member's API server, where the adapter reads it. It
// contains settings, wiring and startup; the logic is in internal/nodereport.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/acp-io/acp/internal/configuration"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 2 after a wrong call, 1 after another error.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, configuration.ErrAnswered):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "acp-node: %s; see --help\n", err)
		return 2
	}
	if err := serve(ctx, o, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "acp-node: %s\n", o.explain(err))
		return 1
	}
	return 0
}
