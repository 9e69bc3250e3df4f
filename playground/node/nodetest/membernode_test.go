package nodetest

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/acp-io/acp/api/v1alpha1"
)

// installedNames are the names of the guide's resource and clients.
var installedNames = accessNames{
	protected: "orders", resource: "trnv1:rsc:example-com:redis:clusters:orders", class: "trnv1:rsc:example-com:redis:clusters:",
	application: "trnv1:rsc:example-com:iam:sa:app/", cidr: "trnv1:rsc:example-com:net:cidr:",
	granted: "shop", grantedID: "shop", refused: "other", refusedID: "other", externalID: "reports",
}

// nodeTimeout is how long a change of a node may take to be in a status: acp-node asks its agent every five seconds, and lets a restarted agent
// count after ten.
const nodeTimeout = 2 * time.Minute

// installNodeReporter installs acp-node in the member, which has joined before.
func (in *installation) installNodeReporter(t *testing.T) {
	t.Helper()
	in.run(t, in.members.block(t, "--set node.enabled=true"))
	in.realizedOn(t, "acp-node reports", v1alpha1.NodeCounts{Total: 1, Realized: 1})
}

// nodes returns on how many nodes the status of the resource reports what.
func (in *installation) nodes(ctx context.Context) (*v1alpha1.NodeSummary, error) {
	u, err := in.objects.Resource(protectedResources).Get(ctx, installedNames.protected, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var resource v1alpha1.ProtectedResource
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &resource); err != nil {
		return nil, err
	}
	return resource.Status.Nodes, nil
}

// realizedOn waits until the status of the resource has these counts of nodes.
func (in *installation) realizedOn(t *testing.T, reason string, want v1alpha1.NodeCounts) {
	t.Helper()
	eventually(t, nodeTimeout, reason, func(ctx context.Context) error {
		got, err := in.nodes(ctx)
		if err != nil {
			return err
		}
		if got == nil || got.NodeCounts != want || got.Members != 1 {
			reports, _ := in.try("kubectl --context m1 get nodereports -o yaml") // for the message
			return fmt.Errorf("the status has %+v, want %+v; reports: %s", got, want, reports)
		}
		return nil
	})
}

// testNodes changes the resource, which the agent then has to enforce, and reads the reporter's log.
func (in *installation) testNodes(t *testing.T) {
	in.mode(t, "Audit")
	in.reaches(t, "in Audit", map[string]bool{"other": true})
	in.realizedOn(t, "Audit is enforced on the node", v1alpha1.NodeCounts{Total: 1, Realized: 1})
	in.mode(t, "Enforce")
	in.reaches(t, "in Enforce", map[string]bool{"other": false})
	in.realizedOn(t, "Enforce is enforced on the node", v1alpha1.NodeCounts{Total: 1, Realized: 1})
	measureMemory(t, in.member, []string{"m1"}, map[string]int{"acp-system": 1})
	in.checkNodeReporter(t)
}

// checkNodeReporter fails if acp-node was restarted, or something was forbidden to it.
func (in *installation) checkNodeReporter(t *testing.T) {
	t.Helper()
	checkPodsOf(t, in.member, "acp-system")
}

// testStatements writes statements of every kind. The resource is in Enforce.
func (in *installation) testStatements(t *testing.T) {
	const objects = `apiVersion: acp.io/v1alpha1
kind: AccessControlPolicy
metadata: {name: granted}
spec:
  statements:
  - sid: shop
    effect: Allow
    subjects: ["trnv1:rsc:example-com:iam:sa:app/shop"]
    actions: ["redis:connect"]
    resources: ["trnv1:rsc:example-com:redis:clusters:orders"]
---
apiVersion: acp.io/v1alpha1
kind: ExternalWorkload
metadata: {name: reports}
spec:
  subject: trnv1:rsc:example-com:iam:sa:app/reports
  addresses: [` + reportsVM + `]
`
	in.write(t, "statements.yaml", objects)
	in.run(t, "kubectl apply -f statements.yaml")
	access := newFleetAccess(t, installedNames, in.objects, map[string]*wire{"m1": in.wire}, "probe=redis", in.node.state)
	access.testStatements(t)
	t.Run("a temporary audit", access.testTemporaryAudit)
	in.run(t, "kubectl delete -f statements.yaml")
	in.reaches(t, "without the grant", map[string]bool{"shop": false, "other": false})
}

// testForeignPod connects from a pod of the host cluster with the labels of an application that has a grant in the member.
func (in *installation) testForeignPod(t *testing.T) {
	startProbe(t, in.host, "shop", map[string]string{"example.com/app": "shop"})
	foreign := newWire(in.host)
	to := in.apps["redis"] + ":6379"
	in.mode(t, "Audit")
	eventually(t, wireTimeout, "a pod of another cluster connects in Audit", foreign.connects("shop", to, true))
	in.mode(t, "Enforce")
	alice, bob, carol := in.browsers.login(t, "alice"), in.browsers.login(t, "bob"), in.browsers.login(t, "carol")
	asked := bob.approve(t, carol.approve(t, alice.request(t, "shop", "orders")))
	in.reaches(t, "the application's pod in the member", map[string]bool{"shop": true, "other": false})
	eventually(t, wireTimeout, "a pod with its label in another cluster is refused", foreign.connects("shop", to, false))
	bob.revoke(t, asked)
	eventually(t, wireTimeout, "the ticket is revoked", bob.is(asked, "revoked"))
	in.reaches(t, "after the revocation", map[string]bool{"shop": false})
}

// testDrainedMember drains the member's node. The new pods of the resource and of its clients are treated as those before.
func (in *installation) testDrainedMember(t *testing.T) {
	alice, bob, carol := in.browsers.login(t, "alice"), in.browsers.login(t, "bob"), in.browsers.login(t, "carol")
	asked := bob.approve(t, carol.approve(t, alice.request(t, "shop", "orders")))
	in.reaches(t, "before the node is drained", map[string]bool{"shop": true, "other": false})
	in.run(t, "kubectl --context m1 drain m1 --ignore-daemonsets --delete-emptydir-data --force --timeout=2m")
	in.run(t, "kubectl --context m1 uncordon m1")
	in.startApps(t)
	in.reaches(t, "after the node was drained", map[string]bool{"shop": true, "other": false})
	in.realizedOn(t, "the new pods are covered", v1alpha1.NodeCounts{Total: 1, Realized: 1})
	bob.revoke(t, asked)
	eventually(t, wireTimeout, "the ticket is revoked", bob.is(asked, "revoked"))
	in.reaches(t, "after the revocation", map[string]bool{"shop": false, "other": false})
}

// testKilledAgent kills the member's agent, and revokes a grant before it is back.
func (in *installation) testKilledAgent(t *testing.T) {
	alice, bob, carol := in.browsers.login(t, "alice"), in.browsers.login(t, "bob"), in.browsers.login(t, "carol")
	asked := bob.approve(t, carol.approve(t, alice.request(t, "shop", "orders")))
	eventually(t, wireTimeout, "the ticket is effective", bob.is(asked, "effective"))
	in.reaches(t, "before the agent is killed", map[string]bool{"shop": true, "other": false})
	in.realizedOn(t, "before the agent is killed", v1alpha1.NodeCounts{Total: 1, Realized: 1})
	held := in.hold(t, "shop")

	first := firstProcess(t, in.node.state, "m1")
	agent := processOf(t, first, "cilium-agent")
	began := time.Now()
	if err := syscall.Kill(agent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	bob.revoke(t, asked)
	in.realizedOn(t, "nothing is known of a node without an agent", v1alpha1.NodeCounts{Total: 1, Unknown: 1})
	fmt.Printf("bench revoke_to_wire_without_agent %.1f s\n", held.ended(t).Sub(began).Seconds())
	in.reaches(t, "after the agent is back", map[string]bool{"shop": false, "other": false})
	in.realizedOn(t, "the agent is back", v1alpha1.NodeCounts{Total: 1, Realized: 1})
	eventually(t, wireTimeout, "the ticket is revoked", bob.is(asked, "revoked"))
	if now := processOf(t, first, "cilium-agent"); now == agent {
		t.Error("the agent was not killed")
	}
	in.checkNodeReporter(t)
}

// testDrainedHost drains the nodes of the host, one after the other. The adapters go to the nodes that are left; the portal waits for its volume, which
// is on the first. When no node is left, the budget of the adapters keeps the last of them, which still enforces a denial although the portal and
// KubeFed are gone.
func (in *installation) testDrainedHost(t *testing.T) {
	alice, bob, carol := in.browsers.login(t, "alice"), in.browsers.login(t, "bob"), in.browsers.login(t, "carol")
	asked := bob.approve(t, carol.approve(t, alice.request(t, "shop", "orders")))
	eventually(t, wireTimeout, "the ticket is effective", bob.is(asked, "effective"))
	in.reaches(t, "before the nodes are drained", map[string]bool{"shop": true, "other": false})

	// The pods of other programs stay: the test logs in at one of them.
	const drain = "kubectl drain %s --pod-selector=app.kubernetes.io/part-of=acp --delete-emptydir-data --timeout=%s"
	others, last := hostNodes[:len(hostNodes)-1], hostNodes[len(hostNodes)-1]
	for _, name := range others {
		in.run(t, fmt.Sprintf(drain, name, "2m"))
		eventually(t, podsTimeout, "two adapters are on the nodes that are left", func(context.Context) error {
			got, ready := in.nodesOf(t, adapterPods), 0
			for _, n := range got {
				ready += n
			}
			if got[name] > 0 || ready != 2 {
				return fmt.Errorf("they are on %v", got)
			}
			return nil
		})
	}
	out, err := in.try(fmt.Sprintf(drain, last, "20s"))
	if err == nil || !strings.Contains(out, "disruption budget") {
		t.Errorf("the drain of the last node evicts every adapter: %v: %s", err, out)
	}
	if got := in.nodesOf(t, adapterPods); len(got) != 1 || got[last] != 1 {
		t.Errorf("the adapters are on %v, want one on %s", got, last)
	}
	if got := in.nodesOf(t, portalPods); len(got) > 0 {
		t.Errorf("portals are ready on %v, want none", got)
	}
	in.reaches(t, "on drained nodes", map[string]bool{"shop": true, "other": false})
	in.write(t, "denial.yaml", denial)
	in.run(t, "kubectl apply -f denial.yaml")
	in.reaches(t, "a denial is enforced by the adapter that is left", map[string]bool{"shop": false, "other": false})

	in.run(t, "kubectl uncordon "+strings.Join(hostNodes, " "))
	in.waitForPods(t)
	in.forwardPortal(t)
	in.run(t, "kubectl delete -f denial.yaml")
	in.reaches(t, "after the nodes are back", map[string]bool{"shop": true, "other": false})
	eventually(t, wireTimeout, "the ticket is there", bob.is(asked, "effective"))
	bob.revoke(t, asked)
	eventually(t, wireTimeout, "the ticket is revoked", bob.is(asked, "revoked"))
	in.reaches(t, "after the revocation", map[string]bool{"shop": false, "other": false})
}
