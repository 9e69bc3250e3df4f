package istio

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

const sharedConfigMap = "shared"

// writeMeshConfig writes the ConfigMap with a mesh configuration.
func (p *controlPlane) writeMeshConfig(ctx context.Context, name, config string) error {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rootNamespace, Name: name}, Data: map[string]string{"mesh": config}}
	err := p.client.Create(ctx, o)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		err = p.client.Update(ctx, o)
	}
	if err != nil {
		return fmt.Errorf("write the ConfigMap %s: %w", name, err)
	}
	return nil
}

// untilApplied waits until istiod sends a sidecar with these labels rules, or none.
func (p *controlPlane) untilApplied(ctx context.Context, labels map[string]string, applied bool) error {
	deadline := time.Now().Add(pushTimeout)
	for {
		got, err := sidecarOf(ctx, p.istiod, labels)
		switch {
		case err == nil && (len(got.http) > 0) == applied:
			return nil
		case time.Now().After(deadline):
			return errors.Join(err, errors.New("istiod sends something else"))
		}
		time.Sleep(20 * time.Millisecond) // poll interval
	}
}

// TestMeshConfigIsReadAsIstiodDoes checks that istiod applies a policy of the root namespace to the whole mesh exactly if the preflight finds that it
// does, for mesh configurations in the ConfigMap of istiod and in the one of SHARED_MESH_CONFIG.
func TestMeshConfigIsReadAsIstiodDoes(t *testing.T) {
	const (
		neither  = "trustDomain: cluster.local\n"
		own      = "rootNamespace: " + rootNamespace + "\n"
		other    = "rootNamespace: mesh\n"
		selected = "discoverySelectors: [{matchLabels: {kubernetes.io/metadata.name: " + rootNamespace + "}}]\n"
		excluded = "discoverySelectors: [{matchLabels: {kubernetes.io/metadata.name: shop}}]\n"
	)
	p, start := newControlPlane(t)
	ctx := t.Context()
	p.sharedConfig = sharedConfigMap
	for name, config := range map[string]string{"istio": own, sharedConfigMap: neither} {
		if err := p.writeMeshConfig(ctx, name, config); err != nil {
			t.Fatal(err)
		}
	}
	labels := map[string]string{"app": "istiod"}
	if err := p.client.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: rootNamespace, Name: "istiod"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "discovery", Image: "istio/pilot",
				Env: []corev1.EnvVar{{Name: "SHARED_MESH_CONFIG", Value: sharedConfigMap}}}}}}}}); err != nil {
		t.Fatal(err)
	}
	start()
	if err := p.untilPushed(ctx); err != nil {
		t.Fatal(err)
	}
	marked := map[string]string{"marker": fmt.Sprint("m", p.pushed)}
	for _, c := range []struct {
		reason, shared, config string
		applied                bool
	}{
		{"only the shared one names a root", other, neither, false},
		{"the one of istiod takes precedence", other, own, true},
		{"also if it names another root", own, other, false},
		{"neither names one", neither, neither, true},
		{"null is no value", other, "rootNamespace: null\n", false},
		{"no root at all", neither, "rootNamespace: \"\"\n", false},
		{"the selectors include the root namespace", neither, own + selected, true},
		{"a field has a second name", "root_namespace: mesh\n", neither, false},
		{"the shared one selects namespaces", excluded, own, false},
		{"lists are replaced and not merged", excluded, own + selected, true},
		{"also by those that do not select it", selected, own + excluded, false},
		{"also by empty ones", excluded, own + "discoverySelectors: []\n", true},
	} {
		if err := errors.Join(p.writeMeshConfig(ctx, sharedConfigMap, c.shared), p.writeMeshConfig(ctx, "istio", c.config)); err != nil {
			t.Fatal(err)
		}
		found := preflight.ReadConfig(ctx, "m", p.config, "", federation.DefaultLocations()).Istio.Config
		if why := found.Unread; !why.IsZero() {
			t.Fatalf("%s: %s", c.reason, why.Text)
		}
		if found.Ignored.IsZero() != c.applied {
			t.Errorf("%s: the preflight finds %q", c.reason, found.Ignored.Text)
		}
		if err := p.untilApplied(ctx, marked, c.applied); err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}
