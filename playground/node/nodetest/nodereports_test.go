package nodetest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	nodekinds "github.com/acp-io/acp/deploy/node"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/nodereport"
	"github.com/acp-io/acp/internal/nodereport/ciliumagent"
	"github.com/acp-io/acp/internal/nodereport/reporter"
)

const (
	// reportedPolicy is a policy of ACP's.
	reportedPolicy = "acp-reported"
	// reportTimeout is how long a report may take: the reporter asks every second, and lets an agent count after ten.
	reportTimeout = time.Minute
)

// TestNodeReports lets the reporter of acp-node read a real agent, while a policy is written and changed and the agent is killed.
func TestNodeReports(t *testing.T) {
	n := up(t, filepath.Join(t.TempDir(), "nodes"))
	objects, err := dynamic.NewForConfig(n.config(t, "node"))
	if err != nil {
		t.Fatal(err)
	}
	name := startReporter(t, n, objects)
	standing := func(what, revision string, want nodereport.PolicyState) {
		t.Helper()
		eventually(t, reportTimeout, what, reports(objects, name, revision, want))
	}
	before := writeReported(t, objects, "6379")
	standing("the agent enforces the policy", before, nodereport.Realized)
	after := writeReported(t, objects, "6380")
	standing("the agent enforces the changed policy", after, nodereport.Realized)
	standing("the agent no longer has the policy of before", before, nodereport.Lagging)
	if err := syscall.Kill(processOf(t, firstProcess(t, n.state, "node"), "cilium-agent"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	standing("nothing is known of a killed agent", after, nodereport.Unknown)
	eventually(t, restartTimeout, "the restarted agent is reported", reports(objects, name, after, nodereport.Realized))
}

// startReporter runs the reporter of acp-node beside the node "node" until the test ends, and returns the name of its report.
func startReporter(t *testing.T, n *node, objects dynamic.Interface) (name string) {
	t.Helper()
	installNodeReports(t, objects)
	list, err := n.client(t, "node").CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d nodes, %v", len(list.Items), err)
	}
	name = list.Items[0].Name
	agent := ciliumagent.New(fmt.Sprintf("/proc/%d/root/run/cilium/cilium.sock", firstProcess(t, n.state, "node")))
	r := reporter.New(reporter.Config{Node: name, Agent: agent, Writer: reporter.ObjectWriter{Client: objects}, Log: slog.New(slog.DiscardHandler),
		Interval: time.Second, Heartbeat: 10 * time.Second, Now: time.Now})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		agent.Close()
	})
	return name
}

// reports returns a check of what the report of a node says about reportedPolicy.
func reports(objects dynamic.Interface, node, revision string, want nodereport.PolicyState) func(context.Context) error {
	return func(ctx context.Context) error {
		u, err := objects.Resource(nodereport.Resource).Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		report, err := nodereport.Parse(u)
		if err != nil {
			return err
		}
		if got := report.StateOf(reportedPolicy, revision, time.Now()); got != want {
			return fmt.Errorf("%v, want %v: %+v", got, want, report)
		}
		return nil
	}
}

// installNodeReports installs the kind of the reports.
func installNodeReports(t *testing.T, objects dynamic.Interface) {
	t.Helper()
	text, err := nodekinds.Files.ReadFile("nodereports.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kind := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &kind.Object); err != nil {
		t.Fatal(err)
	}
	kinds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := objects.Resource(kinds).Create(t.Context(), kind, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// writeReported writes a policy, and returns its revision.
func writeReported(t *testing.T, objects dynamic.Interface, port string) (revision string) {
	t.Helper()
	spec := enforcer.WithRuleLabel(map[string]any{
		"endpointSelector":  map[string]any{"matchLabels": map[string]any{"k8s:app": "reported"}},
		"enableDefaultDeny": map[string]any{"ingress": true, "egress": false},
		"ingress": []any{map[string]any{"fromEntities": []any{"cluster"},
			"toPorts": []any{map[string]any{"ports": []any{map[string]any{"port": port, "protocol": "TCP"}}}}}},
	})
	data, err := json.Marshal(ciliumObject("CiliumClusterwideNetworkPolicy", "", reportedPolicy, map[string]any{"spec": spec}))
	if err != nil {
		t.Fatal(err)
	}
	force := true
	if _, err := objects.Resource(ccnp).
		Patch(t.Context(), reportedPolicy, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "test", Force: &force}); err != nil {
		t.Fatal(err)
	}
	return enforcer.Revision(spec)
}
