package policyhistory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

func TestPast(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.Time{Time: now.Add(-d)} }
	enforced := func(created time.Duration) *v1alpha1.ProtectedResource {
		r := resource(1, "1", v1alpha1.ModeEnforce)
		r.CreationTimestamp = ago(created)
		return r
	}
	granted := func(created time.Duration) *v1alpha1.AccessControlPolicy {
		p := &v1alpha1.AccessControlPolicy{Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "all", Effect: v1alpha1.EffectAllow,
			Subjects: []v1alpha1.Subject{"*"}, Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{bobs}}}}}
		p.Name, p.CreationTimestamp = "p", ago(created)
		return p
	}
	type epoch struct {
		Since time.Duration // before now; -1: for ever
		Word  policy.Verdict
	}
	for name, tc := range map[string]struct {
		reason   string
		resource time.Duration
		policy   time.Duration
		want     []epoch
	}{
		"Old": {"what has been there for long was always there", time.Hour, time.Hour, []epoch{{-1, policy.Allowed}}},
		"Together": {
			"what was created at once began at once", 5 * time.Second, 5 * time.Second,
			[]epoch{{5 * time.Second, policy.Allowed}, {-1, policy.Unmanaged}},
		},
		"Apart": {"each has its own beginning", 9 * time.Second, 2 * time.Second,
			[]epoch{{2 * time.Second, policy.Allowed}, {9 * time.Second, policy.DefaultDenied}, {-1, policy.Unmanaged}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := class()
			c.CreationTimestamp = ago(time.Second)
			in := policy.Input{ResourceClasses: []*v1alpha1.ResourceClass{c}, Resources: []*v1alpha1.ProtectedResource{enforced(tc.resource)},
				Policies: []*v1alpha1.AccessControlPolicy{granted(tc.policy)}}
			var got []epoch
			for _, e := range epochsBeforeStart(in, now) {
				since := time.Duration(-1)
				if !e.Since.IsZero() {
					since = now.Sub(e.Since)
				}
				d := e.DecideEffective(&policy.Query{Resources: []string{bobs}, Cluster: "m1", Protocol: v1alpha1.ProtocolTCP, Port: 6379, At: now})
				got = append(got, epoch{since, d.Verdict})
				if names := e.ResourcesOf(map[string]string{"com.trip/redis-cluster": "bobs-cluster"}); len(names) != 1 {
					t.Errorf("%s: the class is as young, but names what was seen before it; got %q", tc.reason, names)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: states -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPastIsBounded(t *testing.T) {
	now := time.Now()
	in := policy.Input{}
	for i := range 3 * keptEpochs {
		r := resource(1, "1", v1alpha1.ModeAudit)
		r.CreationTimestamp = metav1.Time{Time: now.Add(-time.Duration(i) * time.Second)}
		in.Resources = append(in.Resources, r)
	}
	if got := len(epochsBeforeStart(in, now)); got != keptEpochs {
		t.Errorf("%d states are made up, want %d", got, keptEpochs)
	}
}
