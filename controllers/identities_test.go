package controllers_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// identity creates an identity of an application's pods in a member, as Cilium's agents do.
func (s *scenario) identity(member, number, app string) *unstructured.Unstructured {
	s.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumIdentity",
		"metadata":        map[string]any{"name": number, "labels": map[string]any{"io.kubernetes.pod.namespace": "shop"}},
		"security-labels": map[string]any{"k8s:com.trip/appid": app, "k8s:io.kubernetes.pod.namespace": "shop"}}}
	if err := s.members[member].client.Create(s.ctx, u); err != nil {
		s.Fatal(err)
	}
	return u
}

// TestSubjectPrefixFollowsIdentities checks that a prefix of subjects selects the names in the members' identities as they are added and
// removed, and that the last known names of an unreachable member are kept.
func TestSubjectPrefixFollowsIdentities(t *testing.T) {
	s := newScenario(t, shared, "prefixes")
	s.protect(v1alpha1.ModeEnforce)
	s.identity("m1", "70001", "prefixes-a")
	s.grant(s.statement("team", "prefixes-*"))
	s.untilSpec("the first name is in the rule", s.resource(), "prefixes-a", true)
	gone := s.identity("m2", "70002", "prefixes-b")
	s.untilSpec("a new name is in the rule", s.resource(), "values:[prefixes-a prefixes-b]", true)

	s.members["m2"].proxy.Disconnect()
	defer s.members["m2"].proxy.Reconnect()
	s.untilStates("m2 is unreachable", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberUnreachable})
	s.identity("m1", "70003", "prefixes-c")
	s.untilSpec("the new name of m1 is in the rule beside the last names of m2", s.resource(), "values:[prefixes-a prefixes-b prefixes-c]", true)
	if err := s.members["m2"].client.Delete(s.ctx, gone); err != nil {
		t.Fatal(err)
	}
	s.members["m2"].proxy.Reconnect()
	s.untilSpec("the deleted name is not in the rule", s.resource(), "values:[prefixes-a prefixes-c]", true)
	if r := s.policy().Status.Refused; len(r) > 0 {
		t.Errorf("refused: %v", r)
	}
}

// TestResourcePrefixSelectsKnownNames checks that a prefix of resources selects the pods of the known names.
func TestResourcePrefixSelectsKnownNames(t *testing.T) {
	s := newScenario(t, shared, "narrow")
	narrow := v1alpha1.ResourceName("trnv1:rsc:trip-com:narrow:clusters:team-*")
	tool := s.statement("tool", "backup")
	tool.Resources = []v1alpha1.ResourceName{narrow}
	s.grant(tool)
	u := s.identity("m1", "70011", "unrelated")
	change(s, s.members["m1"].client, u, u.GetName(), func(u *unstructured.Unstructured) {
		u.Object["security-labels"] = map[string]any{"k8s:com.trip/narrow": "team-1"}
	})
	s.untilSpec("it selects the pods", narrow, "key:k8s:com.trip/narrow operator:In values:[team-1]", true)
	s.pushOf(federation.CiliumPolicy, unitObject(narrow))
	s.untilUnit("both members are realized", narrow, bothRealized)
	if err := s.members["m1"].client.Delete(s.ctx, u); err != nil {
		t.Fatal(err)
	}
	s.untilSpec("no name is left to select", narrow, "ingress:[map[]]", true)
}

// TestRestartKeepsNamesOfUnreachableMembers checks that a restart while a member is unreachable does not revoke access for names that only
// that member's identities have.
func TestRestartKeepsNamesOfUnreachableMembers(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host"}, "m1", "m2")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	s := newScenario(t, f, "restarts")
	s.protect(v1alpha1.ModeEnforce)
	s.identity("m1", "70001", "restarts-a")
	s.identity("m2", "70002", "restarts-b")
	s.grant(s.statement("team", "restarts-*"))
	s.untilSpec("both names are in the rule", s.resource(), "values:[restarts-a restarts-b]", true)
	s.pushUntilStates("both members are realized", bothRealized)
	u, _ := s.federated()

	s.members["m2"].proxy.Disconnect()
	if err := f.restart(); err != nil {
		t.Fatal(err)
	}
	s.untilStates("the new adapter has read the members", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberUnreachable})
	if now, _ := s.federated(); now.GetGeneration() != u.GetGeneration() {
		t.Errorf("the restart wrote the unit: %v", now.Object["spec"])
	}
	s.members["m2"].proxy.Reconnect()
	s.untilStates("m2 is back", bothRealized)
	s.identity("m1", "70003", "restarts-c")
	s.untilSpec("a new name is in the rule", s.resource(), "values:[restarts-a restarts-b restarts-c]", true)
	if now, _ := s.federated(); now.GetGeneration() != u.GetGeneration()+1 {
		t.Errorf("generation %d after %d: more than one write", now.GetGeneration(), u.GetGeneration())
	}
}
