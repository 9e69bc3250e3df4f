package approval_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/approval"
)

func TestRemainingApprovers(t *testing.T) {
	voted := func(name string, by ...string) approval.Step {
		s := approval.Step{Name: name, Approvers: []string{"bob", "carol", "dan"}, Quorum: 2}
		for _, p := range by {
			s.Votes = append(s.Votes, approval.Vote{Person: p, Approve: true})
		}
		return s
	}
	for name, tc := range map[string]struct {
		reason string
		steps  []approval.Step
		many   bool
		want   []string
	}{
		"nobody yet":   {reason: "all of them", steps: []approval.Step{voted("a")}, want: []string{"bob", "carol", "dan"}},
		"another step": {reason: "one person fills one step", steps: []approval.Step{voted("a"), voted("b", "carol")}, want: []string{"bob", "dan"}},
		"this step":    {reason: "who decided it is one of them", steps: []approval.Step{voted("a", "carol")}, want: []string{"bob", "carol", "dan"}},
		"many steps": {
			reason: "unless the policy lets one person fill several", steps: []approval.Step{voted("a"), voted("b", "carol")}, many: true,
			want: []string{"bob", "carol", "dan"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			it := approval.Item{Steps: tc.steps, ManySteps: tc.many}
			if d := cmp.Diff(tc.want, it.RemainingApprovers(&it.Steps[0])); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
		})
	}
}
