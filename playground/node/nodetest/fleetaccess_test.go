package nodetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	// reportsVM is the address of an ExternalWorkload, and strangeVM one of nobody.
	reportsVM = "172.20.4.17"
	strangeVM = "10.5.0.7"
)

var protectedResources = schema.GroupVersionResource{Group: "acp.io", Version: "v1alpha1", Resource: "protectedresources"}

// accessNames are the names of a resource in Enforce and of its clients.
type accessNames struct {
	// protected is the name of the ProtectedResource, resource that of its resource, and class the head of the names of its class.
	protected, resource, class string
	// application is the head of the names of applications, and cidr that of the names of ranges of addresses.
	application, cidr string
	// granted is a pod with a grant, and refused a pod without one; grantedID and refusedID are the ids of their applications.
	granted, grantedID string
	refused, refusedID string
	// externalID is the id of the application of the ExternalWorkload with the address reportsVM.
	externalID string
}

// demoNames are the names of the demo.
var demoNames = accessNames{
	protected: "bobs-cluster", resource: "trnv1:rsc:trip-com:redis:clusters:bobs-cluster", class: "trnv1:rsc:trip-com:redis:clusters:",
	application: "trnv1:rsc:trip-com:iam:sa:app/", cidr: "trnv1:rsc:trip-com:net:cidr:",
	granted: "billing-0", grantedID: "777", refused: "checkout-0", refusedID: "888", externalID: "676",
}

// fleetAccess makes connections to one resource in all members.
type fleetAccess struct {
	accessNames
	host    dynamic.Interface
	members map[string]*wire
	// servers are the addresses of the resource's pods, by member.
	servers map[string]netip.Addr
	outside *outside
}

// newFleetAccess makes connections from outside of the fleet possible, too. State is the folder of the state of the nodes, and selector selects
// the pods of the resource.
func newFleetAccess(t *testing.T, names accessNames, host dynamic.Interface, members map[string]*wire, selector, state string) *fleetAccess {
	t.Helper()
	f := &fleetAccess{accessNames: names, host: host, members: members, servers: map[string]netip.Addr{}, outside: enterOutside(t, state)}
	for name, w := range members {
		pods, err := w.client.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil || len(pods.Items) == 0 {
			t.Fatalf("the pods of %s in %s: %v, %v", names.resource, name, pods, err)
		}
		f.servers[name] = netip.MustParseAddr(pods.Items[0].Status.PodIP)
		f.outside.routeTo(t, w.client)
	}
	for _, address := range []string{reportsVM, strangeVM} {
		f.outside.add(t, address)
	}
	return f
}

// check returns a check of a connection to the resource in a member, from an address outside or from a pod.
func (f *fleetAccess) check(member, from string, want bool) func(context.Context) error {
	server := f.servers[member]
	if address, err := netip.ParseAddr(from); err == nil {
		return f.outside.connects(address, server, 6379, want)
	}
	return f.members[member].connects(from, netip.AddrPortFrom(server, 6379).String(), want)
}

// reached waits until each source can, or cannot, connect in every member.
func (f *fleetAccess) reached(t *testing.T, what string, may map[string]bool) {
	t.Helper()
	for member := range f.members {
		for from, want := range may {
			eventually(t, wireTimeout, fmt.Sprintf("%s: %s in %s", what, from, member), f.check(member, from, want))
		}
	}
}

// write creates the test's policy with one statement, and returns a function that removes it.
func (f *fleetAccess) write(t *testing.T, effect, subject, resource string) (remove func()) {
	t.Helper()
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "acp.io/v1alpha1", "kind": "AccessControlPolicy", "metadata": map[string]any{"name": "test"},
		"spec": map[string]any{"statements": []any{map[string]any{
			"sid": "test", "effect": effect, "subjects": []any{subject}, "actions": []any{"redis:connect"}, "resources": []any{resource},
		}}},
	}}
	if _, err := f.host.Resource(policyResource).Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := f.host.Resource(policyResource).Delete(t.Context(), "test", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// base returns which sources can connect without a further statement.
func (f *fleetAccess) base() map[string]bool {
	return map[string]bool{f.granted: true, f.refused: false, reportsVM: false, strangeVM: false}
}

// testStatements writes statements of every kind to the host cluster, one after another, and makes the connections that they are about.
func (f *fleetAccess) testStatements(t *testing.T) {
	f.reached(t, "before", f.base())
	for _, c := range []struct {
		reason, effect, subject, resource string
		// changed are the sources with another result than base.
		changed map[string]bool
	}{
		{"a deny is stronger than an allow", "Deny", f.application + f.grantedID, f.resource, map[string]bool{f.granted: false}},
		{"an allow of all resources of a class", "Allow", f.application + f.refusedID, f.class + "*", map[string]bool{f.refused: true}},
		{"a deny of all resources of a class", "Deny", f.application + f.grantedID, f.class + "*", map[string]bool{f.granted: false}},
		{"an allow of a whole class has its external workloads", "Allow", f.application + "*", f.resource, map[string]bool{f.refused: true, reportsVM: true}},
		{"a range has no pods and no external workloads elsewhere", "Allow", f.cidr + "10.0.0.0/8", f.resource, map[string]bool{strangeVM: true}},
		{"a range does not reach beyond its end", "Allow", f.cidr + "10.5.0.8/29", f.resource, nil},
		{"an external workload", "Allow", f.application + f.externalID, f.resource, map[string]bool{reportsVM: true}},
		{"everyone", "Allow", "*", f.resource, map[string]bool{f.refused: true, reportsVM: true, strangeVM: true}},
		{"nobody", "Deny", "*", f.resource, map[string]bool{f.granted: false}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			want := f.base()
			for from, may := range c.changed {
				want[from] = may
			}
			remove := f.write(t, c.effect, c.subject, c.resource)
			f.reached(t, "with the statement", want)
			remove()
			f.reached(t, "without it", f.base())
		})
	}
}

// testTemporaryAudit puts a resource into Audit for a time. Nothing is written when the time is over.
func (f *fleetAccess) testTemporaryAudit(t *testing.T) {
	const duration = 20 * time.Second
	until := time.Now().Add(duration)
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"temporaryAudit": map[string]any{
		"until": until.UTC().Format(time.RFC3339), "reason": "the test of real nodes", "by": "test",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.host.Resource(protectedResources).Patch(t.Context(), f.protected, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	f.reached(t, "in Audit for a time", map[string]bool{f.granted: true, f.refused: true, reportsVM: true, strangeVM: true})
	if time.Now().After(until) {
		t.Fatalf("it opened only after %s", duration)
	}
	for member := range f.members {
		eventually(t, duration+wireTimeout, "the time is over in "+member, f.check(member, f.refused, false))
	}
	f.reached(t, "when the time is over", f.base())
}

// testKilledAgent kills the agent of a member, and changes access before it is back. First is the first process of the
// member's node.
func (f *fleetAccess) testKilledAgent(t *testing.T, member, other string, first int) {
	agent := processOf(t, first, "cilium-agent")
	if err := syscall.Kill(agent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	remove := f.write(t, "Allow", f.application+f.refusedID, f.resource)
	eventually(t, wireTimeout, "a grant in the member with an agent", f.check(other, f.refused, true))
	// Until the agent has read the grant, clients without a grant are refused and clients with one are admitted, as before.
	var opened time.Duration
	eventually(t, restartTimeout, "a grant in the member whose agent was killed", func(ctx context.Context) error {
		for from, want := range map[string]bool{f.granted: true, strangeVM: false, reportsVM: false} {
			if err := f.check(member, from, want)(ctx); err != nil {
				t.Errorf("%.1f s after the agent was killed: %v", time.Since(began).Seconds(), err)
			}
		}
		err := f.check(member, f.refused, true)(ctx)
		opened = time.Since(began)
		return err
	})
	if now := processOf(t, first, "cilium-agent"); now == agent {
		t.Fatal("the agent was not killed")
	}
	t.Logf("a grant that was written without an agent holds %.1f s after the agent was killed", opened.Seconds())
	remove()
	f.reached(t, "with the new agent", f.base())
}
