package fleet

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// gate forwards connections and can be closed.
type gate struct {
	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

// enter records the connections, unless the gate is closed.
func (g *gate) enter(conns ...net.Conn) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.conns = append(g.conns, conns...)
	}
	return !g.closed
}

func (g *gate) cut(cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = cut
	for _, c := range g.conns {
		c.Close()
	}
	g.conns = nil
}

// These addresses exist only inside the island.
const (
	insideEtcd   = "127.0.0.1:2379"
	insidePeer   = "127.0.0.1:2380"
	insideServer = "127.0.0.1:6443"
	insideGate   = "127.0.0.1:8091"
)

// TestAMemberBehindKonnectivity checks a member whose network accepts no connections: its agent connects to Konnectivity's server,
// and KubeFed and the adapter reach its API server through that, as proxyURL of the registration specifies. While the agent is
// disconnected only this member is unreachable, and afterwards it converges.
func TestAMemberBehindKonnectivity(t *testing.T) {
	f, s := newFleet(t, t.TempDir())
	built, err := f.konnectivity(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	way, proxy := f.startIsland(t, ctx, s, built)
	if c, err := net.DialTimeout("tcp", insideServer, time.Second); err == nil {
		c.Close()
		t.Fatalf("%s is reached without the proxy", insideServer)
	}
	member := f.memberBehind(t, ctx, proxy)
	startAdapter(t, f)

	host := as(t, f, Host).Resource(federatedResource)
	if _, err := host.Create(ctx, federated("888"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	waitIn(t, ctx, member, "m3", "888")
	waitStands(t, ctx, f, "m3", v1alpha1.MemberClusterReady)
	t.Logf("KubeFed pushed through the proxy %s after the object was written", time.Since(began).Round(time.Millisecond))

	way.cut(true)
	waitReady(t, ctx, f, "m3", false)
	waitStands(t, ctx, f, "m3", v1alpha1.MemberClusterUnreachable)
	waitStands(t, ctx, f, "m1", v1alpha1.MemberClusterReady)
	patch, err := json.Marshal(map[string]any{"spec": federated("889").Object["spec"]})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Patch(ctx, "carried", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ctx, f, "m1", "889") // the other members still receive changes
	began = time.Now()
	way.cut(false)
	waitReady(t, ctx, f, "m3", true)
	waitIn(t, ctx, member, "m3", "889")
	waitStands(t, ctx, f, "m3", v1alpha1.MemberClusterReady)
	t.Logf("the member had the change %s after the agent could connect again", time.Since(began).Round(time.Millisecond))
}

func (f *Fleet) konnectivity(t *testing.T, ctx context.Context) (parts.Built, error) {
	dir, err := parts.DefaultDir()
	if err != nil {
		return nil, err
	}
	needed, err := parts.Select(parts.Konnectivity)
	if err != nil {
		return nil, err
	}
	return (&parts.Cache{Repo: f.Repo, Dir: dir, Progress: testProgress{t}}).Ensure(ctx, needed)
}

// startIsland starts Konnectivity's server, and an API server with its agent in a network namespace of their own.
func (f *Fleet) startIsland(t *testing.T, ctx context.Context, s *supervisor.Supervisor, built parts.Built) (*gate, *url.URL) {
	t.Helper()
	dir := t.TempDir()
	ports, err := ChoosePorts(filepath.Join(dir, "ports.json"), []string{"front", "agents", "admin", "health"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(supervisor.Spec{Name: "konnectivity", Layer: LayerAPIServer, Path: built.Path(parts.Konnectivity, parts.ProxyServer), Args: []string{
		"--mode=http-connect", "--server-port=" + strconv.Itoa(ports["front"]), "--server-bind-address=127.0.0.1",
		"--server-cert=" + f.PKI.APIServer.Cert, "--server-key=" + f.PKI.APIServer.Key,
		"--agent-port=" + strconv.Itoa(ports["agents"]), "--agent-bind-address=127.0.0.1",
		"--cluster-cert=" + f.PKI.Etcd.Cert, "--cluster-key=" + f.PKI.Etcd.Key, "--cluster-ca-cert=" + f.PKI.EtcdCA,
		"--admin-port=" + strconv.Itoa(ports["admin"]), "--admin-bind-address=127.0.0.1",
		"--health-port=" + strconv.Itoa(ports["health"]), "--health-bind-address=127.0.0.1",
	}}); err != nil {
		t.Fatal(err)
	}
	if err := s.StartAndWait(ctx, "konnectivity"); err != nil {
		t.Fatal(err)
	}
	out, err := net.Listen("unix", filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	way := &gate{}
	go relay(out, "tcp", ports.Address("agents"), way)

	keys, data := filepath.Join(dir, "keys"), filepath.Join(dir, "data")
	if err := os.Mkdir(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	_, gatePort, err := net.SplitHostPort(insideGate)
	if err != nil {
		t.Fatal(err)
	}
	island{Dir: dir, Gate: insideGate, Socket: filepath.Join(dir, "out"), Programs: []program{
		{"etcd", f.Built.Path(parts.Kubernetes, parts.Etcd), []string{"--data-dir=" + data, "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=http://" + insideEtcd, "--advertise-client-urls=http://" + insideEtcd, "--listen-peer-urls=http://" + insidePeer}},
		{
			"apiserver",
			f.Built.Path(parts.Kubernetes, parts.KubeAPIServer),
			[]string{"--etcd-servers=http://" + insideEtcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
				"--secure-port=6443", "--tls-cert-file=" + f.PKI.APIServer.Cert, "--tls-private-key-file=" + f.PKI.APIServer.Key, "--cert-dir=" + keys,
				"--token-auth-file=" + f.Layout.tokenFile("m2"), "--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file=" + f.PKI.ServiceAccountKey, "--service-account-signing-key-file=" + f.PKI.ServiceAccountKey,
				"--service-cluster-ip-range=10.96.0.0/16", "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"},
		},
		{"agent", built.Path(parts.Konnectivity, parts.ProxyAgent), []string{"--proxy-server-host=127.0.0.1", "--proxy-server-port=" + gatePort,
			"--ca-cert=" + f.PKI.EtcdCA, "--agent-cert=" + f.PKI.Etcd.Cert, "--agent-key=" + f.PKI.Etcd.Key,
			"--admin-bind-address=127.0.0.1", "--health-server-host=127.0.0.1", "--sync-interval=500ms", "--sync-interval-cap=1s", "--probe-interval=500ms"}},
	}}.start(t)
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range []string{"etcd", "apiserver", "agent"} {
				t.Logf("%s: %s", name, supervisor.Tail(filepath.Join(dir, name+".log"), 15))
			}
		}
	})
	return way, &url.URL{Scheme: "https", Host: ports.Address("front")}
}

// memberBehind sets m3 up through the proxy and registers it with the proxy.
func (f *Fleet) memberBehind(t *testing.T, ctx context.Context, proxy *url.URL) dynamic.Interface {
	t.Helper()
	config := f.AdminConfig("m2") // the island's API server knows m2's people
	config.Host, config.Proxy = "https://"+insideServer, http.ProxyURL(proxy)
	applier, err := NewApplier(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := poll(ctx, "the API server behind the proxy is not ready", func(ctx context.Context) error {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return err
		}
		return GetOK(ctx, client, config.Host+"/readyz", "")
	}); err != nil {
		t.Fatal(err)
	}
	f.appliers["m3"] = applier
	if err := f.setUpMember(ctx, "m3"); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(f.PKI.ServerCA)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.appliers[Host].Apply(ctx, []*unstructured.Unstructured{
		tokenSecret(KubeFedNamespace, "kubefed-m3", f.Tokens["m2"][KubeFed]),
		tokenSecret(ACPNamespace, "acp-reader-m3", f.Tokens["m2"][Adapter]),
		{
			Object: map[string]any{
				"apiVersion": "core.kubefed.io/v1beta1",
				"kind":       "KubeFedCluster",
				"metadata":   map[string]any{"name": "m3", "namespace": KubeFedNamespace},
				"spec": map[string]any{"apiEndpoint": config.Host, "caBundle": base64.StdEncoding.EncodeToString(ca), "proxyURL": proxy.String(),
					"secretRef": map[string]any{"name": "kubefed-m3"}},
			},
		},
	}); err != nil {
		t.Fatal(err)
	}
	waitReady(t, ctx, f, "m3", true)
	return applier.Client
}

// waitReady waits until KubeFed reports a member as ready, or as not ready.
func waitReady(t *testing.T, ctx context.Context, f *Fleet, member string, ready bool) {
	t.Helper()
	if err := poll(ctx, fmt.Sprintf("KubeFed does not find that %s is ready: %v", member, ready), func(ctx context.Context) error {
		u, err := as(t, f, Host).Resource(kubeFedClusterResource).Namespace(KubeFedNamespace).Get(ctx, member, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if isTrue(u, "Ready") != ready {
			return fmt.Errorf("it says %v", u.Object["status"])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// waitStands waits until the adapter, which reads the member independently, reports the state.
func waitStands(t *testing.T, ctx context.Context, f *Fleet, member string, want v1alpha1.MemberClusterState) {
	t.Helper()
	members := as(t, f, Host).Resource(v1alpha1.GroupVersion.WithResource("memberclusters"))
	if err := poll(ctx, fmt.Sprintf("the adapter does not say %s of %s", want, member), func(ctx context.Context) error {
		u, err := members.Get(ctx, member, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(u.Object, "status", "state"); got != string(want) {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
