package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	playgroundfleet "github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/run"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// startLimit bounds one start of a fleet that is already built.
const startLimit = 3 * time.Minute

type fleet struct {
	ready run.Ready
	took  time.Duration
	cmd   *exec.Cmd
	done  chan error
}

// startFleet starts a fleet with make, as users do, and waits until it is ready.
func startFleet(ctx context.Context, o Options, stateDir string, port int) (*fleet, error) {
	readyFile := stateDir + ".ready.json"
	if err := os.Remove(readyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// The administrator's writes to the members are the reference for the propagation by KubeFed.
	flags := fmt.Sprintf("--guard=false --state-dir %s --port %d --json-ready %s", stateDir, port, readyFile)
	cmd := exec.Command("make", "--no-print-directory", "-C", o.Repo, "run", "RUN_FLAGS="+flags)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	f := &fleet{cmd: cmd, done: make(chan error, 1)}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start make run: %w", err)
	}
	go func() { f.done <- cmd.Wait() }()
	limit := time.After(startLimit)
	for {
		data, err := os.ReadFile(readyFile)
		if err == nil {
			f.took = time.Since(start)
			return f, json.Unmarshal(data, &f.ready)
		}
		select {
		case err := <-f.done:
			return nil, fmt.Errorf("make run ended early: %w\n%s", err, output.Bytes())
		case <-limit:
			_ = cmd.Process.Signal(syscall.SIGTERM) // the caller reports the time limit
			return nil, fmt.Errorf("make run was not ready after %s", startLimit)
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM) // the caller reports the interruption
			return nil, errors.Join(ctx.Err(), <-f.done)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop interrupts make, as Ctrl-C does, and waits until it exits.
func (f *fleet) stop() error {
	if err := syscall.Kill(f.ready.SupervisorPID, syscall.SIGINT); err != nil {
		return fmt.Errorf("stop the fleet: %w", err)
	}
	select {
	case <-f.done: //nolint:errcheck // make reports the interruption as a failure, which is expected
		return nil
	case <-time.After(time.Minute):
		return errors.New("the fleet did not stop within a minute")
	}
}

// rss returns the resident memory of all processes of the fleet in bytes.
func (f *fleet) rss(ctx context.Context) (int64, error) {
	status, err := supervisor.NewClient(playgroundfleet.Layout{Dir: f.ready.StateDir}.Run()).Status(ctx)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, s := range status {
		sum += s.RSSBytes
	}
	return sum, nil
}
