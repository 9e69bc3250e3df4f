package membership

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/testenv"
)

// installIstio creates the parts of Istio that the preflight reads. Istio's kind is there by the server's options.
func installIstio(ctx context.Context, s *testenv.Server) error {
	core, labels := kubernetes.NewForConfigOrDie(s.Config), map[string]string{"app": "istiod"}
	if _, err := core.CoreV1().
		Namespaces().
		Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "istio-system"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := core.AppsV1().
		Deployments("istio-system").
		Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "istiod"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "discovery", Image: "docker.io/istio/pilot:1.31.2"}}}}}}, metav1.CreateOptions{})
	return err
}

// TestJoinOfAMemberWithIstioAlone checks that a cluster without Cilium joins only when that is declared, that it then gets Cilium's
// kinds and nothing else of Cilium, and that the declaration stays until another one is made.
func TestJoinOfAMemberWithIstioAlone(t *testing.T) {
	ctx := t.Context()
	alone := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/istio"}})
	if err := installIstio(ctx, alone); err != nil {
		t.Fatal(err)
	}
	var steps []Step
	join := func(enforcer string) ([]preflight.Finding, error) {
		t.Helper()
		steps = nil
		j := joining(t, "istio-alone", &steps)
		j.Member, j.Cluster.Endpoint, j.Cluster.CABundle, j.Cluster.Enforcer = alone.Config, alone.Config.Host, alone.Config.CAData, enforcer
		j.Keys = []preflight.Key{{Class: "redis", Label: "com.trip/redis-cluster"}}
		return j.Run(ctx)
	}
	h := host(t)
	findings, err := join("")
	if !errors.Is(err, ErrRefused) || len(findings) == 0 || findings[0].Code != preflight.KindMissing ||
		!strings.Contains(findings[0].Remedy.Text, "--enforcer istio") {
		t.Fatalf("without the declaration: got error %v, findings %+v", err, findings)
	}
	if len(steps) != 0 {
		t.Errorf("got steps %v in a refused cluster", steps)
	}

	if findings, err = join("istio"); err != nil {
		t.Fatalf("got error %v, findings %+v", err, findings)
	}
	made := map[string]Outcome{}
	for _, s := range steps {
		made[s.Object] = s.Outcome
	}
	kinds := []string{"CustomResourceDefinition ciliumclusterwidenetworkpolicies.cilium.io", "CustomResourceDefinition ciliumcidrgroups.cilium.io"}
	for _, kind := range kinds {
		if made[kind] != Created {
			t.Errorf("%s: %q", kind, made[kind])
		}
	}
	codes := func(findings []preflight.Finding) (out []string) {
		for _, f := range findings {
			out = append(out, f.Code)
		}
		return out
	}
	if got := codes(findings); !slices.Equal(got, []string{preflight.NoCilium, preflight.IstioCapabilities}) {
		t.Errorf("got findings %v", got)
	}
	_, c, err := h.registration(ctx, "istio-alone")
	if err != nil || !c.WithoutCilium() || c.Mesh != federation.NoMesh {
		t.Fatalf("got registration %+v, error %v", c, err)
	}

	// The kinds validate as Cilium's own do, so that what is read back is what was written.
	objects, err := dynamic.NewForConfig(alone.Config)
	if err != nil {
		t.Fatal(err)
	}
	bad := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumCIDRGroup", "metadata": map[string]any{"name": "bad"},
		"spec": map[string]any{"externalCIDRs": "10.0.0.0/8"}}}
	if _, err := objects.Resource(federation.CiliumGroup.TargetResource).Create(ctx, bad, metav1.CreateOptions{}); err == nil {
		t.Error("the kind takes what Cilium's does not")
	}

	// Repeating the call keeps the declaration, and a kind that is there stays as it is.
	if _, err = join(""); err != nil {
		t.Fatal(err)
	}
	if n := counts(steps); n[Unchanged] != len(steps) {
		t.Errorf("second Run: got steps %v, want all unchanged", steps)
	}

	// A kind that was removed stops KubeFed for every member; the fix installs it again.
	crds := objects.Resource(resources["CustomResourceDefinition"])
	if err := crds.Delete(ctx, "ciliumcidrgroups.cilium.io", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	steps = nil
	if err := (&Fix{Host: h, Name: "istio-alone", Member: alone.Config, OnStep: func(s Step) { steps = append(steps, s) }}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.Object == kinds[1] && s.Outcome == Created }) {
		t.Errorf("got steps %v", steps)
	}

	// The declaration that Cilium is there has to be true.
	if findings, err = join("cilium"); !errors.Is(err, ErrRefused) || !slices.Contains(codes(findings), preflight.ConfigUnread) {
		t.Errorf("got error %v, findings %v", err, codes(findings))
	}
	if err := configure(alone); err != nil {
		t.Fatal(err)
	}
	if findings, err = join("cilium"); err != nil || slices.Contains(codes(findings), preflight.NoCilium) {
		t.Errorf("got error %v, findings %v", err, codes(findings))
	}
	if _, c, err = h.registration(ctx, "istio-alone"); err != nil || c.WithoutCilium() || c.Mesh != federation.NoMesh {
		t.Errorf("got registration %+v, error %v", c, err)
	}
}

// TestJoinRefusesAClusterWithoutEnforcer checks that a cluster with neither Cilium nor Istio does not join, whatever it declares, and
// that nothing is created there.
func TestJoinRefusesAClusterWithoutEnforcer(t *testing.T) {
	empty := testenv.Start(t, testenv.Options{})
	for enforcer, want := range map[string]struct{ code, text string }{
		"":      {preflight.KindMissing, "neither Cilium nor Istio is there"},
		"istio": {preflight.NoEnforcer, "install Istio 1.29"},
	} {
		var steps []Step
		j := joining(t, "no-enforcer", &steps)
		j.Member, j.Cluster.Endpoint, j.Cluster.CABundle, j.Cluster.Enforcer = empty.Config, empty.Config.Host, empty.Config.CAData, enforcer
		findings, err := j.Run(t.Context())
		if !errors.Is(err, ErrRefused) || !slices.ContainsFunc(findings, func(f preflight.Finding) bool {
			return f.Code == want.code && strings.Contains(f.Text().Text, want.text)
		}) {
			t.Errorf("enforcer %q: got error %v, findings %+v", enforcer, err, findings)
		}
		if len(steps) != 0 {
			t.Errorf("enforcer %q: got steps %v in a refused cluster", enforcer, steps)
		}
	}
}
