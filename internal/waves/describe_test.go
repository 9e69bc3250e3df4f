package waves

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestDescribe checks the sentences about a rollout.
func TestDescribe(t *testing.T) {
	for want, p := range map[string]*v1alpha1.RolloutProgress{
		"":                                     nil,
		"wave 1 of 3 (canary), 7 members wait": {Wave: 1, Waves: 3, Name: "canary", Waiting: 7},
		"wave 3 of 3, 0 members wait":          {Wave: 3, Waves: 3},
		"Paused: errors (by sam)":              {Wave: 1, Halt: &v1alpha1.RolloutHalt{Reason: v1alpha1.HaltPaused, Message: "errors", By: "sam"}},
	} {
		if got := Describe(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestDescribeIgnored checks that the text says why an instruction was not carried out.
func TestDescribeIgnored(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	last := metav1.NewMicroTime(noon)
	for reason, tc := range map[string]struct {
		at   time.Time
		last *metav1.MicroTime
		want string
	}{
		"without a time": {time.Time{}, nil, "it does not say when it was given"},
		"not later":      {noon.Add(-time.Hour), &last, "is not older"},
		"in the future":  {noon.Add(48 * time.Hour), &last, "is in the future"},
	} {
		i := Instruction{ID: "finish-1", Action: Finish, By: "sam", Reason: "because", At: tc.at}
		o := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationRollout: i.String()}}}
		got := DescribeIgnored(o, tc.last, noon)
		for _, part := range []string{"finish-1", "sam", tc.want, "kubectl acp rollout"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q lacks %q", reason, got, part)
			}
		}
	}
}
