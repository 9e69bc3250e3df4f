package nodetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/internal/cli"
)

// fleet is what acp-playground writes when it is ready, as far as this test reads it.
type fleet struct {
	Kubeconfigs  map[string]string
	StartSeconds float64
}

// grant lets checkout use bob's cluster, which the demo refuses.
var grant = &unstructured.Unstructured{Object: map[string]any{
	"apiVersion": "acp.io/v1alpha1", "kind": "AccessControlPolicy", "metadata": map[string]any{"name": "test"},
	"spec": map[string]any{"statements": []any{map[string]any{
		"sid": "checkout-uses-bobs-cluster", "effect": "Allow", "subjects": []any{"trnv1:rsc:trip-com:iam:sa:app/888"},
		"actions": []any{"redis:connect"}, "resources": []any{"trnv1:rsc:trip-com:redis:clusters:bobs-cluster"},
	}}},
}}

var policyResource = schema.GroupVersionResource{Group: "acp.io", Version: "v1alpha1", Resource: "accesscontrolpolicies"}

// TestFleetOnRealNodes runs the demo with members that are real nodes: a policy in the host cluster reaches Cilium in both members by
// the adapter and KubeFed, and what Cilium refuses comes back as flows.
func TestFleetOnRealNodes(t *testing.T) {
	bin, state := t.TempDir(), filepath.Join(t.TempDir(), "playground")
	for dir, packages := range map[string][]string{
		"../../..": {"./cmd/acp-adapter", "./cmd/flow-collector", "./cmd/portal"},
		"../..":    {"./cmd/acp-playground"},
	} {
		build := exec.Command("go", append([]string{"build", "-o", bin + "/"}, packages...)...)
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
	}
	before, programs := takeMachine(t), bpfPrograms()
	f, stop := startFleet(t, bin, state)
	fmt.Printf("bench real_fleet_ready %.1f s\n", f.StartSeconds)

	host, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfigs["host"])
	if err != nil {
		t.Fatal(err)
	}
	policies, err := dynamic.NewForConfig(host)
	if err != nil {
		t.Fatal(err)
	}
	members := map[string]*wire{}
	for _, m := range []string{"m1", "m2"} {
		config, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfigs[m])
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		members[m] = &wire{client: client, namespace: "payments", port: "18080"}
	}
	const resource = "bobs-cluster.redis.svc.cluster.local:6379"
	everywhere := func(what, pod string, want bool) {
		t.Helper()
		for m, w := range members {
			eventually(t, wireTimeout, what+" in "+m, w.connects(pod, resource, want))
		}
	}
	everywhere("an application with a statement reaches the resource", "billing-0", true)
	everywhere("one without is refused", "checkout-0", false)
	if _, err := policies.Resource(policyResource).Create(t.Context(), grant, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	everywhere("a statement opens", "checkout-0", true)
	if err := policies.Resource(policyResource).Delete(t.Context(), grant.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	everywhere("its removal closes", "checkout-0", false)
	everywhere("and leaves others alone", "billing-0", true)
	eventually(t, time.Minute, "what Cilium refuses is reported", func(ctx context.Context) error { return refusedFlows(ctx, state) })

	nodes := filepath.Join(state, "data", "nodes", "state")
	access := newFleetAccess(t, demoNames, policies, members, "com.trip/redis-cluster=bobs-cluster", nodes)
	t.Run("statements", access.testStatements)
	t.Run("a temporary audit", access.testTemporaryAudit)
	t.Run("a killed agent", func(t *testing.T) { access.testKilledAgent(t, "m1", "m2", firstProcess(t, nodes, "m1")) })
	belonged := belongingsOf(t, nodes, programs)
	fmt.Printf("bench real_members_memory %.0f MB\n", float64(belonged.memory)/(1<<20))
	stop()
	checkGone(t, nodes, before, belonged)
}

// startFleet starts acp-playground and returns what it wrote when it was ready, with the function that ends it.
func startFleet(t *testing.T, bin, state string) (fleet, func()) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	var out output
	cmd := exec.Command(filepath.Join(bin, "acp-playground"), "up", "--repo=../../..", "--state-dir="+state, "--bin-dir="+bin, "--real="+program,
		"--json-ready="+ready, "--history=0")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its output says more
		close(ended)
	}()
	stop := func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		select {
		case <-ended:
		case <-time.After(90 * time.Second):
			_ = cmd.Process.Kill()
			t.Error("acp-playground does not end")
		}
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(state, "logs", "nodes.log")) // it may not be there
			t.Logf("acp-playground wrote:\n%s\nacp-node wrote:\n%s", &out, log)
		}
	})
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(100 * time.Millisecond) {
		var f fleet
		data, err := os.ReadFile(ready)
		if err == nil && json.Unmarshal(data, &f) == nil {
			return f, stop
		}
		select {
		case <-ended:
			t.Fatalf("acp-playground ended: %s", &out)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the fleet is not ready in time")
		}
	}
}

// refusedFlows is an error unless the flow store knows connections of checkout that were refused, in each member.
func refusedFlows(ctx context.Context, state string) error {
	for _, m := range []string{"m1", "m2"} {
		var out, complaints bytes.Buffer
		args := []string{"flows", "--store", "sqlite:" + filepath.Join(state, "data", "flows", "flows.db"), "--cluster", m, "--decision", "default-denied",
			"--subject", "trnv1:rsc:trip-com:iam:sa:app/888", "--resource", "trnv1:rsc:trip-com:redis:clusters:bobs-cluster", "--since", "1h", "-o", "json"}
		if code := cli.Run(ctx, args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &complaints, Now: time.Now}); code != cli.ExitFine {
			return fmt.Errorf("kubectl acp flows: %s", &complaints)
		}
		if !strings.Contains(out.String(), `"verdict": "dropped"`) {
			return errors.New("none in " + m + ": " + out.String())
		}
	}
	return nil
}
