package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/rbactest"
)

// quietRelay is a Hubble relay without flows, with a certificate of its own.
type quietRelay struct {
	observerpb.UnimplementedObserverServer
	address            string
	certificate, key   []byte // in PEM
	streams, following atomic.Int64
}

func (r *quietRelay) ServerStatus(context.Context, *observerpb.ServerStatusRequest) (*observerpb.ServerStatusResponse, error) {
	return &observerpb.ServerStatusResponse{}, nil
}

func (r *quietRelay) GetFlows(_ *observerpb.GetFlowsRequest, s grpc.ServerStreamingServer[observerpb.GetFlowsResponse]) error {
	r.streams.Add(1)
	r.following.Add(1)
	defer r.following.Add(-1)
	<-s.Context().Done()
	return s.Context().Err()
}

func startQuietRelay(t *testing.T, name string) *quietRelay {
	t.Helper()
	r := &quietRelay{}
	var err error
	if r.certificate, r.key, err = certutil.GenerateSelfSignedCertKey(name, nil, nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, content := range map[string][]byte{certificate: r.certificate, key: r.key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	creds, err := credentials.NewServerTLSFromFile(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(creds))
	observerpb.RegisterObserverServer(server, r)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	r.address = l.Addr().String()
	return r
}

// startTunnelProxy serves the method CONNECT, and counts the tunnels.
func startTunnelProxy(t *testing.T) (address string, tunnels *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	tunnels = &atomic.Int64{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				reader := bufio.NewReader(conn)
				request, err := http.ReadRequest(reader)
				if err != nil || request.Method != http.MethodConnect {
					return
				}
				target, err := net.Dial("tcp", request.Host)
				if err != nil {
					return
				}
				defer target.Close()
				if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
					return
				}
				tunnels.Add(1)
				go func() { _, _ = io.Copy(target, reader) }()
				_, _ = io.Copy(conn, target)
			}()
		}
	}()
	return l.Addr().String(), tunnels
}

func registration(name, proxy string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
		"metadata": map[string]any{"name": name, "namespace": rbactest.Names.KubeFedNamespace},
		"spec":     map[string]any{"apiEndpoint": "https://" + name, "proxyURL": proxy, "secretRef": map[string]any{"name": name}}}}
}

func (p *process) members(t *testing.T) map[string]memberHealth {
	t.Helper()
	r, err := http.Get("http://" + p.health + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var body readiness
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	out := map[string]memberHealth{}
	for _, m := range body.Members {
		out[m.Name] = m
	}
	return out
}

// TestMembersComeAndGo starts a collector without members on a real API server. It follows each member from its registration on, with the
// certificates and through the proxy of the registration, and until it is gone.
func TestMembersComeAndGo(t *testing.T) {
	c := rbactest.Start(t, []string{"deploy/crds", "deploy/kubefed/control-plane"}, nil)
	first, second := startQuietRelay(t, "relay.one"), startQuietRelay(t, "relay.two")
	proxy, tunnels := startTunnelProxy(t)
	dir := t.TempDir()
	for name, content := range map[string][]byte{"ca.crt": first.certificate, "tls.crt": first.certificate, "tls.key": first.key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := startProcess(t, "--kubeconfig="+c.Kubeconfig(t, rbactest.Names.Collector), "--data-dir="+dir, "--store=sqlite:flows.db", "--registrations",
		"--kubefed-namespace="+rbactest.Names.KubeFedNamespace, "--hubble-tls-ca="+filepath.Join(dir, "ca.crt"),
		"--hubble-tls-cert="+filepath.Join(dir, "tls.crt"), "--hubble-tls-key="+filepath.Join(dir, "tls.key"), "--hubble-tls-server-name=relay.one")
	defer p.end(t, syscall.SIGTERM)

	until := func(what string, is func(map[string]memberHealth) bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			m := p.members(t)
			if is(m) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: not within 30 s: %+v", what, m)
			}
		}
	}
	annotate := func(name, declaration string) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{federation.AnnotationHubble: declaration}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Admin.Patch(t.Context(), registration(name, ""), client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
	}

	c.Create(t, registration("m1", ""))
	c.Create(t, registration("m2", "http://"+proxy))
	annotate("m1", "address: "+first.address)
	until("m1, with the certificates of the settings", func(m map[string]memberHealth) bool { return len(m) == 1 && m["m1"].Connected })

	own, err := json.Marshal(federation.Relay{Address: second.address, ServerName: "relay.two", Authority: string(second.certificate)})
	if err != nil {
		t.Fatal(err)
	}
	annotate("m2", string(own))
	until("m2, with an authority and a proxy of its own", func(m map[string]memberHealth) bool { return m["m1"].Connected && m["m2"].Connected })
	if n := tunnels.Load(); n != 1 {
		t.Errorf("%d tunnels through the proxy, want one", n)
	}

	annotate("m2", "relay: "+second.address)
	until("m2 has a problem and keeps its source", func(m map[string]memberHealth) bool {
		return m["m2"].Connected && strings.Contains(m["m2"].Problem, "followed at its earlier source") && m["m1"].Problem == ""
	})
	if n := second.streams.Load(); n != 1 {
		t.Errorf("%d streams of m2, want the first one", n)
	}

	annotate("m2", "{address: '"+first.address+"', serverName: relay.one, withoutProxy: true}")
	until("m2 has moved", func(m map[string]memberHealth) bool {
		return m["m2"].Connected && m["m2"].Problem == "" && second.following.Load() == 0 && first.following.Load() == 2
	})
	if err := c.Admin.Delete(t.Context(), registration("m1", "")); err != nil {
		t.Fatal(err)
	}
	until("m1 is gone", func(m map[string]memberHealth) bool {
		_, still := m["m1"]
		return !still && m["m2"].Connected && first.following.Load() == 1
	})
}
