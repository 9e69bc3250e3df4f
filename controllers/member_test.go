package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

func (s *scenario) edit(member string, modify func(*unstructured.Unstructured)) {
	s.Helper()
	change(s, s.members[member].client, s.ccnp(), s.object(), modify)
}

func (s *scenario) message(member string) string {
	for _, c := range s.protected().Status.Clusters {
		if string(c.Name) == member {
			return c.Message
		}
	}
	return ""
}

func TestDriftIsReportedUntilRepaired(t *testing.T) {
	s := enforced(t, "drifts")
	s.edit("m2", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, false, "spec", "enableDefaultDeny", "ingress")
	})
	s.untilStates("the change is reported", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberDrifted})
	s.pushUntilStates("the repair is reported", bothRealized)
}

func TestDeletionInAMemberIsDriftWithoutAuthor(t *testing.T) {
	s := enforced(t, "undeleted")
	u := s.ccnp()
	if err := s.members["m2"].client.Delete(s.ctx, u); err != nil {
		t.Fatal(err)
	}
	s.untilStates("the deletion is reported", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberDrifted})
	if m := s.message("m2"); !strings.Contains(m, "policy "+s.object()+" was deleted in the member") || !strings.Contains(m, "audit log") {
		t.Errorf("the message lacks what happened and where to look: %q", m)
	}
	s.pushUntilStates("the repair is reported", bothRealized)
}

func TestRulesBesideTheSpecAreDrift(t *testing.T) {
	s := enforced(t, "besides")
	s.edit("m2", func(u *unstructured.Unstructured) {
		u.Object["specs"] = []any{map[string]any{"ingress": []any{map[string]any{"fromEntities": []any{"all"}}}}}
	})
	s.untilStates("the rules in specs are reported", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberDrifted})
	// They select the pods of every resource, so those of the other tests are overridden until the rules are removed.
	s.edit("m2", func(u *unstructured.Unstructured) { delete(u.Object, "specs") })
	s.untilStates("the rules in specs are removed", bothRealized)
}

func TestRulesBesideTheTemplatesSpecAreRemoved(t *testing.T) {
	s := enforced(t, "templates")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(federation.CiliumPolicy.Federated)
	change(s, s.host, u, s.object(), func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedSlice(u.Object, []any{map[string]any{"ingress": []any{map[string]any{"fromEntities": []any{"all"}}}}},
			"spec", "template", "specs"); err != nil {
			t.Fatal(err)
		}
	})
	s.until("the additional rules are removed", func() string {
		u, _ := s.federated()
		if _, has, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "specs"); has {
			return "specs is still there"
		}
		return ""
	})
}

func TestPolicyThatTheDataplaneRefusesIsNotRealized(t *testing.T) {
	s := enforced(t, "invalids")
	valid := func(status string) {
		u := s.ccnp()
		if err := s.members["m1"].client.Get(s.ctx, types.NamespacedName{Name: s.object()}, u); err != nil {
			t.Fatal(err)
		}
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Valid", "status": status, "message": "too many ports"}}}
		if err := s.members["m1"].client.Status().Update(s.ctx, u); err != nil {
			t.Fatal(err)
		}
	}
	valid("False")
	s.untilStates("the refusal is reported", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberRealized})
	if m := s.message("m1"); !strings.Contains(m, "too many ports") {
		t.Errorf("the message lacks the dataplane's reason: %q", m)
	}
	valid("True")
	s.untilStates("the refusal is gone", bothRealized)
}

func TestUnreachableMemberIsReportedAndCatchesUp(t *testing.T) {
	s := enforced(t, "outages")
	s.members["m2"].proxy.Disconnect()
	defer s.members["m2"].proxy.Reconnect()
	s.untilStates("the outage is reported", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberUnreachable})
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = append(p.Spec.Statements, s.statement("two", "889"))
	})
	s.until("the grant is reported", func() string { return s.unitHas("one", "two") })
	s.pushUntilStates("the reachable member has it", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberUnreachable})
	s.members["m2"].proxy.Reconnect()
	s.untilStates("the member is back, with the old revision", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending})
	s.pushUntilStates("the member has caught up", bothRealized)
}

func TestClusterModesBecomeOverrides(t *testing.T) {
	s := enforced(t, "overrides")
	change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(o *v1alpha1.ProtectedResource) {
		o.Spec.ClusterModes = []v1alpha1.ClusterMode{{Cluster: "m2", Mode: v1alpha1.ModeAudit}}
	})
	s.until("m2 gets its own spec", func() string {
		_, o := s.federated()
		over, ok := o.Overrides["m2"]
		if !ok || len(o.Overrides) != 1 {
			return fmt.Sprintf("overrides %v", o.Overrides)
		}
		deny, _, _ := unstructured.NestedBool(over.Spec, "enableDefaultDeny", "ingress")
		base, _, _ := unstructured.NestedBool(o.TemplateSpec, "enableDefaultDeny", "ingress")
		if deny || !base || over.Labels[v1alpha1.LabelRevision] == o.TemplateLabels[v1alpha1.LabelRevision] {
			return fmt.Sprintf("override %v of %v", over, o.TemplateSpec)
		}
		return ""
	})
	s.pushUntilStates("both have their own revision", bothRealized)
	states := s.protected().Status.Clusters
	if states[0].Mode != v1alpha1.ModeEnforce || states[1].Mode != v1alpha1.ModeAudit || states[0].DesiredRevision == states[1].DesiredRevision {
		t.Errorf("states %v", states)
	}

	change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(o *v1alpha1.ProtectedResource) {
		o.Spec.ClusterModes[0].Mode = v1alpha1.ModeObserve
	})
	s.untilPlaced("m1")
	s.untilStates("m2 still has it", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending})
	s.pushUntilStates("m2 no longer has it", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized})
}

func TestForeignChangesOfTheFederatedObjectAreReverted(t *testing.T) {
	s := enforced(t, "foreign")
	u, _ := s.federated()
	change(s, s.host, u, s.object(), func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(u.Object, map[string]any{}, "spec", "placement", "clusterSelector")
		_ = unstructured.SetNestedSlice(u.Object, []any{}, "spec", "placement", "clusters")
	})
	s.untilPlaced("m1", "m2")
	s.until("the selector is gone", func() string {
		u, o := s.federated()
		if o.ForeignFields {
			return fmt.Sprint(u.Object["spec"])
		}
		return ""
	})
	if err := s.host.Delete(s.ctx, u); err != nil {
		t.Fatal(err)
	}
	s.until("the object is there again", func() string {
		if now, _ := s.federated(); now == nil || now.GetUID() == u.GetUID() {
			return "it is not"
		}
		return ""
	})
}

func TestRotatedTokenIsUsed(t *testing.T) {
	s := enforced(t, "rotations")
	setToken := func(token string) {
		secret := &unstructured.Unstructured{}
		secret.SetAPIVersion("v1")
		secret.SetKind("Secret")
		if err := s.host.Get(s.ctx, types.NamespacedName{Namespace: acpNS, Name: federation.SecretName("m1")}, secret); err != nil {
			t.Fatal(err)
		}
		_ = unstructured.SetNestedField(secret.Object, encode([]byte(token)), "data", "token")
		if err := s.host.Update(s.ctx, secret); err != nil {
			t.Fatal(err)
		}
	}
	setToken("an-unknown-token")
	s.untilStates("the wrong token is reported", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberUnreachable, "m2": v1alpha1.MemberRealized})
	s.until("the message names the Secret", func() string {
		if m := s.message("m1"); !strings.Contains(m, "renew the Secret acp-reader-m1") {
			return m
		}
		return ""
	})
	// Until the configuration is read again, resources that are protected meanwhile are audited in m1 and then written a second
	// time, which would disturb the next test.
	s.untilMemberStatus("the configuration is unknown", "m1", configUnread)
	setToken(readerToken)
	s.untilStates("the right token works", bothRealized)
	s.untilMemberStatus("the configuration is known again", "m1", func(m v1alpha1.MemberClusterStatus) bool { return !configUnread(m) })
}

// configUnread reports whether the status of a member says that the configuration of Cilium could not be read.
func configUnread(m v1alpha1.MemberClusterStatus) bool {
	return slices.ContainsFunc(m.Findings, func(f v1alpha1.MemberFinding) bool { return f.Code == preflight.ConfigUnread })
}
