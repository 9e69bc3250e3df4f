package rollout

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// TestStopOfATemporaryAudit checks that a stop that was not completed has the code of its reason, its member and its count again.
func TestStopOfATemporaryAudit(t *testing.T) {
	var guard Guard
	reason := newDenials(21, "m2", guard)
	verbatim := func(text string) Stop { return Stop{Reason: message.Stored{Message: message.Verbatim(text)}} }
	gone, other := newDenials(21, "m3", guard).Text, newDenials(21, "m2", Guard{Limit: new(int64(3))}).Text
	for _, tc := range []struct {
		reason, text string
		want         Stop
	}{
		{"the text of one of the members", reason.Text, Stop{Cluster: "m2", Count: 21, Reason: message.Stored{Message: reason}}},
		{"the text of a member that left", gone, verbatim(gone)},
		{"the text of other settings", other, verbatim(other)},
		{"the text of a person", "I need it", verbatim("I need it")},
		{"no text", "", Stop{}},
	} {
		now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
		p := &v1alpha1.ProtectedResource{}
		p.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: metav1.NewTime(now), Reason: tc.text}
		p.Status.Clusters = []v1alpha1.ClusterState{{Name: "m1"}, {Name: "m2"}}
		tc.want.At = now
		if got := stopOf(p, guard, now); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.reason, got, tc.want)
		}
	}
}
