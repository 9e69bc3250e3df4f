package workload

import (
	"net/netip"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNetwork checks that a server sees the addresses of the pods, and that a pod that does not listen cannot be connected to.
func TestNetwork(t *testing.T) {
	n := NewNetwork()
	client, server := netip.MustParseAddr("10.1.0.1"), netip.MustParseAddrPort("10.1.0.2:9090")
	if _, err := n.Dial(t.Context(), client, server); err == nil {
		t.Error("nothing listens, and a connection is open")
	}
	l, err := n.Listen(server)
	if err != nil {
		t.Fatal(err)
	}
	near, err := n.Dial(t.Context(), client, server)
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if _, err := near.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if _, err := far.Read(b); err != nil || string(b) != "hello" {
		t.Errorf("read %q, %v", b, err)
	}
	from, err := netip.ParseAddrPort(far.RemoteAddr().String())
	if err != nil || from.Addr() != client || from.Port() == 0 || far.LocalAddr().String() != server.String() {
		t.Errorf("the connection is from %s to %s", far.RemoteAddr(), far.LocalAddr())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Dial(t.Context(), client, server); err == nil {
		t.Error("the listener is closed, and a connection is open")
	}
}

func TestPodOf(t *testing.T) {
	pod := func(annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: annotations}, Status: corev1.PodStatus{PodIP: "10.1.0.2"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 9090}}}}}}
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		ports       int
	}{
		"Server":  {map[string]string{"inject.istio.io/templates": "grpc-agent", "acp.io/grpc-servers": "xds"}, 1},
		"Sidecar": {map[string]string{"acp.io/grpc-servers": "xds"}, 0},
		"Agent":   {map[string]string{"inject.istio.io/templates": "grpc-agent"}, 0},
	} {
		if p, err := podOf(pod(tc.annotations)); err != nil || len(p.Ports) != tc.ports || p.Account != "default" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := podOf(&corev1.Pod{}); err == nil {
		t.Error("a pod without an address is in the mesh")
	}
}

func TestDetails(t *testing.T) {
	for want, err := range map[string]error{
		"via_upstream": nil,
		"rbac_access_denied_matched_policy[none]": status.Error(codes.PermissionDenied, "incoming RPC did not match an allow policy"),
		"rbac_access_denied_matched_policy[istio-system-acp-x-0]": status.Error(codes.PermissionDenied,
			`incoming RPC matched a deny policy "istio-system-acp-x-0"`),
	} {
		if got := details(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
