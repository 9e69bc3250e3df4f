package controllers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// TestMixedFleet checks a fleet in which KubeFed carries to m1, and the direct engine to m2: grants, revocations and removals reach m2
// without KubeFed, and m1 only through KubeFed, and a member moves between the engines without a moment in which it lacks its policy.
func TestMixedFleet(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host"}, "m1", "m2")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	s := newScenario(t, f, "mixed")
	s.useEngine("m2", federation.EngineDirect)
	s.protect(v1alpha1.ModeEnforce)
	s.grant(s.statement("a", "1"), s.statement("b", "2"))
	both := map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberRealized}
	s.untilStates("m2 has the policy without KubeFed", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberRealized})
	s.pushUntilStates("both have the policy", both)

	s.revoke("b")
	s.untilStates("m2 has the revocation without KubeFed", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberRealized})
	if by := s.writerIn("m2"); by != "acp-adapter-direct" {
		t.Errorf("m2 was written by %q", by)
	}
	s.pushUntilStates("both have the revocation", both)

	for _, engine := range []federation.Engine{federation.EngineKubeFed, federation.EngineDirect} {
		probe := s.probe("m2")
		s.useEngine("m2", engine)
		s.push()
		s.alsoGrant("moved-to-" + string(engine))
		if engine == federation.EngineKubeFed {
			s.untilStates("only KubeFed carries to m2", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberPending})
		}
		s.pushUntilStates("the member has what was granted after the move to "+string(engine), both)
		probe()
	}

	change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(o *v1alpha1.ProtectedResource) { o.Spec.Mode = v1alpha1.ModeObserve })
	s.until("the record is gone", func() string {
		s.pushOf(federation.CiliumPolicy, s.object())
		if _, o := s.federated(); o != nil {
			return fmt.Sprintf("placed in %v, maybe in %v", o.Placement, o.EverPlaced())
		}
		return ""
	})
	for name, m := range f.members {
		if err := m.client.Get(s.ctx, types.NamespacedName{Name: s.object()}, s.ccnp()); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%s still has the policy: %v", name, err)
		}
	}
}

// TestFleetWithoutKubeFed checks that a record is removed when no member depends on KubeFed, although its controller does not run.
func TestFleetWithoutKubeFed(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host"}, "m1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := f.stopFinalizers(); err != nil {
		t.Fatal(err)
	}
	s := newScenario(t, f, "alone")
	s.useEngine("m1", federation.EngineDirect)
	s.protect(v1alpha1.ModeEnforce)
	s.grant(s.statement("a", "1"))
	s.untilStates("the member has the policy", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized})
	if err := f.restart(); err != nil {
		t.Fatal(err)
	}
	s.revoke("a")
	s.untilStates("the member has the revocation after a restart", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized})
	change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(o *v1alpha1.ProtectedResource) { o.Spec.Mode = v1alpha1.ModeObserve })
	s.until("the record is gone", func() string {
		if _, o := s.federated(); o != nil {
			return fmt.Sprintf("placed in %v, maybe in %v", o.Placement, o.EverPlaced())
		}
		return ""
	})
	if err := f.members["m1"].client.Get(s.ctx, types.NamespacedName{Name: s.object()}, s.ccnp()); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the member still has the policy: %v", err)
	}
}

// useEngine registers a member with an engine, as a join does.
func (s *scenario) useEngine(member string, engine federation.Engine) {
	s.Helper()
	secret, annotation := federation.PusherSecretName(member), any(nil)
	if engine == federation.EngineDirect {
		secret, annotation = federation.DirectSecretName(member), string(engine)
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{federation.AnnotationEngine: annotation}},
		"spec": map[string]any{"secretRef": map[string]any{"name": secret}}})
	if err != nil {
		s.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("core.kubefed.io/v1beta1")
	u.SetKind("KubeFedCluster")
	u.SetNamespace(fedNS)
	u.SetName(member)
	if err := s.host.Patch(s.ctx, u, client.RawPatch(types.MergePatchType, raw)); err != nil {
		s.Fatal(err)
	}
}

// revoke removes a statement from the scenario's policy.
func (s *scenario) revoke(sid string) {
	s.Helper()
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) {
		var kept []v1alpha1.Statement
		for _, st := range p.Spec.Statements {
			if st.SID != sid {
				kept = append(kept, st)
			}
		}
		p.Spec.Statements = kept
	})
}

// alsoGrant adds a statement to the scenario's policy.
func (s *scenario) alsoGrant(app string) {
	s.Helper()
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = append(p.Spec.Statements, s.statement(app, app))
	})
}

// writerIn returns the field manager that owns the spec of the policy in a member.
func (s *scenario) writerIn(member string) string {
	s.Helper()
	u := s.ccnp()
	if err := s.members[member].client.Get(s.ctx, types.NamespacedName{Name: s.object()}, u); err != nil {
		s.Fatal(err)
	}
	by := metav1.ManagedFieldsEntry{}
	for _, m := range u.GetManagedFields() {
		if m.Time != nil && (by.Time == nil || !m.Time.Before(by.Time)) {
			by = m
		}
	}
	return by.Manager
}

// probe watches a member's policy without pause until the returned function is called, which fails the test if the policy was missing,
// did not deny by default, or admitted an application whose grant was revoked.
func (s *scenario) probe(member string) (end func()) {
	s.Helper()
	stop, problem := make(chan struct{}), make(chan string, 1)
	c, u := s.members[member].client, s.ccnp()
	go func() {
		defer close(problem)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := c.Get(s.ctx, types.NamespacedName{Name: s.object()}, u); err != nil {
				problem <- err.Error()
				return
			}
			closed, _, _ := unstructured.NestedBool(u.Object, "spec", "enableDefaultDeny", "ingress")
			raw, err := json.Marshal(u.Object["spec"])
			if err != nil || !closed {
				problem <- fmt.Sprintf("it does not deny by default: %s, %v", raw, err)
				return
			}
			if admits(raw, "2") {
				problem <- fmt.Sprintf("the revoked grant is back: %s", raw)
				return
			}
			time.Sleep(time.Millisecond) // probe interval
		}
	}()
	return func() {
		s.Helper()
		close(stop)
		if p, failed := <-problem; failed {
			s.Errorf("while %s moved: %s", member, p)
		}
	}
}

// admits reports whether a spec names an application.
func admits(spec []byte, app string) bool {
	return bytes.Contains(spec, []byte(`"`+app+`"`))
}
