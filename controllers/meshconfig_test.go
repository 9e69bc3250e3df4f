package controllers_test

import (
	"fmt"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// TestPoliciesOutsideTheMeshAreReported checks that no resource of Istio's is realized in a member whose Istio has another root namespace, although
// nobody has declared this, also if only a revision of it has, or while the mesh configuration of an istiod is unknown, with the rights that the adapter
// has there.
func TestPoliciesOutsideTheMeshAreReported(t *testing.T) {
	f, admin := istioFleet(t)
	s := enforcedBy(t, f, "rooted", v1alpha1.EnforcerIstio)
	s.distributed("it is realized", bothRealized)
	half := map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	must(admin.Update(s.ctx, meshConfigMap("istio", "rootNamespace: mesh-config\n")))
	s.distributedBecause("another namespace is the root", half, "ConfigMap istio-system/istio names the root namespace mesh-config")
	s.untilMemberStatus("it is a finding of the member", "m2", func(st v1alpha1.MemberClusterStatus) bool {
		return slices.ContainsFunc(st.Findings, func(f v1alpha1.MemberFinding) bool {
			return f.Code == preflight.PoliciesNotInMesh && f.Severity == v1alpha1.FindingFails
		})
	})
	must(admin.Update(s.ctx, meshConfigMap("istio", meshConfig+"discoverySelectors: [{matchLabels: {mesh: inside}}]\n")))
	s.distributedBecause("Istio does not read the namespace", half, "do not select the namespace istio-system")
	must(admin.Update(s.ctx, meshConfigMap("istio", meshConfig)))
	s.distributed("it is the root", bothRealized)

	const shared = "istio-shared"
	must(admin.Update(s.ctx, istiodDeployment("istiod", corev1.EnvVar{Name: "SHARED_MESH_CONFIG", Value: shared})))
	s.distributedBecause("a shared configuration is missing", half, "there is no ConfigMap istio-system/"+shared)
	must(admin.Create(s.ctx, meshConfigMap(shared, "rootNamespace: shared-config\n")))
	s.distributed("the configuration of istiod takes precedence", bothRealized)
	must(admin.Update(s.ctx, meshConfigMap("istio", "trustDomain: cluster.local\n")))
	s.distributedBecause("the shared one names the root", half, "ConfigMap istio-system/"+shared+" names the root namespace shared-config")
	must(admin.Update(s.ctx, meshConfigMap("istio", meshConfig)))
	must(admin.Update(s.ctx, istiodDeployment("istiod")))
	s.distributed("there is none", bothRealized)

	side := admissionv1.SideEffectClassNone
	canary := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "istio-sidecar-injector-canary", Labels: map[string]string{"istio.io/rev": "canary"}},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "rev.namespace.sidecar-injector.istio.io", SideEffects: &side, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "istio-system", Name: "istiod-canary"}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"istio.io/rev": "canary"}},
		}},
	}
	must(admin.Create(s.ctx, canary))
	s.distributedBecause("the istiod of a revision is missing", half, "there is no Deployment istio-system/istiod-canary")
	must(createIstiod(s.ctx, admin, istiodDeployment("istiod-canary", corev1.EnvVar{Name: "REVISION", Value: "canary"})))
	s.distributedBecause("the configuration of a revision is missing", half, "there is no ConfigMap istio-system/istio-canary")
	other := meshConfigMap("istio-canary", "rootNamespace: canary-config\n")
	must(admin.Create(s.ctx, other))
	s.distributedBecause("the revision has another root", half, "ConfigMap istio-system/istio-canary names the root namespace canary-config")
	must(admin.Delete(s.ctx, canary))
	s.distributed("nothing is injected by it", bothRealized)

	must(admin.Delete(s.ctx, meshConfigMap("istio", "")))
	s.distributedBecause("the mesh configuration is unknown", half, "there is no ConfigMap istio-system/istio")
	registration := &unstructured.Unstructured{}
	registration.SetAPIVersion("core.kubefed.io/v1beta1")
	registration.SetKind("KubeFedCluster")
	registration.SetNamespace(fedNS)
	registration.SetName("m2")
	must(s.host.Patch(s.ctx, registration, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "istio-system"}}}`, federation.AnnotationIstioRoot))))
	s.distributed("the member declares its root namespace", bothRealized)
}
