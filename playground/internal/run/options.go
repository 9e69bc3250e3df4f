package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// DefaultPort is the portal's.
const DefaultPort = 8080

// Options of a run.
type Options struct {
	// Repo is the root of the repository.
	Repo     string
	StateDir string
	// Port of the portal; an explicit one is never replaced.
	Port         int
	PortExplicit bool
	// BinDir holds prebuilt programs of ACP; empty: they are built.
	BinDir string
	// WithoutACP starts the fleet, the dataplanes and the OIDC provider only.
	WithoutACP bool
	// JSONReady names a file that is written when everything is ready; empty: none.
	JSONReady string
	// Traffic is the file that describes the traffic; TrafficRate scales it, 0 is silence.
	Traffic     string
	TrafficRate float64
	// History is how many days of made-up flows a new flow store begins with; 0 is none.
	History int
	// Guard: the members refuse changes of what ACP manages by anybody but KubeFed and the break-glass group.
	Guard bool
	// Clocks is a folder with a file for each program of ACP that was built for drills and whose clock is wrong; see
	// internal/wallclock. Empty: none is.
	Clocks string
	// Catalog is the portal's catalog; empty: the demo's.
	Catalog string
	// AdapterReplicas that elect a leader; at most 1 is one without an election.
	AdapterReplicas int
	// Between is that of fleet.Config.
	Between func(member, address string) (string, error)
	// Started is called once everything is ready, and with its return the run ends; nil: it lasts as long as its context.
	Started func(ctx context.Context, r Running) error
	// Nodes is that of fleet.Config: the members are real nodes, the demo's workloads are pods, and they make the traffic.
	Nodes string
	// Self is the path of the running program, which is also the OIDC provider.
	Self string
}

// Running is a run that is ready.
type Running struct {
	Fleet      *fleet.Fleet
	Supervisor *supervisor.Supervisor
	PortalURL  string
	// FlowFile is the flow store.
	FlowFile string
}

// FindRepo walks up from dir to the root of the repository.
func FindRepo(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		data, err := os.ReadFile(filepath.Join(d, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module github.com/acp-io/acp\n") {
			return d, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("look for the repository: %w", err)
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("%s is not inside the ACP repository; change into it or name it with --repo", dir)
		}
	}
}
