// Command acp-faults runs the fault drill: it injects random faults into a fleet and fails when a verdict differs from the policies,
// when an object is left behind, or when a status is false.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-io/acp/playground/internal/faults"
	"github.com/acp-io/acp/playground/internal/run"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "acp-faults:", err)
		os.Exit(1)
	}
}

// names splits a list.
func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// start parses the flags and runs the drill.
func start(ctx context.Context) error {
	var o faults.Options
	repo := flag.String("repo", ".", "the ACP repository, or a folder in it")
	flag.StringVar(&o.BinDir, "bin-dir", "bin", "folder with acp-playground and, in drill/, the programs of ACP built with the tag drill")
	flag.IntVar(&o.Steps, "steps", 200, "number of steps")
	flag.DurationVar(&o.Duration, "duration", 0, "duration of the run, instead of a number of steps")
	flag.Uint64Var(&o.Seed, "seed", 0, "seed of the random sequence; 0 chooses one and prints it")
	flag.StringVar(&o.Outages, "outages", "", "run only outages whose name contains this text")
	flag.StringVar(&o.Changes, "changes", "", "make only manual changes whose name contains this text, every other step, and each at least once")
	direct := flag.String("direct", "m2", "members that use the direct engine, separated by commas; all others use KubeFed")
	pull := flag.String("pull", "", "members into which a work agent of Open Cluster Management writes, separated by commas")
	flag.Parse()
	o.Direct, o.Pull = names(*direct), names(*pull)
	o.Direct = slices.DeleteFunc(o.Direct, func(m string) bool { return slices.Contains(o.Pull, m) })
	var err error
	if o.Repo, err = run.FindRepo(*repo); err != nil {
		return err
	}
	if o.BinDir, err = filepath.Abs(o.BinDir); err != nil {
		return err
	}
	o.Self = filepath.Join(o.BinDir, "acp-playground")
	o.BinDir = filepath.Join(o.BinDir, "drill")
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1 << 32)
	}
	fmt.Printf("seed %d\n", o.Seed)
	return faults.Run(ctx, o, os.Stdout)
}
