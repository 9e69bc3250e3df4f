package controllers_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// TestContestedAddressIsOnlyDenied checks that an address that a second subject claims is removed at once from the group that allows refer
// to, and that the group of contested addresses is deleted when no address is contested.
func TestContestedAddressIsOnlyDenied(t *testing.T) {
	s := newScenario(t, shared, "contested")
	s.externalWorkload("contested-a", "a", "10.9.3.1", "10.9.3.2")
	s.untilGroup("a", []string{"10.9.3.1/32", "10.9.3.2/32"}, "m1", "m2")
	s.externalWorkload("contested-b", "b", "10.9.3.2")
	s.untilGroup("a", []string{"10.9.3.1/32"}, "m1", "m2")
	s.untilGroup("b", nil, "m1", "m2")
	contested := s.group("a") + "-contested"
	s.until("the address is in the group for denies", func() string {
		_, o := s.federatedOf(federation.CiliumGroup, contested)
		if o == nil {
			return "no federated object"
		}
		if got := fmt.Sprint(o.TemplateSpec["externalCIDRs"]); got != "[10.9.3.2/32]" {
			return got
		}
		return ""
	})
	if err := s.host.Delete(s.ctx, &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: "contested-b"}}); err != nil {
		t.Fatal(err)
	}
	s.untilGroup("a", []string{"10.9.3.1/32", "10.9.3.2/32"}, "m1", "m2")
	s.until("nothing is contested any more", func() string {
		_, o := s.federatedOf(federation.CiliumGroup, contested)
		if o == nil {
			return ""
		}
		if len(o.Placement) == 0 {
			s.pushOf(federation.CiliumGroup, contested)
		}
		return "the group is there"
	})
}
