package nodetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/nodereport"
)

// TestCiliumUpgrade upgrades a node's Cilium from the previous minor version while pods connect: `make test-cilium-upgrade`. What is closed stays
// closed, what is open stays open, and the new agent enforces the next change.
func TestCiliumUpgrade(t *testing.T) {
	state := filepath.Join(t.TempDir(), "nodes")
	config := filepath.Join(t.TempDir(), "nodes.yaml")
	if err := os.WriteFile(config, []byte("node: {previousCilium: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := up(t, state, "--config", config)
	client := n.client(t, "node")
	objects, err := dynamic.NewForConfig(n.config(t, "node"))
	if err != nil {
		t.Fatal(err)
	}
	version := func(want string) func(context.Context) error {
		return func(context.Context) error {
			out := n.in(t, "node", "sh", "-c", "cilium-dbg version 2>&1 || true")
			if !strings.Contains(out, "Daemon: "+want) {
				return errors.New(out)
			}
			return nil
		}
	}
	eventually(t, wireTimeout, "the previous version runs", version("1.19."))
	name := startReporter(t, n, objects)
	server := startProbe(t, client, "redis", map[string]string{"com.trip/redis-cluster": "bobs-cluster"}) + ":6379"
	w := newWire(client)
	startProbe(t, client, "app-888", map[string]string{"com.trip/appid": "888"})
	startProbe(t, client, "app-666", map[string]string{"com.trip/appid": "666"})
	// apply removes other policies, and so comes first.
	apply(t, objects, render(t, "Enforce", statement("a", "Allow", "888")))
	reported := writeReported(t, objects, "6379")
	eventually(t, reportTimeout, "the report about the previous version", reports(objects, name, reported, nodereport.Realized))
	eventually(t, wireTimeout, "an application with a statement", w.connects("app-888", server, true))
	eventually(t, wireTimeout, "one without", w.connects("app-666", server, false))

	stop := w.watch(t, server, map[string]bool{"app-888": true, "app-666": false})
	began := time.Now()
	upgradeCilium(t, n)
	eventually(t, restartTimeout, "the new version runs", version("1.20."))
	eventually(t, restartTimeout, "the report about the new version", reports(objects, name, reported, nodereport.Realized))
	t.Logf("the new version enforces everything %.1f s after the upgrade began", time.Since(began).Seconds())
	changed := writeReported(t, objects, "6380")
	eventually(t, reportTimeout, "a change after the upgrade", reports(objects, name, changed, nodereport.Realized))
	stop()

	apply(t, objects, render(t, "Enforce", statement("b", "Allow", "666")))
	eventually(t, wireTimeout, "a statement that was revoked after the upgrade", w.connects("app-888", server, false))
	eventually(t, wireTimeout, "a statement that was written after the upgrade", w.connects("app-666", server, true))
}

// upgradeCilium replaces the programs and the datapath's sources of the node by those of the current version, and lets agent and operator start
// again.
func upgradeCilium(t *testing.T, n *node) {
	t.Helper()
	n.in(t, "node", "sh", "-c", "ln -sfn /parts/cilium /run/cilium-programs && rm -rf /var/lib/cilium/bpf && cp -r /parts/cilium/bpf /var/lib/cilium/bpf")
	first := firstProcess(t, n.state, "node")
	for _, program := range []string{"cilium-operator", "cilium-agent"} {
		if err := syscall.Kill(processOf(t, first, program), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
}
