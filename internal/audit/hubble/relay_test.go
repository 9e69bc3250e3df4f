package hubble

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/grpc"

	"github.com/acp-io/acp/internal/audit"
)

const relayEnv = "ACP_TEST_RELAY"

// relayProcess is a relay in a process of its own, whose ring holds some flows.
type relayProcess struct {
	address string
	cmd     *exec.Cmd
	alive   io.Closer
}

// startRelay runs the test binary again, as a relay at the address whose ring holds the flows.
func startRelay(t *testing.T, address string, from, to int) *relayProcess {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", relayEnv, address, from, to))
	cmd.Stderr = os.Stderr
	alive, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &relayProcess{cmd: cmd, alive: alive}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the relay did not start: %v", err)
	}
	p.address = strings.TrimSpace(line)
	return p
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *relayProcess) kill() {
	_ = p.cmd.Process.Kill() // SIGKILL; the process may be gone already
	_ = p.cmd.Wait()         // it was killed, so it returns an error
	_ = p.alive.Close()
}

// beRelay serves until its standard input ends, which happens when the test ends.
func beRelay(t *testing.T, what string) {
	var address string
	var from, to int
	if _, err := fmt.Sscan(what, &address, &from, &to); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	o := newObserver()
	o.emit(verdicts(from, to)...)
	s := grpc.NewServer()
	observerpb.RegisterObserverServer(s, o)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // only the end matters
		s.Stop()
	}()
	fmt.Println(l.Addr())
	if err := s.Serve(l); err != nil {
		t.Error(err)
	}
}

// TestRelayIsKilled kills a relay process with SIGKILL in the middle of a stream. It comes back first with all events and more,
// and then with a ring that has dropped events.
func TestRelayIsKilled(t *testing.T) {
	if what := os.Getenv(relayEnv); what != "" {
		beRelay(t, what)
		return
	}
	l := newMemorySink()
	relay := startRelay(t, "127.0.0.1:0", 0, 300)
	_, stop := start(t, config(relay.address, l))
	l.until(t, "some flows of the first relay", func(l *memorySink) bool { return l.takenIn >= 100 })
	relay.kill()

	relay = startRelay(t, relay.address, 0, 700)
	l.until(t, "all flows of the second relay", func(l *memorySink) bool { return l.takenIn == 700 })
	wantEdges(t, l, map[audit.Edge]int64{edge(): 700})
	wantLosses(t, l)
	relay.kill()

	startRelay(t, relay.address, 900, 1000)
	l.until(t, "all flows of the third relay", func(l *memorySink) bool { return l.takenIn == 800 })
	stop()
	wantEdges(t, l, map[audit.Edge]int64{edge(): 800})
	wantLosses(t, l, audit.Loss{Cluster: "m1", Reason: audit.LossGap, From: at(699), To: at(900)})
}
