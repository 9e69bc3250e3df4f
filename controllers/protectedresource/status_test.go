package protectedresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
)

// TestProgressIsCombined checks which changes of a status that shows progress are deferred. A deferral without a change
// would be repeated forever.
func TestProgressIsCombined(t *testing.T) {
	members := func(states ...v1alpha1.MemberState) statuscache.Report {
		r := statuscache.Report{Resource: sceneResource, Revision: "1", Wanted: true}
		for i, state := range states {
			c := v1alpha1.ClusterState{Name: []v1alpha1.ClusterName{"m1", "m2"}[i], State: state, DesiredRevision: "1"}
			if state == v1alpha1.MemberRealized {
				c.ObservedRevision = "1"
			}
			r.Clusters = append(r.Clusters, c)
		}
		return r
	}
	slow := func(r statuscache.Report) statuscache.Report {
		r.OnlySlowPending = true
		return r
	}
	const pending, realized, unreachable = v1alpha1.MemberPending, v1alpha1.MemberRealized, v1alpha1.MemberUnreachable
	for name, tc := range map[string]struct {
		before, now statuscache.Report
		deleted     bool
		want        time.Duration
	}{
		"OneMore":      {before: members(pending, pending), now: members(realized, pending), want: statusfields.StatusDelay},
		"Unchanged":    {before: members(realized, pending), now: members(realized, pending)},
		"Complete":     {before: members(realized, pending), now: members(realized, realized)},
		"Begins":       {before: members(realized, realized), now: members(pending, pending), want: statusfields.StatusDelay},
		"BecameAway":   {before: members(pending, pending), now: members(pending, unreachable)},
		"WasAway":      {before: members(pending, unreachable), now: members(pending, pending)},
		"BeingDeleted": {before: members(pending, pending), now: members(realized, pending), deleted: true},
		// The other member gets a change while one is away: it would cause a write for each step, and there are as many as members.
		"AwayAndBegins":   {before: members(realized, unreachable), now: members(pending, unreachable), want: statusfields.StatusDelay},
		"AwayAndComplete": {before: members(pending, unreachable), now: members(realized, unreachable)},
		"AwayAndWritten":  {before: members(pending, unreachable), now: members(pending, unreachable)},
		"OnlySlow":        {before: members(pending, pending), now: slow(members(realized, pending))},
		"AwayAndOnlySlow": {before: members(unreachable, realized), now: slow(members(unreachable, pending))},
	} {
		t.Run(name, func(t *testing.T) {
			f := newScene(t, "m1", "m2").facts()
			o := f.Objects[0]
			o.Status = status(f, o, &tc.before)
			if tc.deleted {
				o.DeletionTimestamp = &metav1.Time{Time: f.Now}
			}
			if got := statusDeferral(f, &tc.now, statusfields.DefaultFirstDelay); got != tc.want {
				t.Errorf("deferred for %v, want %v; conditions before: %+v", got, tc.want, o.Status.Conditions)
			}
		})
	}
}
