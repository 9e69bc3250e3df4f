// Command acp-dataplane emulates the Cilium agents of one member cluster of a playground: it decides connections with Cilium's
// policy engine, generates those of the demo, and serves Hubble's API.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/acp-io/acp/playground/dataplane/internal/crds"
)

const usage = `usage: acp-dataplane COMMAND [flags]
  run    serve one member until SIGTERM (run --help lists the flags)
  ask    decide the connections that standard input lists, by what is in force in one member, and change nothing
  crds   print the CRDs that a member needs
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := dispatch(ctx, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "acp-dataplane:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "run":
		return run(ctx, args[1:])
	case "ask":
		return ask(ctx, args[1:], os.Stdin, os.Stdout)
	case "crds":
		return crds.Write(os.Stdout)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	default:
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("there is no command %q", command)
	}
}
