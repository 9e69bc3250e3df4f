package approval_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
)

// A change of a mode has a line for each member at the time when it was read back there, whatever KubeFed reports.
func TestObjectProgressPerMember(t *testing.T) {
	spec := json.RawMessage(`{"resource":"r","mode":"Enforce"}`)
	x := approval.NewTicket(approval.Draft{Kind: approval.KindMode, Requester: "bob", Items: []approval.Item{{Resource: "r", ResourceName: "r",
		Change: &approval.Change{Kind: approval.ObjectProtectedResource, Name: "r", Verb: approval.VerbUpdate, After: spec}}}}, approvaltest.Start)
	x.Items[0].State, x.Items[0].WrittenGeneration, x.Items[0].PolicyUID = approval.StateApplying, 2, "u"
	member := func(name string, state v1alpha1.MemberState, propagated bool) v1alpha1.ClusterState {
		return v1alpha1.ClusterState{Name: v1alpha1.ClusterName(name), State: state, DesiredRevision: "two", Propagated: propagated}
	}
	const pending, realized = v1alpha1.MemberPending, v1alpha1.MemberRealized
	for second, seen := range []approval.ObjectSeen{
		{Observed: 1, Revision: "one", Clusters: []v1alpha1.ClusterState{member("m1", realized, true)}}, // about what was there before
		{Observed: 2, Revision: "two", Clusters: []v1alpha1.ClusterState{member("m1", pending, true), member("m2", pending, false)}},
		{Observed: 2, Revision: "two", Clusters: []v1alpha1.ClusterState{member("m1", realized, true), member("m2", pending, false)}},
		{Observed: 2, Revision: "two", Clusters: []v1alpha1.ClusterState{member("m1", realized, true), member("m2", realized, true)}, Ready: true},
		{Observed: 2, Revision: "three", Clusters: []v1alpha1.ClusterState{{Name: "m1", State: realized, DesiredRevision: "three"}}, Ready: true}, // another ticket's
	} {
		seen.Exists, seen.UID, seen.Generation, seen.Spec = true, "u", 2, spec
		x.ObjectProgress(0, seen, approvaltest.Start.Add(time.Duration(second)*time.Second))
	}
	type line struct {
		Second  int
		Kind    approval.EventKind
		Cluster string
	}
	var got []line
	for _, e := range x.Events {
		if e.Kind != approval.EventSubmitted {
			got = append(got, line{int(e.At.Sub(approvaltest.Start).Seconds()), e.Kind, e.Cluster})
		}
	}
	want := []line{{1, approval.EventCompiled, ""}, {2, approval.EventRealized, "m1"}, {3, approval.EventRealized, "m2"}, {3, approval.EventEffective, ""}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
