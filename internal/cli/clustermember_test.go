package cli

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	admissionv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/inventory"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/testenv"
)

// A cluster is refused until it passes the preflight, joins, is checked, and leaves.
func TestAClusterJoinsAndLeaves(t *testing.T) {
	ctx := context.Background()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	host := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host", "controllers/testdata/inventory"}})
	member := testenv.Start(t, testenv.Options{CRDs: []string{"controllers/testdata/member"}})
	onHost, err := client.New(host.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	inMember, err := client.New(member.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	cilium := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium-config"}, Data: map[string]string{"labels": "k8s:app"}}
	agentLabels := map[string]string{"k8s-app": "cilium"}
	agents := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: agentLabels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: agentLabels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "cilium-agent", Image: "quay.io/cilium/cilium:v1.20.2"}}}}}}
	for _, step := range []func() error{
		func() error {
			return onHost.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-federation-system"}})
		},
		func() error {
			return onHost.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acp-system"}})
		},
		func() error {
			return onHost.Create(ctx, &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
				Pattern: "trnv1:rsc:trip-com:redis:clusters:*", LabelKey: "com.trip/redis-cluster",
				Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}},
				Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}})
		},
		func() error { return inMember.Create(ctx, cilium) },
		func() error { return inMember.Create(ctx, agents) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	at := []string{"--kubeconfig", writeKubeconfig(t, host.Config)}
	in := append([]string{"--member-kubeconfig", writeKubeconfig(t, member.Config)}, at...)
	there := []string{"--api-endpoint", member.Config.Host}
	cluster := func(flags []string, args ...string) (int, string, string) {
		return run(t, "", append(append([]string{"cluster"}, args...), flags...)...)
	}

	if code, out, errs := cluster(
		in, append([]string{"join", "m1"}, there...)...,
	); code != ExitFindings || out != "" || !strings.Contains(errs, "com.trip/redis-cluster of class redis is not in Cilium's identities") {
		t.Fatalf("code %d\n%s%s", code, out, errs)
	}
	if code, _, errs := cluster(at, "check", "m1"); code != ExitInvalid || !strings.Contains(errs, "no such member") {
		t.Errorf("code %d\n%s", code, errs)
	}
	cilium.Data = map[string]string{"labels": `k8s:app k8s:com\.trip/`}
	if err := inMember.Update(ctx, cilium); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := cluster(
		in, append([]string{"join", "m1", "--dry-run"}, there...)...,
	); code != ExitFine || !strings.Contains(out, "KubeFedCluster kube-federation-system/m1 to be written") {
		t.Fatalf("code %d\n%s%s", code, out, errs)
	}
	if code, out, errs := cluster(
		in, append([]string{"join", "m1", "--label", "region=sha"}, there...)...,
	); code != ExitFine || !strings.Contains(out, "KubeFedCluster kube-federation-system/m1 created") || !strings.Contains(errs, "m1 is registered") {
		t.Fatalf("code %d\n%s%s", code, out, errs)
	}
	if code, out, errs := cluster(at, "check", "m1"); code != ExitFine || out != "no findings\n" {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	joinFromAProfile(t, host.Config, member.Config, cluster, at, in)
	// A removed guard is reported, and installed again.
	bindings := admissionClient(t, member.Config)
	if err := bindings.Delete(ctx, guard.PolicyWriters, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := cluster(
		at, "check", "m1",
	); code != ExitFine || !strings.Contains(out, preflight.GuardMissing) || !strings.Contains(out, "ValidatingAdmissionPolicyBinding acp-guard") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if code, out, errs := cluster(
		in, "check", "m1", "--fix", "--dry-run",
	); code != ExitFine || !strings.Contains(errs, "ValidatingAdmissionPolicyBinding acp-guard to be written") ||
		!strings.Contains(out, preflight.GuardMissing) {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if code, out, errs := cluster(
		in, "check", "m1", "--fix", "--guard-class-labels",
	); code != ExitFine || out != "no findings\n" || !strings.Contains(errs, "ValidatingAdmissionPolicyBinding acp-guard created") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if _, err := bindings.Get(ctx, guard.PolicyClassLabels, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	cilium.Data["policy-audit-mode"] = "true"
	if err := inMember.Update(ctx, cilium); err != nil {
		t.Fatal(err)
	}
	code, out, errs := cluster(at, "check", "m1", "-o", "json")
	var found []preflight.Finding
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != ExitFindings || len(found) != 1 || found[0].Code != preflight.AuditMode {
		t.Errorf("code %d, %v\n%s%s", code, err, out, errs)
	}
	if code, out, errs := cluster(
		at, "leave", "m1", "--dry-run",
	); code != ExitFine || !strings.Contains(out, "KubeFedCluster kube-federation-system/m1 to be removed") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if code, out, errs := cluster(in, "leave", "m1"); code != ExitFine || !strings.Contains(out, "KubeFedCluster kube-federation-system/m1 removed") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if left, err := bindings.List(ctx, metav1.ListOptions{}); err != nil || len(left.Items) != 0 {
		t.Errorf("a guard without a member: %v, %v", left, err)
	}
	for reason, args := range map[string][]string{
		"one of this machine": {"join", "m2"},
		"https://HOST:PORT":   {"join", "m2", "--api-endpoint", "172.29.0.2:6443"},
		"\"https://:6443\"":   {"join", "m2", "--api-endpoint", "https://:6443"},
	} {
		if code, _, errs := cluster(in, args...); code != ExitUsage || !strings.Contains(errs, reason) {
			t.Errorf("%v: code %d, %s", args, code, errs)
		}
	}
	if code, _, errs := cluster(
		[]string{"--kubeconfig", writeKubeconfig(t, member.Config), "--member-kubeconfig", writeKubeconfig(t, host.Config)},
		append(
			[]string{"join", "m2"},
			there...)...); code != ExitInvalid || !strings.Contains(errs, "the context of ACP's host cluster with --context") {
		t.Errorf("the contexts are mixed up: code %d, %s", code, errs)
	}
	if code, _, errs := cluster(append([]string{"--member-kubeconfig", at[1]}, at...), "join", "m2", "--api-endpoint", host.Config.Host); code != ExitInvalid ||
		!strings.Contains(errs, "is the host cluster") {
		t.Errorf("the host joins itself: code %d, %s", code, errs)
	}
	for reason, args := range map[string][]string{
		"which cluster?": {"join", "m1"}, "should be fixed": {"check", "m1", "--fix"}, "go with --fix": {"check", "m1", "--dry-run"},
		"RFC 1123":                 {"join", "M_1", "--member-context", "x"},
		"not one of kubefed":       {"join", "m1", "--member-context", "x", "--engine", "push"},
		"goes with --engine ocm":   {"join", "m1", "--member-context", "x", "--engine", "direct", "--without-reader"},
		"less than a day":          {"join", "m1", "--member-context", "x", "--token-lifetime", "1h"},
		"neither cilium nor istio": {"join", "m1", "--member-context", "x", "--enforcer", "calico"},
		"--access-provider goes":   {"join", "m1", "--member-context", "x", "--access-provider", "token"},
		"leave out --api-endpoint": {"join", "m1", "--member-context", "x", "--from-profile", "fleet/m1", "--api-endpoint", "https://x"},
		"leave out one of the two": {"join", "m1", "--member-context", "x", "--enforcer", "istio", "--mesh", "east"},
	} {
		if code, _, errs := cluster(at, args...); code != ExitUsage || !strings.Contains(errs, reason) {
			t.Errorf("%v: code %d, %s", args, code, errs)
		}
	}
}

func admissionClient(t *testing.T, c *rest.Config) admissionv1.ValidatingAdmissionPolicyBindingInterface {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return clients.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
}

// joinFromAProfile links a registered member with a ClusterProfile, and lists the fleet before and after that.
func joinFromAProfile(t *testing.T, host, member *rest.Config, cluster func([]string, ...string) (int, string, string), at, in []string) {
	t.Helper()
	unlinked := regexp.MustCompile(`(?m)^m1 +kubefed +` + member.Host + `/? +KubeFedCluster *$`)
	if code, out, errs := cluster(at, "list"); code != ExitFine || errs != "" || !unlinked.MatchString(out) {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	objects, err := dynamic.NewForConfig(host)
	if err != nil {
		t.Fatal(err)
	}
	profiles := objects.Resource(inventory.Resource).Namespace("default")
	for name, address := range map[string]string{"m1": member.Host, "m9": "https://m9.example:6443"} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"clusterManager": map[string]any{"name": "manager"}}}}
		made, err := profiles.Create(t.Context(), u, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made.Object["status"] = map[string]any{
			"conditions": []any{map[string]any{"type": "ControlPlaneHealthy", "status": "True", "reason": "Probed", "message": "",
				"lastTransitionTime": "2026-11-01T00:00:00Z"}},
			"accessProviders": []any{map[string]any{"name": "token", "cluster": map[string]any{"server": address}}}}
		if _, err := profiles.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var fleet Fleet
	list := func() string {
		code, out, errs := cluster(at, "list", "-o", "json")
		if err := json.Unmarshal([]byte(out), &fleet); err != nil || code != ExitFine {
			t.Fatalf("code %d, %v\n%s%s", code, err, out, errs)
		}
		return out
	}
	if out := list(); len(fleet.Members) != 1 || len(fleet.Unregistered) != 2 || fleet.Unregistered[0].Member != "m1" || fleet.Unregistered[1].Member != "" {
		t.Errorf("before: %s", out)
	}
	for reason, flags := range map[string][]string{
		"is registered with another address": {"--from-profile", "default/m9"},
		"no ClusterProfile default/m8":       {"--from-profile", "default/m8"},
		`no access provider "exec"`:          {"--from-profile", "default/m1", "--access-provider", "exec"},
	} {
		if code, out, errs := cluster(in, append([]string{"join", "m1"}, flags...)...); code != ExitInvalid || out != "" ||
			!strings.Contains(errs, reason) {
			t.Errorf("%v: code %d\n%s%s", flags, code, out, errs)
		}
	}
	if code, _, errs := cluster(in, "join", "m1", "--from-profile", "m1"); code != ExitUsage || !strings.Contains(errs, "is not NAMESPACE/NAME") {
		t.Errorf("code %d, %s", code, errs)
	}
	if code, out, errs := cluster(
		in,
		"join",
		"m1",
		"--from-profile",
		"default/m1",
	); code != ExitFine ||
		!strings.Contains(errs, "from ClusterProfile default/m1\n") {
		t.Fatalf("code %d\n%s%s", code, out, errs)
	}
	if out := list(); len(fleet.Members) != 1 || fleet.Members[0].ClusterProfile != "default/m1" || len(fleet.Unregistered) != 1 ||
		fleet.Unregistered[0].ClusterProfile != "default/m9" {
		t.Errorf("after: %s", out)
	}
	linked := regexp.MustCompile(`(?m)^m1 .*ClusterProfile default/m1 *$`)
	if code, out, _ := cluster(at, "list"); code != ExitFine || !linked.MatchString(out) {
		t.Errorf("code %d\n%s", code, out)
	}
}
