package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
)

// TestDowngradedMemberIsNotWritten checks that a member with a downgrade mark is never realized, is excluded from KubeFed, keeps its
// policies whatever changes on the host, and gets the current policies after the mark is removed.
func TestDowngradedMemberIsNotWritten(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host"}, "m1", "m2")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	s := enforcedOn(t, f, "opened")
	m2 := s.members["m2"].client
	mark := guard.DowngradeMark{Since: time.Now(), By: "alice", Reason: "the shop is closed"}.Object()
	if err := m2.Create(s.ctx, mark); err != nil {
		t.Fatal(err)
	}
	opened := s.ccnp()
	if err := m2.Get(s.ctx, client.ObjectKeyFromObject(opened), opened); err != nil {
		t.Fatal(err)
	}
	spec, _ := opened.Object["spec"].(map[string]any)
	audited, revision := cilium.AuditSpecRevision(spec)
	opened.Object["spec"] = audited
	labels := opened.GetLabels()
	labels[v1alpha1.LabelRevision] = revision
	opened.SetLabels(labels)
	if err := m2.Update(s.ctx, opened); err != nil {
		t.Fatal(err)
	}
	half := map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberDowngraded}
	s.untilStates("it is downgraded", half)
	if m := s.message("m2"); !strings.Contains(m, "alice (the shop is closed)") || !strings.Contains(m, "kubectl acp resume") {
		t.Errorf("%q", m)
	}
	s.until("it is excluded from KubeFed", func() string {
		c := s.registration("m2")
		if !c.Quarantined || c.DowngradeMark == nil || c.DowngradeMark.By != "alice" || c.Secret != federation.PusherSecretName("m2") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})

	s.untilMemberStatus("the member itself is downgraded, and not quarantined", "m2", func(m v1alpha1.MemberClusterStatus) bool {
		return m.State == v1alpha1.MemberClusterDowngraded && m.Downgrade != nil && m.Downgrade.By == "alice"
	})

	// A revocation is not propagated there, and the policy reports that.
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements[0].Subjects = []v1alpha1.Subject{v1alpha1.Subject("trnv1:rsc:trip-com:" + s.service + ":sa:app/999")}
	})
	s.until("m1 has the wanted revision", func() string {
		s.push()
		for _, c := range s.protected().Status.Clusters {
			if c.Name == "m1" && (c.State != v1alpha1.MemberRealized || c.DesiredRevision != s.protected().Status.Revision) {
				return fmt.Sprint(c)
			}
		}
		return ""
	})
	s.untilStates("m2 is not reported as realized", half)
	s.untilPlaced("m1", "m2")
	other := newScenario(t, f, "meanwhile")
	other.protect(v1alpha1.ModeEnforce)
	other.untilPlaced("m1")

	if err := m2.Delete(s.ctx, mark); err != nil {
		t.Fatal(err)
	}
	s.until("it is no longer excluded from KubeFed", func() string {
		if c := s.registration("m2"); c.Quarantined || c.DowngradeMark != nil {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	other.untilPlaced("m1", "m2")
	s.pushUntilStates("it has the current policies", bothRealized)

	orphan := target(federation.CiliumPolicy, "acp-orphan")
	orphan.Object["spec"] = audited
	if err := m2.Create(s.ctx, orphan); err != nil {
		t.Fatal(err)
	}
	s.untilMemberStatus("an object without a unit is a finding", "m2", func(m v1alpha1.MemberClusterStatus) bool {
		return m.State == v1alpha1.MemberClusterReady && slices.ContainsFunc(m.Findings, func(x v1alpha1.MemberFinding) bool {
			return x.Code == v1alpha1.FindingOrphan && x.Object == "acp-orphan"
		})
	})
}
