package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

func (s *scenario) app(name string) v1alpha1.Subject {
	return v1alpha1.Subject("trnv1:rsc:trip-com:" + s.service + ":sa:app/" + name)
}

func (s *scenario) group(app string) string {
	return v1alpha1.ObjectPrefix + policy.UnitID(string(s.app(app)))
}

func (s *scenario) externalWorkload(name, app string, addresses ...string) {
	s.Helper()
	s.create(&v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(s.app(app)), Addresses: addresses}})
}

// untilGroup waits for a group with exactly these addresses in these members.
func (s *scenario) untilGroup(app string, addresses []string, members ...string) {
	s.Helper()
	s.until("the group of "+app, func() string {
		_, o := s.federatedOf(federation.CiliumGroup, s.group(app))
		if o == nil {
			return "no federated object"
		}
		if got := fmt.Sprint(o.TemplateSpec["externalCIDRs"]); got != fmt.Sprint(addresses) || !slices.Equal(o.Placement, members) {
			return fmt.Sprintf("it has %s in %v", got, o.Placement)
		}
		return ""
	})
}

// untilGone waits until the federated group is gone, and acts as KubeFed meanwhile.
func (s *scenario) untilGone(app string) {
	s.Helper()
	s.until("the group of "+app+" is gone", func() string {
		_, o := s.federatedOf(federation.CiliumGroup, s.group(app))
		if o == nil {
			return ""
		}
		if len(o.Placement) == 0 {
			s.pushOf(federation.CiliumGroup, s.group(app))
		}
		return "it is there"
	})
}

var bothPending = map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberPending}

// TestExternalWorkloadIsRealizedWithItsGroup checks that an external workload is allowed by a group of its addresses, and that the unit is
// realized only in members where the group was read back as well.
func TestExternalWorkloadIsRealizedWithItsGroup(t *testing.T) {
	s := newScenario(t, shared, "machines")
	s.externalWorkload("machines-vm", "vm", "10.9.0.1")
	s.until("the workload is accepted", func() string {
		var w v1alpha1.ExternalWorkload
		if err := s.host.Get(s.ctx, types.NamespacedName{Name: "machines-vm"}, &w); err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionAccepted); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Sprint(c)
		}
		return ""
	})
	s.untilGroup("vm", []string{"10.9.0.1/32"}, "m1", "m2")
	s.protect(v1alpha1.ModeEnforce)
	// The resource is closed before the grant, because a unit that closes its pods and allows a group waits for that group.
	s.untilPlaced("m1", "m2")
	s.grant(s.statement("one", "vm"))
	s.until("the grant is in the unit", func() string { return s.unitHas("one") })
	s.until("the unit refers to the group", func() string {
		_, o := s.federated()
		if o == nil || !strings.Contains(fmt.Sprint(o.TemplateSpec), "cidrGroupRef:"+s.group("vm")) {
			return "it does not"
		}
		return ""
	})
	s.pushUntilStates("the group is missing", bothPending)
	s.pushOf(federation.CiliumGroup, s.group("vm"))
	s.untilStates("both members have the policy and the group", bothRealized)

	change(s, s.host, &v1alpha1.ExternalWorkload{}, "machines-vm", func(w *v1alpha1.ExternalWorkload) { w.Spec.Addresses = []string{"10.9.0.2"} })
	s.untilGroup("vm", []string{"10.9.0.2/32"}, "m1", "m2")
	s.untilStates("the old address is still allowed", bothPending)
	s.pushOf(federation.CiliumGroup, s.group("vm"))
	s.untilStates("the new address is allowed", bothRealized)

	if err := s.host.Delete(s.ctx, &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: "machines-vm"}}); err != nil {
		t.Fatal(err)
	}
	s.until("the unit does not refer to it any more", func() string {
		_, o := s.federated()
		if strings.Contains(fmt.Sprint(o.TemplateSpec), "cidrGroupRef") {
			return "it does"
		}
		return ""
	})
	s.untilGone("vm")
	s.pushUntilStates("both members are realized again", bothRealized)
	for name, m := range s.members {
		if err := m.client.Get(s.ctx, types.NamespacedName{Name: s.group("vm")}, target(federation.CiliumGroup, s.group("vm"))); err == nil {
			t.Errorf("%s still has the group", name)
		}
	}
}

// TestRemovedGroupCountsUntilItIsGone checks that a unit is not realized while a group that is being removed is in a member: a rule for a
// whole class selects groups by label.
func TestRemovedGroupCountsUntilItIsGone(t *testing.T) {
	s := newScenario(t, shared, "classwide")
	s.externalWorkload("classwide-a", "a", "10.9.1.1")
	s.externalWorkload("classwide-b", "b", "10.9.1.2")
	s.protect(v1alpha1.ModeEnforce)
	s.grant(s.statement("all", "*"))
	s.until("the grant is in the unit", func() string { return s.unitHas("all") })
	both := []string{"m1", "m2"}
	s.untilGroup("a", []string{"10.9.1.1/32"}, both...)
	s.untilGroup("b", []string{"10.9.1.2/32"}, both...)
	// The unit closes its pods, so it is written after the groups that it allows.
	s.pushOf(federation.CiliumGroup, s.group("a"))
	s.pushOf(federation.CiliumGroup, s.group("b"))
	s.pushUntilStates("both members have everything", bothRealized)

	s.members["m2"].proxy.Disconnect()
	defer s.members["m2"].proxy.Reconnect()
	if err := s.host.Delete(s.ctx, &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: "classwide-b"}}); err != nil {
		t.Fatal(err)
	}
	s.untilGroup("b", []string{"10.9.1.2/32"})
	s.untilStates("the machine is still allowed", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberUnreachable})
	s.pushOf(federation.CiliumGroup, s.group("b"))
	s.untilStates("m2 may still have the group", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberUnreachable})
	if u, _ := s.federatedOf(federation.CiliumGroup, s.group("b")); u == nil || u.GetDeletionTimestamp() != nil {
		t.Fatal("the group was deleted while a member that has it is unreachable")
	}
	s.members["m2"].proxy.Reconnect()
	s.untilStates("m2 has it without being placed", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberLeaked})
	s.untilGone("b")
	s.untilStates("it is gone", bothRealized)
}

// TestStatementsThatNeedGroupsAreRefusedWithoutTheirKind checks that statements about external workloads are refused while KubeFed cannot
// propagate groups: a deny without its addresses would deny nothing.
func TestStatementsThatNeedGroupsAreRefusedWithoutTheirKind(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed/ciliumclusterwidenetworkpolicies.yaml", "controllers/testdata/host"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	s := newScenario(t, f, "kindless")
	s.externalWorkload("kindless-vm", "vm", "10.9.2.1")
	s.protect(v1alpha1.ModeEnforce)
	deny := s.statement("no", "vm")
	deny.Effect = v1alpha1.EffectDeny
	s.grant(deny)
	s.until("the deny is refused", func() string {
		if r := s.policy().Status.Refused; len(r) != 1 || r[0].Reason != v1alpha1.RefusedUnsupported {
			return fmt.Sprint(r)
		}
		return ""
	})
	install(s, repositoryFile("deploy/kubefed/ciliumcidrgroups.yaml"))
	s.untilGroup("vm", []string{"10.9.2.1/32"})
	s.until("the deny is accepted", func() string {
		if r := s.policy().Status.Refused; len(r) != 0 {
			return fmt.Sprint(r)
		}
		return ""
	})
}
