//go:build ocmagent

package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/membership"
	"github.com/acp-io/acp/internal/propagation/ocm"
	"github.com/acp-io/acp/internal/testenv"
)

// pullTimeout bounds how long a test waits for the work agent, which may need several seconds for a change.
const pullTimeout = 2 * time.Minute

// pulling is a fleet in which the work agent of Open Cluster Management runs in m2.
type pulling struct {
	*scenario
	// toHost is the agent's way to the host.
	toHost  *testenv.Proxy
	objects dynamic.Interface
}

func newPulling(t *testing.T, service string) *pulling {
	t.Helper()
	usual := memberCRDs
	memberCRDs = append(usual, "internal/propagation/ocm/testdata/member")
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host", "internal/propagation/ocm/testdata/host"}, "m1", "m2")
	memberCRDs = usual
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	p := &pulling{scenario: newScenario(t, f, service)}
	// The test acts as KubeFed, whose account the guard knows.
	pusher := rest.CopyConfig(p.members["m2"].server.Config)
	pusher.Impersonate = rest.ImpersonationConfig{UserName: guard.Pusher, Groups: []string{"system:masters"}}
	if p.members["m2"].client, err = client.New(pusher, client.Options{Scheme: f.scheme}); err != nil {
		t.Fatal(err)
	}
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}) // OCM creates it for its ManagedCluster
	if err := applyFile(p.members["m2"].client, repositoryFile("internal/propagation/ocm/testdata/agent/roles.yaml")); err != nil {
		t.Fatal(err)
	}
	if p.toHost, err = testenv.NewProxyTo(f.hostConfig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.toHost.Close() }) // the test is over
	member := p.members["m2"].server.Config
	host := rest.CopyConfig(f.hostConfig)
	host.Host = "https://" + p.toHost.Address()
	testenv.WorkAgent(t, "m2", &rest.Config{Host: member.Host, BearerToken: agentToken, TLSClientConfig: rest.TLSClientConfig{CAData: member.CAData}}, host)
	if p.objects, err = dynamic.NewForConfig(f.hostConfig); err != nil {
		t.Fatal(err)
	}
	return p
}

// join joins m2 with an engine, as an administrator does.
func (p *pulling) join(engine federation.Engine, withoutReader bool) {
	p.Helper()
	m := p.members["m2"]
	host, err := membership.NewHost(p.hostConfig, fedNS, acpNS)
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.ctx, pullTimeout)
	defer cancel()
	j := &membership.Join{Host: host, Member: m.server.Config, Lifetime: 24 * time.Hour, Now: time.Now, WithoutReader: withoutReader,
		Cluster: federation.Cluster{Name: "m2", Endpoint: "https://" + m.proxy.Address(), CABundle: m.server.Config.CAData, Engine: engine,
			Labels: map[string]string{"name": "m2"}}}
	if findings, err := j.Run(ctx); err != nil {
		p.Fatalf("join with %s: %v, findings %+v", engine, err, findings)
	}
}

// waitFor waits until check returns "", at most pullTimeout, which is longer than the timeout of until.
func (p *pulling) waitFor(what string, check func() string) {
	p.Helper()
	problem := ""
	for end := time.Now().Add(pullTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if problem = check(); problem == "" {
			return
		}
	}
	p.Fatalf("timed out waiting for %q: %s", what, problem)
}

// untilM2 waits until m2 has a state.
func (p *pulling) untilM2(what string, want v1alpha1.MemberState) {
	p.Helper()
	p.waitFor(what, func() string {
		have := p.haveStates(map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": want})
		if have == "" {
			return ""
		}
		if u, _ := p.federated(); u != nil {
			p.push() // KubeFed, which carries to m1 only
		}
		return have
	})
}

// untilAdmits waits until m2 admits an application or does not, and is realized. A status may describe the state before a change of the policy.
func (p *pulling) untilAdmits(app string, want bool) {
	p.Helper()
	p.waitFor(fmt.Sprintf("m2 admits %s: %v", app, want), func() string {
		if have := p.inM2(); admits(have, app) != want {
			return string(have)
		}
		return ""
	})
	p.untilM2("m2 is realized", v1alpha1.MemberRealized)
}

// works returns the number of ACP's ManifestWorks in the namespace of m2.
func (p *pulling) works() int {
	p.Helper()
	n, err := ocm.Remaining(p.ctx, p.objects, "m2")
	if err != nil {
		p.Fatal(err)
	}
	return n
}

// TestPullMember checks a fleet in which the work agent fetches what m2 has to have: what is granted and revoked reaches it, also after a
// restart of the adapter and while the agent was away; changes in the member are undone; the member moves to another engine and back without
// a moment in which it lacks its policy or has a revoked grant; and it leaves.
func TestPullMember(t *testing.T) {
	p := newPulling(t, "pull")
	p.protect(v1alpha1.ModeEnforce)
	p.grant(p.statement("a", "1"), p.statement("b", "2"))
	p.pushUntilStates("KubeFed carries to both", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberRealized})
	p.revoke("b")
	p.pushUntilStates("KubeFed carries the revocation to both", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberRealized})

	probe := p.probe("m2")
	p.join(federation.EngineOCM, false)
	p.untilM2("the agent has taken over", v1alpha1.MemberRealized)
	p.alsoGrant("by-agent")
	p.untilAdmits("by-agent", true)
	probe()

	t.Log("a change in the member")
	open := p.ccnp()
	open.SetName(p.object())
	breakGlass := rest.CopyConfig(p.members["m2"].server.Config)
	breakGlass.Impersonate = rest.ImpersonationConfig{UserName: "operator", Groups: []string{guard.BreakGlass, "system:masters"}}
	operator, err := client.New(breakGlass, client.Options{Scheme: p.scheme})
	if err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ingress":[{"fromEntities":["all"]}]}}`))
	if err := operator.Patch(p.ctx, open, patch); err != nil {
		t.Fatal(err)
	}
	p.untilAdmits("by-agent", true)

	t.Log("an agent that is away, and a restart")
	p.toHost.Disconnect()
	p.revoke("by-agent")
	p.untilM2("m2 waits for its agent", v1alpha1.MemberPending)
	if err := p.restart(); err != nil {
		t.Fatal(err)
	}
	p.toHost.Reconnect()
	p.untilAdmits("by-agent", false)

	t.Log("to the direct engine and back")
	probe = p.probe("m2")
	p.join(federation.EngineDirect, false)
	if n := p.works(); n != 0 {
		t.Errorf("%d ManifestWorks remain", n)
	}
	p.alsoGrant("by-adapter")
	p.untilAdmits("by-adapter", true)
	p.join(federation.EngineOCM, false)
	p.alsoGrant("by-agent-again")
	p.untilAdmits("by-agent-again", true)
	probe()

	t.Log("a member that the host cannot read")
	p.join(federation.EngineOCM, true)
	p.alsoGrant("unread")
	p.untilM2("its dataplane is not known", v1alpha1.MemberPending)
	p.waitFor("the agent reports what it has", func() string {
		for _, c := range p.protected().Status.Clusters {
			if c.Name == "m2" && (c.ObservedRevision == "" || c.ObservedRevision != c.DesiredRevision) {
				return fmt.Sprintf("%+v", c)
			}
		}
		return ""
	})
	p.join(federation.EngineOCM, false)
	p.untilM2("it is read again", v1alpha1.MemberRealized)

	t.Log("to KubeFed and back")
	ready := make(chan struct{})
	go p.reportReady(ready)
	p.join(federation.EngineKubeFed, false)
	close(ready)
	if n := p.works(); n != 0 {
		t.Errorf("%d ManifestWorks remain", n)
	}
	p.untilM2("KubeFed writes", v1alpha1.MemberRealized)
	p.notReady("m2")
	p.join(federation.EngineOCM, false)
	p.untilM2("the agent writes", v1alpha1.MemberRealized)

	t.Log("leaving")
	leaving := []byte(`{"metadata":{"annotations":{"` + federation.AnnotationLeaving + `":"true"}}}`)
	registrations := p.objects.Resource(federation.ClusterResource).Namespace(fedNS)
	if _, err := registrations.Patch(p.ctx, "m2", types.MergePatchType, leaving, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p.waitFor("the record does not name m2 any more", func() string {
		p.pushOf(federation.CiliumPolicy, p.object()) // KubeFed, which is not there while the command below runs
		if _, o := p.federated(); slices.Contains(o.EverPlaced(), "m2") {
			return fmt.Sprintf("placed in %v, maybe in %v", o.Placement, o.EverPlaced())
		}
		return ""
	})
	host, err := membership.NewHost(p.hostConfig, fedNS, acpNS)
	if err != nil {
		t.Fatal(err)
	}
	leave := &membership.Leave{Host: host, Name: "m2", Member: p.members["m2"].server.Config, Timeout: pullTimeout, Every: 100 * time.Millisecond}
	if left, err := leave.Run(p.ctx); err != nil || !left.IsEmpty() {
		t.Fatalf("leave: %v, left is %+v", err, left)
	}
	if n := p.works(); n != 0 {
		t.Errorf("%d ManifestWorks remain", n)
	}
	if have := p.inM2(); have != nil {
		t.Errorf("m2 still has %s", have)
	}
}

// TestPullMemberLeavesByForce checks that what a member has stays there when it leaves by force, and that nothing of it remains on the host.
func TestPullMemberLeavesByForce(t *testing.T) {
	p := newPulling(t, "pullforce")
	p.join(federation.EngineOCM, false)
	p.protect(v1alpha1.ModeEnforce)
	p.grant(p.statement("a", "1"))
	p.untilM2("the agent writes", v1alpha1.MemberRealized)
	host, err := membership.NewHost(p.hostConfig, fedNS, acpNS)
	if err != nil {
		t.Fatal(err)
	}
	leave := &membership.Leave{Host: host, Name: "m2", Member: p.members["m2"].server.Config, Force: true, Timeout: pullTimeout, Every: 100 * time.Millisecond}
	if _, err := leave.Run(p.ctx); err != nil {
		t.Fatal(err)
	}
	if n := p.works(); n != 0 {
		t.Errorf("%d ManifestWorks remain", n)
	}
	u := p.ccnp()
	if err := p.members["m2"].client.Get(p.ctx, types.NamespacedName{Name: p.object()}, u); err != nil {
		t.Fatalf("the member lost its policy: %v", err)
	}
	if owners := u.GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("its owners are %v", owners)
	}
}

// inM2 returns the spec of the policy in m2, or nil.
func (p *pulling) inM2() []byte {
	p.Helper()
	u := p.ccnp()
	err := p.members["m2"].client.Get(p.ctx, types.NamespacedName{Name: p.object()}, u)
	if client.IgnoreNotFound(err) != nil {
		p.Fatal(err)
	}
	if err != nil {
		return nil
	}
	raw, err := json.Marshal(u.Object["spec"])
	if err != nil {
		p.Fatal(err)
	}
	return raw
}

// reportReady acts as KubeFed: it finds m2 ready as soon as the registration names KubeFed's Secret, until done is closed.
func (p *pulling) reportReady(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(50 * time.Millisecond): // poll interval
		}
		u, err := p.objects.Resource(federation.ClusterResource).Namespace(fedNS).Get(p.ctx, "m2", metav1.GetOptions{})
		if err != nil {
			continue
		}
		if c, err := federation.ParseCluster(u); err == nil && !c.KubeFedLocked() && !c.ReadyForKubeFed {
			p.reportStatus("m2", "True")
		}
	}
}

// notReady acts as KubeFed that has no client of a member any more.
func (p *pulling) notReady(member string) {
	p.Helper()
	p.reportStatus(member, "False")
}

func (p *pulling) reportStatus(member, ready string) {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q,"lastProbeTime":"2026-01-01T00:00:00Z"}]}}`, ready)
	_, err := p.objects.Resource(federation.ClusterResource).Namespace(fedNS).Patch(p.ctx, member, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		p.Error(err)
	}
}
