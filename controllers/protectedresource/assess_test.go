package protectedresource

import (
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

func TestObjectState(t *testing.T) {
	there := func(revision, label, invalid string) federation.Observation {
		return federation.Observation{Registered: true, Reachable: true,
			Object: &federation.Observed{Name: "acp-x", Revision: revision, Label: label, Invalid: invalid}}
	}
	directly := func(o federation.Observation) federation.Observation {
		o.Object.WrittenDirectly = true
		return o
	}
	absent := federation.Observation{Registered: true, Reachable: true}
	away := federation.Observation{Registered: true, Message: message.Verbatim("away")}
	for _, c := range []struct {
		reason   string
		sighting objectState
		relevant bool
		want     v1alpha1.MemberState
	}{
		{"what is wanted is there", objectState{Desired: "r", Observation: there("r", "r", "")}, true, v1alpha1.MemberRealized},
		{
			"KubeFed may write an earlier version over it, and is not the member's engine",
			objectState{Desired: "r", Observation: there("r", "r", ""), Engine: federation.EngineDirect, SharedWith: federation.EngineKubeFed},
			true, v1alpha1.MemberPending,
		},
		{
			"KubeFed may write an earlier version over the former engine's",
			objectState{Desired: "r", Observation: directly(there("r", "r", "")), Engine: federation.EngineKubeFed}, true, v1alpha1.MemberPending,
		},
		{
			"KubeFed has handled what the former engine wrote",
			objectState{Desired: "r", Observation: directly(there("r", "r", "")), Engine: federation.EngineKubeFed, Handled: true},
			true, v1alpha1.MemberRealized,
		},
		{
			"KubeFed wrote it, and has not reported it",
			objectState{Desired: "r", Observation: there("r", "r", ""), Engine: federation.EngineKubeFed}, true, v1alpha1.MemberRealized,
		},
		{
			"the work agent has not handled the last change, and what the member has may be of an earlier one",
			objectState{Desired: "r", Observation: there("r", "r", ""), Engine: federation.EngineOCM}, true, v1alpha1.MemberPending,
		},
		{
			"the work agent has handled it",
			objectState{Desired: "r", Observation: there("r", "r", ""), Engine: federation.EngineOCM, Handled: true}, true, v1alpha1.MemberRealized,
		},
		{
			"the former engine's work agent may write an earlier version over it",
			objectState{Desired: "r", Observation: there("r", "r", ""), Engine: federation.EngineDirect, SharedWith: federation.EngineOCM},
			true, v1alpha1.MemberPending,
		},
		{
			"a request of the direct engine without an answer may write another version over it",
			objectState{Desired: "r", Observation: there("r", "r", ""), Engine: federation.EngineDirect, Handled: true, Unanswered: true},
			true, v1alpha1.MemberPending,
		},
		{
			"the direct engine does not count the version as handled, and no request of it can change the object",
			objectState{Desired: "r", Observation: there("r", "r", ""), Engine: federation.EngineDirect}, true, v1alpha1.MemberRealized,
		},
		{"the spec counts, not what the label says", objectState{Desired: "r", Observation: there("r", "q", "")}, true, v1alpha1.MemberRealized},
		{"the dataplane refuses it", objectState{Desired: "r", Observation: there("r", "r", "no")}, true, v1alpha1.MemberPending},
		{"an older revision, as ACP wrote it", objectState{Desired: "r", Observation: there("q", "q", "")}, true, v1alpha1.MemberPending},
		{"somebody changed the spec", objectState{Desired: "r", Observation: there("x", "r", "")}, true, v1alpha1.MemberDrifted},
		{"somebody took the label away too", objectState{Desired: "r", Observation: there("x", "", "")}, true, v1alpha1.MemberDrifted},
		{
			"a group that was as wanted, and KubeFed is done",
			objectState{Group: true, Desired: "r", Observation: there("x", "", ""), WasRealized: true, Handled: true, Propagated: true},
			true, v1alpha1.MemberDrifted,
		},
		{
			"a group that KubeFed still has to bring",
			objectState{Group: true, Desired: "r", Observation: there("x", "", ""), WasRealized: true}, true, v1alpha1.MemberPending,
		},
		{
			"a group that was not as wanted yet",
			objectState{Group: true, Desired: "r", Observation: there("x", "", ""), Handled: true, Propagated: true},
			true, v1alpha1.MemberPending,
		},
		{"not there yet", objectState{Desired: "r", Observation: absent}, true, v1alpha1.MemberPending},
		{
			"it was there, and somebody deleted it",
			objectState{Name: "acp-x", Desired: "r", Observation: absent, WasRealized: true}, true, v1alpha1.MemberDrifted,
		},
		{
			"it was there, and what is wanted now was not written yet",
			objectState{Desired: "r", Observation: absent, WasRealized: true, Deferred: true}, true, v1alpha1.MemberPending,
		},
		{"it was there, and nobody can say", objectState{Desired: "r", Observation: away, WasRealized: true}, true, v1alpha1.MemberUnreachable},
		{"nobody can say", objectState{Desired: "r", Observation: away}, true, v1alpha1.MemberUnreachable},
		{"KubeFed's success is no proof", objectState{Desired: "r", Observation: absent, Propagated: true, Handled: true}, true, v1alpha1.MemberPending},
		{"not wanted, being removed", objectState{Observation: there("r", "r", ""), MayExist: true}, true, v1alpha1.MemberPending},
		{
			"not wanted, and KubeFed waits for the member",
			objectState{Observation: there("r", "r", ""), Handled: true, EngineStatus: federation.WaitingForRemoval},
			true, v1alpha1.MemberPending,
		},
		{"not wanted, and nobody removes it", objectState{Observation: there("r", "r", ""), Handled: true}, true, v1alpha1.MemberLeaked},
		{"not wanted, and nobody can say", objectState{Observation: away, MayExist: true, Handled: true}, true, v1alpha1.MemberUnreachable},
		{"gone, but KubeFed may still write it", objectState{Observation: absent, MayExist: true}, true, v1alpha1.MemberPending},
		{"gone", objectState{Observation: absent, MayExist: true, Handled: true}, false, ""},
		{"never had it, and is away", objectState{Observation: away, Handled: true}, false, ""},
		{"closed without owner", objectState{Desired: "r", Observation: there("r", "r", ""), Frozen: true, Orphan: true}, true, v1alpha1.MemberLeaked},
		{
			"kept as it was, so no word about what is asked for now",
			objectState{Desired: "r", Observation: there("r", "r", ""), Frozen: true}, true, v1alpha1.MemberPending,
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if got := c.sighting.relevant(); got != c.relevant {
				t.Fatalf("relevant %v", got)
			}
			if !c.relevant {
				return
			}
			state, why := c.sighting.state()
			if state != c.want {
				t.Errorf("%s (%s), want %s", state, why, c.want)
			}
			if why.IsZero() != (state == v1alpha1.MemberRealized) {
				t.Errorf("%s with message %q", state, why)
			}
			if got := message.Restore(statusfields.BoundedMessage(why)); got != why {
				t.Errorf("the status has %+v, want %+v", got, why)
			}
			if why.Render(message.Chinese) == why.Text && state != v1alpha1.MemberRealized && state != v1alpha1.MemberUnreachable {
				t.Errorf("%q has no translation", why)
			}
		})
	}
}
