package gormstore

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// TestItemsKeepTheirMessages checks that the messages of an item survive the store, that earlier versions can read what is stored,
// and that the texts which they stored are read.
func TestItemsKeepTheirMessages(t *testing.T) {
	note := message.StepNoteOwnerOf(message.NamesList([]string{"cart", "orders"}))
	want := approval.Item{
		State:       approval.StateApplying,
		Application: "a1",
		Message:     message.TicketWaitingForMembers(message.NamesListAndMore([]string{"m1"}, 3)),
		Steps: []approval.Step{
			{Name: "leader", Quorum: 1},
			{Name: "owner", Quorum: 1, Note: note},
		},
		Review: &approval.Step{Name: "review", Quorum: 1, Note: note},
	}
	body, err := encodeItem(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeItem(body)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	var old struct {
		Message string
		Steps   []struct{ Note string }
		Review  *struct{ Note string }
	}
	if err := json.Unmarshal(body, &old); err != nil || len(old.Steps) != 2 || old.Review == nil {
		t.Errorf("an earlier version reads %+v, %v", old, err)
	}
	got, err = decodeItem(
		[]byte(`{"State":"failed","Message":"The host cluster refused it","Steps":[{"Name":"owner","Note":"because"}],"Review":{"Name":"review"}}`),
	)
	if err != nil || got.Message != message.Verbatim("The host cluster refused it") || got.Steps[0].Note != message.Verbatim("because") ||
		!got.Review.Note.IsZero() {
		t.Errorf("the item of an earlier version is read as %+v, %v", got, err)
	}
	if got, err = decodeItem(
		[]byte(`{"Steps":null,"Review":null,"Message":""}`),
	); err != nil || got.Steps != nil || got.Review != nil ||
		!got.Message.IsZero() {
		t.Errorf("an item without steps is read as %+v, %v", got, err)
	}
}

// TestCommentsAreNotMessages checks that only entries of the portal itself have messages: what a person writes stays their comment,
// even if it has the form of a message.
func TestCommentsAreNotMessages(t *testing.T) {
	forged := message.TicketApprovedGrant().Encode()
	for _, tc := range []struct {
		reason string
		stored string
		event  approval.Event
		want   approval.Event
	}{
		{
			"the portal's own entry", forged, approval.Event{Kind: approval.EventFailed},
			approval.Event{Kind: approval.EventFailed, Message: message.TicketApprovedGrant()},
		},
		{
			"a text of an earlier version", "no quota", approval.Event{Kind: approval.EventFailed},
			approval.Event{Kind: approval.EventFailed, Message: message.Verbatim("no quota")},
		},
		{
			"a person's words", forged, approval.Event{Kind: approval.EventComment, Actor: "mallory"},
			approval.Event{Kind: approval.EventComment, Actor: "mallory", Comment: forged},
		},
		{"lines that differ", "+ app/888", approval.Event{Kind: approval.EventVoided}, approval.Event{Kind: approval.EventVoided, Comment: "+ app/888"}},
		{"nothing", "", approval.Event{Kind: approval.EventExpired}, approval.Event{Kind: approval.EventExpired}},
	} {
		got := tc.event
		setComment(&got, tc.stored)
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", tc.reason, d)
		}
		if tc.reason != "a text of an earlier version" && commentOf(got) != tc.stored {
			t.Errorf("%s: it is stored as %q, want %q", tc.reason, commentOf(got), tc.stored)
		}
	}
	if got := commentOf(approval.Event{Actor: "mallory", Comment: "mine", Message: message.TicketApprovedGrant()}); got != "mine" {
		t.Errorf("an entry of a person is stored as %q", got)
	}
}
