package condition

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

func TestAccepted(t *testing.T) {
	warning := policy.Problem{Reason: v1alpha1.ReasonDuplicate, Message: "warning"}
	fatal := policy.Problem{Reason: v1alpha1.ReasonNoClass, Message: "left out", LeftOut: true}
	for name, tc := range map[string]struct {
		reason   string
		problems []policy.Problem
		want     metav1.Condition
	}{
		"nothing": {"nothing is wrong", nil, metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted, Message: "ok"}},
		"warning": {"somebody has to look", []policy.Problem{warning}, metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDuplicate, Message: "warning"}},
		"both":    {"what leaves it out is the worse", []policy.Problem{warning, fatal}, metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoClass, Message: "left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Accepted(tc.problems, "ok")
			if d := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(metav1.Condition{}, "Type")); d != "" || got.Type != v1alpha1.ConditionAccepted {
				t.Errorf("%s: type %s (-want +got)\n%s", tc.reason, got.Type, d)
			}
		})
	}
}

func TestTruncateKeepsCharactersWhole(t *testing.T) {
	got := Truncate(strings.Repeat("界", maxMessage))
	if len(got) > maxMessage || !utf8.ValidString(got) || !strings.HasSuffix(got, "界...") {
		t.Errorf("%d bytes, ends in %q", len(got), got[len(got)-8:])
	}
}
