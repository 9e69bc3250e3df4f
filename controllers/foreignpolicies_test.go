package controllers_test

import (
	"context"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
)

// untilOpenedBy creates a policy in m2, waits for the resulting state of the resource there, deletes it, and waits until both are realized.
func (s *scenario) untilOpenedBy(policy client.Object, want v1alpha1.MemberState, by string) {
	s.Helper()
	m2 := s.members["m2"].client
	if err := m2.Create(s.ctx, policy); err != nil {
		s.Fatal(err)
	}
	defer func() {
		if err := client.IgnoreNotFound(m2.Delete(s.ctx, policy)); err != nil {
			s.Error(err)
		}
	}()
	s.untilStates("the policy is reported", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": want})
	if m := s.message("m2"); !strings.Contains(m, by) {
		s.Errorf("the message does not name the policy: %q", m)
	}
	if err := m2.Delete(s.ctx, policy); err != nil {
		s.Fatal(err)
	}
	s.untilStates("it is gone", bothRealized)
}

// TestForeignPoliciesThatOpenAResourceAreReported checks that a resource is not realized while a foreign policy opens its pods, because the
// allows of several policies add up.
func TestForeignPoliciesThatOpenAResourceAreReported(t *testing.T) {
	s := enforced(t, "opened")
	label := map[string]string{"com.trip/opened": "bobs"}
	s.untilOpenedBy(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: label}, Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}},
		v1alpha1.MemberOverridden, "NetworkPolicy default/web")

	rule := map[string]any{"endpointSelector": map[string]any{"matchLabels": map[string]any{"k8s:com.trip/opened": "bobs"}},
		"ingress": []any{map[string]any{"fromEntities": []any{"cluster"}}}}
	disguised := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy", "spec": rule,
		"metadata": map[string]any{"name": "acp-no-unit-has-this", "labels": map[string]any{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}}}}
	s.untilOpenedBy(disguised, v1alpha1.MemberOverridden, "acp-no-unit-has-this")

	// Once identities are known, only existing pods count: no pod of the resource runs in that namespace.
	m2 := s.members["m2"].client
	identity := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumIdentity", "metadata": map[string]any{"name": "71001"},
			"security-labels": map[string]any{"k8s:com.trip/opened": "bobs", "k8s:io.kubernetes.pod.namespace": "kube-public"}},
	}
	if err := m2.Create(s.ctx, identity); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m2.Delete(s.ctx, identity); err != nil {
			t.Error(err)
		}
	}()
	namespaced := func(ns string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cilium.io/v2",
			"kind":       "CiliumNetworkPolicy",
			"metadata": map[string]any{
				"namespace": ns,
				"name":      "all",
			},
			"spec": map[string]any{"endpointSelector": map[string]any{}, "ingress": rule["ingress"]},
		}}
	}
	elsewhere := namespaced("default")
	if err := m2.Create(s.ctx, elsewhere); err != nil {
		t.Fatal(err)
	}
	s.untilOpenedBy(namespaced("kube-public"), v1alpha1.MemberOverridden, "CiliumNetworkPolicy kube-public/all") // elsewhere stays, and opens nothing
	if err := m2.Delete(s.ctx, elsewhere); err != nil {
		t.Fatal(err)
	}
}

// inM2 creates an object in m2 and deletes it at the end of the test.
func (s *scenario) inM2(o client.Object) {
	s.Helper()
	m2 := s.members["m2"].client
	if err := m2.Create(s.ctx, o); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := client.IgnoreNotFound(m2.Delete(context.Background(), o)); err != nil {
			s.Error(err)
		}
	})
}

// TestForeignPoliciesThatOpenNothingAreNotReported checks that policies that allow only what ACP allows, and policies for workloads that are
// not closed, are ignored.
func TestForeignPoliciesThatOpenNothingAreNotReported(t *testing.T) {
	s := enforced(t, "ordinary")
	identity := func(name string, labels map[string]any) {
		s.inM2(
			&unstructured.Unstructured{
				Object: map[string]any{
					"apiVersion":      "cilium.io/v2",
					"kind":            "CiliumIdentity",
					"metadata":        map[string]any{"name": name},
					"security-labels": labels,
				},
			},
		)
	}
	identity("71011", map[string]any{"k8s:com.trip/ordinary": "bobs", "k8s:io.kubernetes.pod.namespace": "default", "k8s:io.cilium.k8s.policy.cluster": "m2"})
	identity(
		"71012",
		map[string]any{
			"k8s:com.trip/appid":               "888",
			"k8s:app":                          "prometheus",
			"k8s:io.kubernetes.pod.namespace":  "default",
			"k8s:io.cilium.k8s.policy.cluster": "m2",
		},
	)
	allow := func(name string, port int) *networkingv1.NetworkPolicy {
		at := intstr.FromInt(port)
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"com.trip/ordinary": "bobs"}}, Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "prometheus"}}}},
				Ports: []networkingv1.NetworkPolicyPort{{Port: &at}}}}}}
	}
	s.inM2(allow("a-prometheus", 6379))
	s.inM2(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b-web"}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}})
	// The policy that opens the resource has the last name, so the others were evaluated before, and none of them is named.
	s.untilOpenedBy(allow("z-other-port", 9121), v1alpha1.MemberOverridden, "NetworkPolicy default/z-other-port")
}

// TestClusterNetworkPoliciesThatOpenAResourceAreReported checks that a ClusterNetworkPolicy of the Admin tier, which precedes ACP's policies,
// is reported where the member's agents apply the kind or may apply it. Members need not have the kind.
func TestClusterNetworkPoliciesThatOpenAResourceAreReported(t *testing.T) {
	s := enforced(t, "tiers")
	s.inM2(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":        "clusternetworkpolicies.policy.networking.k8s.io",
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, a test"},
		},
		"spec": map[string]any{
			"group": "policy.networking.k8s.io",
			"scope": "Cluster",
			"names": map[string]any{
				"plural":   "clusternetworkpolicies",
				"singular": "clusternetworkpolicy",
				"kind":     "ClusterNetworkPolicy",
				"listKind": "ClusterNetworkPolicyList",
			},
			"versions": []any{map[string]any{"name": "v1alpha2", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}})
	admin := &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "policy.networking.k8s.io/v1alpha2",
			"kind":       "ClusterNetworkPolicy",
			"metadata":   map[string]any{"name": "monitoring"},
			"spec": map[string]any{
				"tier":     "Admin",
				"priority": int64(1),
				"subject":  map[string]any{"pods": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"com.trip/tiers": "bobs"}}}},
				"ingress":  []any{map[string]any{"action": "Accept", "from": []any{map[string]any{"namespaces": map[string]any{}}}}},
			},
		},
	}
	m2 := s.members["m2"].client
	s.until("the kind is served", func() string {
		if err := m2.Create(s.ctx, admin.DeepCopy()); err != nil {
			return err.Error()
		}
		return ""
	})
	// By default the agents ignore the kind. The report of another policy shows that m2 was read meanwhile.
	label := map[string]string{"com.trip/tiers": "bobs"}
	s.untilOpenedBy(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: label}, Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}},
		v1alpha1.MemberOverridden, "NetworkPolicy default/web")
	s.setting("m2", "enable-k8s-cluster-network-policy", "true")
	s.untilStates("agents apply it", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberOverridden})
	if m := s.message("m2"); !strings.Contains(m, "ClusterNetworkPolicy monitoring") {
		t.Errorf("the message does not name the policy: %q", m)
	}
	s.setting("m2", "enable-k8s-cluster-network-policy", "false")
	s.untilStates("agents ignore it again", bothRealized)
	s.setting("m2", "enable-k8s-cluster-network-policy", "perhaps")
	s.untilStates("it is unknown whether agents apply it", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberOverridden})
	if err := m2.Delete(s.ctx, admin); err != nil {
		t.Fatal(err)
	}
	s.untilStates("it is gone", bothRealized)
}
