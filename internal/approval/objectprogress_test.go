package approval_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/message"
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
		// another ticket's
		{Observed: 2, Revision: "three", Clusters: []v1alpha1.ClusterState{{Name: "m1", State: realized, DesiredRevision: "three"}}, Ready: true},
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

// A change to Observe has a line for each member at the time when it was seen without what it had, and none for a member of which
// that is not known.
func TestObjectProgressOfARemoval(t *testing.T) {
	const pending, realized = v1alpha1.MemberPending, v1alpha1.MemberRealized
	had := func(name string) v1alpha1.ClusterState {
		return v1alpha1.ClusterState{Name: v1alpha1.ClusterName(name), State: realized, DesiredRevision: "one", ObservedRevision: "one"}
	}
	going := func(name string) v1alpha1.ClusterState {
		return v1alpha1.ClusterState{Name: v1alpha1.ClusterName(name), State: pending, ObservedRevision: "one"}
	}
	type line struct {
		Second  int
		Kind    approval.EventKind
		Cluster string
	}
	for name, tc := range map[string]struct {
		reason string
		after  string
		seen   []approval.ObjectSeen
		want   []line
	}{
		"everywhere": {"one member after the other", `{"resource":"r","mode":"Observe"}`, []approval.ObjectSeen{
			{Observed: 1, Revision: "one", Clusters: []v1alpha1.ClusterState{had("m1"), had("m2")}},
			{Observed: 2, Clusters: []v1alpha1.ClusterState{going("m1"), going("m2")}},
			{Observed: 2, Clusters: []v1alpha1.ClusterState{going("m2")}},
			{Observed: 2, Clusters: []v1alpha1.ClusterState{going("m2")}},
			{Observed: 2, Ready: true},
		}, []line{{2, approval.EventRealized, "m1"}, {4, approval.EventRealized, "m2"}, {4, approval.EventEffective, ""}}},
		"at once": {"what lies between was not seen", `{"resource":"r","mode":"Observe"}`, []approval.ObjectSeen{
			{Observed: 1, Revision: "one", Clusters: []v1alpha1.ClusterState{had("m1")}}, {Observed: 2, Ready: true},
		}, []line{{1, approval.EventRealized, "m1"}, {1, approval.EventEffective, ""}}},
		"in one member": {"the other one keeps its mode",
			`{"resource":"r","mode":"Audit","clusterModes":[{"cluster":"m1","mode":"Observe"}]}`, []approval.ObjectSeen{
				{Observed: 1, Revision: "one", Clusters: []v1alpha1.ClusterState{had("m1"), had("m2")}},
				{Observed: 2, Revision: "one", Clusters: []v1alpha1.ClusterState{going("m1"), had("m2")}},
				{Observed: 2, Revision: "one", Clusters: []v1alpha1.ClusterState{had("m2")}, Ready: true},
			}, []line{{1, approval.EventCompiled, ""}, {1, approval.EventRealized, "m2"}, {2, approval.EventRealized, "m1"}, {2, approval.EventEffective, ""}}},
		"not known": {"nobody saw what was there before", `{"resource":"r","mode":"Observe"}`, []approval.ObjectSeen{{Observed: 2, Ready: true}},
			[]line{{0, approval.EventEffective, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			x := approval.NewTicket(approval.Draft{Kind: approval.KindMode, Requester: "bob", Items: []approval.Item{
				{
					Resource:     "r",
					ResourceName: "r",
					Change: &approval.Change{
						Kind:  approval.ObjectProtectedResource,
						Name:  "r",
						Verb:  approval.VerbUpdate,
						After: json.RawMessage(tc.after),
					},
				},
			}}, approvaltest.Start)
			x.Items[0].State, x.Items[0].WrittenGeneration, x.Items[0].PolicyUID = approval.StateApplying, 2, "u"
			for second, seen := range tc.seen {
				seen.Exists, seen.UID, seen.Generation, seen.Spec = true, "u", 2, json.RawMessage(tc.after)
				x.ObjectProgress(0, seen, approvaltest.Start.Add(time.Duration(second)*time.Second))
			}
			var got []line
			for _, e := range x.Events {
				if e.Kind != approval.EventSubmitted {
					got = append(got, line{int(e.At.Sub(approvaltest.Start).Seconds()), e.Kind, e.Cluster})
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
		})
	}
}

// TestAFailureIsRecordedOnce checks that a failure that an earlier version stored as a text is no news, and that another reason is.
func TestAFailureIsRecordedOnce(t *testing.T) {
	x := approval.NewTicket(
		approval.Draft{Kind: approval.KindMode, Requester: "bob", Items: []approval.Item{{Resource: "r", ResourceName: "r"}}},
		approvaltest.Start,
	)
	x.Items[0].State, x.Items[0].Message = approval.StateFailed, message.Verbatim(message.TicketObjectVanished().Text)
	failures := func() (n int) {
		for _, e := range x.Events {
			if e.Kind == approval.EventFailed {
				n++
			}
		}
		return n
	}
	x.Fail(0, message.TicketObjectVanished(), approvaltest.Start)
	if n := failures(); n != 0 {
		t.Errorf("a failure that was recorded before is in the timeline %d more times", n)
	}
	x.Fail(0, message.TicketObjectAltered(), approvaltest.Start)
	x.Fail(0, message.TicketObjectAltered(), approvaltest.Start)
	if n := failures(); n != 1 || x.Items[0].Message != message.TicketObjectAltered() {
		t.Errorf("another failure is in the timeline %d times, and the item says %q", n, x.Items[0].Message)
	}
}

// TestAChangeNamesTheMembersThatItWaitsFor checks that a ticket names the members that are not in the required state, with the
// number of those that the status does not list, and that it passes on what the adapter waits for if there are none.
func TestAChangeNamesTheMembersThatItWaitsFor(t *testing.T) {
	spec := json.RawMessage(`{"resource":"r","mode":"Enforce"}`)
	members := []v1alpha1.ClusterState{{Name: "m1", State: v1alpha1.MemberRealized}, {Name: "m2", State: v1alpha1.MemberPending}}
	for _, tc := range []struct {
		reason string
		seen   approval.ObjectSeen
		want   message.Message
	}{
		{"all are listed", approval.ObjectSeen{Clusters: members, Unrealized: 1}, message.TicketWaitingForMembers(message.NamesList([]string{"m2"}))},
		{
			"some are only counted", approval.ObjectSeen{Clusters: members, Unrealized: 4},
			message.TicketWaitingForMembers(message.MembersNamesAndMore([]string{"m2"}, 3)),
		},
		{
			"the adapter waits for something else", approval.ObjectSeen{Clusters: members[:1], Waits: message.Verbatim("the class")},
			message.Sentence(message.Verbatim("the class")),
		},
		{"nothing is known", approval.ObjectSeen{}, message.TicketWaitingForAdapter()},
	} {
		x := approval.NewTicket(approval.Draft{Kind: approval.KindMode, Requester: "bob", Items: []approval.Item{{Resource: "r", ResourceName: "r",
			Change: &approval.Change{Kind: approval.ObjectProtectedResource, Name: "r", Verb: approval.VerbUpdate, After: spec}}}}, approvaltest.Start)
		x.Items[0].State, x.Items[0].WrittenGeneration, x.Items[0].PolicyUID = approval.StateApplying, 2, "u"
		tc.seen.Exists, tc.seen.UID, tc.seen.Generation, tc.seen.Observed, tc.seen.Spec = true, "u", 2, 2, spec
		x.ObjectProgress(0, tc.seen, approvaltest.Start)
		if got := x.Items[0].Message; got != tc.want {
			t.Errorf("%s: the ticket says %q, want %q", tc.reason, got, tc.want)
		}
	}
}
