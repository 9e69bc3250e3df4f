package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/acp-io/acp/internal/freeport"
)

// Ports maps a purpose to a port of 127.0.0.1.
type Ports map[string]int

// Address returns the address of a purpose as host:port.
func (p Ports) Address(purpose string) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p[purpose]))
}

// ChoosePorts assigns every purpose a free port. It prefers the ports of the last run, which are recorded in file, so that
// bookmarks and kubeconfigs stay valid.
func ChoosePorts(file string, purposes []string) (Ports, error) {
	last := Ports{}
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the ports of the last run: %w", err)
	}
	if err == nil {
		if err := json.Unmarshal(data, &last); err != nil {
			last = Ports{} // the file is incomplete after a crash, so new ports are chosen
		}
	}
	chosen := Ports{}
	// Each port stays bound until all are chosen; otherwise one might be chosen twice.
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	hold := func(purpose string, port int) bool {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		held = append(held, l)
		chosen[purpose] = l.Addr().(*net.TCPAddr).Port
		return true
	}
	for _, purpose := range purposes {
		if last[purpose] != 0 {
			hold(purpose, last[purpose])
		}
	}
	for _, purpose := range purposes {
		if chosen[purpose] != 0 {
			continue
		}
		l, err := freeport.Listen()
		if err != nil {
			return nil, fmt.Errorf("choose a port for %s: %w", purpose, err)
		}
		held = append(held, l)
		chosen[purpose] = l.Addr().(*net.TCPAddr).Port
	}
	data, err = json.MarshalIndent(chosen, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, fmt.Errorf("record the ports: %w", err)
	}
	return chosen, nil
}

// PortTakenError means that a requested port is in use.
type PortTakenError struct {
	Port int
	Err  error
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %d of 127.0.0.1 is in use by another program; stop that program or choose another port with --port (%v)", e.Port, e.Err)
}

func (e *PortTakenError) Unwrap() error { return e.Err }

// PortalPort returns wanted if it is free. When it is not, an explicit port is an error and a default port is replaced by the next
// free port above it.
func PortalPort(wanted int, explicit bool) (int, error) {
	for port := wanted; port < wanted+100 && port < 1<<16; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			l.Close()
			return port, nil
		}
		if explicit {
			return 0, &PortTakenError{Port: port, Err: err}
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free on 127.0.0.1; choose one with --port", wanted, wanted+99)
}
