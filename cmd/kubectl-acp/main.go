// Command kubectl-acp is a kubectl plugin: `kubectl acp` renders, evaluates, checks and compares access control policies,
// from files or from a cluster.
package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/acp-io/acp/internal/cli"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(cli.RunUntil(signals, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Now: time.Now}))
}
