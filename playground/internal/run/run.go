package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/history"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// startLimit bounds the start, with a margin for slow machines under load.
const startLimit = 3 * time.Minute

// nodesStartLimit bounds the start with real nodes.
const nodesStartLimit = 8 * time.Minute

type runner struct {
	Options
	printer    *Printer
	layout     fleet.Layout
	fleet      *fleet.Fleet
	supervisor *supervisor.Supervisor
}

// Up builds missing programs, starts everything, reports when it is ready, and runs until the context ends. When it returns, no
// process that it started is left.
func Up(ctx context.Context, o Options, p *Printer) error {
	layout, err := fleet.NewLayout(o.StateDir)
	if err != nil {
		return err
	}
	lock, err := supervisor.Acquire(layout.Dir)
	if err != nil {
		return err
	}
	defer lock.Release()
	if o.JSONReady != "" { // left by an earlier run
		if err := os.Remove(o.JSONReady); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the ready file of an earlier run: %w", err)
		}
	}
	ended, err := supervisor.EndStale(layout.Run())
	if err != nil {
		return err
	}
	for _, name := range ended {
		p.Line("ended %s, which an earlier run had left behind", name)
	}
	if !o.WithoutACP {
		wanted := o.Port
		if o.Port, err = fleet.PortalPort(wanted, o.PortExplicit); err != nil {
			return err
		}
		if o.Port != wanted {
			p.Line("port %d is in use by another program; the portal takes %d (choose one with --port)", wanted, o.Port)
		}
	}
	built, err := build(ctx, &o, p)
	if err != nil {
		return err
	}
	kept := layout.Kept()
	began := time.Now()
	sup := supervisor.New(supervisor.Config{RunDir: layout.Run(), LogDir: layout.Logs(), Report: p.Event})
	defer sup.Close()
	r := &runner{Options: o, printer: p, layout: layout, supervisor: sup}
	r.fleet, err = fleet.New(
		fleet.Config{
			Layout:     layout,
			Repo:       o.Repo,
			Built:      built,
			Supervisor: sup,
			Guarded:    o.Guard,
			Between:    o.Between,
			Direct:     o.Direct,
			Pull:       o.Pull,
			Nodes:      o.Nodes,
			ExtraPorts: r.extraPorts(),
		},
	)
	if err != nil {
		return err
	}
	if err := r.addPrograms(); err != nil {
		return err
	}
	control := make(chan error, 1)
	go func() { control <- sup.ServeControl(ctx, layout.Run()) }()

	p.Line("starting the fleet; logs are in %s", layout.Logs())
	limit := startLimit
	if o.Nodes != "" {
		limit = nodesStartLimit
	}
	if o.Nodes != "" {
		p.Line("starting the members as real nodes, which takes about a minute")
	}
	startCtx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the start took more than %s", limit))
	err = r.start(startCtx)
	cancel()
	if ctx.Err() != nil {
		p.Line("stopping")
		return nil
	}
	if err != nil {
		return explain(err, kept, layout.Dir)
	}
	took := time.Since(began)
	if err := r.announce(took); err != nil {
		return err
	}
	if o.Started != nil {
		return o.Started(ctx, Running{Fleet: r.fleet, Supervisor: sup, PortalURL: r.portalURL(), FlowFile: r.flowFile()})
	}
	select {
	case err := <-control:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	p.Line("stopping; the state is kept in %s", layout.Dir)
	return nil
}

// explain adds advice to an error when a program did not start with the state of an earlier run, which may be damaged.
func explain(err error, kept bool, dir string) error {
	var exited *supervisor.ExitedError
	if !kept || !errors.As(err, &exited) {
		return err
	}
	return fmt.Errorf("%w\nif what earlier runs kept is damaged, `acp-playground clean --state-dir %s` deletes it: tickets, policies and flows", err, dir)
}

// build builds the missing programs.
func build(ctx context.Context, o *Options, p *Printer) (parts.Built, error) {
	dir, err := parts.DefaultDir()
	if err != nil {
		return nil, err
	}
	cache := &parts.Cache{Repo: o.Repo, Dir: dir, Assets: os.Getenv("KUBEBUILDER_ASSETS"), Progress: p}
	needed := parts.All()
	if o.Istio {
		needed = append(needed, parts.ForIstio()...)
	}
	if len(o.Pull) > 0 {
		agent, err := parts.Select(parts.OCM)
		if err != nil {
			return nil, err
		}
		needed = append(needed, agent...)
	}
	built, err := cache.Ensure(ctx, needed)
	if err != nil || o.WithoutACP {
		return built, err
	}
	if o.BinDir == "" {
		o.BinDir = filepath.Join(o.Repo, "bin")
		p.Line("building %v", acpPrograms())
		if err := parts.BuildPrograms(ctx, o.Repo, o.BinDir, acpPrograms()...); err != nil {
			return nil, err
		}
	}
	if o.BinDir, err = filepath.Abs(o.BinDir); err != nil {
		return nil, err
	}
	for _, name := range acpPrograms() {
		if _, err := os.Stat(filepath.Join(o.BinDir, name)); err != nil {
			return nil, fmt.Errorf("--bin-dir lacks a program (build it with `make programs`): %w", err)
		}
	}
	return built, nil
}

// start starts everything; independent parts start concurrently.
func (r *runner) start(ctx context.Context) error {
	for _, dir := range []string{"portal", "flows"} {
		if err := os.MkdirAll(r.layout.Data(dir), 0o700); err != nil {
			return fmt.Errorf("make a data folder: %w", err)
		}
	}
	workloads, err := demo.LoadWorkloads(filepath.Join(r.Repo, "playground/demo/workloads.yaml"))
	if err != nil {
		return err
	}
	oidc, past := make(chan error, 1), make(chan error, 1)
	go func() { oidc <- r.supervisor.StartAndWait(ctx, "oidc") }()
	go func() { past <- r.past(ctx) }()

	began := time.Now()
	if err := r.fleet.Up(ctx, func(ctx context.Context, member string) error {
		return r.place(ctx, member, workloads)
	}); err != nil {
		return err
	}
	r.printer.Line("  API servers and KubeFed are ready (%s)", time.Since(began).Round(100*time.Millisecond))
	if err := r.demoObjects(ctx); err != nil {
		return err
	}
	if err := <-past; err != nil {
		return err
	}
	names := make([]string, 0, 5)
	for _, m := range fleet.Members() {
		if r.Nodes == "" {
			names = append(names, "dataplane-"+m)
		}
	}
	if r.Istio {
		for _, m := range fleet.Members() {
			names = append(names, istiodProcess(m), meshProcess(m))
		}
	}
	if !r.WithoutACP {
		names = append(append(names, r.adapters()...), "flow-collector", "portal")
	}
	if err := r.supervisor.StartAndWait(ctx, names...); err != nil {
		return err
	}
	return <-oidc
}

// place creates the pods of the demo in a member: real pods, which make the traffic themselves, on real nodes.
func (r *runner) place(ctx context.Context, member string, workloads []demo.Workload) error {
	if r.Istio {
		if err := r.setUpMesh(ctx, member); err != nil {
			return err
		}
	}
	if r.Nodes == "" {
		return demo.Place(ctx, r.fleet.AdminConfig(member), member, workloads)
	}
	return demo.RunPods(ctx, r.fleet.AdminConfig(member), member, workloads, r.Traffic, r.TrafficRate)
}

// past adds generated flows of the weeks before to a new flow store, so that features that evaluate weeks have data.
func (r *runner) past(ctx context.Context) error {
	if r.WithoutACP || r.History == 0 {
		return nil
	}
	began := time.Now()
	made, err := history.Seed(ctx, history.Config{
		Store: r.flowFile(), Traffic: r.Traffic, Workloads: filepath.Join(r.Repo, "playground/demo/workloads.yaml"),
		Objects: filepath.Join(r.Repo, "playground/demo/objects"), Days: r.History, To: began,
	})
	if err != nil {
		return err
	}
	if made.Made {
		r.printer.Line("  generated %d days of history: %d connections (%s; --history=0 starts without)",
			r.History, made.Connections, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// demoObjects creates the classes, resources and policies of the demo that are absent. It does not change existing objects.
func (r *runner) demoObjects(ctx context.Context) error {
	objects, err := fleet.ParseDir(filepath.Join(r.Repo, "playground/demo/objects"))
	if err != nil {
		return err
	}
	if _, err := r.fleet.Applier(fleet.Host).CreateAbsent(ctx, objects); err != nil {
		return fmt.Errorf("create the demo's objects: %w", err)
	}
	return nil
}
