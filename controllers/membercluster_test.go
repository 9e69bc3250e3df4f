package controllers_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// memberCluster returns the MemberCluster of a member, or nil.
func (s *scenario) memberCluster(member string) *v1alpha1.MemberCluster {
	s.Helper()
	var o v1alpha1.MemberCluster
	if err := s.host.Get(s.ctx, types.NamespacedName{Name: member}, &o); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		s.Fatal(err)
	}
	return &o
}

// untilMemberStatus waits until the status of a MemberCluster satisfies check, and returns it.
func (s *scenario) untilMemberStatus(what, member string, check func(v1alpha1.MemberClusterStatus) bool) v1alpha1.MemberClusterStatus {
	s.Helper()
	var found v1alpha1.MemberClusterStatus
	s.until(what, func() string {
		o := s.memberCluster(member)
		if o == nil {
			return "there is no MemberCluster"
		}
		if found = o.Status; !check(found) {
			return fmt.Sprintf("%+v", found)
		}
		return ""
	})
	return found
}

func identity(number, app string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"security-labels": map[string]any{
		"k8s:io.kubernetes.pod.namespace": "default", "k8s:com.trip/team": app}}}
	u.SetAPIVersion("cilium.io/v2")
	u.SetKind("CiliumIdentity")
	u.SetName(number)
	return u
}

// TestMemberClusterStatusFollowsTheMember checks the statuses of members through drift, outage, leaving and removal, on a fleet of its own.
func TestMemberClusterStatusFollowsTheMember(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host"}, "m1", "m2")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	s := enforcedOn(t, f, "statuses")
	for _, app := range []string{"1", "2", "3"} {
		if err := s.members["m1"].client.Create(s.ctx, identity("100"+app, app)); err != nil {
			t.Fatal(err)
		}
	}
	now := s.untilMemberStatus("a healthy member is ready", "m1", func(m v1alpha1.MemberClusterStatus) bool {
		return m.State == v1alpha1.MemberClusterReady && m.Objects == v1alpha1.MemberObjects{Managed: 1, Realized: 1} && m.Identities != nil &&
			m.Identities.Used == 3 &&
			m.Guard == v1alpha1.GuardMissing
	})
	if !strings.HasPrefix(now.KubernetesVersion, "v1.") || now.Message != "" || !meta.IsStatusConditionTrue(now.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("%+v", now)
	}
	if i := now.Identities; i.Limit != 65280 || len(i.Labels) != 2 || i.Labels[0] != (v1alpha1.IdentityLabel{Key: "com.trip/team", Values: 3}) {
		t.Errorf("%+v", i)
	}
	if p := now.PolicyMap; p == nil || p.Unit != string(s.resource()) || p.Highest < 1 || p.Limit != 16384 {
		t.Errorf("%+v", p)
	}

	t.Log("statuses without changes are not written")
	version := s.memberCluster("m1").ResourceVersion
	s.edit("m2", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, false, "spec", "enableDefaultDeny", "ingress")
	})
	s.untilMemberStatus("the drift is counted", "m2", func(m v1alpha1.MemberClusterStatus) bool { return m.Objects.Drifted == 1 && m.Objects.Realized == 0 })
	s.push()
	s.untilMemberStatus("the drift is repaired", "m2", func(m v1alpha1.MemberClusterStatus) bool { return m.Objects.Realized == 1 })
	if after := s.memberCluster("m1").ResourceVersion; after != version {
		t.Errorf("m1 was written again: %s, %s", version, after)
	}

	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]int{}
	for _, family := range families {
		counted[family.GetName()] = len(family.GetMetric())
	}
	// One member had a drift, and both have realized a revision.
	for name, want := range map[string]int{
		"acp_member_state": 10, "acp_drift_total": 1, "acp_realize_seconds": 2, "acp_propagate_seconds": 2, "acp_identities_used": 1,
	} {
		if counted[name] != want {
			t.Errorf("%d series of %s, want %d", counted[name], name, want)
		}
	}

	s.members["m2"].proxy.Disconnect()
	now = s.untilMemberStatus("an outage is reported", "m2", func(m v1alpha1.MemberClusterStatus) bool {
		return m.State == v1alpha1.MemberClusterUnreachable && m.Objects.Pending == 1
	})
	if !strings.Contains(now.Message, "does not answer") || now.KubernetesVersion == "" || meta.IsStatusConditionTrue(now.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("%+v", now)
	}
	s.members["m2"].proxy.Reconnect()
	s.untilMemberStatus("the outage is over", "m2", func(m v1alpha1.MemberClusterStatus) bool { return m.State == v1alpha1.MemberClusterReady })

	c := &unstructured.Unstructured{}
	c.SetAPIVersion("core.kubefed.io/v1beta1")
	c.SetKind("KubeFedCluster")
	c.SetNamespace(fedNS)
	c.SetName("m2")
	if err := s.host.Get(s.ctx, types.NamespacedName{Namespace: fedNS, Name: "m2"}, c); err != nil {
		t.Fatal(err)
	}
	c.SetAnnotations(map[string]string{federation.AnnotationLeaving: "yes"})
	if err := s.host.Update(s.ctx, c); err != nil {
		t.Fatal(err)
	}
	now = s.untilMemberStatus("a leaving member is reported", "m2", func(m v1alpha1.MemberClusterStatus) bool {
		return m.State == v1alpha1.MemberClusterLeaving
	})
	if !strings.Contains(now.Message, "kubectl acp cluster leave m2") {
		t.Errorf("%q", now.Message)
	}
	s.create(&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "unregistered"}})
	if err := s.host.Delete(s.ctx, c); err != nil {
		t.Fatal(err)
	}
	s.until("members without a registration have no MemberCluster", func() string {
		if s.memberCluster("m2") != nil || s.memberCluster("unregistered") != nil {
			return "one is still there"
		}
		return ""
	})
	if s.memberCluster("m1") == nil {
		t.Error("the MemberCluster of m1 was deleted, too")
	}
}
