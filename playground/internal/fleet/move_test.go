package fleet

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/tokens"
	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/enforcement"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

var (
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	secrets         = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	clusterRoles    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
)

// These applications have no number that a policy contains for another reason.
const (
	// keptApp has a grant for every resource during the whole test, and otherApp never has one.
	keptApp  = "888"
	otherApp = "900900"
	// earlyApp had a grant for every resource, which was revoked before the moves.
	earlyApp = "700700"
	// lateApp has a grant for every resource, which is revoked during a move.
	lateApp = "701701"
	// firstPassing is the number of the first of the applications that get a grant for a moment.
	firstPassing = 100100
)

// TestMoveBetweenEngines moves a member from the real KubeFed to the direct engine and back, and then the whole fleet away from
// KubeFed. The command and the adapter are killed in the middle of the moves. During all of it, grants are made and revoked, and every
// version of every policy in the members and the verdicts of their dataplanes are probed: nothing that is enforced may be open, and
// no grant may come back whose revocation was reported as realized.
func TestMoveBetweenEngines(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), moveLimit)
	defer cancel()
	m := startMoving(t, ctx, Config{Guarded: true})
	endChurn := m.churn()

	m.moveInPieces("m1", federation.EngineDirect)
	m.isMoved("m1", federation.EngineDirect)
	m.retain(keptApp)
	m.moveInPieces("m1", federation.EngineKubeFed)
	m.isMoved("m1", federation.EngineKubeFed)

	for _, member := range Members() {
		m.join(member, federation.EngineDirect)
		m.isMoved(member, federation.EngineDirect)
	}
	if err := m.s.Stop("kubefed"); err != nil {
		t.Fatal(err)
	}
	m.rest(5 * time.Second) // grants and revocations without KubeFed
	endChurn()
	m.withoutKubeFed()
}

// moveLimit bounds a test that moves members.
const moveLimit = 15 * time.Minute

// startMoving starts a fleet with grants and probes. The grants of earlyApp are revoked before the probes begin.
func startMoving(t *testing.T, ctx context.Context, config Config) *moving {
	t.Helper()
	f, s := newFleetOf(t, t.TempDir(), config)
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(adapterSpec(t, f)); err != nil {
		t.Fatal(err)
	}
	if err := s.StartAndWait(ctx, "adapter"); err != nil {
		t.Fatal(err)
	}
	m := &moving{
		units:  &units{T: t, ctx: ctx, f: f, host: as(t, f, Host), n: 6},
		s:      s,
		cli:    buildProgram(t, f, "kubectl-acp"),
		probes: map[string]*memberProbe{},
	}
	m.createAll()
	for _, member := range Members() {
		m.join(member, f.engine(member)) // the accounts, tokens and the guard that a join makes
	}
	m.grantEach(keptApp, earlyApp)
	m.untilMembers("the grants are there", func(_ int, ingress string) bool {
		return strings.Contains(ingress, keptApp) && strings.Contains(ingress, earlyApp)
	})
	m.grantEach(keptApp, lateApp)
	m.untilMembers("the first grant is revoked", func(_ int, ingress string) bool {
		return strings.Contains(ingress, lateApp) && !strings.Contains(ingress, earlyApp)
	})
	m.startProbes()
	return m
}

// moving is a fleet whose members move.
type moving struct {
	*units
	s      *supervisor.Supervisor
	cli    string
	probes map[string]*memberProbe
	// ends end the dataplane probes by member.
	ends map[string]func()

	mu sync.Mutex
	// granted are the applications with a grant, by resource, without the one that has a grant for a moment.
	granted map[int][]string
}

// startProbes starts both kinds of probes in every member.
func (m *moving) startProbes() {
	m.Helper()
	yes, no := true, false
	workloads, wanted := m.workloads(map[string]*bool{keptApp: &yes, otherApp: &no, earlyApp: &no, lateApp: nil})
	m.ends = map[string]func(){}
	for _, member := range Members() {
		if err := demo.Place(m.ctx, m.f.AdminConfig(member), member, workloads); err != nil {
			m.Fatal(err)
		}
	}
	for _, member := range Members() {
		p, end := startMemberProbe(m.T, m.ctx, as(m.T, m.f, member), member, keptApp)
		m.probes[member] = p
		for i := range m.n {
			p.enforce(m.object(i), true)
			if err := p.isRevoked(m.ctx, m.object(i), earlyApp); err != nil {
				m.Fatal(err)
			}
		}
		dataplane := startDataplaneProbe(m.T, m.ctx, m.f, member, wanted[member])
		m.ends[member] = func() { end(); dataplane() }
	}
}

// workloads returns a server of each resource and a client of each application in every member, and the verdicts of the connections
// between them.
func (m *moving) workloads(clients map[string]*bool) (out []demo.Workload, wanted map[string]map[enforcement.Connection]*bool) {
	wanted = map[string]map[enforcement.Connection]*bool{}
	for _, member := range Members() {
		wanted[member] = map[enforcement.Connection]*bool{}
	}
	for i := range m.n {
		server := fmt.Sprint("r", i)
		out = append(out, demo.Workload{Name: server, Namespace: "redis", Labels: map[string]string{"com.trip/redis-cluster": server},
			Clusters: Members(), Replicas: 1})
		for app, want := range clients {
			for _, member := range Members() {
				wanted[member][enforcement.Connection{From: member + "/apps/app-" + app + "-0", To: "redis/" + server + "-0", Port: 6379}] = want
			}
		}
	}
	for app := range clients {
		out = append(
			out,
			demo.Workload{Name: "app-" + app, Namespace: "apps", Labels: map[string]string{"com.trip/appid": app}, Clusters: Members(), Replicas: 1},
		)
	}
	return out, wanted
}

// moveInPieces moves a member by a command that is killed after several of its steps and repeated each time, while the adapter is
// killed and started.
func (m *moving) moveInPieces(member string, engine federation.Engine) {
	m.Helper()
	m.rest(2 * time.Second)
	for _, step := range []struct {
		text string
		nth  int
	}{
		{"ServiceAccount", 1},
		{"ValidatingAdmissionPolicyBinding", 1}, // the guard admits both accounts
		{"KubeFedCluster", 1},                   // both engines may write
	} {
		m.joinUntil(member, engine, step.text, step.nth)
	}
	if err := m.s.Kill("adapter"); err != nil {
		m.Fatal(err)
	}
	m.joinUntil(member, engine, "KubeFedCluster", 1)
	if err := m.s.StartAndWait(m.ctx, "adapter"); err != nil {
		m.Fatal(err)
	}
	m.joinUntil(member, engine, "removed", 1) // the former account is being removed
	m.join(member, engine)
	m.rest(2 * time.Second)
}

// isMoved checks that a member has only the account of one engine, which the guard alone admits, and that nothing of the others is left
// on the host.
func (m *moving) isMoved(member string, engine federation.Engine) {
	m.Helper()
	u, err := m.host.Resource(kubeFedClusterResource).Namespace(KubeFedNamespace).Get(m.ctx, member, metav1.GetOptions{})
	if err != nil {
		m.Fatal(err)
	}
	c, err := federation.ParseCluster(u)
	if err != nil {
		m.Fatal(err)
	}
	if c.Engine != engine || c.DependsOnKubeFed() != (engine == federation.EngineKubeFed) {
		m.Errorf("%s uses %s with the Secret %s, want %s", member, c.Engine, c.Secret, engine)
	}
	inMember := as(m.T, m.f, member)
	for _, e := range federation.Engines() {
		found := map[string]error{}
		if e.Pulls() { // The account is the agent's own, which ACP only gives rights.
			_, found["the rights of its account in the member"] = inMember.Resource(clusterRoles).Get(m.ctx, "acp-ocm", metav1.GetOptions{})
		} else {
			_, found["the account in the member"] = inMember.Resource(serviceAccounts).Namespace(tokens.Namespace).Get(m.ctx, e.Account(), metav1.GetOptions{})
			registered := federation.Cluster{Name: member, Engine: e, Secret: federation.PusherSecretName(member)}
			namespace, name := registered.WriterSecret(KubeFedNamespace, ACPNamespace)
			_, found["the Secret on the host"] = m.host.Resource(secrets).Namespace(namespace).Get(m.ctx, name, metav1.GetOptions{})
		}
		for what, err := range found {
			if there := err == nil; there != (e == engine) || !there && !apierrors.IsNotFound(err) {
				m.Errorf("%s after the move of %s to %s: %s exists: %v, %v", e, member, engine, what, there, err)
			}
		}
	}
}

// withoutKubeFed checks a fleet that KubeFed has left: a record is deleted, a member leaves, and a record that names it is deleted.
func (m *moving) withoutKubeFed() {
	m.Helper()
	observe := func(i int, members ...string) {
		m.Helper()
		for _, p := range m.probes {
			p.enforce(m.object(i), false)
		}
		if i == 0 { // The dataplane has one resource less.
			for _, end := range m.ends {
				end()
			}
		}
		m.patch(protectedResources, fmt.Sprint("r", i), `{"spec":{"mode":"Observe"}}`)
		m.until(fmt.Sprintf("nothing of resource %d is left", i), func() error {
			if _, err := m.host.Resource(federatedResource).Get(m.ctx, m.object(i), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("its record: %w", err)
			}
			for _, member := range members {
				if _, err := as(m.T, m.f, member).Resource(ccnpResource).Get(m.ctx, m.object(i), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					return fmt.Errorf("its policy in %s: %w", member, err)
				}
			}
			return nil
		})
	}
	observe(0, Members()...)
	if out, err := m.command("leave", "m2", "--member-kubeconfig", m.f.Layout.Kubeconfig("m2"), "--member-context", "m2", "--timeout=2m").
		CombinedOutput(); err != nil {
		m.Fatalf("m2 does not leave: %v\n%s", err, out)
	}
	observe(1, "m1")
	m.until("m1 admits the application whose grant stays", func() error {
		u, err := as(m.T, m.f, "m1").Resource(ccnpResource).Get(m.ctx, m.object(2), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if spec, err := json.Marshal(u.Object["spec"]); err != nil || !names(spec, keptApp) {
			return fmt.Errorf("%s, %w", spec, err)
		}
		return nil
	})
}

// command is kubectl acp cluster with the host's kubeconfig.
func (m *moving) command(args ...string) *exec.Cmd {
	return exec.CommandContext(m.ctx, m.cli, append(append([]string{"cluster"}, args...), "--kubeconfig", m.f.Layout.Kubeconfig(Host))...)
}

func (m *moving) joining(member string, engine federation.Engine) *exec.Cmd {
	return m.command("join", member, "--engine", string(engine), "--member-kubeconfig", m.f.Layout.Kubeconfig(member), "--member-context", member,
		"--api-endpoint", m.f.url(member))
}

// join runs the command to its end.
func (m *moving) join(member string, engine federation.Engine) {
	m.Helper()
	began := time.Now()
	if out, err := m.joining(member, engine).CombinedOutput(); err != nil {
		m.Fatalf("%s does not move to %s: %v\n%s", member, engine, err, out)
	}
	m.Logf("join %s --engine %s took %s", member, engine, time.Since(began).Round(100*time.Millisecond))
}

// joinUntil kills the command when it reports a step whose text contains another for the nth time. A command that ends before that was
// repeated after it had done everything.
func (m *moving) joinUntil(member string, engine federation.Engine, text string, nth int) {
	m.Helper()
	cmd := m.joining(member, engine)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.Fatal(err)
	}
	last, killed := "", false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		last = lines.Text()
		if strings.Contains(last, text) {
			nth--
		}
		if nth == 0 && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				m.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil && !killed {
		m.Fatalf("%s does not move to %s: %v\n%s", member, engine, err, stderr.Bytes())
	}
	m.Logf("join %s --engine %s ended after %q", member, engine, last)
	m.rest(time.Second)
}

// rest lets grants and revocations happen.
func (m *moving) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-m.ctx.Done():
	}
}

func (m *moving) until(what string, check func() error) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.ctx, 2*time.Minute)
	defer cancel()
	if err := poll(ctx, "timed out waiting until "+what, func(context.Context) error { return check() }); err != nil {
		m.Fatal(err)
	}
}
