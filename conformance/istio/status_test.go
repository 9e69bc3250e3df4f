package istio

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/enforcer"
	mesh "github.com/acp-io/acp/internal/enforcer/istio"
)

// untilReported waits until istiod has reported about the current version of a policy for ztunnel.
func (p *controlPlane) untilReported(ctx context.Context, name string) (mesh.ZtunnelStatus, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("security.istio.io/v1")
	u.SetKind("AuthorizationPolicy")
	deadline := time.Now().Add(pushTimeout)
	for {
		if err := p.client.Get(ctx, client.ObjectKey{Namespace: rootNamespace, Name: name}, u); err != nil {
			return mesh.ZtunnelStatus{}, fmt.Errorf("read the policy %s: %w", name, err)
		}
		if s := mesh.ZtunnelStatusOf(u.Object); s.Reported {
			return s, nil
		}
		if time.Now().After(deadline) {
			return mesh.ZtunnelStatus{}, fmt.Errorf("istiod does not report about the policy %s: %v", name, u.Object["status"])
		}
		time.Sleep(50 * time.Millisecond) // poll interval
	}
}

// TestIstiodReportsAboutZtunnel checks that istiod reports for each policy of worlds in ambient that ztunnel gets it as it is written, and
// what is read if it does not.
func TestIstiodReportsAboutZtunnel(t *testing.T) {
	p := startControlPlane(t)
	var objects []enforcer.Object
	for _, w := range newWorlds(t, []string{ambient}, 0, 40, nil) {
		objects = append(objects, w.objects...)
	}
	if err := p.write(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	enforcing := 0
	for i := range objects {
		s, err := p.untilReported(t.Context(), objects[i].Name)
		if err != nil {
			t.Fatal(err)
		}
		if s.Problem != "" {
			t.Errorf("%s: %s\n%v", objects[i].Name, s.Problem, objects[i].Spec)
		}
		if objects[i].Spec["action"] != "AUDIT" {
			enforcing++
		}
	}
	t.Logf("istiod accepts %d policies that enforce", enforcing)
	if enforcing < 40 {
		t.Errorf("only %d policies enforce", enforcing)
	}

	requests := map[string]any{"to": []any{map[string]any{"operation": map[string]any{"methods": []any{"GET"}, "ports": []any{"80"}}}}}
	connections := map[string]any{"to": []any{map[string]any{"operation": map[string]any{"ports": []any{"80"}}}}}
	selector := map[string]any{"matchLabels": map[string]any{"app": "x"}}
	u := policyObject(&enforcer.Object{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: "changed",
		Spec: map[string]any{"action": "ALLOW", "selector": selector, "rules": []any{requests}}})
	if err := p.client.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason      string
		rule        map[string]any
		annotations map[string]string
		says        string
	}{
		{"rules about requests are left out", requests, nil, "ztunnel does not support HTTP attributes (found: methods)"},
		{"it is changed to connections", connections, nil, ""},
		{"a dry run is none for ztunnel", requests, map[string]string{"istio.io/dry-run": "true"}, "dry-run"},
	} {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": c.annotations}, "spec": map[string]any{"rules": []any{c.rule}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.client.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
		s, err := p.untilReported(t.Context(), "changed")
		if err != nil {
			t.Fatal(err)
		}
		if (s.Problem == "") != (c.says == "") || !strings.Contains(s.Problem, c.says) {
			t.Errorf("%s: %+v", c.reason, s)
		}
	}
}
