package approval_test

import (
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// TestLedgerHasCodes checks that a text of the portal is recorded with its code, and that the words of a person never are.
func TestLedgerHasCodes(t *testing.T) {
	why := message.TicketRolloutStopped(message.GuardNewDenials(3, "east", "1h0m0s", 0))
	ticket := &approval.Ticket{Number: 1, Kind: approval.KindGrant, Items: []approval.Item{{State: approval.StateWithdrawn}}, Events: []approval.Event{
		{At: time.Unix(1, 0), Kind: approval.EventWithdrawn, Item: approval.WholeTicket, Message: why},
		{At: time.Unix(2, 0), Kind: approval.EventComment, Item: approval.WholeTicket, Actor: "bob", Comment: why.Text},
	}}
	entries := approval.LedgerEntries(ticket)
	if len(entries) != 2 {
		t.Fatalf("%d entries", len(entries))
	}
	for _, e := range entries {
		if e.Details["comment"] != why.Text {
			t.Errorf("%s: the comment is %q", e.Action, e.Details["comment"])
		}
	}
	line, err := ledger.Append(0, ledger.Genesis, entries[0])
	if err != nil {
		t.Fatal(err)
	}
	read, err := line.Entry()
	if err != nil {
		t.Fatal(err)
	}
	if got := read.Texts()["comment"]; got.Render(message.Chinese) != why.Render(message.Chinese) || got.Text != why.Text {
		t.Errorf("the reason of the portal is %+v", got)
	}
	if got, coded := entries[1].Texts()["comment"]; coded {
		t.Errorf("the words of a person have the code %s", got.Code)
	}
}
