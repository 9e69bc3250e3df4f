package faults

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

// connection to a pod of a member, over TCP. From is a pod as cluster/namespace/name or an address outside the fleet, To is
// namespace/name.
type connection struct {
	From string `json:"from"`
	To   string `json:"to"`
	Port uint16 `json:"port"`
}

func (c connection) String() string { return fmt.Sprintf("%s -> %s:%d", c.From, c.To, c.Port) }

// witness asks Cilium's engine what is in force in a member. It watches the member past every wire that the faults break.
type witness struct {
	cmd *exec.Cmd

	mu  sync.Mutex
	in  io.WriteCloser
	out *bufio.Reader
	// asked reports whether the connections are known to it.
	asked       bool
	connections []connection
}

func startWitness(ctx context.Context, program, kubeconfig, member, logFile string, connections []connection) (*witness, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("start the witness of %s: %w", member, err)
	}
	defer log.Close() // the child has its own descriptor
	w := &witness{connections: connections, cmd: exec.CommandContext(ctx, program, "ask", "--cluster="+member, "--kubeconfig="+kubeconfig)}
	w.cmd.Stderr = log
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the witness of %s: %w", member, err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the witness of %s: %w", member, err)
	}
	w.out = bufio.NewReaderSize(out, 1<<20)
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the witness of %s: %w", member, err)
	}
	return w, nil
}

// stop ends the witness and waits for its end.
func (w *witness) stop() {
	_ = w.in.Close()
	_ = w.cmd.Wait() // it was told to end, and how it does is of no interest
}

// ask returns the outcome of each of its connections: no-policy, allowed, default-denied or denied.
func (w *witness) ask() ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	question := map[string]any{}
	if !w.asked {
		question["connections"] = w.connections
	}
	if err := json.NewEncoder(w.in).Encode(question); err != nil {
		return nil, fmt.Errorf("ask the witness: %w", err)
	}
	w.asked = true
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("hear the witness: %w", err)
	}
	var a struct {
		Outcomes []string
		Error    string
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, fmt.Errorf("hear the witness: %w", err)
	}
	if a.Error != "" {
		return nil, errors.New("the witness: " + a.Error)
	}
	if len(a.Outcomes) != len(w.connections) {
		return nil, fmt.Errorf("the witness answered %d of %d questions", len(a.Outcomes), len(w.connections))
	}
	return a.Outcomes, nil
}

func passes(outcome string) bool { return outcome == "no-policy" || outcome == "allowed" }
