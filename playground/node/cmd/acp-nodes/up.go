package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/run"
	"github.com/acp-io/acp/playground/internal/supervisor"
	"github.com/acp-io/acp/playground/node/internal/cluster"
	"github.com/acp-io/acp/playground/node/internal/sandbox"
)

// clusterName matches names that are valid as a host name, as a file name and as a cluster name of Cilium.
var clusterName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,20}[a-z0-9])?$`)

func up(ctx context.Context, flags *flag.FlagSet, args []string) error {
	f := folderFlags(flags)
	names := flags.String("clusters", "node", "names of the clusters, separated by commas")
	file := flags.String("config", "", "YAML file with options of clusters: name to nodes, apiPort, authority, tokenFile, hubble, previousCilium (docs/real-nodes.md)")
	ready := flags.String("ready-file", "", "file that is written when all clusters are ready")
	keep := flags.Bool("keep-state", false, "keep the disks and logs of the nodes at the end")
	var images []string
	flags.Func("image", "file with a container image to import into all nodes (may be repeated)", func(file string) error {
		images = append(images, file)
		return nil
	})
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("up takes no arguments, got %q", flags.Args())
	}
	options, err := readOptions(*file)
	if err != nil {
		return err
	}
	configs, err := configure(strings.Split(*names, ","), options)
	if err != nil {
		return err
	}
	repo, state, err := f.resolve()
	if err != nil {
		return err
	}
	if err := sandbox.Check(existing(state)); err != nil {
		return fmt.Errorf("this machine cannot run a node: %w", err)
	}
	printer := &run.Printer{Out: os.Stdout}
	built, err := ensureParts(ctx, repo, configs, &run.Printer{Out: os.Stdout, TTY: isTerminal(os.Stdout)})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	lock, err := supervisor.Acquire(state)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := removeLeftovers(state); err != nil {
		return err
	}
	r := runner{state: state, built: built, images: images, keep: *keep, readyFile: *ready, printer: printer}
	err = r.run(ctx, configs)
	if err == nil && !*keep {
		err = removeStateDir(state)
	}
	return err
}

// readOptions reads a file of options. It returns none if file is empty.
func readOptions(file string) (map[string]cluster.Options, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	out := map[string]cluster.Options{}
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		return nil, fmt.Errorf("--config %s: %w", file, err)
	}
	return out, nil
}

func configure(names []string, options map[string]cluster.Options) ([]cluster.Config, error) {
	var out []cluster.Config
	for i, name := range names {
		if !clusterName.MatchString(name) {
			return nil, fmt.Errorf("%q is no name for a cluster: use up to 22 small letters, digits and dashes", name)
		}
		if slices.Index(names, name) != i {
			return nil, fmt.Errorf("the cluster %s is named twice", name)
		}
		out = append(out, cluster.Config{Name: name, Number: i + 1, Options: options[name]})
	}
	for name := range options {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--config names the cluster %s, which --clusters does not", name)
		}
	}
	return addNodes(out)
}

// addNodes appends the further nodes of clusters with several.
func addNodes(all []cluster.Config) ([]cluster.Config, error) {
	for _, first := range all {
		for n := 2; n <= first.Nodes; n++ {
			name := fmt.Sprintf("%s-%d", first.Name, n)
			if slices.ContainsFunc(all, func(c cluster.Config) bool { return c.Name == name }) {
				return nil, fmt.Errorf("node %d of %s has the name of the cluster %s", n, first.Name, name)
			}
			all = append(all, cluster.Config{Name: name, Number: len(all) + 1, Join: &first, Options: cluster.Options{PreviousCilium: first.PreviousCilium}})
			if len(all) > cluster.MaxNodes {
				break
			}
		}
	}
	if len(all) > cluster.MaxNodes {
		return nil, fmt.Errorf("there can be at most %d nodes", cluster.MaxNodes)
	}
	return all, nil
}

// ensureParts builds the programs and images that nodes need, unless they are cached.
func ensureParts(ctx context.Context, repo string, configs []cluster.Config, progress parts.Progress) (parts.Built, error) {
	dir, err := parts.DefaultDir()
	if err != nil {
		return nil, err
	}
	names := []string{parts.Kubernetes}
	if slices.ContainsFunc(configs, func(c cluster.Config) bool { return c.PreviousCilium }) {
		names = append(names, parts.CiliumPrevious)
	}
	needed, err := parts.Select(names...)
	if err != nil {
		return nil, err
	}
	cache := &parts.Cache{Repo: repo, Dir: dir, Progress: progress}
	return cache.Ensure(ctx, append(needed, parts.ForNodes()...))
}

// runner runs clusters of one state folder.
type runner struct {
	state     string
	built     parts.Built
	images    []string
	keep      bool
	readyFile string
	printer   *run.Printer
}

func (r *runner) run(ctx context.Context, configs []cluster.Config) (err error) {
	if r.readyFile != "" { // left by an earlier run
		if err := os.Remove(r.readyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("--ready-file: %w", err)
		}
	}
	began := time.Now()
	network, err := sandbox.NewSwitch(cluster.Gateway())
	if err != nil {
		return fmt.Errorf("make the nodes' network: %w", err)
	}
	defer network.Close()
	var running []*cluster.Cluster
	defer func() {
		r.printer.Line("removing the nodes")
		// The state of nodes is kept after a failure, so that it can be examined.
		keep := r.keep || err != nil
		for _, c := range running {
			err = errors.Join(err, c.Down(keep))
		}
	}()
	for _, config := range configs {
		c, err := cluster.Up(config, filepath.Join(r.state, config.Name), r.built, r.images, network, configs)
		if err != nil {
			return err
		}
		running = append(running, c)
	}
	ready := make(chan error, len(running))
	for _, c := range running {
		go func() {
			ready <- c.Wait(ctx, func(step string) { r.printer.Line("%s  %s", c.Config.Name, step) })
		}()
	}
	for range running {
		if err := <-ready; err != nil {
			if ctx.Err() != nil {
				return nil // the run was stopped before all clusters were ready
			}
			return fmt.Errorf("%w\nthe logs stay in %s; acp-nodes down removes them", err, r.state)
		}
	}
	if r.readyFile != "" {
		if err := os.WriteFile(r.readyFile, nil, 0o600); err != nil {
			return fmt.Errorf("--ready-file: %w", err)
		}
	}
	r.printer.Line("ready after %.1f s", time.Since(began).Seconds())
	ended := make(chan error, len(running))
	for _, c := range running {
		if c.Config.Join == nil {
			r.printer.Line("%s: export KUBECONFIG=%s", c.Config.Name, c.Layout.Kubeconfig())
		}
		go func() {
			for e := range c.Events() {
				if e.Process != "" {
					r.printer.Line("%s: %s", c.Config.Name, e.Process)
				}
			}
			ended <- c.Failure()
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// removeLeftovers removes the nodes of runs that were killed.
func removeLeftovers(state string) error {
	entries, err := os.ReadDir(state)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// Only folders that this program created are removed.
		if e.IsDir() && clusterName.MatchString(e.Name()) {
			if err := cluster.Remove(filepath.Join(state, e.Name()), e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeStateDir removes the folder, if it holds nothing but its lock.
func removeStateDir(state string) error {
	if err := os.Remove(filepath.Join(state, "lock")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Remove(state); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return nil
}

// downTimeout bounds how long another process may take to remove its nodes.
const downTimeout = 90 * time.Second

func down(ctx context.Context, flags *flag.FlagSet, args []string) error {
	f := folderFlags(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	_, state, err := f.resolve()
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("removing nodes needs root")
	}
	if _, err := os.Stat(state); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := supervisor.Acquire(state)
	locked := (*supervisor.LockedError)(nil)
	if errors.As(err, &locked) {
		pid, convErr := strconv.Atoi(locked.Holder)
		if convErr != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end process %d: %w", pid, err)
		}
		for deadline := time.Now().Add(downTimeout); errors.As(err, &locked); {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d does not end", pid)
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(100 * time.Millisecond):
			}
			if _, statErr := os.Stat(state); errors.Is(statErr, os.ErrNotExist) {
				return nil
			}
			lock, err = supervisor.Acquire(state)
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := removeLeftovers(state); err != nil {
		return err
	}
	return removeStateDir(state)
}

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
