package membership

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/testenv"
)

// TestJoinWithoutIstio checks that a cluster that declares no Istio gets Istio's kind only for the engine that reads it in every member, on a host
// that distributes it, and that the declaration stays.
func TestJoinWithoutIstio(t *testing.T) {
	ctx := t.Context()
	hosting := testenv.Start(t, testenv.Options{CRDs: []string{"controllers/testdata/host", "deploy/kubefed", "deploy/kubefed/istio"}})
	core := kubernetes.NewForConfigOrDie(hosting.Config)
	for _, n := range []string{kubeFedNamespace, acpNamespace} {
		if _, err := core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	h, err := NewHost(hosting.Config, kubeFedNamespace, acpNamespace)
	if err != nil {
		t.Fatal(err)
	}
	alone := testenv.Start(t, testenv.Options{CRDs: []string{"controllers/testdata/member"}})
	if err := configure(alone); err != nil {
		t.Fatal(err)
	}
	var steps []Step
	run := func(name string, engine federation.Engine, without bool) error {
		t.Helper()
		steps = nil
		j := joining(t, name, &steps)
		j.Host, j.Member, j.Cluster.Endpoint, j.Cluster.CABundle = h, alone.Config, alone.Config.Host, alone.Config.CAData
		j.Cluster.Engine, j.WithoutIstio = engine, without
		findings, err := j.Run(ctx)
		if err == nil && slices.ContainsFunc(findings, func(f preflight.Finding) bool { return f.Code == preflight.KindMissing }) {
			t.Errorf("%s: got findings %+v", name, findings)
		}
		return err
	}
	ofIstio := func() []Step {
		return slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return !strings.Contains(s.Object, "istio") })
	}

	for _, without := range []bool{true, false} { // repeating the command keeps the declaration
		if err := run("cilium-alone", federation.EngineDirect, without); err != nil {
			t.Fatal(err)
		}
		if made := ofIstio(); len(made) != 0 {
			t.Errorf("got steps %v", made)
		}
		if _, c, err := h.registration(ctx, "cilium-alone"); err != nil || !c.WithoutIstio() || c.NeedsIstioKind() {
			t.Errorf("got registration %+v, error %v", c, err)
		}
	}
	fix := &Fix{Host: h, Name: "cilium-alone", Member: alone.Config, OnStep: func(s Step) { steps = append(steps, s) }}
	if steps = nil; fix.Run(ctx) != nil || len(ofIstio()) != 0 {
		t.Errorf("the fix brings parts of Istio: %v", ofIstio())
	}

	if err := run("pushed", federation.EngineKubeFed, true); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(steps, func(s Step) bool {
		return strings.HasPrefix(s.Object, "CustomResourceDefinition") && s.Outcome == Created
	}) {
		t.Errorf("KubeFed reads the kind in every member, and it was not created: %v", steps)
	}

	if err := run("meshed", federation.EngineDirect, false); err != nil {
		t.Fatal(err)
	}
	clusters := h.dynamic.Resource(federation.ClusterResource).Namespace(kubeFedNamespace)
	u, err := clusters.Get(ctx, "meshed", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	annotations := u.GetAnnotations()
	annotations[federation.AnnotationIstio] = `{"dataplane": "sidecar", "version": "1.31.2"}`
	u.SetAnnotations(annotations)
	if _, err := clusters.Update(ctx, u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := run("meshed", federation.EngineDirect, true); !errors.Is(err, ErrDeclaresIstio) {
		t.Errorf("got error %v", err)
	}
}
