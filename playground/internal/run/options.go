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

// DefaultPort is the default port of the portal.
const DefaultPort = 8080

// Options of a run.
type Options struct {
	// Repo is the root of the repository.
	Repo     string
	StateDir string
	// Port is the port of the portal. An explicit port is never replaced.
	Port         int
	PortExplicit bool
	// BinDir is a folder with prebuilt programs of ACP. When it is empty, they are built.
	BinDir string
	// WithoutACP starts the fleet, the dataplanes and the OIDC provider only.
	WithoutACP bool
	// JSONReady is the path of a file that is written when everything is ready. Empty means none.
	JSONReady string
	// Guests are the usernames, separated by commas, of people who can log in and whom the catalog does not have.
	Guests string
	// Remembered are the usernames, separated by commas, of people whose ordinary login continues one of the morning.
	Remembered string
	// Traffic is the traffic file. TrafficRate multiplies its rates; 0 disables the traffic.
	Traffic     string
	TrafficRate float64
	// History is the number of days of generated flows in a new flow store; 0 means none.
	History int
	// Guard makes the members refuse changes of objects that ACP manages by every user but KubeFed and the break-glass group.
	Guard bool
	// Clocks is a folder with one file per program of ACP that was built for drills, which contains the offset of its clock; see
	// internal/wallclock. Empty means that all clocks are correct.
	Clocks string
	// Catalog is the catalog folder of the portal. Empty means that of the demo.
	Catalog string
	// AdapterReplicas is the number of adapters, which elect a leader. With 1 or less, a single adapter runs without an election.
	AdapterReplicas int
	// Between is passed to fleet.Config.
	Between func(member, address string) (string, error)
	// Direct and Pull are passed to fleet.Config.
	Direct, Pull []string
	// Started is called once everything is ready, and the run ends when it returns. When it is nil, the run lasts until its context
	// ends.
	Started func(ctx context.Context, r Running) error
	// Nodes is passed to fleet.Config: the members are real nodes, and the workloads of the demo are pods that make the traffic.
	Nodes string
	// Istio runs an istiod for each member, and the workloads of the demo that are gRPC servers of a mesh.
	Istio bool
	// Self is the path of the running program, which also serves as the OIDC provider.
	Self string
}

// Running describes a run that is ready.
type Running struct {
	Fleet      *fleet.Fleet
	Supervisor *supervisor.Supervisor
	PortalURL  string
	// FlowFile is the path of the flow store.
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
