package charts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	// Their kinds are files of these modules.
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	_ "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/acp-io/acp/internal/testenv"
)

// cluster is a real API server, with a client for objects of any kind.
type cluster struct {
	*testenv.Server
	kubeconfig string
	objects    dynamic.Interface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
}

func start(t *testing.T, crds ...string) *cluster {
	t.Helper()
	c := &cluster{Server: testenv.Start(t, testenv.Options{CRDs: crds})}
	var err error
	if c.objects, err = dynamic.NewForConfig(c.Config); err != nil {
		t.Fatal(err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	c.kubeconfig = testenv.WriteKubeconfig(t, c.Config)
	return c
}

func (c *cluster) resource(t *testing.T, apiVersion, kind, namespace string) dynamic.ResourceInterface {
	t.Helper()
	gvk := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}).GroupVersionKind()
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		m, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return c.objects.Resource(m.Resource)
	}
	return c.objects.Resource(m.Resource).Namespace(namespace)
}

func (c *cluster) get(t *testing.T, apiVersion, kind, namespace, name string) (*unstructured.Unstructured, bool) {
	t.Helper()
	u, err := c.resource(t, apiVersion, kind, namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return u, true
}

func (c *cluster) create(t *testing.T, text map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: text}
	if _, err := c.resource(t, u.GetAPIVersion(), u.GetKind(), u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create %s: %v", id(u), err)
	}
}

func (c *cluster) namespace(t *testing.T, name string, labels map[string]any) {
	t.Helper()
	c.create(t, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels}})
}

// helm returns a configuration for one action: Helm keeps what it discovers as long as the configuration is used.
func (c *cluster) helm(t *testing.T, namespace string) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &c.kubeconfig, &namespace
	cfg := &action.Configuration{}
	cfg.SetLogger(slog.DiscardHandler)
	if err := cfg.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func (c *cluster) install(t *testing.T, name string, v map[string]any) {
	t.Helper()
	if err := c.tryInstall(t, name, v); err != nil {
		t.Fatalf("install %s: %v", name, err)
	}
}

func (c *cluster) tryInstall(t *testing.T, name string, v map[string]any) error {
	t.Helper()
	i := action.NewInstall(c.helm(t, namespaces[name]))
	i.ReleaseName, i.Namespace, i.CreateNamespace, i.WaitStrategy, i.ServerSideApply = name, namespaces[name], true, kube.HookOnlyStrategy, true
	_, err := i.RunWithContext(t.Context(), load(t, name), v)
	return err
}

func (c *cluster) upgrade(t *testing.T, name string, v map[string]any) {
	t.Helper()
	if err := c.tryUpgrade(t, name, v); err != nil {
		t.Fatalf("upgrade %s: %v", name, err)
	}
}

func (c *cluster) tryUpgrade(t *testing.T, name string, v map[string]any) error {
	t.Helper()
	u := action.NewUpgrade(c.helm(t, namespaces[name]))
	u.Namespace, u.WaitStrategy = namespaces[name], kube.HookOnlyStrategy
	_, err := u.RunWithContext(t.Context(), name, load(t, name), v)
	return err
}

// releases returns the names of the releases in a namespace.
func (c *cluster) releases(t *testing.T, namespace string) []string {
	t.Helper()
	l := action.NewList(c.helm(t, namespace))
	l.StateMask = action.ListAll
	all, err := l.Run()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range all {
		a, err := release.NewAccessor(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a.Name())
	}
	return out
}

func (c *cluster) rollback(t *testing.T, name string, revision int) {
	t.Helper()
	r := action.NewRollback(c.helm(t, namespaces[name]))
	r.Version, r.WaitStrategy = revision, kube.HookOnlyStrategy
	if err := r.Run(name); err != nil {
		t.Fatalf("roll back %s: %v", name, err)
	}
}

func (c *cluster) uninstall(t *testing.T, name string) {
	t.Helper()
	u := action.NewUninstall(c.helm(t, namespaces[name]))
	u.WaitStrategy, u.DeletionPropagation = kube.HookOnlyStrategy, "background"
	if _, err := u.Run(name); err != nil {
		t.Fatalf("uninstall %s: %v", name, err)
	}
}

// kindsOfOthers copies the definitions of the kinds of other projects that the charts use into a folder, and returns its path from the
// repository's root.
func kindsOfOthers(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for module, files := range map[string][]string{
		"github.com/cert-manager/cert-manager": {"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml"},
		"github.com/prometheus-operator/prometheus-operator": {"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"},
		"sigs.k8s.io/gateway-api": {
			"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
			"config/crd/standard/gateway.networking.k8s.io_backendtlspolicies.yaml",
		},
	} {
		dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output() //nolint:gosec // the modules are above
		if err != nil {
			t.Fatalf("find the module %s: %v", module, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), f))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, filepath.Base(f)), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	path, err := filepath.Rel(testenv.Root(), folder)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEveryObjectIsAccepted sends what each set of values renders to a real API server, which refuses unknown fields and wrong values of
// all kinds, those of cert-manager, the Prometheus operator and the Gateway API included, and writes nothing. Its admission holds each pod
// template to the restricted Pod Security Standard.
func TestEveryObjectIsAccepted(t *testing.T) {
	c := start(t, "deploy/crds", "deploy/kubefed/control-plane", kindsOfOthers(t))
	for _, n := range []string{"acp-system", "kube-federation-system", "federation", "istio-system"} {
		c.namespace(t, n, map[string]any{"pod-security.kubernetes.io/enforce": "restricted"})
	}
	core, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, name := range charts {
		for _, set := range sets(t, name) {
			for _, o := range rendered(t, name, values(t, set)) {
				data, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				force := true
				if _, err := c.resource(t, o.GetAPIVersion(), o.GetKind(), o.GetNamespace()).Patch(t.Context(), o.GetName(), types.ApplyPatchType, data,
					metav1.PatchOptions{
						FieldManager:    "test",
						Force:           &force,
						DryRun:          []string{metav1.DryRunAll},
						FieldValidation: metav1.FieldValidationStrict,
					}); err != nil {
					t.Errorf("%s: %s is refused: %v", set, id(o), err)
				}
				if o.GetKind() != "Deployment" {
					continue
				}
				pods++
				if err := dryRunPod(t.Context(), core, o); err != nil {
					t.Errorf("%s: a pod of %s is refused: %v", set, id(o), err)
				}
			}
		}
	}
	if pods < 10 {
		t.Errorf("%d pod templates, want more", pods)
	}
	// That admission works is seen by what it refuses.
	root := rendered(t, "acp-kubefed", nil)
	for _, o := range root {
		if o.GetKind() == "Deployment" {
			unstructured.RemoveNestedField(o.Object, "spec", "template", "spec", "securityContext")
			if err := dryRunPod(t.Context(), core, o); !apierrors.IsForbidden(err) {
				t.Errorf("a pod that may run as root: %v", err)
			}
		}
	}
}

// dryRunPod creates a pod of a Deployment without writing it.
func dryRunPod(ctx context.Context, core kubernetes.Interface, deployment *unstructured.Unstructured) error {
	template, _, err := unstructured.NestedMap(deployment.Object, "spec", "template")
	if err != nil {
		return err
	}
	data, err := json.Marshal(template)
	if err != nil {
		return err
	}
	var pod corev1.Pod
	if err := json.Unmarshal(data, &pod); err != nil {
		return err
	}
	pod.Name = "template"
	pod.Spec.PriorityClassName = "" // that of the set is the cluster's own, and reserved for its namespace
	_, err = core.CoreV1().
		Pods(deployment.GetNamespace()).
		Create(ctx, &pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// TestReleaseLifecycle installs the charts on a real API server, upgrades, rolls back, uninstalls and installs again. There are no nodes, so no
// pod runs. Uninstalling leaves the kinds, what they hold, and what distributes it: nothing that is closed opens.
func TestReleaseLifecycle(t *testing.T) {
	c := start(t)
	c.namespace(t, "acp-system", map[string]any{"pod-security.kubernetes.io/enforce": "restricted"})
	c.namespace(t, "monitoring", nil)
	c.install(t, "acp-kubefed", nil)
	c.install(t, "acp", nil)

	policy := func(kind, name string) map[string]any {
		return map[string]any{
			"apiVersion": "types.kubefed.io/v1beta1",
			"kind":       kind,
			"metadata":   map[string]any{"name": name},
			"spec": map[string]any{
				"template":  map[string]any{"spec": map[string]any{}},
				"placement": map[string]any{"clusters": []any{map[string]any{"name": "m1"}}},
			},
		}
	}
	c.create(t, policy("FederatedCiliumClusterwideNetworkPolicy", "acp-redis-bobs"))
	c.create(t, policy("FederatedCiliumCIDRGroup", "acp-group"))
	c.create(t, map[string]any{"apiVersion": "acp.io/v1alpha1", "kind": "ProtectedResource", "metadata": map[string]any{"name": "bobs"},
		"spec": map[string]any{"resource": "trnv1:rsc:trip-com:redis:clusters:bobs", "mode": "Enforce"}})
	c.create(
		t,
		map[string]any{
			"apiVersion": "core.kubefed.io/v1beta1",
			"kind":       "KubeFedCluster",
			"metadata":   map[string]any{"name": "m1", "namespace": "kube-federation-system"},
			"spec":       map[string]any{"apiEndpoint": "https://m1.example:6443", "secretRef": map[string]any{"name": "acp-pusher-m1"}},
		},
	)
	c.create(
		t,
		map[string]any{
			"apiVersion": "v1",
			"kind":       "Secret",
			"metadata":   map[string]any{"name": "acp-reader-m1", "namespace": "acp-system"},
			"data":       map[string]any{"token": "eA=="},
		},
	)
	c.create(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "acp-ledger-anchor", "namespace": "acp-system"}})
	kept := [][4]string{
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "protectedresources.acp.io"},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "federatedciliumclusterwidenetworkpolicies.types.kubefed.io"},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "kubefedclusters.core.kubefed.io"},
		{"types.kubefed.io/v1beta1", "FederatedCiliumClusterwideNetworkPolicy", "", "acp-redis-bobs"},
		{"types.kubefed.io/v1beta1", "FederatedCiliumCIDRGroup", "", "acp-group"},
		{"acp.io/v1alpha1", "ProtectedResource", "", "bobs"},
		{"core.kubefed.io/v1beta1", "FederatedTypeConfig", "kube-federation-system", "ciliumclusterwidenetworkpolicies.cilium.io"},
		{"core.kubefed.io/v1beta1", "KubeFedCluster", "kube-federation-system", "m1"},
		{"v1", "Namespace", "", "kube-federation-system"},
		{"v1", "PersistentVolumeClaim", "acp-system", "acp-data"},
		{"v1", "Secret", "acp-system", "acp-reader-m1"},
		{"v1", "ConfigMap", "acp-system", "acp-ledger-anchor"},
	}
	check := func(when string) {
		t.Helper()
		for _, k := range kept {
			if u, ok := c.get(t, k[0], k[1], k[2], k[3]); !ok || u.GetDeletionTimestamp() != nil {
				t.Errorf("%s, %s %s is gone", when, k[1], k[3])
			}
		}
	}
	check("after the installation")
	portal := func() (replicas int64, strategy string) {
		u, ok := c.get(t, "apps/v1", "Deployment", "acp-system", "acp-portal")
		if !ok {
			t.Fatal("there is no portal")
		}
		replicas, _, _ = unstructured.NestedInt64(u.Object, "spec", "replicas")
		strategy, _, _ = unstructured.NestedString(u.Object, "spec", "strategy", "type")
		return replicas, strategy
	}
	certificate := func() string {
		u, ok := c.get(t, "v1", "Secret", "acp-system", "acp-adapter-webhook-tls")
		if !ok {
			t.Fatal("the webhook has no certificate")
		}
		crt, _, _ := unstructured.NestedString(u.Object, "data", "tls.crt")
		ca, _, _ := unstructured.NestedString(u.Object, "data", "ca.crt")
		w, ok := c.get(t, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "acp-adapter")
		if !ok {
			t.Fatal("the webhook is not registered")
		}
		hooks, _, _ := unstructured.NestedSlice(w.Object, "webhooks")
		if bundle, _, _ := unstructured.NestedString(hooks[0].(map[string]any), "clientConfig", "caBundle"); bundle != ca || ca == "" {
			t.Error("the webhook is registered with another authority than that of its certificate")
		}
		return crt
	}
	first := certificate()

	c.upgrade(t, "acp", map[string]any{"portal": map[string]any{"replicas": 3, "database": map[string]any{"existingSecret": "acp-database"}}})
	if n, s := portal(); n != 3 || s != "RollingUpdate" {
		t.Errorf("after the upgrade: %d portals, %s", n, s)
	}
	if certificate() != first {
		t.Error("the upgrade made another certificate")
	}
	check("after an upgrade that needs no volume")

	c.rollback(t, "acp", 1)
	if n, s := portal(); n != 1 || s != "Recreate" {
		t.Errorf("after the rollback: %d portals, %s", n, s)
	}
	if certificate() != first {
		t.Error("the rollback made another certificate")
	}
	check("after the rollback")

	// Another name of the portal is another certificate.
	before, _ := c.get(t, "v1", "Secret", "acp-system", "acp-portal-tls")
	c.upgrade(t, "acp", map[string]any{"portal": map[string]any{"publicURL": "https://acp.example.com"}})
	after, _ := c.get(t, "v1", "Secret", "acp-system", "acp-portal-tls")
	if cmp.Equal(before.Object["data"], after.Object["data"]) {
		t.Error("the portal has a certificate of its former name")
	}

	// Without types that it distributes, KubeFed would no longer repair what members have.
	c.upgrade(t, "acp", map[string]any{"kubefed": map[string]any{"types": "never"}, "crds": map[string]any{"enabled": false}})
	check("after an upgrade without the kinds")

	c.uninstall(t, "acp")
	check("after acp was uninstalled")
	for _, gone := range [][4]string{
		{"apps/v1", "Deployment", "acp-system", "acp-portal"}, {"apps/v1", "Deployment", "acp-system", "acp-adapter"},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "acp-adapter"},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", "", "acp-adapter"}, {"v1", "Secret", "acp-system", "acp-portal-tls"},
	} {
		if u, ok := c.get(t, gone[0], gone[1], gone[2], gone[3]); ok && u.GetDeletionTimestamp() == nil {
			t.Errorf("%s %s is still there", gone[1], gone[3])
		}
	}
	c.install(t, "acp", nil)
	check("after acp was installed again")
	if certificate() == "" {
		t.Error("no certificate")
	}
	c.uninstall(t, "acp")
	c.uninstall(t, "acp-kubefed")
	check("after everything was uninstalled")
}

// TestGeneratedCertificate: the certificate is for the names by which the portal and the webhook are reached, and signed by the authority beside it.
func TestGeneratedCertificate(t *testing.T) {
	for _, o := range rendered(t, "acp", map[string]any{"portal": map[string]any{"publicURL": "https://acp.example.com:8443"}}) {
		if o.GetKind() != "Secret" {
			continue
		}
		part := func(key string) []byte {
			text, _, _ := unstructured.NestedString(o.Object, "data", key)
			data, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		want := map[string]string{"acp-portal-tls": "acp.example.com", "acp-adapter-webhook-tls": "acp-adapter-webhook.acp-system.svc"}[o.GetName()]
		if err := verifyPair(part("tls.crt"), part("tls.key"), part("ca.crt"), want); err != nil {
			t.Errorf("%s: %v", o.GetName(), err)
		}
	}
}
