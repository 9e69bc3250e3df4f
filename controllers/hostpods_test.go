package controllers_test

import (
	"fmt"
	"slices"
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
	for _, p := range []*corev1.Pod{
		pod("injected", map[string]string{"sidecar.istio.io/status": `{"containers":["istio-proxy"]}`}),
		pod("redirected", map[string]string{"ambient.istio.io/redirection": "enabled"}),
		pod("undecided", map[string]string{"ambient.istio.io/redirection": "pending"}),
		bare,
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
	s.distributedBecause("two pods have no proxy", half, "default/bare, default/undecided")
	if m := s.message("m2"); strings.Contains(m, "injected") || strings.Contains(m, "redirected") || strings.Contains(m, "unscheduled") {
		t.Errorf("%q", m)
	}
	s.untilMemberStatus("it is a finding of the member", "m2", func(st v1alpha1.MemberClusterStatus) bool {
		return slices.ContainsFunc(st.Findings, func(f v1alpha1.MemberFinding) bool {
			return f.Code == preflight.UnproxiedPods && f.Severity == v1alpha1.FindingWarns && strings.Contains(f.Message, "default/bare")
		})
	})
	for _, p := range []*corev1.Pod{bare, pod("undecided", nil)} {
		if err := admin.Delete(s.ctx, p, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	s.distributed("every pod has a proxy", bothRealized)

	declare := func(text string) {
		t.Helper()
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("core.kubefed.io/v1beta1")
		u.SetKind("KubeFedCluster")
		u.SetNamespace(fedNS)
		u.SetName("m2")
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, federation.AnnotationIstio, text))
		if err := f.host.Patch(s.ctx, u, patch); err != nil {
			t.Fatal(err)
		}
	}
	declare(`{"dataplane": "sidecar", "version": "1.31.2", "strictMTLS": true}`)
	s.distributedBecause("nothing requires mutual TLS there", half, "no mesh-wide PeerAuthentication")
	create := func(o map[string]any) *unstructured.Unstructured {
		t.Helper()
		u := &unstructured.Unstructured{Object: o}
		s.until(u.GetKind()+" is created", func() string { // a new kind is not served at once
			if err := admin.Create(s.ctx, u); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
		return u
	}
	create(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": "peerauthentications.security.istio.io"},
		"spec": map[string]any{
			"group": "security.istio.io",
			"scope": "Namespaced",
			"names": map[string]any{
				"kind":     "PeerAuthentication",
				"listKind": "PeerAuthenticationList",
				"plural":   "peerauthentications",
				"singular": "peerauthentication",
			},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	})
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
	declare(declaredIstio)
	s.distributed("denies by name do not rely on it", bothRealized)
}
