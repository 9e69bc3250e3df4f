package controllers_test

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
)

// opened puts a policy into m2, waits for what it makes of an enforced resource there, removes it, and waits again.
func (s *story) opened(policy client.Object, want v1alpha1.MemberState, by string) {
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
	s.untilStates("it is seen", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": want})
	if m := s.message("m2"); !strings.Contains(m, by) {
		s.Errorf("the message does not name the policy: %q", m)
	}
	if err := m2.Delete(s.ctx, policy); err != nil {
		s.Fatal(err)
	}
	s.untilStates("it is gone", bothRealized)
}

// Allows of several policies add up, so a resource is not enforced as its policies say while another one opens its pods.
func TestPoliciesOfOthersThatOpenAResourceAreTold(t *testing.T) {
	s := enforced(t, "opened")
	label := map[string]string{"com.trip/opened": "bobs"}
	s.opened(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: label}, Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}},
		v1alpha1.MemberOverridden, "NetworkPolicy default/web")

	rule := map[string]any{"endpointSelector": map[string]any{"matchLabels": map[string]any{"k8s:com.trip/opened": "bobs"}},
		"ingress": []any{map[string]any{"fromEntities": []any{"cluster"}}}}
	disguised := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy", "spec": rule,
		"metadata": map[string]any{"name": "acp-no-unit-has-this", "labels": map[string]any{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}}}}
	s.opened(disguised, v1alpha1.MemberOverridden, "acp-no-unit-has-this")

	// Once identities are known, only pods that are there count: none of the resource runs in that namespace.
	m2 := s.members["m2"].client
	identity := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumIdentity", "metadata": map[string]any{"name": "71001"},
		"security-labels": map[string]any{"k8s:com.trip/opened": "bobs", "k8s:io.kubernetes.pod.namespace": "kube-public"}}}
	if err := m2.Create(s.ctx, identity); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m2.Delete(s.ctx, identity); err != nil {
			t.Error(err)
		}
	}()
	namespaced := func(ns string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
			"metadata": map[string]any{"namespace": ns, "name": "all"}, "spec": map[string]any{"endpointSelector": map[string]any{}, "ingress": rule["ingress"]}}}
	}
	elsewhere := namespaced("default")
	if err := m2.Create(s.ctx, elsewhere); err != nil {
		t.Fatal(err)
	}
	s.opened(namespaced("kube-public"), v1alpha1.MemberOverridden, "CiliumNetworkPolicy kube-public/all") // and it is the other one that stays
	if err := m2.Delete(s.ctx, elsewhere); err != nil {
		t.Fatal(err)
	}
}
