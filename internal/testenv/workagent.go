package testenv

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
)

// WorkAgentProgram is the environment variable with the path of the program ocm-work-agent.
const WorkAgentProgram = "ACP_OCM_WORK_AGENT"

// WorkAgent runs the real work agent of Open Cluster Management until the test ends. It reports twice a second, and never removes an object
// because its ManifestWork is missing. It is given the configurations with which it reaches its cluster and the host.
func WorkAgent(t testing.TB, cluster string, member, host *rest.Config) {
	t.Helper()
	program := os.Getenv(WorkAgentProgram)
	if program == "" {
		t.Fatalf("%s is not set: run `make test-ocm`", WorkAgentProgram)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "agent.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), program, //nolint:gosec // the program that the test is for
		"--cluster-name", cluster, "--member-kubeconfig", WriteKubeconfig(t, member), "--host-kubeconfig", WriteKubeconfig(t, host),
		"--status-sync-interval", "500ms", "--eviction-grace-period", "876000h")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
		if raw, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the end of the log of the agent in %s:\n%s", cluster, raw[max(0, len(raw)-6000):])
		}
		_ = log.Close()
	})
}
