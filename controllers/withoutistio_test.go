package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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
}
