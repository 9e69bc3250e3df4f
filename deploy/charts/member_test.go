package charts

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/membership"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// joinMember lets a cluster with controllers/testdata/member join a host as m1, as kubectl acp cluster join does. Cilium's parts have names
// with a prefix there. It returns what was done in the member.
func joinMember(t *testing.T, host, joined *cluster, prefix string, with func(*membership.Join)) []membership.Step {
	t.Helper()
	ctx := t.Context()
	core, err := kubernetes.NewForConfig(joined.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core.CoreV1().ConfigMaps("kube-system").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: prefix + "cilium-config"},
		Data: map[string]string{"cluster-name": "default", "cluster-id": "0"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"k8s-app": "cilium"}
	agents, err := core.AppsV1().
		DaemonSets("kube-system").
		Create(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: prefix + "cilium"}, Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "cilium-agent", Image: "quay.io/cilium/cilium:v1.20.2"}}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	agents.Status.DesiredNumberScheduled, agents.Status.NumberReady = 1, 1
	if _, err := core.AppsV1().DaemonSets("kube-system").UpdateStatus(ctx, agents, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	h, err := membership.NewHost(host.Config, "kube-federation-system", "acp-system")
	if err != nil {
		t.Fatal(err)
	}
	var steps []membership.Step
	join := &membership.Join{
		Host:     h,
		Cluster:  federation.Cluster{Name: "m1", Endpoint: joined.Config.Host, CABundle: joined.Config.CAData, Locations: federation.DefaultLocations()},
		Member:   joined.Config,
		Lifetime: 24 * time.Hour,
		Now:      time.Now,
		OnStep: func(s membership.Step) {
			if s.In == "m1" {
				steps = append(steps, s)
			}
		},
	}
	if with != nil {
		with(join)
	}
	if findings, err := join.Run(ctx); err != nil {
		t.Fatalf("join: %v, findings %v", err, findings)
	}
	return steps
}

// TestMemberIsWhatJoinApplies lets a cluster join a host with everything that kubectl acp cluster join can bring, installs the chart into
// another cluster with the same values, and compares what the two API servers hold then, object by object.
func TestMemberIsWhatJoinApplies(t *testing.T) {
	// The host is not a member, so the chart is installed there for the comparison.
	host := start(t, "controllers/testdata/host", "deploy/kubefed")
	joined := start(t, "controllers/testdata/member")
	for _, n := range []string{"kube-federation-system", "acp-system"} {
		host.namespace(t, n, nil)
	}
	var want []string
	for _, s := range joinMember(t, host, joined, "my-", func(j *membership.Join) {
		p := &j.Cluster.Locations
		p.CiliumConfig.Name, p.CiliumAgents.Name, p.CiliumEnvoy.Name = "my-cilium-config", "my-cilium", "my-envoy"
		j.Keys = []preflight.Key{
			{Label: "com.trip/redis-cluster"}, {Label: "com.trip/appid", ServiceAccount: "app-{id}"},
			{Label: "com.trip/appid", ServiceAccount: "{id}-sa"},
		}
		j.Istio, j.ClassLabels = true, true
	}) {
		want = append(want, s.Object)
	}
	v := values(t, "testdata/acp-member/everything.values.yaml")
	host.install(t, "acp-member", v)
	all := rendered(t, "acp-member", v)
	var got []string
	for _, o := range all {
		got = append(got, fmt.Sprintf("%s %s", o.GetKind(), strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")))
	}
	got = append(got, "Namespace acp-system") // Helm makes it, with --create-namespace
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(slices.Compact(want), got); d != "" {
		t.Errorf("join applies other objects than the chart has: %s", d)
	}
	for _, o := range all {
		a, ok := joined.get(t, o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
		b, there := host.get(t, o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
		if !ok || !there {
			t.Errorf("%s: in the member that joined: %v, where the chart was installed: %v", id(o), ok, there)
			continue
		}
		if d := cmp.Diff(content(a), content(b)); d != "" {
			t.Errorf("%s differs between join and the chart: %s", id(o), d)
		}
	}
}

// content is what an object says, without what Helm and the API server add.
func content(u *unstructured.Unstructured) map[string]any {
	c := u.DeepCopy().Object
	delete(c, "metadata")
	delete(c, "status")
	delete(c, "secrets")
	rules, _ := c["rules"].([]any)
	for _, r := range rules { // a set, in whatever order
		if list, ok := r.(map[string]any)["resourceNames"].([]any); ok {
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
	}
	if c["rules"] != nil {
		c["rules"] = rules
	}
	return c
}

// TestNodeReporterInMemberThatJoined lets a cluster join with the command, and adds acp-node to it as docs/operations/members.md describes. The
// objects of the command stay when the release is uninstalled.
func TestNodeReporterInMemberThatJoined(t *testing.T) {
	host := start(t, "controllers/testdata/host", "deploy/kubefed")
	joined := start(t, "controllers/testdata/member")
	for _, n := range []string{"kube-federation-system", "acp-system"} {
		host.namespace(t, n, nil)
	}
	joinMember(t, host, joined, "", nil)

	// Helm does not take over objects that it did not create.
	err := joined.tryInstall(t, "acp-member", map[string]any{"node": map[string]any{"enabled": true}})
	if err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("install with the accounts of the command: %v", err)
	}
	if got := joined.releases(t, "acp-system"); len(got) > 0 {
		t.Errorf("the installation that was refused left the releases %v", got)
	}

	joined.install(t, "acp-member", values(t, "testdata/acp-member/only-node.values.yaml"))
	if _, ok := joined.get(t, "apps/v1", "DaemonSet", "acp-system", "acp-node"); !ok {
		t.Error("acp-node is not installed")
	}
	joined.uninstall(t, "acp-member")
	if _, ok := joined.get(t, "apps/v1", "DaemonSet", "acp-system", "acp-node"); ok {
		t.Error("acp-node is still installed")
	}
	for _, kept := range [][4]string{
		{"v1", "ServiceAccount", "acp-system", "acp-pusher"},
		{"v1", "ServiceAccount", "acp-system", "acp-adapter"},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", "", "acp-pusher"},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "acp-guard"},
	} {
		if _, ok := joined.get(t, kept[0], kept[1], kept[2], kept[3]); !ok {
			t.Errorf("%s %s is gone", kept[1], kept[3])
		}
	}
}

// TestMemberWithChartJoins installs the chart and then lets the cluster join with the command: the command keeps the objects, Helm still owns
// them, and an upgrade that would delete the accounts is refused.
func TestMemberWithChartJoins(t *testing.T) {
	host := start(t, "controllers/testdata/host", "deploy/kubefed")
	joined := start(t, "controllers/testdata/member")
	for _, n := range []string{"kube-federation-system", "acp-system"} {
		host.namespace(t, n, nil)
	}
	joined.install(t, "acp-member", nil)
	before := map[string]*unstructured.Unstructured{}
	all := rendered(t, "acp-member", nil)
	for _, o := range all {
		before[id(o)], _ = joined.get(t, o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
	}
	for _, s := range joinMember(t, host, joined, "", nil) {
		if s.Outcome == membership.Created {
			t.Errorf("the command created %s, which the chart should contain", s.Object)
		}
	}
	owned := func() {
		t.Helper()
		for _, o := range all {
			after, ok := joined.get(t, o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
			if !ok {
				t.Errorf("%s is gone", id(o))
				continue
			}
			if after.GetUID() != before[id(o)].GetUID() || after.GetAnnotations()["meta.helm.sh/release-name"] != "acp-member" {
				t.Errorf("%s is no longer the object of the release", id(o))
			}
			if d := cmp.Diff(content(before[id(o)]), content(after)); d != "" {
				t.Errorf("the command changed %s: %s", id(o), d)
			}
		}
	}
	owned()
	onlyNode := values(t, "testdata/acp-member/only-node.values.yaml")
	if err := joined.tryUpgrade(t, "acp-member", onlyNode); err == nil || !strings.Contains(err.Error(), "would delete them") {
		t.Errorf("an upgrade that deletes the accounts: %v", err)
	}
	owned()
	joined.upgrade(t, "acp-member", map[string]any{"node": map[string]any{"enabled": true}})
	owned()
	if _, ok := joined.get(t, "apps/v1", "DaemonSet", "acp-system", "acp-node"); !ok {
		t.Error("the upgrade did not add acp-node")
	}
}

// An API server accepts what the chart makes for acp-node, and the program takes the settings of the DaemonSet.
func TestNodeReporterIsAccepted(t *testing.T) {
	member := start(t, "controllers/testdata/member")
	v := values(t, "testdata/acp-member/node.values.yaml")
	member.namespace(t, "acp-system", nil)
	member.install(t, "acp-member", v)
	set, ok := member.get(t, "apps/v1", "DaemonSet", "acp-system", "acp-node")
	if !ok {
		t.Fatal("the chart makes no DaemonSet")
	}
	containers, _, err := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("%d containers, %v", len(containers), err)
	}
	container := containers[0].(map[string]any)
	security, _, _ := unstructured.NestedMap(container, "securityContext")
	want := map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}}}
	if d := cmp.Diff(want, security); d != "" {
		t.Errorf("the container is not restricted: %s", d)
	}
	mounts, _, _ := unstructured.NestedSlice(container, "volumeMounts")
	for _, m := range mounts {
		if m.(map[string]any)["readOnly"] != true {
			t.Errorf("%v is not read-only", m)
		}
	}
	schema := map[string]any{}
	text, err := os.ReadFile("../configuration/acp-node.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	args, _, _ := unstructured.NestedStringSlice(container, "args")
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if _, known := schema["properties"].(map[string]any)[name]; !known {
			t.Errorf("acp-node has no setting %s", a)
		}
	}
}
