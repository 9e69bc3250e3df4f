//go:build ocmagent

package ocm_test

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	rbac "github.com/acp-io/acp/deploy/rbac/ocm"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/propagation"
	"github.com/acp-io/acp/internal/propagation/conformance"
	"github.com/acp-io/acp/internal/propagation/kubefed"
	"github.com/acp-io/acp/internal/propagation/ocm"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

const (
	kubeFedNamespace = "kube-federation-system"
	acpNamespace     = "acp-system"
	// agentUser is the account that OCM creates for the work agent.
	agentUser  = guard.WorkAgent
	agentToken = "a-token-for-tests"
	// readerUser reads the members where the host has a token of them.
	readerUser  = "system:serviceaccount:acp-system:acp-adapter"
	readerToken = "another-token-for-tests"
)

// reportTimeout bounds how long a test waits for the agent.
var reportTimeout = flag.Duration("report-timeout", 90*time.Second, "how long a test waits for the agent")

// TestWorkAgent runs the suite of all engines, and the cases that only an engine with an agent has, with one fleet.
func TestWorkAgent(t *testing.T) {
	f := newFleet(t, false)
	suite := f.suite(t)
	t.Run("conformance", func(t *testing.T) { conformance.Run(t, suite) })
	for name, test := range traps {
		t.Run(name, func(t *testing.T) {
			test(&trap{T: t, fleet: f, suite: suite, name: v1alpha1.ObjectPrefix + "trap-" + name})
		})
	}
}

// TestWorkAgentInMembersThatTheHostReads runs the suite of all engines with members that the adapter itself reads, with a token.
func TestWorkAgentInMembersThatTheHostReads(t *testing.T) {
	f := newFleet(t, true)
	conformance.Run(t, f.suite(t))
}

// fleet is a host and two members with real API servers. A real work agent runs for each member; it reaches the host through a proxy. The
// host has no access to the member, or one for reading through another proxy. The members have the guard, which admits the agent.
type fleet struct {
	// readByHost reports whether the host has a token for reading the members.
	readByHost bool
	host       dynamic.Interface
	// members are clients of the break-glass group, because the guard refuses an administrator.
	members map[string]dynamic.Interface
	proxies map[string]*testenv.Proxy
	readers map[string]*testenv.Proxy
	read    ocm.Members
	works   *ocm.Works
	objects *federation.Objects
	store   propagation.Store

	mu     sync.Mutex
	engine *ocm.Engine
	halted func()
}

// relay passes everything to the engine that runs now, so that the engine can be replaced as by a restart.
type relay struct{ *fleet }

func (r relay) now() *ocm.Engine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engine
}
func (r relay) Name() federation.Engine                { return federation.EngineOCM }
func (r relay) Capabilities() propagation.Capabilities { return r.now().Capabilities() }
func (r relay) Deliver(o *federation.Object)           { r.now().Deliver(o) }
func (r relay) DeliverUrgent(o *federation.Object)     { r.now().DeliverUrgent(o) }
func (r relay) Recheck(cluster, key string)            { r.now().Recheck(cluster, key) }
func (r relay) Retains(o *federation.Object, cluster string) bool {
	return r.now().Retains(o, cluster)
}
func (r relay) Report(o *federation.Object, cluster string) federation.Report {
	return r.now().Report(o, cluster)
}

func newFleet(t *testing.T, readByHost bool) *fleet {
	t.Helper()
	f := &fleet{readByHost: readByHost, members: map[string]dynamic.Interface{}, proxies: map[string]*testenv.Proxy{}, readers: map[string]*testenv.Proxy{}}
	host := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/kubefed", "controllers/testdata/host", "internal/propagation/ocm/testdata/host"}})
	host.Config.QPS = -1
	var err error
	f.host, err = dynamic.NewForConfig(host.Config)
	f.must(t, err)
	core, err := kubernetes.NewForConfig(host.Config)
	f.must(t, err)
	for _, n := range []string{kubeFedNamespace, acpNamespace, "m1", "m2"} {
		_, err := core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{})
		f.must(t, err)
	}
	for _, name := range []string{"m1", "m2"} {
		server := testenv.Start(t, testenv.Options{CRDs: []string{"controllers/testdata/member", "internal/propagation/ocm/testdata/member"},
			Tokens: map[string]string{agentToken: agentUser, readerToken: readerUser}})
		f.must(t, prepare(t, server))
		breakGlass := rest.CopyConfig(server.Config)
		breakGlass.Impersonate = rest.ImpersonationConfig{UserName: "operator", Groups: []string{guard.BreakGlass, "system:masters"}}
		f.members[name], err = dynamic.NewForConfig(breakGlass)
		f.must(t, err)
		f.proxies[name], err = testenv.NewProxy(host)
		f.must(t, err)
		t.Cleanup(func() { _ = f.proxies[name].Close() }) // the test is over
		toMember := &rest.Config{Host: server.Config.Host, BearerToken: agentToken, TLSClientConfig: rest.TLSClientConfig{CAData: server.Config.CAData}}
		toHost := rest.CopyConfig(host.Config)
		toHost.Host = "https://" + f.proxies[name].Address()
		testenv.WorkAgent(t, name, toMember, toHost)
		endpoint := "https://member.invalid"
		if readByHost {
			f.readers[name], err = testenv.NewProxy(server)
			f.must(t, err)
			t.Cleanup(func() { _ = f.readers[name].Close() }) // the test is over
			endpoint = "https://" + f.readers[name].Address()
			_, err = core.CoreV1().Secrets(acpNamespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Name: federation.SecretName(name)}, StringData: map[string]string{"token": readerToken}}, metav1.CreateOptions{})
			f.must(t, err)
		}
		_, err = f.host.Resource(federation.ClusterResource).Namespace(kubeFedNamespace).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
			"metadata": map[string]any{"name": name, "annotations": map[string]any{federation.AnnotationEngine: string(federation.EngineOCM)}},
			"spec": map[string]any{"apiEndpoint": endpoint, "caBundle": base64.StdEncoding.EncodeToString(server.Config.CAData),
				"secretRef": map[string]any{"name": federation.DirectSecretName(name)}},
		}}, metav1.CreateOptions{})
		f.must(t, err)
	}
	f.connect(t)
	return f
}

// prepare gives the agent its rights in a member, and installs the guard.
func prepare(t *testing.T, server *testenv.Server) error {
	t.Helper()
	admin, err := client.New(server.Config, client.Options{})
	if err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join("testdata", "agent", "roles.yaml"))
	if err != nil {
		return err
	}
	reader, err := os.ReadFile(filepath.Join(testenv.Root(), "deploy", "rbac", "member", "adapter-reader.yaml"))
	if err != nil {
		return err
	}
	objects, err := guard.Objects(guard.Credentials{}, agentUser)
	if err != nil {
		return err
	}
	// The agent has the rights that OCM grants it, and those that ACP grants it.
	for doc := range strings.SplitSeq(strings.Join([]string{string(own), string(rbac.Roles), string(reader)}, "\n---\n"), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return err
		}
		objects = append(objects, u)
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": acpNamespace}}}
	for _, u := range append([]*unstructured.Unstructured{namespace}, objects...) {
		if err := admin.Create(t.Context(), u); err != nil {
			return fmt.Errorf("create %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// connect starts what reads the host, without an engine.
func (f *fleet) connect(t *testing.T) {
	t.Helper()
	recheck := func(cluster, key string) { f.store.Engines.Recheck(cluster, key) }
	kind := federation.CiliumPolicy
	registry, err := federation.NewFleet(federation.FleetConfig{Host: f.host, KubeFedNamespace: kubeFedNamespace, CredentialsNamespace: acpNamespace,
		Kind: kind, Revision: enforcer.Revision, Log: logr.Discard(), Changed: recheck,
		Probing: federation.Probing{Interval: 200 * time.Millisecond, Timeout: 3 * time.Second, Failures: 2}})
	f.must(t, err)
	f.works, err = ocm.NewWorks(ocm.WorksConfig{Host: f.host, Members: registry, Log: logr.Discard(), Changed: recheck,
		Heartbeats: ocm.Heartbeats{Interval: 300 * time.Millisecond, Timeout: 5 * time.Second}})
	f.must(t, err)
	f.objects = federation.NewObjects(f.host, kind, logr.Discard(), func(name, _ string) { recheck("", name) })
	f.read = ocm.Members{Base: registry, Works: f.works, Kind: kind}
	if f.readByHost {
		f.read.BaseReads = registry.HasCredentials
	}
	f.must(t, f.newEngine())
	f.store = propagation.Store{Host: f.objects, Engines: propagation.NewEngines(registry, kubefed.Engine{}, relay{f})}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{registry.Run, f.works.Run, f.objects.Run} {
		running.Go(func() { _ = run(ctx) }) // it ends with the context and returns no other error
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (f *fleet) newEngine() error {
	engine, err := ocm.New(ocm.Config{Host: f.objects, Works: f.works, Read: f.read, Revision: enforcer.Revision, Log: logr.Discard()})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.engine = engine
	return nil
}

// start starts an engine that has read nothing yet.
func (f *fleet) start(t *testing.T) {
	t.Helper()
	f.must(t, f.newEngine())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	engine := f.engine
	go func() { ended <- engine.Start(ctx) }()
	f.halted = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the engine ended with %v", err)
		}
	}
}

func (f *fleet) halt() {
	if f.halted != nil {
		f.halted()
		f.halted = nil
	}
}

// suite starts an engine, and returns what the suite needs.
func (f *fleet) suite(t *testing.T) conformance.Fleet {
	t.Helper()
	eventually.NilWithin(t, *reportTimeout, "the agents report", func() error {
		for name := range f.proxies {
			if o := f.read.Observe(name, ""); !o.Reachable {
				return fmt.Errorf("%s: %+v", name, o)
			}
		}
		return nil
	})
	f.start(t)
	t.Cleanup(f.halt)
	registrations := federation.Registrations{Host: f.host, Namespace: kubeFedNamespace}
	return conformance.Fleet{
		Kind: federation.CiliumPolicy, Store: f.store, Read: f.read, Host: f.host, KubeFedNamespace: kubeFedNamespace, Members: f.members,
		Disconnect: func(m string) { f.each(m, (*testenv.Proxy).Disconnect) }, Reconnect: func(m string) { f.each(m, (*testenv.Proxy).Reconnect) },
		Stop: f.halt, Start: func() { f.start(t) },
		Quarantine: func(m string) {
			f.must(t, registrations.Suspend(t.Context(), m, message.Verbatim("a test")))
			eventually.NilWithin(t, *reportTimeout, "the agent confirms the quarantine", func() error {
				if c, _ := f.read.Cluster(m); !c.Quarantined || !f.works.Suspended(m) {
					return fmt.Errorf("%+v", c)
				}
				return nil
			})
		},
		Release: func(m string) {
			f.must(t, registrations.Resume(t.Context(), m))
			eventually.NilWithin(t, *reportTimeout, "the end of the quarantine is read", func() error {
				if c, _ := f.read.Cluster(m); c.Quarantined {
					return fmt.Errorf("%+v", c)
				}
				return nil
			})
		},
		Capabilities: f.engine.Capabilities(), Timeout: *reportTimeout,
	}
}

// each calls do with the proxies of a member.
func (f *fleet) each(member string, do func(*testenv.Proxy)) {
	do(f.proxies[member])
	if p := f.readers[member]; p != nil {
		do(p)
	}
}

func (f *fleet) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
