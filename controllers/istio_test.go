package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/membership"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/testenv"
)

// declaredIstio is the declaration of Istio in the registrations of these tests.
const declaredIstio = `{"dataplane": "sidecar", "version": "1.31.2"}`

// meshConfig is the configuration of the meshes of these tests, with the root namespace to which policies are distributed.
const meshConfig = "rootNamespace: istio-system\ntrustDomain: cluster.local\n"

// meshConfigMap returns the ConfigMap with the configuration of a mesh.
func meshConfigMap(name, config string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: federation.IstioPolicy.Namespace, Name: name}, Data: map[string]string{"mesh": config}}
}

// istiodDeployment returns the Deployment of an istiod with some environment variables.
func istiodDeployment(name string, env ...corev1.EnvVar) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: federation.IstioPolicy.Namespace, Name: name}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "discovery", Image: "docker.io/istio/pilot:1.31.2", Env: env}}}}}}
}

// createIstiod creates the Deployment of an istiod, of which a pod is available.
func createIstiod(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	if err := c.Create(ctx, d); err != nil {
		return err
	}
	d.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	return c.Status().Update(ctx, d)
}

// istioFleet returns a fleet whose host propagates Istio's policies. m1 has Cilium and Istio. m2 has only Istio, and joined as with `kubectl
// acp cluster join --enforcer istio`; its client has the rights of KubeFed's account there, and admin those of its administrator.
func istioFleet(t *testing.T) (f *fleet, admin client.Client) {
	t.Helper()
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "deploy/kubefed/istio", "controllers/testdata/host"}, "m1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root := func() *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: federation.IstioPolicy.Namespace}}
	}
	must(f.host.Create(ctx, root()))
	createAll(t, f.host, "deploy/kubefed/istio/3-roles.yaml")
	m1 := f.members["m1"]
	createAll(t, m1.client, "deploy/istio/authorizationpolicies.yaml")
	createAll(t, m1.client, "deploy/istio/roles.yaml")

	server := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/istio"}})
	if admin, err = client.New(server.Config, client.Options{Scheme: f.scheme}); err != nil {
		t.Fatal(err)
	}
	must(admin.Create(ctx, root()))
	for _, c := range []client.Client{m1.client, admin} {
		must(c.Create(ctx, meshConfigMap("istio", meshConfig)))
		must(createIstiod(ctx, c, istiodDeployment("istiod")))
	}
	m2 := &memberServer{server: server}
	m2.proxy, err = testenv.NewProxy(server)
	must(err)
	t.Cleanup(func() { _ = m2.proxy.Close() })
	host, err := membership.NewHost(f.hostConfig, fedNS, acpNS)
	must(err)
	join := &membership.Join{Host: host, Member: server.Config, Lifetime: 24 * time.Hour, Now: time.Now, Cluster: federation.Cluster{
		Name: "m2", Endpoint: "https://" + m2.proxy.Address(), CABundle: server.Config.CAData, Enforcer: string(v1alpha1.EnforcerIstio)}}
	found, err := join.Run(ctx)
	if err != nil {
		t.Fatalf("join m2: %v, findings %+v", err, found)
	}
	secret := &corev1.Secret{}
	must(f.host.Get(ctx, types.NamespacedName{Namespace: fedNS, Name: federation.PusherSecretName("m2")}, secret))
	pusher := rest.AnonymousClientConfig(server.Config)
	pusher.BearerToken = string(secret.Data["token"])
	m2.client, err = client.New(pusher, client.Options{Scheme: f.scheme})
	must(err)
	f.members["m2"] = m2

	for _, m := range []string{"m1", "m2"} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("core.kubefed.io/v1beta1")
		u.SetKind("KubeFedCluster")
		u.SetNamespace(fedNS)
		u.SetName(m)
		must(
			f.host.Patch(
				ctx,
				u,
				client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, federation.AnnotationIstio, declaredIstio)),
			),
		)
	}
	must(f.restart()) // the adapter would otherwise discover Istio's kind only with its next check
	return f, admin
}

// createAll creates the objects of a YAML file, which is relative to the repository's root, other than those that are there.
func createAll(t *testing.T, c client.Client, file string) {
	t.Helper()
	docs, err := documents(filepath.Join(testenv.Root(), file))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range docs {
		if err := c.Create(context.Background(), u); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

// enforcedBy creates a scenario whose class names these enforcers, with an enforced resource and one grant to app 888.
func enforcedBy(t *testing.T, f *fleet, service string, enforcers ...v1alpha1.EnforcerName) *scenario {
	t.Helper()
	s := newScenario(t, f, service)
	change(s, s.host, &v1alpha1.ResourceClass{}, service, func(c *v1alpha1.ResourceClass) { c.Spec.Enforcers = enforcers })
	change(s, s.host, &v1alpha1.SubjectClass{}, service, func(c *v1alpha1.SubjectClass) { c.Spec.ServiceAccountTemplate = "app-{id}" })
	s.protect(v1alpha1.ModeEnforce)
	s.grant(s.statement("one", "888"))
	return s
}

// distributed acts as KubeFed for the objects of both enforcers until the members have the wanted states.
func (s *scenario) distributed(what string, want map[string]v1alpha1.MemberState) {
	s.Helper()
	s.distributedBecause(what, want, "")
}

// distributedBecause also waits until the message of m2 contains a text, because a message about the propagation may come first.
func (s *scenario) distributedBecause(what string, want map[string]v1alpha1.MemberState, text string) {
	s.Helper()
	s.until(what, func() string {
		s.pushOf(federation.CiliumPolicy, s.object())
		s.pushOf(federation.IstioPolicy, s.object())
		p := s.protected()
		got := map[string]v1alpha1.MemberState{}
		for _, c := range p.Status.Clusters {
			got[string(c.Name)] = c.State
		}
		for _, c := range p.Status.Conditions {
			if c.ObservedGeneration != p.Generation {
				return fmt.Sprintf("conditions of generation %d, not of %d", c.ObservedGeneration, p.Generation)
			}
		}
		if len(p.Status.Conditions) == 0 || !maps.Equal(got, want) {
			return fmt.Sprintf("%v, conditions %v", p.Status.Clusters, p.Status.Conditions)
		}
		if m := s.message("m2"); !strings.Contains(m, text) {
			return fmt.Sprintf("the message of m2 is %q, want %q in it", m, text)
		}
		return ""
	})
}

// TestMemberWithoutCiliumRealizesOnlyClassesOfIstio checks that a member without Cilium never realizes a class that Cilium enforces, in any
// mode, that it realizes one of Istio alone, and that other members count its pods as unknown.
func TestMemberWithoutCiliumRealizesOnlyClassesOfIstio(t *testing.T) {
	f, admin := istioFleet(t)
	const why = "Cilium enforces nothing there"
	half := map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending}

	s := enforcedBy(t, f, "alone", v1alpha1.EnforcerIstio)
	s.distributed("Istio's class is realized in both", bothRealized)
	if _, o := s.federated(); o != nil {
		t.Errorf("Istio's class has the Cilium policy %s", o.Meta.Name)
	}

	// A foreign policy counts although there are no identities from which the pods are known.
	open := &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "security.istio.io/v1",
			"kind":       "AuthorizationPolicy",
			"metadata":   map[string]any{"namespace": "default", "name": "beside"},
			"spec":       map[string]any{"action": "ALLOW", "rules": []any{map[string]any{}}},
		},
	}
	if err := admin.Create(s.ctx, open); err != nil {
		t.Fatal(err)
	}
	s.distributedBecause(
		"a policy of others opens m2",
		map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberOverridden},
		"default/beside",
	)
	if err := admin.Delete(s.ctx, open); err != nil {
		t.Fatal(err)
	}
	s.distributed("it is gone", bothRealized)

	for service, enforcers := range map[string][]v1alpha1.EnforcerName{"plain": nil, "twofold": {v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio}} {
		c := enforcedBy(t, f, service, enforcers...)
		c.distributedBecause(service+" in Enforce", half, why)
		c.setMode(v1alpha1.ModeAudit)
		c.distributedBecause(service+" in Audit", half, why)
	}

	member := s.untilMemberStatus("m2 has the finding", "m2", func(st v1alpha1.MemberClusterStatus) bool {
		return slices.ContainsFunc(st.Findings, func(f v1alpha1.MemberFinding) bool {
			return f.Code == preflight.NoCilium && f.Severity == v1alpha1.FindingWarns && strings.Contains(f.Message, why)
		})
	})
	if member.State != v1alpha1.MemberClusterReady || member.CiliumVersion != "" || member.IstioVersion != "1.31.2" {
		t.Errorf("m2 is %s with Cilium %q and Istio %q", member.State, member.CiliumVersion, member.IstioVersion)
	}

	// Which applications run in m2 is unknown, and their pods come to m1 as addresses: a deny there denies all of them.
	d := enforcedBy(t, f, "denying")
	deny := d.statement("two", "999")
	deny.Effect = v1alpha1.EffectDeny
	change(d, d.host, &v1alpha1.AccessControlPolicy{}, d.service, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = append(p.Spec.Statements, deny) })
	d.until("m1 denies all addresses", func() string {
		_, o := d.federated()
		if o == nil || !strings.Contains(fmt.Sprint(o.SpecIn("m1")["ingressDeny"]), "cidr:0.0.0.0/0") {
			return fmt.Sprint(o)
		}
		return ""
	})
}

// TestForeignAuthorizationPoliciesAreComparedWithACPs checks that a foreign AuthorizationPolicy is reported if it allows more than ACP's
// current policy of the resource, and that a change of either is detected.
func TestForeignAuthorizationPoliciesAreComparedWithACPs(t *testing.T) {
	f, admin := istioFleet(t)
	s := enforcedBy(t, f, "compared", v1alpha1.EnforcerIstio)
	s.distributed("it is realized", bothRealized)
	overridden := map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberOverridden}

	allow := func(name, principal, port string) *unstructured.Unstructured {
		return &unstructured.Unstructured{
			Object: map[string]any{
				"apiVersion": "security.istio.io/v1",
				"kind":       "AuthorizationPolicy",
				"metadata":   map[string]any{"namespace": "default", "name": name},
				"spec": map[string]any{
					"action":   "ALLOW",
					"selector": map[string]any{"matchLabels": map[string]any{"com.trip/compared": "bobs"}},
					"rules": []any{map[string]any{
						"from": []any{map[string]any{"source": map[string]any{"principals": []any{principal}}}},
						"to":   []any{map[string]any{"operation": map[string]any{"ports": []any{port}}}}}},
				},
			},
		}
	}
	create := func(o *unstructured.Unstructured) {
		t.Helper()
		if err := admin.Create(s.ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(o *unstructured.Unstructured) {
		t.Helper()
		if err := admin.Delete(s.ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	// The policy that allows nothing more has the first name, so it was compared before the other one is named.
	within, beyond := allow("a-within", "cluster.local/ns/shop/sa/app-888", "6379"), allow("z-beyond", "cluster.local/ns/shop/sa/app-999", "6379")
	create(within)
	create(beyond)
	s.distributedBecause("another principal is allowed", overridden, "default/z-beyond")
	remove(beyond)
	s.distributed("the one that allows nothing more is not reported", bothRealized)
	otherPort := allow("z-port", "cluster.local/ns/shop/sa/app-888", "9121")
	create(otherPort)
	s.distributedBecause("another port is opened", overridden, "default/z-port")
	remove(otherPort)
	s.distributed("it is gone", bothRealized)

	// After a revocation ACP's policy allows less than the foreign one, which has not changed.
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = []v1alpha1.Statement{s.statement("two", "777")}
	})
	s.distributedBecause("the grant is revoked, and the foreign policy still allows it", overridden, "default/a-within")
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = []v1alpha1.Statement{s.statement("one", "888")}
	})
	s.distributed("the grant is back", bothRealized)
}
