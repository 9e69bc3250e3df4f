package istio

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"testing"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

const (
	// strict and plain are the namespaces of the servers: with mutual TLS, and without TLS.
	strict, plain = "strict", "plain"
	serverWorlds  = 60
	serverBatch   = 10
	// requestsEach is the number of requests to each server.
	requestsEach  = 16
	leastRequests = 3000
)

// startForServers starts a control plane with a namespace in which mutual TLS is required and one in which it is not, and returns it with a client of
// the servers, which have certificates of the client's authority.
func startForServers(t *testing.T) (*controlPlane, *caller) {
	t.Helper()
	p := startControlPlane(t)
	p.createNamespaces(t, strict, plain)
	if err := p.client.Create(t.Context(), object("security.istio.io", "PeerAuthentication", strict, "default", nil,
		map[string]any{"mtls": map[string]any{"mode": "STRICT"}})); err != nil {
		t.Fatal(err)
	}
	ca, err := newAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.issue("cluster.local/ns/"+strict+"/sa/server", "server"); err != nil {
		t.Fatal(err)
	}
	return p, &caller{authority: ca, issued: map[string]tls.Certificate{}}
}

// TestServersAgree compares decisions with requests to gRPC servers, which enforce what istiod sends them.
func TestServersAgree(t *testing.T) {
	p, c := startForServers(t)
	requests, allowed, refused, closed := 0, 0, 0, 0
	for from := *firstSeed; from < *firstSeed+serverWorlds; from += serverBatch {
		worlds := newWorlds(t, members, from, serverBatch, nil)
		for _, w := range worlds {
			if err := p.write(t.Context(), w.objects); err != nil {
				t.Fatal(err)
			}
		}
		for i, w := range worlds {
			for j, labels := range w.generator.Destinations() {
				side, err := sidecarOf(t.Context(), p.istiod, labels)
				if err != nil {
					t.Fatal(err)
				}
				if allowsNobody(side.http) {
					closed++
				}
				for _, in := range []string{strict, plain} {
					x := pod{in: in, name: fmt.Sprintf("w%d-%d", w.seed, j), labels: labels,
						at: netip.AddrFrom4([4]byte{10, 200, byte(i), byte(2*j + map[string]int{strict: 0, plain: 1}[in])})} //nolint:gosec // small
					s := x.start(t, p, c.authority)
					for range requestsEach {
						q := w.generator.Connection(w.s, labels, w.member)
						if q.Unmeshed || (q.Traffic.Principal != "") != (in == strict) {
							continue
						}
						q.Query.Port = istiotest.Pick(w.generator, serverPorts...)
						q.Query.Method, q.Query.Path = "POST", istiotest.Pick(w.generator, requestPaths...)
						q.Traffic.Port, q.Traffic.Method, q.Traffic.Path = q.Query.Port, q.Query.Method, q.Query.Path
						got, err := c.request(t.Context(), s, q.Traffic)
						if err != nil {
							t.Fatal(err)
						}
						effective := w.s.DecideEffective(&q.Query)
						if got != effective.Verdict.LetsThrough() {
							t.Fatalf("seed %d in %s: the server lets it through: %v; decided is %s (%s): %+v to %v",
								w.seed, w.member, got, effective.Verdict, effective.Explain(), q, labels)
						}
						if evaluated, err := passes(side.http, q.Traffic); err != nil || evaluated != got {
							t.Fatalf("seed %d: the server lets it through: %v; the evaluator says %v (%v): %+v", w.seed, got, evaluated, err, q)
						}
						if requests++; got {
							allowed++
						} else {
							refused++
						}
					}
					s.grpc.Stop()
					x.remove(t, p)
				}
			}
		}
		if err := p.clear(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d requests: %d let through, %d refused; %d pods that nobody may connect to", requests, allowed, refused, closed)
	if closed < 10 || requests < leastRequests || allowed < leastRequests/5 || refused < leastRequests/5 {
		t.Error("too few requests were compared")
	}
}

// allowsNobody reports whether a policy closes the pod and no client can match it.
func allowsNobody(filters []*rbacv3.RBAC) bool {
	for _, f := range filters {
		if f == nil || f.GetAction() != rbacv3.RBAC_ALLOW {
			continue
		}
		for _, client := range []string{"cluster.local/ns/a/sa/app-1", ""} {
			for _, p := range f.GetPolicies() {
				if yes, err := anyOf(p.GetPrincipals(), istiotest.Traffic{Principal: client}, principal); yes || err != nil {
					return false
				}
			}
		}
		return true
	}
	return false
}

// createNamespaces creates namespaces.
func (p *controlPlane) createNamespaces(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := p.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
}

// pod is a pod with a server.
type pod struct {
	in, name string
	labels   map[string]string
	at       netip.Addr
}

// objects returns the pod and its service, which tell istiod the address and the ports.
func (x *pod) objects() (*corev1.Pod, *corev1.Service) {
	labels := map[string]string{"app": x.name}
	for k, v := range x.labels {
		labels[k] = v
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: x.in, Name: x.name, Labels: labels},
		Spec: corev1.PodSpec{NodeName: "node", ServiceAccountName: "default", Containers: []corev1.Container{{Name: "server", Image: "server"}}}}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: x.in, Name: x.name}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": x.name}}}
	for _, port := range serverPorts {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("grpc-", port), Port: int32(port), TargetPort: intstr.FromInt32(int32(port))})
	}
	return p, s
}

// start creates the pod's objects and starts its server.
func (x *pod) start(t testing.TB, p *controlPlane, ca *authority) *server {
	t.Helper()
	object, service := x.objects()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: x.in, Name: "default"}}
	if err := client.IgnoreAlreadyExists(p.client.Create(t.Context(), account)); err != nil {
		t.Fatal(err)
	}
	if err := p.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := p.client.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	object.Status = runningAt(x.at.String())
	if err := p.client.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	s, err := newServer(p.istiod.Target(), ca.dir, x.in, x.name, x.at, object.Labels)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.grpc.Stop)
	if err := s.untilServing(); err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	return s
}

// remove deletes the pod's objects.
func (x *pod) remove(t *testing.T, p *controlPlane) {
	t.Helper()
	object, service := x.objects()
	for _, o := range []client.Object{object, service} {
		if err := p.client.Delete(context.WithoutCancel(t.Context()), o, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
}
