package governance

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

func TestWavesByMember(t *testing.T) {
	all := v1alpha1.MemberSet{AllExcept: true}
	only := func(names ...v1alpha1.ClusterName) v1alpha1.MemberSet { return v1alpha1.MemberSet{Clusters: names} }
	progress := func(begun v1alpha1.MemberSet) *v1alpha1.RolloutStatus {
		return &v1alpha1.RolloutStatus{Progress: &v1alpha1.RolloutProgress{Begun: begun}}
	}
	halted := progress(only("m1"))
	halted.Progress.Halt = &v1alpha1.RolloutHalt{Reason: v1alpha1.HaltPaused}
	settled := progress(only("m2"))
	settled.Settled = only("m1")
	later := metav1.NewTime(at.Add(time.Hour))
	earlier := metav1.NewTime(at.Add(-time.Hour))
	type want = map[string]MemberWaves
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.ProtectedResourceSpec
		status *v1alpha1.RolloutStatus
		want   want
	}{
		"NoWaves":   {"the class has no waves", v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce}, nil, want{}},
		"Completed": {"no rollout is in progress", v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce}, &v1alpha1.RolloutStatus{Settled: all}, want{}},
		"Canary": {"the first wave has begun", v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce}, progress(only("m1")),
			want{"m2": {Waiting: 1}, "m3": {Waiting: 1}}},
		"Halted": {"nothing begins without an instruction", v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce}, halted,
			want{"m2": {1, 1}, "m3": {1, 1}}},
		"Settled": {"a member enforces since an earlier rollout", v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce}, settled,
			want{"m3": {Waiting: 1}}},
		"OneMember": {"Enforce is not wanted elsewhere", v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeAudit,
			ClusterModes: []v1alpha1.ClusterMode{{Cluster: "m2", Mode: v1alpha1.ModeEnforce}}}, progress(only()), want{"m2": {Waiting: 1}}},
		"TemporaryAudit": {"no member enforces now, whatever its wave", v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce,
			TemporaryAudit: &v1alpha1.TemporaryAudit{Until: later}}, progress(only("m1")), want{}},
		"AuditEnded": {"the temporary audit is over", v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce,
			TemporaryAudit: &v1alpha1.TemporaryAudit{Until: earlier}}, progress(only("m1", "m2")), want{"m3": {Waiting: 1}}},
	} {
		o := &v1alpha1.ProtectedResource{Spec: tc.spec}
		o.Status.Rollout = tc.status
		o.Status.Groups = v1alpha1.GroupMembers([]v1alpha1.ClusterState{{Name: "m1", State: v1alpha1.MemberRealized, Mode: v1alpha1.ModeEnforce},
			{Name: "m2", State: v1alpha1.MemberRealized, Mode: v1alpha1.ModeAudit}, {Name: "m3", State: v1alpha1.MemberUnreachable}})
		if d := cmp.Diff(tc.want, WavesByMember(policy.Input{Resources: []*v1alpha1.ProtectedResource{o}}, at)); d != "" {
			t.Errorf("%s, %s (-want +got):\n%s", name, tc.reason, d)
		}
	}
}

// TestWavesOfManyResources checks that the members of one resource's wave are not taken for those of the next one.
func TestWavesOfManyResources(t *testing.T) {
	var in policy.Input
	want := map[string]MemberWaves{}
	for i := range 60 {
		o := &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce}}
		var states []v1alpha1.ClusterState
		begun := v1alpha1.MemberSet{}
		for m := range 6 {
			name := v1alpha1.ClusterName(fmt.Sprint("m", m))
			states = append(states, v1alpha1.ClusterState{Name: name})
			if m <= i/7%6 {
				begun.Clusters = append(begun.Clusters, name)
				continue
			}
			w := want[string(name)]
			w.Waiting++
			want[string(name)] = w
		}
		o.Status.Rollout = &v1alpha1.RolloutStatus{Progress: &v1alpha1.RolloutProgress{Begun: begun}}
		o.Status.Groups = v1alpha1.GroupMembers(states)
		in.Resources = append(in.Resources, o)
	}
	if d := cmp.Diff(want, WavesByMember(in, at)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
