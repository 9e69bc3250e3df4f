package nodetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// startTimeout is how long a node may take to be ready, without the building of parts.
const startTimeout = 6 * time.Minute

// program is the built acp-nodes.
var program string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests start real nodes, which needs root: run them with sudo")
		return 1
	}
	dir, err := os.MkdirTemp("", "acp-nodes-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // the test of users without rights starts it, too
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "acp-nodes")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/acp-nodes").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build acp-nodes: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// node is a process `acp-nodes up`.
type node struct {
	t      *testing.T
	state  string
	cmd    *exec.Cmd
	output *output
	ended  chan struct{}
	err    error
}

// output collects what a process writes and reports a line that a test waits for.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// up starts clusters and waits until they are ready.
func up(t *testing.T, state string, args ...string) *node {
	t.Helper()
	n := &node{t: t, state: state, output: &output{}, ended: make(chan struct{})}
	n.cmd = exec.Command(program, append([]string{"up", "--state-dir", state, "--repo", "../../.."}, args...)...)
	n.cmd.Stdout, n.cmd.Stderr = n.output, n.output
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		n.err = n.cmd.Wait()
		close(n.ended)
	}()
	t.Cleanup(func() {
		_ = n.cmd.Process.Signal(syscall.SIGTERM) // it has ended, if the test went well
		select {
		case <-n.ended:
		case <-time.After(time.Minute):
			_ = n.cmd.Process.Kill()
		}
		down(t, state)
		if t.Failed() {
			t.Logf("acp-nodes wrote:\n%s", n.output)
		}
	})
	deadline := time.After(startTimeout)
	for !strings.Contains(n.output.String(), "ready after") {
		select {
		case <-n.ended:
			t.Fatalf("acp-nodes ended before the node was ready: %v", n.err)
		case <-deadline:
			t.Fatal("the node is not ready in time")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return n
}

// readyAfter is the time that acp-nodes itself measured.
func (n *node) readyAfter() string {
	found := regexp.MustCompile(`ready after ([0-9.]+) s`).FindStringSubmatch(n.output.String())
	if found == nil {
		n.t.Fatal("acp-nodes did not say how long it took")
	}
	return found[1]
}

// stop ends acp-nodes as Ctrl-C does.
func (n *node) stop() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(os.Interrupt); err != nil {
		n.t.Fatal(err)
	}
	select {
	case <-n.ended:
	case <-time.After(time.Minute):
		n.t.Fatal("acp-nodes does not end")
	}
	if n.err != nil {
		n.t.Errorf("acp-nodes ended with %v", n.err)
	}
}

// kill ends acp-nodes without giving it a chance to remove anything.
func (n *node) kill() {
	n.t.Helper()
	if err := n.cmd.Process.Kill(); err != nil {
		n.t.Fatal(err)
	}
	<-n.ended
}

func down(t *testing.T, state string) {
	t.Helper()
	if out, err := exec.Command(program, "down", "--state-dir", state).CombinedOutput(); err != nil {
		t.Errorf("acp-nodes down: %v: %s", err, out)
	}
}

// in runs a program in a node.
func (n *node) in(t *testing.T, cluster string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, append([]string{"exec", "--state-dir", n.state, cluster}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s in the node: %v: %s", args[0], err, out)
	}
	return string(out)
}

// config reaches a cluster's API server from the machine.
func (n *node) config(t *testing.T, cluster string) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", filepath.Join(n.state, cluster, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	return c
}

func (n *node) client(t *testing.T, cluster string) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(n.config(t, cluster))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually repeats check until it returns nil.
func eventually(t *testing.T, within time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := check(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestNode(t *testing.T) {
	state := filepath.Join(t.TempDir(), "nodes")
	before, programs := takeMachine(t), bpfPrograms()
	n := up(t, state)
	fmt.Printf("bench node_ready %s s\n", n.readyAfter())
	client := n.client(t, "node")
	t.Run("is Ready", func(t *testing.T) {
		got, err := client.CoreV1().Nodes().Get(t.Context(), "node", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got.Status.Conditions {
			if want := c.Type == corev1.NodeReady; (c.Status == corev1.ConditionTrue) != want {
				t.Errorf("condition %s is %s: %s", c.Type, c.Status, c.Message)
			}
		}
	})
	t.Run("has a healthy Cilium", func(t *testing.T) {
		if out := n.in(t, "node", "cilium-dbg", "status", "--brief"); strings.TrimSpace(out) != "OK" {
			t.Errorf("the agent says %q", out)
		}
		eventually(t, 30*time.Second, "no part of the agent is degraded", func(context.Context) error {
			if out := n.in(t, "node", "cilium-dbg", "status", "--all-health"); !strings.Contains(out, "Degraded(0)") {
				return errors.New(out)
			}
			return nil
		})
	})
	t.Run("enforces what ACP renders", func(t *testing.T) { testPolicies(t, n) })
	belonged := belongingsOf(t, state, programs)
	if len(belonged.processes) < 10 || len(belonged.namespaces) < 6 || len(belonged.programs) == 0 {
		t.Errorf("the test does not see what belongs to the node: %d processes, %d namespaces, %d BPF programs",
			len(belonged.processes), len(belonged.namespaces), len(belonged.programs))
	}
	began := time.Now()
	n.stop()
	fmt.Printf("bench node_memory %.0f MB\n", float64(belonged.memory)/(1<<20))
	fmt.Printf("bench node_removed %.1f s\n", time.Since(began).Seconds())
	checkGone(t, state, before, belonged)
}

// checkGone compares the machine with what it was before a node.
func checkGone(t *testing.T, state string, before machine, belonged belongings) {
	t.Helper()
	// The kernel frees BPF programs, and the last of a network namespace, a moment after the last process that used them.
	var still []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if still = belonged.still(); len(still) == 0 {
			break
		}
	}
	for _, s := range still {
		t.Errorf("still there: %s", s)
	}
	for _, d := range differences(before, takeMachine(t)) {
		t.Error(d)
	}
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state folder is still there (%v)", err)
	}
}

func TestKilledNode(t *testing.T) {
	state := filepath.Join(t.TempDir(), "nodes")
	before, programs := takeMachine(t), bpfPrograms()
	n := up(t, state)
	first := belongingsOf(t, state, programs)
	n.kill()
	// Nothing is left to run even before anybody cleans up.
	var running []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if running = first.still(); len(running) == 0 {
			break
		}
	}
	for _, s := range running {
		t.Errorf("outlived acp-nodes: %s", s)
	}
	again := up(t, state)
	if _, err := again.client(t, "node").CoreV1().Nodes().Get(t.Context(), "node", metav1.GetOptions{}); err != nil {
		t.Errorf("the node after a killed one: %v", err)
	}
	second := belongingsOf(t, state, programs)
	again.kill()
	down(t, state)
	checkGone(t, state, before, second)
}

func TestNeedsRoot(t *testing.T) {
	cmd := exec.Command(program, "up", "--state-dir", "/nonexistent", "--repo", "../../..")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "needs root") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("a user without rights must get an error of one line: %v: %s", err, out)
	}
}

func TestClustersReachEachOther(t *testing.T) {
	state := filepath.Join(t.TempDir(), "nodes")
	before, programs := takeMachine(t), bpfPrograms()
	n := up(t, state, "--clusters", "host,m1")
	fmt.Printf("bench nodes_ready_2 %s s\n", n.readyAfter())
	host, member := n.client(t, "host"), n.client(t, "m1")
	startProbe(t, host, "caller", map[string]string{})
	target := startProbe(t, member, "target", map[string]string{})
	w := newWire(host)
	nodes, err := member.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 || nodes.Items[0].Name != "m1" {
		t.Fatalf("the member's nodes: %v, %v", nodes, err)
	}
	eventually(t, wireTimeout, "a pod of the host cluster reaches one of the member", w.connects("caller", target+":6379", true))
	eventually(
		t,
		wireTimeout,
		"a pod of the host cluster reaches the member's API server",
		w.connects("caller", nodes.Items[0].Status.Addresses[0].Address+":6443", true),
	)
	belonged := belongingsOf(t, state, programs)
	n.stop()
	checkGone(t, state, before, belonged)
}
