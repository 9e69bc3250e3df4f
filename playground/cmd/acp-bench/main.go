// Command acp-bench measures the running system and prints lines "bench NAME VALUE UNIT".
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/acp-io/acp/playground/internal/bench"
)

func main() {
	var o bench.Options
	flag.StringVar(&o.Repo, "repo", ".", "root of the ACP repository")
	flag.StringVar(&o.BinDir, "bin-dir", "bin", "folder with the built programs")
	flag.IntVar(&o.Tickets, "tickets", 50, "how many tickets to approve one after the other")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Measures a fleet of its own, started with make run in a temporary folder; figures go to standard output.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || o.Tickets < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench.Run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
