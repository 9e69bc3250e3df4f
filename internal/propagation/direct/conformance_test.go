package direct_test

import (
	"context"
	"encoding/base64"
	"errors"
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

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/propagation"
	"github.com/acp-io/acp/internal/propagation/conformance"
	"github.com/acp-io/acp/internal/propagation/direct"
	"github.com/acp-io/acp/internal/propagation/kubefed"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

const (
	kubeFedNamespace = "kube-federation-system"
	acpNamespace     = "acp-system"
	readerToken      = "a-token-for-tests"
	readerUser       = "system:serviceaccount:acp-system:acp-adapter"
	directToken      = "another-token-for-tests"
	timeout          = time.Minute
)

// shared is the fleet of all tests of the package.
var shared *fleet

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	f, stop, err := newFleet(federation.CiliumPolicy)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	shared = f
	return m.Run()
}

func TestConformance(t *testing.T) { shared.conformance(t) }

// conformance runs the suite with the fleet's kind.
func (f *fleet) conformance(t *testing.T) {
	t.Helper()
	eventually.NilWithin(t, timeout, "the members are read", func() error {
		for name := range f.proxies {
			if o := f.read.Observe(name, ""); !o.Reachable {
				return fmt.Errorf("%s: %+v", name, o)
			}
		}
		return nil
	})
	f.start(t)
	defer f.halt()
	conformance.Run(t, conformance.Fleet{
		Kind: f.kind, Store: f.store, Read: f.read, Host: f.hostObjects, KubeFedNamespace: kubeFedNamespace, Members: f.members,
		Disconnect: func(m string) { f.proxies[m].Disconnect() }, Reconnect: func(m string) { f.proxies[m].Reconnect() },
		Stop: f.halt, Start: func() { f.start(t) },
		Quarantine: func(m string) {
			f.must(t, f.registrations().Suspend(t.Context(), m, message.Verbatim("a test")))
			eventually.NilWithin(t, timeout, "the quarantine is read", func() error { return f.quarantined(m, true) })
		},
		Release: func(m string) {
			f.must(t, f.registrations().Resume(t.Context(), m))
			eventually.NilWithin(t, timeout, "the end of the quarantine is read", func() error { return f.quarantined(m, false) })
		},
		Capabilities: f.engine.Capabilities(), Timeout: timeout,
	})
}

// fleet is a host and two members with real API servers. The members have the roles and the guard that a join creates.
type fleet struct {
	kind        federation.Kind
	hostObjects dynamic.Interface
	core        kubernetes.Interface
	members     map[string]dynamic.Interface
	proxies     map[string]*testenv.Proxy
	// admins are clients with the rights of the members' administrators, which the guard does not admit.
	admins  map[string]dynamic.Interface
	read    stores
	clients *direct.Clients
	store   propagation.Store

	mu     sync.Mutex
	engine *direct.Engine
	halted func()
}

// stores are the records on the host and the objects in the members.
type stores struct {
	federation.KindStores
	// reserved are the members as they are read for the kind under test.
	reserved *federation.Fleet
}

// Reserved returns the keys of a member's objects with ACP's label or name.
func (s stores) Reserved(cluster string) []string {
	var out []string
	for _, name := range s.reserved.Reserved(cluster) {
		out = append(out, s.KindStores[len(s.KindStores)-1].Kind.Key(name))
	}
	return out
}

// relay passes everything to the engine that runs now, so that the engine can be replaced as by a restart.
type relay struct{ *fleet }

func (r relay) now() *direct.Engine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engine
}
func (r relay) Name() federation.Engine                { return federation.EngineDirect }
func (r relay) Capabilities() propagation.Capabilities { return r.now().Capabilities() }
func (r relay) Deliver(o *federation.Object)           { r.now().Deliver(o) }
func (r relay) DeliverUrgent(o *federation.Object)     { r.now().DeliverUrgent(o) }
func (r relay) Recheck(cluster, key string)            { r.now().Recheck(cluster, key) }
func (r relay) Report(o *federation.Object, cluster string) federation.Report {
	return r.now().Report(o, cluster)
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

func (f *fleet) newEngine() error {
	metrics, err := direct.NewMetrics(nil)
	if err != nil {
		return err
	}
	engine, err := direct.New(direct.Config{Of: "policies", Host: f.read, Members: f.read, Clients: f.clients, Revision: enforcer.Revision,
		Log: logr.Discard(), Metrics: metrics})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.engine = engine
	return nil
}

// newFleet returns a fleet for a kind, which is the only one or is distributed beside the first one that is registered.
func newFleet(kind federation.Kind) (f *fleet, stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var errs []error
		for i := len(stops) - 1; i >= 0; i-- {
			errs = append(errs, stops[i]())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	f = &fleet{kind: kind, members: map[string]dynamic.Interface{}, proxies: map[string]*testenv.Proxy{}, admins: map[string]dynamic.Interface{}}
	host, err := testenv.New(testenv.Options{CRDs: []string{"deploy/kubefed", "controllers/testdata/host", "internal/propagation/direct/testdata/host"}})
	if err != nil {
		return nil, stop, err
	}
	stops = append(stops, host.Stop)
	host.Config.QPS = -1
	if f.hostObjects, err = dynamic.NewForConfig(host.Config); err != nil {
		return nil, stop, err
	}
	if f.core, err = kubernetes.NewForConfig(host.Config); err != nil {
		return nil, stop, err
	}
	for _, n := range []string{kubeFedNamespace, acpNamespace} {
		if _, err := f.core.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}},
			metav1.CreateOptions{}); err != nil {
			return nil, stop, err
		}
	}
	for _, name := range []string{"m1", "m2"} {
		server, err := testenv.New(testenv.Options{CRDs: []string{"controllers/testdata/member", "internal/propagation/direct/testdata/member"},
			Tokens: map[string]string{readerToken: readerUser, directToken: guard.DirectWriter}})
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, server.Stop)
		if err := f.member(name, server); err != nil {
			return nil, stop, err
		}
		stops = append(stops, f.proxies[name].Close)
	}
	f.clients = &direct.Clients{Secrets: f.core.CoreV1(), Namespace: acpNamespace}
	distributed := []federation.Kind{objectkind.All()[0]}
	if kind != distributed[0] {
		distributed = append(distributed, kind)
	}
	var runs []func(context.Context) error
	for _, k := range distributed {
		objects := federation.NewObjects(f.hostObjects, k, logr.Discard(), func(name, _ string) { f.store.Engines.Recheck("", keyOf(k, name)) })
		read, err := federation.NewFleet(federation.FleetConfig{Host: f.hostObjects, KubeFedNamespace: kubeFedNamespace, CredentialsNamespace: acpNamespace,
			Kind: k, Revision: enforcer.Revision, Log: logr.Discard(),
			Probing: federation.Probing{Interval: 100 * time.Millisecond, Timeout: 5 * time.Second, Failures: 2},
			Changed: func(cluster, object string) { f.store.Engines.Recheck(cluster, keyOf(k, object)) }})
		if err != nil {
			return nil, stop, err
		}
		f.read = stores{append(f.read.KindStores, federation.KindStore{Kind: k, Host: objects, Members: read}), read}
		runs = append(runs, objects.Run, read.Run)
	}
	if err := f.newEngine(); err != nil {
		return nil, stop, err
	}
	f.store = propagation.Store{Host: f.read, Engines: propagation.NewEngines(f.read, kubefed.Engine{}, relay{f})}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range runs {
		running.Go(func() { _ = run(ctx) }) // it ends with the context and returns no other error
	}
	stops = append(stops, func() error {
		cancel()
		running.Wait()
		return nil
	})
	return f, stop, nil
}

// keyOf returns the key of an object, or "" for all objects.
func keyOf(k federation.Kind, name string) string {
	if name == "" {
		return ""
	}
	return k.Key(name)
}

// member gives a member the roles and the guard, and registers it.
func (f *fleet) member(name string, server *testenv.Server) error {
	ctx := context.Background()
	admin, err := client.New(server.Config, client.Options{})
	if err != nil {
		return err
	}
	objects := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": acpNamespace}}}}
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "deploy/rbac/member/*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no roles: %w", err)
	}
	for _, file := range append(files, filepath.Join(testenv.Root(), "deploy/rbac/direct/roles.yaml")) {
		docs, err := documents(file)
		if err != nil {
			return err
		}
		objects = append(objects, docs...)
	}
	if f.kind != federation.CiliumPolicy {
		objects = append(objects, writing(f.kind)...)
	}
	guarding, err := guard.Objects(guard.Credentials{}, guard.DirectWriter)
	if err != nil {
		return err
	}
	for _, u := range append(objects, guarding...) {
		if err := admin.Create(ctx, u); err != nil {
			return fmt.Errorf("create %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	if f.admins[name], err = dynamic.NewForConfig(server.Config); err != nil {
		return err
	}
	// The guard refuses an administrator, so the suite changes the members as the break-glass group.
	breakGlass := rest.CopyConfig(server.Config)
	breakGlass.Impersonate = rest.ImpersonationConfig{UserName: "operator", Groups: []string{guard.BreakGlass, "system:masters"}}
	if f.members[name], err = dynamic.NewForConfig(breakGlass); err != nil {
		return err
	}
	if f.proxies[name], err = testenv.NewProxy(server); err != nil {
		return err
	}
	for secret, token := range map[string]string{federation.SecretName(name): readerToken, federation.DirectSecretName(name): directToken} {
		if _, err := f.core.CoreV1().Secrets(acpNamespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret},
			StringData: map[string]string{"token": token}}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err = f.hostObjects.Resource(federation.ClusterResource).Namespace(kubeFedNamespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{federation.AnnotationEngine: string(federation.EngineDirect)}},
		"spec": map[string]any{"apiEndpoint": "https://" + f.proxies[name].Address(), "caBundle": base64.StdEncoding.EncodeToString(server.Config.CAData),
			"secretRef": map[string]any{"name": federation.DirectSecretName(name)}},
	}}, metav1.CreateOptions{})
	return err
}

// writing returns the roles with which the engine and the adapter access a kind in a member, as the manifests have them for the kinds of
// the programs.
func writing(k federation.Kind) []*unstructured.Unstructured {
	name := "write-" + k.TargetResource.Resource
	subject := func(user string) map[string]any {
		return map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
	}
	return []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name},
			"rules": []any{map[string]any{"apiGroups": []any{k.TargetResource.Group}, "resources": []any{k.TargetResource.Resource}, "verbs": []any{"*"}}}}},
		{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": name},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
			"subjects": []any{subject(guard.DirectWriter), subject(readerUser)}}},
	}
}

func documents(file string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(string(raw), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
	return out, nil
}

func (f *fleet) registrations() federation.Registrations {
	return federation.Registrations{Host: f.hostObjects, Namespace: kubeFedNamespace}
}

func (f *fleet) quarantined(member string, want bool) error {
	if c, _ := f.read.Cluster(member); c.Quarantined != want {
		return fmt.Errorf("%+v", c)
	}
	return nil
}

func (f *fleet) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
