package preflight

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
)

// TestConfigurationIsReadThoughThePusherIsRefused checks that a member whose API server refuses the pusher's token is
// unreachable, and that its configuration is read with the reader's token all the same. If no token is accepted, nothing
// is read.
func TestConfigurationIsReadThoughThePusherIsRefused(t *testing.T) {
	const audit = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cilium-config"}, "data": {"policy-audit-mode": "true"}}`
	const agents = `{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "cilium"},
		"spec": {"template": {"spec": {"containers": [{"name": "cilium-agent", "image": "cilium:v1.20.2"}]}}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answers := map[string]string{
			"/version": `{"gitVersion": "v1.36.3"}`,
			"/api/v1/namespaces/kube-system/configmaps/cilium-config":     audit,
			"/apis/apps/v1/namespaces/kube-system/daemonsets/cilium":      agents,
			"/apis/cilium.io/v2/namespaces/kube-system/ciliumnodeconfigs": `{"apiVersion": "cilium.io/v2", "kind": "CiliumNodeConfigList", "items": []}`,
		}
		answer, found := answers[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer reader":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401}`)
		case !found:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
		default:
			_, _ = fmt.Fprint(w, answer)
		}
	}))
	t.Cleanup(server.Close)
	as := func(token string) *rest.Config { return &rest.Config{Host: server.URL, BearerToken: token} }
	kinds := []federation.Kind{federation.CiliumPolicy}

	f := Read(t.Context(), "m1", as("expired"), as("reader"), kinds, federation.Locations{})
	if f.Unreachable == "" || !f.ConfigRead() || f.Version != "v1.36.3" {
		t.Errorf("only the pusher is refused: %+v", f)
	}
	findings := Assess(f, needs)
	codes := codesOf(findings)
	if codes[0] != Unreachable || findings[0].Severity != Stops || !slices.Contains(codes, AuditMode) || slices.Contains(codes, KindFails) {
		t.Errorf("findings: %v", codes)
	}
	f = Read(t.Context(), "m1", as("expired"), as("expired, too"), kinds, federation.Locations{})
	if codes := codesOf(Assess(f, needs)); f.ConfigRead() || !slices.Equal(codes, []string{Unreachable}) {
		t.Errorf("both are refused: %v", codes)
	}
	f = ReadConfig(t.Context(), "m1", as("reader"), "there is no token", federation.Locations{})
	if f.Unreachable != "there is no token" || !f.ConfigRead() || !slices.Contains(codesOf(Assess(f, needs)), AuditMode) {
		t.Errorf("no pusher: %+v", f)
	}
	server.Close()
	f = Read(t.Context(), "m1", as("expired"), as("reader"), kinds, federation.Locations{})
	if f.Unreachable == "" || f.ConfigRead() {
		t.Errorf("the server is gone: %+v", f)
	}
}

// TestPodsOnTheNodesNetworkHaveNoProxy checks that a pod that uses the network of its node counts as one without a proxy, whatever its
// annotations contain, and that nothing else is said about its protection.
func TestPodsOnTheNodesNetworkHaveNoProxy(t *testing.T) {
	const page = `{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": [%s]}`
	pod := func(name, annotations string) string {
		return fmt.Sprintf(`{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
			"metadata": {"namespace": "ns", "name": %q, "labels": {"redis": "a"}, "annotations": %s}}`, name, annotations)
	}
	const (
		sidecar = `{"sidecar.istio.io/status": "{}"}`
		ambient = `{"ambient.istio.io/redirection": "enabled"}`
		servers = `{"sidecar.istio.io/status": "{}", "inject.istio.io/templates": "grpc-agent", "acp.io/grpc-servers": "xds"}`
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fields := r.URL.Query().Get("fieldSelector")
		var pods []string
		if !strings.Contains(fields, "spec.hostNetwork=true") {
			pods = append(pods, pod("own", sidecar))
		}
		if !strings.Contains(fields, "spec.hostNetwork=false") {
			pods = append(pods, pod("node-0", sidecar), pod("node-1", ambient), pod("node-2", servers))
		}
		_, _ = fmt.Fprintf(w, page, strings.Join(pods, ", "))
	}))
	t.Cleanup(server.Close)

	got := ReadMeshPods(t.Context(), &rest.Config{Host: server.URL}, Istio{Declared: `{"dataplane": "sidecar", "version": "1.31.2"}`}, []string{"redis"})
	label := federation.Label{Key: "redis", Value: "a"}
	if want := []string{"ns/node-0", "ns/node-1", "ns/node-2"}; !slices.Equal(got.Unproxied.Pods[label], want) {
		t.Errorf("without a proxy: %v (%s), want %v", got.Unproxied.Pods[label], got.Unproxied.Unread.Text, want)
	}
	if len(got.StatedServers.Pods) != 0 || len(got.InAmbient.Pods) != 0 {
		t.Errorf("pods without a proxy count as protected: %v, %v", got.StatedServers.Pods, got.InAmbient.Pods)
	}
}
