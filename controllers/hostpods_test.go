package controllers_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// TestHostNetworkPodsAreReported checks that a member with a pod of an enforced resource on its node's network, which no policy selects, is
// not realized, and that the message names the pod.
func TestHostNetworkPodsAreReported(t *testing.T) {
	s := enforced(t, "hostpods")
	pod := func(name string, host bool) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"com.trip/hostpods": "bobs"}},
			Spec: corev1.PodSpec{HostNetwork: host, Containers: []corev1.Container{{Name: "redis", Image: "redis"}}}}
	}
	for _, p := range []*corev1.Pod{pod("hosted", true), pod("ordinary", false)} {
		p.Labels["com.trip/hostpods"] = strings.TrimPrefix(string(s.resource()), "trnv1:rsc:trip-com:hostpods:clusters:")
		if err := s.members["m2"].client.Create(s.ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	s.untilStates("one pod is open", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending})
	if m := s.message("m2"); !strings.Contains(m, "default/hosted") || strings.Contains(m, "ordinary") {
		t.Errorf("%q", m)
	}
	if err := s.members["m2"].client.Delete(s.ctx, pod("hosted", true)); err != nil {
		t.Fatal(err)
	}
	s.untilStates("it is gone", bothRealized)
}

// TestPodsWithoutProxyAreReported checks that a member is not realized while a pod of a resource that Istio enforces has no proxy, and that
// the message names the pod; nor while the member declares mutual TLS that nothing requires.
func TestPodsWithoutProxyAreReported(t *testing.T) {
	f, admin := istioFleet(t)
	s := enforcedBy(t, f, "proxies", v1alpha1.EnforcerIstio)
	s.distributed("it is realized", bothRealized)
	pod := func(name string, annotations map[string]string) *corev1.Pod {
		value := strings.TrimPrefix(string(s.resource()), "trnv1:rsc:trip-com:proxies:clusters:")
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"com.trip/proxies": value}, Annotations: annotations},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "redis", Image: "redis"}}},
		}
	}
	bare := pod("bare", nil)
	hosted := pod("hosted", map[string]string{"sidecar.istio.io/status": `{"containers":["istio-proxy"]}`}) // copied from a pod with a sidecar
	hosted.Spec.HostNetwork = true
	for _, p := range []*corev1.Pod{
		pod("injected", map[string]string{"sidecar.istio.io/status": `{"containers":["istio-proxy"]}`}),
		pod("redirected", map[string]string{"ambient.istio.io/redirection": "enabled"}),
		pod("undecided", map[string]string{"ambient.istio.io/redirection": "pending"}),
		pod("ingress", map[string]string{"ambient.istio.io/redirection": "enabled", "ambient.istio.io/bypass-inbound-capture": "true"}),
		bare,
		hosted,
	} {
		if err := admin.Create(s.ctx, p); err != nil {
			t.Fatal(err)
		}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.9", PodIPs: []corev1.PodIP{{IP: "10.0.0.9"}}}
		if err := admin.Status().Update(s.ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.Create(s.ctx, pod("unscheduled", nil)); err != nil { // it has no address, so nobody can connect to it
		t.Fatal(err)
	}
	half := map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending}
	s.distributedBecause("three pods have no proxy, and one bypasses it", half, "default/bare, default/hosted, default/ingress, default/undecided")
	if m := s.message("m2"); strings.Contains(m, "injected") || strings.Contains(m, "redirected") || strings.Contains(m, "unscheduled") {
		t.Errorf("%q", m)
	}
	s.untilMemberStatus("it is a finding of the member", "m2", func(st v1alpha1.MemberClusterStatus) bool {
		return slices.ContainsFunc(st.Findings, func(f v1alpha1.MemberFinding) bool {
			return f.Code == preflight.UnproxiedPods && f.Severity == v1alpha1.FindingWarns && strings.Contains(f.Message, "default/bare")
		})
	})
	for _, p := range []*corev1.Pod{bare, hosted, pod("undecided", nil), pod("ingress", nil)} {
		if err := admin.Delete(s.ctx, p, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	s.distributed("every pod has a proxy", bothRealized)

	const stated = "its owner states that a pod's gRPC servers enforce policies"
	servers := pod("points-5d8f-x", map[string]string{"sidecar.istio.io/status": "{}", "inject.istio.io/templates": "grpc-agent", "acp.io/grpc-servers": "xds"})
	servers.Labels["pod-template-hash"] = "5d8f"
	servers.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "points-5d8f", UID: "1", Controller: new(true)},
	}
	if err := admin.Create(s.ctx, servers); err != nil {
		t.Fatal(err)
	}
	servers.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.10", PodIPs: []corev1.PodIP{{IP: "10.0.0.10"}}}
	if err := admin.Status().Update(s.ctx, servers); err != nil {
		t.Fatal(err)
	}
	s.untilMemberStatus(stated, "m2", func(st v1alpha1.MemberClusterStatus) bool {
		return slices.ContainsFunc(st.Findings, func(f v1alpha1.MemberFinding) bool {
			return f.Code == preflight.GRPCServersStated && f.Severity == v1alpha1.FindingWarns && strings.Contains(f.Message, ": default/points;")
		})
	})
	s.distributed(stated, bothRealized)

	s.declareIstio("m2", `{"dataplane": "sidecar", "version": "1.31.2", "strictMTLS": true}`)
	s.distributedBecause("nothing requires mutual TLS there", half, "no mesh-wide PeerAuthentication")
	create := func(o map[string]any) { s.createIn(admin, o) }
	create(definition("security.istio.io", "PeerAuthentication", "peerauthentications", "Namespaced"))
	authentication := func(namespace, name, mode string) map[string]any {
		return map[string]any{
			"apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication", "metadata": map[string]any{"namespace": namespace, "name": name},
			"spec": map[string]any{"mtls": map[string]any{"mode": mode}},
		}
	}
	create(authentication("istio-system", "default", "STRICT"))
	s.distributed("the whole mesh requires it", bothRealized)
	create(authentication("default", "legacy", "PERMISSIVE"))
	s.distributedBecause("a namespace does not", half, "default/legacy")
	s.declareIstio("m2", declaredIstio)
	s.distributed("denies by name do not rely on it", bothRealized)
}

// declareIstio changes what the registration of a member declares about its Istio.
func (s *scenario) declareIstio(member, text string) {
	s.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("core.kubefed.io/v1beta1")
	u.SetKind("KubeFedCluster")
	u.SetNamespace(fedNS)
	u.SetName(member)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, federation.AnnotationIstio, text))
	if err := s.host.Patch(s.ctx, u, patch); err != nil {
		s.Fatal(err)
	}
}

// createIn creates an object with a client, whose kind may not be served yet.
func (s *scenario) createIn(c client.Client, o map[string]any) *unstructured.Unstructured {
	s.Helper()
	u := &unstructured.Unstructured{Object: o}
	s.until(u.GetKind()+" is created", func() string {
		if err := c.Create(s.ctx, u); err != nil && !apierrors.IsAlreadyExists(err) {
			return err.Error()
		}
		return ""
	})
	return u
}

// definition returns a CustomResourceDefinition of a kind without a schema.
func definition(group, kind, plural, scope string) map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group,
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, a test"}}, // which groups of kubernetes.io and k8s.io need
		"spec": map[string]any{
			"group": group,
			"scope": scope,
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}
}

// TestWaypointsAndZtunnelAreReported checks that a member is not realized while connections to a pod of a resource that Istio enforces pass a
// waypoint, nor in ambient before istiod reports that ztunnel gets the policy as it is written; the adapter's account there has the rights of
// an ordinary member.
func TestWaypointsAndZtunnelAreReported(t *testing.T) {
	f, admin := istioFleet(t)
	s := enforcedBy(t, f, "waypoints", v1alpha1.EnforcerIstio)
	s.distributed("it is realized", bothRealized)
	half := map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending}

	value := strings.TrimPrefix(string(s.resource()), "trnv1:rsc:trip-com:waypoints:clusters:")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "redis-0", Labels: map[string]string{"com.trip/waypoints": value, "app": "redis"},
			Annotations: map[string]string{"ambient.istio.io/redirection": "enabled"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "redis", Image: "redis"}}},
	}
	if err := admin.Create(s.ctx, pod); err != nil {
		t.Fatal(err)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.9", PodIPs: []corev1.PodIP{{IP: "10.0.0.9"}}}
	if err := admin.Status().Update(s.ctx, pod); err != nil {
		t.Fatal(err)
	}
	s.untilMemberStatus("ztunnel protects a pod in a member that declares sidecars", "m2", func(st v1alpha1.MemberClusterStatus) bool {
		return slices.ContainsFunc(st.Findings, func(f v1alpha1.MemberFinding) bool {
			return f.Code == preflight.PodsInAmbient && strings.Contains(f.Message, "default/redis-0")
		})
	})
	s.distributed("rules about connections are enforced", bothRealized)

	s.declareIstio("m2", `{"dataplane": "ambient", "version": "1.31.2"}`)
	s.distributedBecause("istiod has not reported", half, "istiod has not reported")
	report := func(what string, want map[string]v1alpha1.MemberState, text, status, reason, message string) {
		t.Helper()
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("security.istio.io/v1")
		u.SetKind("AuthorizationPolicy")
		if err := admin.Get(s.ctx, types.NamespacedName{Namespace: federation.IstioPolicy.Namespace, Name: s.object()}, u); err != nil {
			t.Fatal(err)
		}
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "ZtunnelAccepted", "status": status, "reason": reason, "message": message, "observedGeneration": strconv.FormatInt(u.GetGeneration(), 10),
		}}}
		if err := admin.Status().Update(s.ctx, u); err != nil {
			t.Fatal(err)
		}
		s.distributedBecause(what, want, text)
	}
	report("a part is left out", half, "ztunnel does not support HTTP", "True", "UnsupportedValue", "ztunnel does not support HTTP")
	report("ztunnel gets the policy", bothRealized, "", "True", "Accepted", "attached to ztunnel")

	s.createIn(admin, definition("gateway.networking.k8s.io", "GatewayClass", "gatewayclasses", "Cluster"))
	s.createIn(admin, definition("gateway.networking.k8s.io", "Gateway", "gateways", "Namespaced"))
	gateway := s.createIn(admin, map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": map[string]any{"namespace": "default", "name": "waypoint"},
		"spec": map[string]any{"gatewayClassName": "istio-waypoint"},
	})
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "redis", Labels: map[string]string{"istio.io/use-waypoint": "waypoint"}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "redis"}, Ports: []corev1.ServicePort{{Port: 6379}}},
	}
	if err := admin.Create(s.ctx, service); err != nil {
		t.Fatal(err)
	}
	s.distributedBecause("a waypoint is in front of the pod", half, "default/redis-0 (default/waypoint)")
	s.untilMemberStatus("it is a finding of the member", "m2", func(st v1alpha1.MemberClusterStatus) bool {
		return slices.ContainsFunc(st.Findings, func(f v1alpha1.MemberFinding) bool {
			return f.Code == preflight.PodsBehindWaypoint && f.Severity == v1alpha1.FindingWarns && strings.Contains(f.Message, "default/waypoint")
		})
	})
	service.Labels["istio.io/use-waypoint"] = "none"
	if err := admin.Update(s.ctx, service); err != nil {
		t.Fatal(err)
	}
	s.distributed("the Service opts out", bothRealized)
	if err := admin.Delete(s.ctx, gateway); err != nil {
		t.Fatal(err)
	}
}
