package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/acp-io/acp/playground/internal/history"
	"github.com/acp-io/acp/playground/internal/run"
)

func up(ctx context.Context, flags *flag.FlagSet, args []string) error {
	var o run.Options
	repo := repoFlag(flags)
	state := stateFlag(flags)
	flags.IntVar(&o.Port, "port", run.DefaultPort, "port of the portal on 127.0.0.1; when the default is taken, the next free one is used")
	flags.StringVar(&o.BinDir, "bin-dir", "", "folder with prebuilt acp-adapter, flow-collector, portal (default: build them into bin/ of the repository)")
	without := flags.String("without", "", `"acp" starts the fleet without the programs of ACP`)
	flags.StringVar(&o.JSONReady, "json-ready", "", "write a JSON file with URLs, ports, pids and logins when everything is ready")
	flags.StringVar(&o.Traffic, "traffic", "", "file that describes the traffic (default: playground/demo/traffic.yaml of the repository)")
	flags.Float64Var(&o.TrafficRate, "traffic-rate", 1, "factor for the rate of all traffic; 0 is silence")
	flags.StringVar(&o.Nodes, "real", "", "path of acp-nodes: the members are real Kubernetes nodes with Cilium, which needs root (docs/real-nodes.md)")
	flags.BoolVar(&o.Istio, "istio", false, "run an istiod and gRPC servers of its mesh for each member (building istiod takes about 10 min the first time)")
	flags.BoolVar(&o.Guard, "guard", true, "let only KubeFed and the group acp:break-glass change in the members what ACP manages there")
	flags.IntVar(&o.History, "history", 14, "days of generated history that a new flow store begins with; 0 is none")
	flags.StringVar(&o.Guests, "guests", "", "usernames, separated by commas, of people who can log in although the catalog does not have them (for SCIM)")
	flags.StringVar(&o.Remembered, "remembered", "",
		"usernames, separated by commas, whose login continues an older one, so that sensitive decisions need another")
	if err := parse(flags, args); err != nil {
		return err
	}
	flags.Visit(func(f *flag.Flag) { o.PortExplicit = o.PortExplicit || f.Name == "port" })
	switch {
	case flags.NArg() > 0:
		return usageError{fmt.Sprintf("up takes no arguments, got %q", flags.Arg(0))}
	case *without != "" && *without != "acp":
		return fmt.Errorf("--without accepts only acp, not %q", *without)
	case o.Port < 1 || o.Port > 65535:
		return fmt.Errorf("--port must be from 1 to 65535, not %d", o.Port)
	case o.TrafficRate < 0:
		return errors.New("--traffic-rate must not be negative")
	case o.History < 0 || o.History > history.MaxDays:
		return fmt.Errorf("--history must be from 0 to %d days, not %d", history.MaxDays, o.History)
	}
	if o.Nodes != "" {
		if o.Istio {
			return errors.New("--istio is not supported together with --real")
		}
		if os.Geteuid() != 0 {
			return errors.New("--real needs root: real nodes are namespaces, cgroups, mounts and BPF programs (docs/real-nodes.md)")
		}
		var err error
		if o.Nodes, err = filepath.Abs(o.Nodes); err != nil {
			return err
		}
		if _, err := os.Stat(o.Nodes); err != nil {
			return fmt.Errorf("--real: %w", err)
		}
	}
	o.WithoutACP = *without == "acp"
	var err error
	if o.Repo, err = run.FindRepo(*repo); err != nil {
		return err
	}
	if o.StateDir, err = stateDir(*state, o.Repo); err != nil {
		return err
	}
	if o.Traffic == "" {
		o.Traffic = filepath.Join(o.Repo, "playground/demo/traffic.yaml")
	}
	if o.Traffic, err = filepath.Abs(o.Traffic); err != nil {
		return err
	}
	// Minutes of building and starting come before it is read.
	if st, err := os.Stat(o.Traffic); err != nil {
		return fmt.Errorf("--traffic: %w", err)
	} else if st.IsDir() {
		return fmt.Errorf("--traffic %s is a folder, not a file", o.Traffic)
	}
	if o.Self, err = os.Executable(); err != nil {
		return fmt.Errorf("find the running program: %w", err)
	}
	return run.Up(ctx, o, &run.Printer{Out: os.Stdout, TTY: isTerminal(os.Stdout)})
}

func repoFlag(flags *flag.FlagSet) *string {
	return flags.String("repo", ".", "the ACP repository, or a folder in it")
}

func stateFlag(flags *flag.FlagSet) *string {
	return flags.String("state-dir", "", "folder that keeps the state between runs (default: .playground of the repository)")
}

func stateDir(flag, repo string) (string, error) {
	if flag == "" {
		return filepath.Join(repo, ".playground"), nil
	}
	return filepath.Abs(flag)
}

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
