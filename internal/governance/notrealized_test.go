package governance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

func TestNotRealized(t *testing.T) {
	coded := v1alpha1.ClusterState{Name: "m2", State: v1alpha1.MemberPending, Message: "an older revision is there", MessageCode: "state.older"}
	older := v1alpha1.ClusterState{Name: "m1", State: v1alpha1.MemberDrifted, Message: "somebody changed it"}
	var many []v1alpha1.ClusterState
	for i := range 100 {
		c := coded
		c.Name = v1alpha1.ClusterName(fmt.Sprintf("m%d", i))
		many = append(many, c)
	}
	long := slices.Clone(many)
	for i := range long {
		long[i].Message, long[i].MessageCode = strings.Repeat("x", 600), ""
	}
	for _, c := range []struct {
		reason   string
		states   []v1alpha1.ClusterState
		en, zh   string
		mostText int
	}{
		{"the worst first, with codes where the status has them",
			[]v1alpha1.ClusterState{coded, older, {Name: "m3", State: v1alpha1.MemberRealized, Message: "left over"}},
			"m1: somebody changed it; m2: an older revision is there", "m1：somebody changed it；m2：仍是较旧的版本", 0},
		{"no member is listed with a message", []v1alpha1.ClusterState{{Name: "m1", State: v1alpha1.MemberPending}}, "the condition", "the condition", 0},
		{"a few of many", many, "", "", 300},
		{"fewer if they are long", long, "", "", 700},
	} {
		got := NotRealized(c.states, "the condition")
		if c.mostText == 0 && (got.Text != c.en || got.Render(message.Chinese) != c.zh) || c.mostText > 0 && len(got.Text) > c.mostText {
			t.Errorf("%s: %q and %q", c.reason, got.Text, got.Render(message.Chinese))
		}
	}
}
