// Command acp-adapter compiles access control policies, hands them to KubeFed for the member clusters, reads the
// members back, and tells in the objects' statuses what is in force where.
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

// run returns the exit code: 2 when it was called wrongly, 1 when it could not work.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, configuration.ErrAnswered):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "acp-adapter: %s; see --help\n", err)
		return 2
	}
	// Nearly all that it holds is what API servers have, which stays: half as much again is room enough for the rest, and
	// collecting more often costs little where little is made. GOGC says otherwise.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if err := serve(ctx, o, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "acp-adapter: %s\n", o.explain(err))
		return 1
	}
	return 0
}
