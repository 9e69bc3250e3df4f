// Command acp-bench measures the running system and prints lines "bench NAME VALUE UNIT".
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-io/acp/playground/internal/bench"
)

func main() {
	var o bench.Options
	flag.StringVar(&o.Repo, "repo", ".", "root of the ACP repository")
	flag.StringVar(&o.BinDir, "bin-dir", "bin", "folder with the built programs")
	flag.IntVar(&o.Tickets, "tickets", 50, "how many tickets to approve one after the other")
	flag.IntVar(&o.Units, "units", 2000, "how many resources change at once")
	flag.IntVar(&o.Pushes, "pushes", 200, "how many policies to change one after the other")
	flag.IntVar(&o.Resources, "resources", 10_000, "how many resources there are when the adapter is restarted")
	only := flag.String("only", "", "measure only these parts, separated by commas: "+strings.Join(bench.Parts(), ", "))
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Measures a fleet of its own, started with make run in a temporary folder; figures go to standard output.")
		flag.PrintDefaults()
	}
	flag.Parse()
	known := true
	if *only != "" {
		o.Only = strings.Split(*only, ",")
		known = !slices.ContainsFunc(o.Only, func(p string) bool { return !slices.Contains(bench.Parts(), p) })
	}
	if flag.NArg() > 0 || min(o.Tickets, o.Units, o.Pushes, o.Resources) < 1 || !known {
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
