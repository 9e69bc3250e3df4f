package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
)

func inWaves(settled v1alpha1.MemberSet, progress *v1alpha1.RolloutProgress) func(*v1alpha1.ProtectedResource) {
	return func(p *v1alpha1.ProtectedResource) {
		p.Status.Rollout = &v1alpha1.RolloutStatus{Settled: settled, Progress: progress}
	}
}

// TestWavesHoldEnforce checks that decisions and units agree on the members in which Enforce counts.
func TestWavesHoldEnforce(t *testing.T) {
	const audit, enforce = v1alpha1.ModeAudit, v1alpha1.ModeEnforce
	none, m1 := v1alpha1.MemberSet{}, v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{"m1"}}
	for _, tc := range []struct {
		reason  string
		object  *v1alpha1.ProtectedResource
		m1, m2  v1alpha1.Mode
		base    v1alpha1.Mode
		members map[string]v1alpha1.Mode
	}{
		{"without waves", protect(bobs, enforce), enforce, enforce, enforce, nil},
		{"no wave has begun", protect(bobs, enforce, inWaves(none, &v1alpha1.RolloutProgress{})), audit, audit, audit, nil},
		{"the status does not know of the change yet", protect(bobs, enforce, inWaves(none, nil)), audit, audit, audit, nil},
		{
			"the first wave has begun", protect(bobs, enforce, inWaves(none, &v1alpha1.RolloutProgress{Begun: m1})),
			enforce, audit, audit, map[string]v1alpha1.Mode{"m1": enforce},
		},
		{
			"the last wave has begun", protect(bobs, enforce, inWaves(none, &v1alpha1.RolloutProgress{Begun: v1alpha1.MemberSet{AllExcept: true}})),
			enforce, enforce, enforce, nil,
		},
		{"settled", protect(bobs, enforce, inWaves(v1alpha1.MemberSet{AllExcept: true}, nil)), enforce, enforce, enforce, nil},
		{
			"settled in all but one", protect(bobs, enforce, inWaves(v1alpha1.MemberSet{AllExcept: true, Clusters: []v1alpha1.ClusterName{"m2"}}, nil)),
			enforce, audit, enforce, map[string]v1alpha1.Mode{"m2": audit},
		},
		{
			"the spec enforces in one member, whose wave has not begun", protect(bobs, audit, in("m1", enforce), inWaves(none, nil)),
			audit, audit, audit, nil,
		},
		{
			"a member whose wave has begun is in Observe", protect(bobs, enforce, in("m1", v1alpha1.ModeObserve),
				inWaves(none, &v1alpha1.RolloutProgress{Begun: m1})),
			v1alpha1.ModeObserve, audit, audit, map[string]v1alpha1.Mode{"m1": v1alpha1.ModeObserve},
		},
		{"Audit is Audit", protect(bobs, audit, inWaves(v1alpha1.MemberSet{AllExcept: true}, nil)), audit, audit, audit, nil},
		{
			"a temporary audit of a settled resource", protect(bobs, enforce, auditUntil(hours(1)), inWaves(v1alpha1.MemberSet{AllExcept: true}, nil)),
			audit, audit, audit, nil,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := NewSnapshot(world(tc.object))
			u, ok := s.CompileResource(bobs, noon)
			if !ok || u.Mode != tc.base || !cmp.Equal(u.ClusterModes, tc.members) {
				t.Errorf("the unit has mode %s and %v, want %s and %v", u.Mode, u.ClusterModes, tc.base, tc.members)
			}
			for cluster, want := range map[string]v1alpha1.Mode{"m1": tc.m1, "m2": tc.m2, "": tc.base} {
				if got := s.EffectiveMode(bobs, cluster, noon); got != want {
					t.Errorf("the mode in %q is %s, want %s", cluster, got, want)
				}
				verdict := map[v1alpha1.Mode]Verdict{enforce: DefaultDenied, audit: Audited, v1alpha1.ModeObserve: Unmanaged}[want]
				q := Query{Subjects: []string{app888}, Resources: []string{bobs}, Cluster: cluster, Protocol: v1alpha1.ProtocolTCP, Port: 6379, At: noon}
				if got := s.Decide(q).Verdict; got != verdict {
					t.Errorf("Decide in %q: %s, want %s", cluster, got, verdict)
				}
				if got := s.DecideEffective(&q).Verdict; got != verdict {
					t.Errorf("DecideEffective in %q: %s, want %s", cluster, got, verdict)
				}
			}
		})
	}
}
