package nodetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchClosed tries to connect to the resource without any grant until stop is called, which fails the test if it ever succeeded.
func (in *installation) watchClosed(t *testing.T, app string) (stop func()) {
	t.Helper()
	return in.wire.watch(t, in.apps["redis"]+":6379", map[string]bool{app: false})
}

// testFlows lets a collector read the member's Hubble, and finds its flows in the portal.
func (in *installation) testFlows(t *testing.T) {
	in.run(t, "kubectl -n acp-system create secret generic acp-hubble --from-file="+in.ca.file("ca.crt")+
		" --from-file=tls.crt="+in.ca.file("collector.crt")+" --from-file=tls.key="+in.ca.file("collector.key"))
	nodes, err := in.member.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	in.write(
		t,
		"flows-values.yaml",
		fmt.Sprintf("collector:\n  enabled: true\n  hubble:\n    relays: {m1: \"%s:4244\"}\n    tls: {existingSecret: acp-hubble, serverName: %s}\n",
			nodes.Items[0].Status.Addresses[0].Address, hubbleName),
	)
	in.run(t, in.upgrade(t)+" --values flows-values.yaml")
	in.waitForPods(t)
	in.forwardPortal(t)
	alice, bob, carol := in.browsers.login(t, "alice"), in.browsers.login(t, "bob"), in.browsers.login(t, "carol")
	asked := bob.approve(t, carol.approve(t, alice.request(t, "shop", "orders")))
	in.reaches(t, "a grant while flows are collected", map[string]bool{"shop": true, "other": false})
	in.flow(t, bob, "shop", "allowed", true)
	in.flow(t, bob, "other", "default-denied", false)
	in.write(t, "denial.yaml", denial)
	in.run(t, "kubectl apply -f denial.yaml")
	in.reaches(t, "a denial while flows are collected", map[string]bool{"shop": false})
	in.flow(t, bob, "shop", "denied", false)
	in.run(t, "kubectl delete -f denial.yaml")
	in.reaches(t, "without the denial", map[string]bool{"shop": true})
	bob.revoke(t, asked)
	eventually(t, wireTimeout, "the ticket is revoked", bob.is(asked, "revoked"))
}

// flow waits until the portal has a connection of an application with a decision. The connections are made here, and succeed or not.
func (in *installation) flow(t *testing.T, as *person, app, decision string, succeeds bool) {
	t.Helper()
	eventually(t, 2*time.Minute, "a flow of "+app+" is "+decision+" in the portal", func(ctx context.Context) error {
		// Each attempt makes a flow, because the collector may not have been connected at the time of the one before.
		if err := in.wire.connects(app, in.apps["redis"]+":6379", succeeds)(ctx); err != nil {
			return err
		}
		var list struct {
			Available bool
			Items     []json.RawMessage
		}
		query := url.Values{"resource": {"orders"}, "subject": {installedNames.application + app}, "decision": {decision}, "cluster": {"m1"}}
		if err := as.call(ctx, http.MethodGet, "/flows?"+query.Encode(), nil, &list); err != nil {
			return err
		}
		if !list.Available || len(list.Items) == 0 {
			return fmt.Errorf("%d %s flows, and the store is available: %t", len(list.Items), decision, list.Available)
		}
		return nil
	})
}

// testAuditedFlows puts the resource into Audit: a connection without a grant succeeds, and the portal shows it as audited.
func (in *installation) testAuditedFlows(t *testing.T) {
	bob := in.browsers.login(t, "bob")
	in.mode(t, "Audit")
	in.reaches(t, "a resource in Audit is open", map[string]bool{"other": true})
	in.flow(t, bob, "other", "audited", true)
	in.mode(t, "Enforce")
	in.reaches(t, "a resource in Enforce is closed", map[string]bool{"other": false})
}

// upgrade returns the guide's command.
func (in *installation) upgrade(t *testing.T) string { return in.life(t, "helm upgrade acp ") }

// life returns a command of the guide's section about upgrades.
func (in *installation) life(t *testing.T, prefix string) string {
	t.Helper()
	for line := range strings.Lines(in.block(t, "helm rollback acp")) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("docs/install.md has no command %q", prefix)
	return ""
}

// testLeader kills the pod of the adapter that has the lease. The other one handles the next change.
func (in *installation) testLeader(t *testing.T) {
	alice, bob, carol := in.browsers.login(t, "alice"), in.browsers.login(t, "bob"), in.browsers.login(t, "carol")
	asked := bob.approve(t, carol.approve(t, alice.request(t, "shop", "orders")))
	eventually(t, wireTimeout, "the ticket is effective", bob.is(asked, "effective"))
	in.reaches(t, "before the leader is killed", map[string]bool{"shop": true, "other": false})
	held := in.hold(t, "shop")

	leader := in.leader(t)
	began, now := time.Now(), int64(0)
	// It does not release its lease, as it would when it ends in order.
	in.kill(t, leader, "acp-adapter")
	if err := in.host.CoreV1().Pods("acp-system").Delete(t.Context(), leader, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	if err := in.wire.connects("shop", in.apps["redis"]+":6379", true)(t.Context()); err != nil {
		t.Errorf("while there is no leader: %v", err)
	}
	bob.revoke(t, asked)
	fmt.Printf("bench revoke_to_wire_without_leader %.1f s\n", held.ended(t).Sub(began).Seconds())
	eventually(t, wireTimeout, "the ticket is revoked", bob.is(asked, "revoked"))
	eventually(t, time.Minute, "another adapter leads", func(context.Context) error {
		if l := in.leader(t); l == leader {
			return errors.New("the lease is that of " + l)
		}
		return nil
	})
	in.waitForPods(t)
}

// kill sends SIGKILL to a program in a pod of the host.
func (in *installation) kill(t *testing.T, pod, program string) {
	t.Helper()
	p, err := in.host.CoreV1().Pods("acp-system").Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, file := range processes {
		cgroups, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(cgroups), "/pod"+string(p.UID)+"/") {
			continue // it ended meanwhile, or belongs to something else
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		if err != nil || strings.TrimSpace(string(command)) != program {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		killed++
	}
	if killed != 1 {
		t.Fatalf("%d processes %s of the pod %s were killed, want one", killed, program, pod)
	}
}

// leader returns the pod that holds the adapters' lease.
func (in *installation) leader(t *testing.T) string {
	t.Helper()
	lease, err := in.host.CoordinationV1().Leases("acp-system").Get(t.Context(), "acp-adapter", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod
}

// changedValues change the portal's settings and the number of adapters, and close what the programs may reach: API servers, the provider
// and Hubble stay open, by the ports of what is behind their Services.
const changedValues = `
portal: {settings: {session-idle: 1h}}
adapter: {replicas: 3}
networkPolicy:
  egress:
    enabled: true
    common: [{ports: [{port: 6443}]}]
    portal: [{ports: [{port: 8443}]}]
    collector: [{ports: [{port: 4244}]}]
`

// testRelease upgrades, rolls back, uninstalls and installs again. Meanwhile clients without a grant are refused, and clients with one are admitted.
func (in *installation) testRelease(t *testing.T) {
	alice, bob, carol := in.browsers.login(t, "alice"), in.browsers.login(t, "bob"), in.browsers.login(t, "carol")
	asked := bob.approve(t, carol.approve(t, alice.request(t, "shop", "orders")))
	eventually(t, wireTimeout, "the ticket is effective", bob.is(asked, "effective"))
	both := map[string]bool{"shop": true, "other": false}
	in.reaches(t, "before the upgrade", both)

	in.write(t, "changed-values.yaml", changedValues)
	in.run(t, in.upgrade(t)+" --values flows-values.yaml --values changed-values.yaml")
	in.waitForPods(t)
	in.forwardPortal(t)
	in.reaches(t, "after the upgrade", both)
	eventually(t, wireTimeout, "the ticket is there", bob.is(asked, "effective"))
	in.browsers.login(t, "bob") // the portal still reaches the provider

	in.run(t, in.life(t, "helm rollback acp "))
	in.waitForPods(t)
	in.forwardPortal(t)
	in.reaches(t, "after the rollback", both)
	eventually(t, wireTimeout, "the ticket is there", bob.is(asked, "effective"))

	in.run(t, in.life(t, "helm uninstall acp "))
	eventually(t, podsTimeout, "the pods are gone", func(ctx context.Context) error {
		pods, err := in.host.CoreV1().Pods("acp-system").List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d are there", len(pods.Items))
		}
		return err
	})
	in.reaches(t, "after uninstalling", both)

	in.run(t, in.helmInstall(t)+" --values flows-values.yaml")
	in.waitForPods(t)
	in.forwardPortal(t)
	in.trustPortal(t) // the Secret with its certificate went with the release
	bob = in.browsers.login(t, "bob")
	eventually(t, wireTimeout, "the ticket is there again", bob.is(asked, "effective"))
	held := in.hold(t, "shop")
	bob.revoke(t, asked)
	held.ended(t)
	in.reaches(t, "after a revocation in the installation that took over", map[string]bool{"shop": false, "other": false})
}

// helmInstall returns the guide's command alone, since its Secret is there.
func (in *installation) helmInstall(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(in.block(t, "helm install acp deploy/charts/acp")) {
		if strings.HasPrefix(line, "helm install acp ") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatal("docs/install.md does not install acp")
	return ""
}
