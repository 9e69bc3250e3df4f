// Package enforcement reads what a member enforces from the dataplane emulator.
package enforcement

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// Connection is a TCP connection to a pod of a member. From is a pod as cluster/namespace/name or an address outside the fleet, and To
// is namespace/name.
type Connection struct {
	From string `json:"from"`
	To   string `json:"to"`
	Port uint16 `json:"port"`
}

func (c Connection) String() string { return fmt.Sprintf("%s -> %s:%d", c.From, c.To, c.Port) }

// Reader reads the verdicts of a member from Cilium's policy engine (acp-dataplane ask). The process watches the member
// directly, so faults of the proxies do not affect it.
type Reader struct {
	cmd *exec.Cmd

	mu  sync.Mutex
	in  io.WriteCloser
	out *bufio.Reader
	// connectionsSent reports whether the connections were sent to the process, which keeps them for later requests.
	connectionsSent bool
	connections     []Connection
}

// Start starts the process for a member. Its standard error is written to logFile.
func Start(ctx context.Context, program, kubeconfig, member, logFile string, connections []Connection) (*Reader, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("start the enforcement reader of %s: %w", member, err)
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.CommandContext(ctx, program, "ask", "--cluster="+member, "--kubeconfig="+kubeconfig)
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the enforcement reader of %s: %w", member, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the enforcement reader of %s: %w", member, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the enforcement reader of %s: %w", member, err)
	}
	r := NewReader(in, out, connections)
	r.cmd = cmd
	return r, nil
}

// NewReader returns a reader that requests the verdicts of connections on in, and reads them from out.
func NewReader(in io.WriteCloser, out io.Reader, connections []Connection) *Reader {
	return &Reader{in: in, out: bufio.NewReaderSize(out, 1<<20), connections: connections}
}

// Stop ends the process and waits for it.
func (r *Reader) Stop() {
	_ = r.in.Close()
	_ = r.cmd.Wait() // the exit status after a requested end is not relevant
}

// Outcomes returns the verdict of each connection: no-policy, allowed, default-denied or denied.
func (r *Reader) Outcomes() ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	request := map[string]any{}
	if !r.connectionsSent {
		request["connections"] = r.connections
	}
	if err := json.NewEncoder(r.in).Encode(request); err != nil {
		return nil, fmt.Errorf("request verdicts: %w", err)
	}
	r.connectionsSent = true
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("read verdicts: %w", err)
	}
	var a struct {
		Outcomes []string
		Error    string
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, fmt.Errorf("read verdicts: %w", err)
	}
	if a.Error != "" {
		return nil, errors.New("the enforcement reader failed: " + a.Error)
	}
	if len(a.Outcomes) != len(r.connections) {
		return nil, fmt.Errorf("the enforcement reader returned %d of %d verdicts", len(a.Outcomes), len(r.connections))
	}
	return a.Outcomes, nil
}

// Passes reports whether a connection with this outcome passes.
func Passes(outcome string) bool { return outcome == "no-policy" || outcome == "allowed" }
