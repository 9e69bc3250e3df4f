// Command acp-scale measures the adapter with many simulated members and prints lines "bench NAME VALUE UNIT".
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/acp-io/acp/playground/internal/run"
	"github.com/acp-io/acp/playground/internal/scale"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "acp-scale:", err)
		os.Exit(1)
	}
}

// start parses the flags and measures.
func start(ctx context.Context) error {
	o := scale.DefaultOptions()
	repo := flag.String("repo", ".", "the ACP repository, or a folder in it")
	flag.StringVar(&o.BinDir, "bin-dir", "bin", "folder with the built programs")
	flag.IntVar(&o.Members, "members", o.Members, "number of members")
	flag.IntVar(&o.Resources, "resources", o.Resources, "number of enforced resources")
	flag.IntVar(&o.Grants, "grants", o.Grants, "number of grants of each resource")
	flag.IntVar(&o.Changes, "changes", o.Changes, "number of revocations of each series")
	flag.IntVar(&o.Workloads, "workloads", o.Workloads, "number of external workloads; with more than 0, the bulk figures are not comparable with others")
	flag.IntVar(&o.People, "people", o.People, "number of people who request and decide access in the portal while revocations are measured")
	flag.IntVar(&o.Flows, "flows", o.Flows, "number of the members' connections per second that the collector follows meanwhile")
	flag.Float64Var(&o.Errors, "errors", o.Errors, "share of requests that the failing member answers with an internal error, from 0 to 1")
	flag.DurationVar(&o.Slow, "slow", o.Slow, "latency of the slow member")
	flag.StringVar(&o.Profile, "profile", o.Profile, "`file` for a profile of the adapter's processor time in the bulk push, for go tool pprof")
	flag.Parse()
	var err error
	if o.Repo, err = run.FindRepo(*repo); err != nil {
		return err
	}
	if o.BinDir, err = filepath.Abs(o.BinDir); err != nil {
		return err
	}
	return scale.Run(ctx, o, os.Stdout, os.Stderr)
}
