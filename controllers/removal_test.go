package controllers_test

import (
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
)

// untilOpen waits until the Federated object is rendered for Audit and still placed.
func (s *scenario) untilOpen() {
	s.Helper()
	s.until("the unit is rendered for Audit first", func() string {
		_, o := s.federated()
		if o == nil {
			return "the federated object is gone"
		}
		if deny, _, _ := unstructured.NestedBool(o.TemplateSpec, "enableDefaultDeny", "ingress"); deny {
			return "it still denies by default"
		}
		if len(o.Placement) == 0 {
			return "it was removed before it was opened"
		}
		return ""
	})
}

func (s *scenario) setMode(mode v1alpha1.Mode) {
	s.Helper()
	change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(o *v1alpha1.ProtectedResource) { o.Spec.Mode = mode })
}

func TestRemovalWaitsForEveryMemberThatEverHadIt(t *testing.T) {
	s := enforced(t, "removals")
	s.setMode(v1alpha1.ModeObserve)
	s.untilOpen()
	s.push()
	s.untilPlaced()
	u, _ := s.federated()
	if clusters, has, _ := unstructured.NestedSlice(u.Object, "spec", "placement", "clusters"); !has || len(clusters) != 0 {
		t.Fatalf("placement must be an explicit empty list: %v", u.Object["spec"])
	}
	if _, has, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "placement", "clusterSelector"); has {
		t.Fatal("an empty list beside a selector means every member")
	}

	s.members["m2"].proxy.Disconnect()
	defer s.members["m2"].proxy.Reconnect()
	s.pushUntilStates("m2 may still have it", map[string]v1alpha1.MemberState{"m2": v1alpha1.MemberUnreachable})
	if u, _ := s.federated(); u == nil || u.GetDeletionTimestamp() != nil {
		t.Fatal("the federated object was deleted while a member that had it is unreachable")
	}
	if !slices.Contains(s.protected().Finalizers, v1alpha1.FinalizerProtectedResource) {
		t.Fatal("the finalizer was removed while a member that had it is unreachable")
	}

	s.members["m2"].proxy.Reconnect()
	s.untilStates("m2 has it without being placed", map[string]v1alpha1.MemberState{"m2": v1alpha1.MemberLeaked})
	s.push()
	s.until("everything is gone", func() string {
		if u, _ := s.federated(); u != nil {
			return "the federated object is there"
		}
		if o := s.protected(); len(o.Finalizers) > 0 || len(o.Status.Clusters) > 0 {
			return fmt.Sprintf("finalizers %v, clusters %v", o.Finalizers, o.Status.Clusters)
		}
		return ""
	})
}

func TestDeletionIsRefusedUnlessInObserve(t *testing.T) {
	s := enforced(t, "deletions")
	if err := s.host.Delete(s.ctx, s.protected()); err != nil {
		t.Fatal(err)
	}
	s.until("the refusal is reported", func() string {
		c := meta.FindStatusCondition(s.protected().Status.Conditions, v1alpha1.ConditionAccepted)
		if c.Status != "False" || c.Reason != v1alpha1.ReasonInvalid {
			return fmt.Sprint(c)
		}
		return ""
	})
	if _, o := s.federated(); len(o.Placement) != 2 {
		t.Fatalf("a deletion that is refused opened the resource: placed in %v", o.Placement)
	}
	s.setMode(v1alpha1.ModeObserve)
	s.untilOpen()
	s.push()
	s.untilPlaced()
	s.push()
	s.until("the ProtectedResource is gone", func() string {
		err := s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &v1alpha1.ProtectedResource{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprint("still there, ", err)
	})
	if u, _ := s.federated(); u != nil {
		t.Errorf("the federated object is still there: %v", u)
	}
}

func TestOrphanStaysClosedAndIsReported(t *testing.T) {
	s := enforced(t, "orphans")
	change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(o *v1alpha1.ProtectedResource) { o.Finalizers = nil })
	if err := s.host.Delete(s.ctx, s.protected()); err != nil {
		t.Fatal(err)
	}
	s.until("the policy reports it", func() string {
		units := s.policy().Status.Units
		if len(units) != 1 || len(units[0].Clusters) != 2 || units[0].Clusters[0].State != v1alpha1.MemberLeaked {
			return fmt.Sprint(units)
		}
		return ""
	})
	if _, o := s.federated(); o == nil || len(o.Placement) != 2 {
		t.Fatal("a ProtectedResource that was removed by force opened its resource")
	}
	s.protect(v1alpha1.ModeEnforce)
	s.untilStates("the new ProtectedResource owns it", bothRealized)
}

func TestResourceWithoutClassStaysClosed(t *testing.T) {
	s := enforced(t, "classless")
	var class v1alpha1.ResourceClass
	class.Name = s.service
	if err := s.host.Delete(s.ctx, &class); err != nil {
		t.Fatal(err)
	}
	change(s, s.host, &class, s.service, func(c *v1alpha1.ResourceClass) { c.Finalizers = nil }) // by force
	s.until("the missing class is reported", func() string {
		c := meta.FindStatusCondition(s.protected().Status.Conditions, v1alpha1.ConditionAccepted)
		if c.Status != "False" || c.Reason != v1alpha1.ReasonNoClass {
			return fmt.Sprint(c)
		}
		return ""
	})
	if _, o := s.federated(); o == nil || len(o.Placement) != 2 {
		t.Fatal("a class that was deleted opened its resources")
	}
	s.untilStates("the members keep the policy", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberPending})
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = nil })
	s.until("a revocation that cannot be written stays pending", func() string {
		p := s.policy()
		if p.Status.ObservedGeneration != p.Generation || len(p.Status.Units) != 1 || p.Status.Units[0].Clusters[0].State != v1alpha1.MemberPending {
			return fmt.Sprint(p.Status)
		}
		return ""
	})
}
