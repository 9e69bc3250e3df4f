package statusfields

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

func TestAccepted(t *testing.T) {
	warning := policy.Problem{Reason: v1alpha1.ReasonDuplicate, Message: message.Verbatim("warning")}
	fatal := policy.Problem{Reason: v1alpha1.ReasonNoClass, Message: message.Verbatim("left out"), LeftOut: true}
	for name, tc := range map[string]struct {
		reason   string
		problems []policy.Problem
		want     metav1.Condition
	}{
		"nothing": {"nothing is wrong", nil, metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted, Message: "ok"}},
		"warning": {
			"somebody has to look", []policy.Problem{warning},
			metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDuplicate, Message: "warning"},
		},
		"both": {
			"what leaves it out is the worse", []policy.Problem{warning, fatal},
			metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoClass, Message: "left out"},
		},
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

func TestTruncateBoundsTheJSON(t *testing.T) {
	for _, s := range []string{strings.Repeat("<", maxMessage), strings.Repeat("a<", maxMessage/2)} {
		if got := Truncate(s); SizeOfText(got) > 2*maxMessage || !strings.HasSuffix(got, "...") || !strings.HasPrefix(s, got[:len(got)-3]) {
			t.Errorf("%d bytes of JSON, ends in %q", SizeOfText(got), got[len(got)-8:])
		}
	}
	if s := strings.Repeat("a", maxMessage); Truncate(s) != s {
		t.Error("a message that has room is cut")
	}
}

// TestManyMembersMakeOneMessage is about the text that is left when most of it is cut off.
func TestManyMembersMakeOneMessage(t *testing.T) {
	var r statuscache.Report
	for i := range 500 {
		r.Clusters = append(
			r.Clusters,
			v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprint("m", i)), State: v1alpha1.MemberPending, DesiredRevision: "a"},
		)
	}
	var all []string
	for _, c := range r.Clusters {
		all = append(all, string(c.Name)+": "+string(c.State))
	}
	r.Wanted = true
	if got, want := Realized([]statuscache.Report{r}, metav1.Condition{}).Message, Truncate(strings.Join(all, "; ")); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Clusters = append(r.Clusters[:0:0], r.Clusters...)
	for i := range r.Clusters[:499] {
		r.Clusters[i].State = v1alpha1.MemberRealized
	}
	if c := Realized([]statuscache.Report{r}, metav1.Condition{}); c.Status != metav1.ConditionFalse || c.Message != "m499: Pending" {
		t.Errorf("the last of 500 members is not Realized, and the condition says %+v", c)
	}
}
