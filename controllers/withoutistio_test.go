package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// TestMemberWithoutIstioNeedsNothingOfIstio checks that a member that declares no Istio gets no AuthorizationPolicy, that no resource of Istio's is
// realized there in Enforce, and that it need not serve the kind if its engine is not KubeFed: it is not quarantined, and continues to receive Cilium's
// policies.
func TestMemberWithoutIstioNeedsNothingOfIstio(t *testing.T) {
	f, _ := istioFleet(t)
	m1 := f.members["m1"].client
	createAll(t, m1, "deploy/rbac/direct/istio.yaml")
	s := enforcedBy(t, f, "meshed", v1alpha1.EnforcerIstio)
	s.distributed("it is realized in both", bothRealized)
	s.useEngine("m1", federation.EngineDirect)
	s.distributed("m1 has another engine", bothRealized)

	const none = `{"dataplane": "none"}`
	s.declareIstio("m1", none)
	s.distributed("m1 has no Istio", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberRealized})
	s.until("the message of m1 says why", func() string {
		if m := s.message("m1"); !strings.Contains(m, "declares that no Istio enforces there") {
			return m
		}
		return ""
	})
	s.until("m1 has no policy of Istio's", func() string {
		policy := target(federation.IstioPolicy, s.object())
		err := m1.Get(s.ctx, types.NamespacedName{Namespace: federation.IstioPolicy.Namespace, Name: s.object()}, policy)
		if !apierrors.IsNotFound(err) {
			return fmt.Sprint(policy.Object, err)
		}
		return ""
	})

	kind := &unstructured.Unstructured{}
	kind.SetAPIVersion("apiextensions.k8s.io/v1")
	kind.SetKind("CustomResourceDefinition")
	kind.SetName("authorizationpolicies.security.istio.io")
	if err := m1.Delete(s.ctx, kind); err != nil {
		t.Fatal(err)
	}
	half := map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending}
	plain := enforcedBy(t, f, "plain", v1alpha1.EnforcerCilium)
	plain.distributed("m1 gets Cilium's policies without Istio's kind", half)
	missing := func(st v1alpha1.MemberClusterStatus) bool {
		return slices.ContainsFunc(st.Findings, func(f v1alpha1.MemberFinding) bool { return f.Code == preflight.KindMissing })
	}

	// Without the declaration, the kind is required, which also shows that the kind is checked.
	s.declareIstio("m1", declaredIstio)
	s.untilMemberStatus("the kind is missing", "m1", func(st v1alpha1.MemberClusterStatus) bool {
		return st.State == v1alpha1.MemberClusterQuarantined && missing(st)
	})
	s.declareIstio("m1", none)
	s.untilMemberStatus("nothing is missing", "m1", func(st v1alpha1.MemberClusterStatus) bool {
		return st.State == v1alpha1.MemberClusterReady && !missing(st)
	})
	plain.alsoGrant("999")
	plain.distributed("changes reach m1 again", half)
	if m := plain.message("m1"); m != "" {
		t.Errorf("m1: %q", m)
	}

	// Nothing waits for what m1 answers about a kind that it need not serve, and for which nobody needs a permission there.
	for _, binding := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "acp-direct-istio"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "acp-adapter-istio"}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: federation.IstioPolicy.Namespace, Name: "acp-direct"}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: federation.IstioPolicy.Namespace, Name: "acp-adapter"}},
	} {
		if err := m1.Delete(s.ctx, binding); err != nil {
			t.Fatal(err)
		}
	}
	s.until("m1 is not unreachable without Istio's kind", func() string {
		s.pushOf(federation.IstioPolicy, s.object())
		for _, c := range s.protected().Status.Clusters {
			if string(c.Name) == "m1" && (c.State != v1alpha1.MemberPending || !strings.Contains(c.Message, "declares that no Istio enforces there")) {
				return fmt.Sprintf("%s: %s", c.State, c.Message)
			}
		}
		return ""
	})
	s.alsoGrant("999")
	s.until("m1 is known not to have the policy", func() string {
		s.pushOf(federation.IstioPolicy, s.object())
		_, o := s.federatedOf(federation.IstioPolicy, s.object())
		if ever := o.Meta.Annotations[federation.AnnotationEverPlaced]; ever != "m2" {
			return fmt.Sprintf("the members that may have it are %q", ever)
		}
		return ""
	})
	// Nothing waits for the kind either if somebody installs it there later: the resource was seen without an object.
	createAll(t, m1, "deploy/istio/authorizationpolicies.yaml")
	s.untilMemberStatus("it is unknown whether policies are left there", "m1", func(st v1alpha1.MemberClusterStatus) bool {
		return st.State == v1alpha1.MemberClusterReady && slices.ContainsFunc(st.Findings, func(f v1alpha1.MemberFinding) bool {
			return f.Code == preflight.IstioUndeclared && f.Severity == v1alpha1.FindingWarns
		})
	})
	if err := f.restart(); err != nil { // it has not read that the member lacked the kind
		t.Fatal(err)
	}
	s.alsoGrant("777")
	s.distributed("m1 is as before", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberRealized})
	s.setMode(v1alpha1.ModeObserve)
	s.until("the policy is removed", func() string {
		s.pushOf(federation.IstioPolicy, s.object())
		if u, _ := s.federatedOf(federation.IstioPolicy, s.object()); u != nil {
			return fmt.Sprint(u.Object)
		}
		return ""
	})
	if err := s.host.Delete(s.ctx, s.protected()); err != nil {
		t.Fatal(err)
	}
	s.until("the resource is gone", func() string {
		err := s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &v1alpha1.ProtectedResource{})
		if !apierrors.IsNotFound(err) {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
}
