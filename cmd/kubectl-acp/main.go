// Command kubectl-acp is a kubectl plugin: `kubectl acp` renders, asks, checks and compares access control policies,
// from files or from a cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/acp-io/acp/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Now: time.Now})
	stop()
	os.Exit(code)
}
