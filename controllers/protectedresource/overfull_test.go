package protectedresource

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestDeniesThatDoNotFitAreNotRealized checks that denies that do not fit into a member's policy map are pushed, and are not
// reported as realized there.
func TestDeniesThatDoNotFitAreNotRealized(t *testing.T) {
	s := newScene(t, "m1", "m2")
	s.dataplanes = map[string]*v1alpha1.MemberDataplane{"m1": {PolicyMapEntries: 256}, "m2": {PolicyMapEntries: 4096}}
	for i := range 300 {
		s.denied = append(s.denied, fmt.Sprint("foe-", i))
	}
	got := s.settle()
	if c := got["m1"]; c.State != v1alpha1.MemberPending || !strings.Contains(c.Message, "its denies need more entries") {
		t.Errorf("m1, where they do not fit: %+v", c)
	}
	if c := got["m2"]; c.State != v1alpha1.MemberRealized {
		t.Errorf("m2, where they fit: %+v", c)
	}
	s.denied = s.denied[:10]
	for member, c := range s.settle() {
		if c.State != v1alpha1.MemberRealized {
			t.Errorf("%s, with ten denies: %+v", member, c)
		}
	}
}
