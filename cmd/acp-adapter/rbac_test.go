package main

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/rbactest"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

const beAdapter = "TEST_BE_ADAPTER"

// TestMain is the program itself when a test wants a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv(beAdapter) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const memberToken = "member-token"

// register makes the host a member of its own fleet, under another user.
func register(t *testing.T, c *rbactest.Cluster) *unstructured.Unstructured {
	t.Helper()
	c.Create(
		t,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "member"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "member"}},
		},
	)
	for ns, name := range map[string]string{
		rbactest.Names.Namespace: federation.SecretName("m1"), rbactest.Names.KubeFedNamespace: federation.PusherSecretName("m1"),
	} {
		c.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, StringData: map[string]string{"token": memberToken}})
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
		"metadata": map[string]any{"name": "m1", "namespace": rbactest.Names.KubeFedNamespace,
			"annotations": map[string]any{federation.AnnotationClusterProfile: "inventory/m1"}},
		"spec": map[string]any{"apiEndpoint": c.Config.Host, "caBundle": base64.StdEncoding.EncodeToString(c.Config.CAData),
			"secretRef": map[string]any{"name": federation.PusherSecretName("m1")}}}}
	c.Create(t, cluster)
	return cluster
}

// serveWebhook writes a certificate into the folder and registers the adapter's webhook at an address. It returns the adapter's flags.
func serveWebhook(t *testing.T, c *rbactest.Cluster, folder string) []string {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"tls.crt": certificate, "tls.key": key}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "deploy/webhook/validating.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n---\n")
	var webhook admissionregistrationv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(parts[len(parts)-1]), &webhook); err != nil {
		t.Fatal(err)
	}
	address := testenv.FreeAddress(t)
	url := "https://" + address + *webhook.Webhooks[0].ClientConfig.Service.Path
	webhook.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: certificate}
	c.Create(t, &webhook)
	return []string{
		"--webhook-address=" + address,
		"--webhook-tls-cert-file=" + filepath.Join(folder, "tls.crt"),
		"--webhook-tls-key-file=" + filepath.Join(folder, "tls.key"),
	}
}

// TestLeastPrivilege: the adapter elects a leader, joins a member, protects a resource, grants, revokes, lets go and reviews changes as webhook with the role
// of deploy/rbac/host alone, in a namespace of another name, as an unprivileged user on a read-only file system, and uses all of the role. SIGTERM
// ends it within its grace, and the lease is given up.
func TestLeastPrivilege(t *testing.T) {
	c := rbactest.Start(
		t,
		[]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host", "controllers/testdata/member"},
		map[string]string{memberToken: "member"},
	)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects, err := client.New(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	make := func(o client.Object) {
		t.Helper()
		if err := objects.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	cluster := register(t, c)
	log := &testenv.Output{}
	folder := t.TempDir()
	kubeconfig, err := os.ReadFile(c.Kubeconfig(t, rbactest.Names.Adapter))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kubeconfig"), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	health := testenv.FreeAddress(t)
	cmd := testenv.Confined(
		t,
		folder,
		append(
			serveWebhook(t, c, folder),
			"--kubeconfig="+filepath.Join(folder, "kubeconfig"),
			"--namespace="+rbactest.Names.Namespace,
			"--kubefed-namespace="+rbactest.Names.KubeFedNamespace,
			"--service-account="+rbactest.Names.Adapter,
			"--portal-service-account="+rbactest.Names.Portal,
			"--health-address="+health,
			"--metrics-address=0",
		)...)
	cmd.Env = append(cmd.Env, beAdapter+"=1")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, if all is well
		if t.Failed() {
			t.Log(log.String())
		}
	})

	class := &v1alpha1.ResourceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "redis"},
		Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:redis:clusters:*",
			LabelKey: "com.trip/redis-cluster", Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}}},
			Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}},
	}
	subject := &v1alpha1.SubjectClass{
		ObjectMeta: metav1.ObjectMeta{Name: "application"},
		Spec:       v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"},
	}
	resource := &v1alpha1.ProtectedResource{
		ObjectMeta: metav1.ObjectMeta{Name: "cache"},
		Spec:       v1alpha1.ProtectedResourceSpec{Resource: "trnv1:rsc:trip-com:redis:clusters:cache", Mode: v1alpha1.ModeAudit},
	}
	workload := &v1alpha1.ExternalWorkload{
		ObjectMeta: metav1.ObjectMeta{Name: "outside"},
		Spec:       v1alpha1.ExternalWorkloadSpec{Subject: "trnv1:rsc:trip-com:iam:sa:app/app-1", Addresses: []string{"192.0.2.1"}},
	}
	grant := &v1alpha1.AccessControlPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "cache"},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
			{
				SID:    "one",
				Effect: v1alpha1.EffectAllow,
				Subjects: []v1alpha1.Subject{
					"trnv1:rsc:trip-com:iam:sa:app/app-1",
				},
				Actions:   []v1alpha1.Action{"redis:connect"},
				Resources: []v1alpha1.ResourceName{"trnv1:rsc:trip-com:redis:clusters:cache"},
			},
		}},
	}
	for _, o := range []client.Object{class, subject, resource, workload, grant} {
		make(o)
	}
	count := func(kind string) int {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "types.kubefed.io/v1beta1", "kind": kind + "List"}}
		if err := c.Admin.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	eventually.True(t, "the policy is pushed", func() bool { return count("FederatedCiliumClusterwideNetworkPolicy") > 0 })
	eventually.True(t, "the group of addresses is pushed", func() bool { return count("FederatedCiliumCIDRGroup") > 0 })
	eventually.True(t, "the member is reported", func() bool {
		var m v1alpha1.MemberCluster
		return objects.Get(t.Context(), client.ObjectKey{Name: "m1"}, &m) == nil && len(m.Status.Conditions) > 0
	})
	eventually.True(t, "the policy's status is written", func() bool {
		return objects.Get(t.Context(), client.ObjectKeyFromObject(grant), grant) == nil && len(grant.Status.Conditions) > 0
	})
	// The webhook refuses to delete what is enforced, and reports who changed what, with the same role.
	enforced := &v1alpha1.ProtectedResource{
		ObjectMeta: metav1.ObjectMeta{Name: "vault"},
		Spec:       v1alpha1.ProtectedResourceSpec{Resource: "trnv1:rsc:trip-com:redis:clusters:vault", Mode: v1alpha1.ModeEnforce},
	}
	eventually.True(t, "the webhook refuses", func() bool {
		if err := client.IgnoreAlreadyExists(objects.Create(t.Context(), enforced.DeepCopy())); err != nil {
			t.Fatal(err)
		}
		err := objects.Delete(t.Context(), enforced.DeepCopy())
		return err != nil && strings.Contains(err.Error(), "admission webhook")
	})
	eventually.True(t, "the change is reported", func() bool {
		list, err := c.Core.EventsV1().Events(rbactest.Names.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Kind == "ProtectedResource" && e.Regarding.Name == enforced.Name
		})
	})
	for _, o := range []client.Object{grant, workload} {
		if err := objects.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := objects.Get(t.Context(), client.ObjectKeyFromObject(resource), resource); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(resource.DeepCopy())
	resource.Spec.Mode = v1alpha1.ModeObserve
	if err := objects.Patch(t.Context(), resource, patch); err != nil {
		t.Fatal(err)
	}
	if err := objects.Delete(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	if err := c.Admin.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the member is gone", func() bool {
		return apierrors.IsNotFound(objects.Get(t.Context(), client.ObjectKey{Name: "m1"}, &v1alpha1.MemberCluster{}))
	})
	for _, probe := range []string{"/startupz", "/livez", "/readyz"} {
		res, err := http.Get("http://" + health + probe)
		if err != nil {
			t.Fatal(err)
		}
		if _ = res.Body.Close(); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", probe, res.Status)
		}
	}
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("the adapter ended with %v after %s", err, time.Since(began))
	}
	lease, err := c.Core.CoordinationV1().Leases(rbactest.Names.Namespace).Get(t.Context(), "acp-adapter", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		t.Errorf("the lease was not given up: %+v, %v", lease.Spec, err)
	}
	if strings.Contains(strings.ToLower(log.String()), "forbidden") {
		t.Error("the log has Forbidden")
	}
	optional := rbactest.Lists(
		"accesscontrolpolicies",
		"approvalpolicies",
		"externalworkloads",
		"memberclusters",
		"organizations",
		"protectedresources",
		"resourceclasses",
		"subjectclasses",
	)
	for grant, reason := range map[string]string{
		"get types.kubefed.io/federatedciliumcidrgroups":                 "an object is read again when a write of it conflicts",
		"get types.kubefed.io/federatedciliumclusterwidenetworkpolicies": "an object is read again when a write of it conflicts",
		"delete types.kubefed.io/federatedciliumcidrgroups": "a group is deleted when no policy in a member names it, " +
			"which KubeFed would have to bring about: the tests of controllers/externalgroup",
		"delete types.kubefed.io/federatedciliumclusterwidenetworkpolicies": "a policy is deleted when the members follow, " +
			"which KubeFed would have to bring about: the tests of controllers",
		"patch events.k8s.io/events in default":                                     "client-go counts an Event that is repeated within minutes",
		"update /secrets in " + rbactest.Names.Namespace:                            "tokens are replaced when they are due: the tests of controllers/rotation",
		"update /secrets in " + rbactest.Names.KubeFedNamespace:                     "tokens are replaced when they are due: the tests of controllers/rotation",
		"get core.kubefed.io/kubefedclusters in " + rbactest.Names.KubeFedNamespace: "a registration is read again before it is changed",
		"patch core.kubefed.io/kubefedclusters in " + rbactest.Names.KubeFedNamespace: "a registration is changed when a member is quarantined, " +
			"which takes two looks at it: the tests of controllers/memberhealth",
		"update acp.io/approvalpolicies/status": "no approval policy is made here: the tests of controllers/approvalpolicy",
		"update acp.io/organizations/status":    "no organization is made here: the tests of controllers/organization",
	} {
		optional[grant] = reason
	}
	c.Check(t, rbactest.Names.Adapter, optional, map[string]string{
		"list types.kubefed.io/federatedauthorizationpolicies in istio-system": "the grant comes with deploy/kubefed/istio, where Istio is used; " +
			"without it the adapter finds that it is not",
	})
}
