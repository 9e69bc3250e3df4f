package gormstore

import (
	"errors"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
)

// answerable returns a message to a person in which version v of ticket 7 can be decided.
func answerable(person, event string, v int64) notify.QueuedMessage {
	m := queuedMessage(person, event, notify.ChannelSlack)
	m.Facts.Answer = &approval.Answerable{Version: v, Digest: "d", Lines: []string{"allow a"}}
	return m
}

// changed routes a change that brings ticket 7 to version v.
func changed(t *testing.T, s *Store, v int64, outcome message.Message, except ...string) {
	t.Helper()
	x := &notify.Supersession{Ticket: 7, Version: v, Outcome: outcome, At: start, Except: except}
	if err := s.Route(t.Context(), notify.Routed{Change: enqueue(t, s), Supersession: x}); err != nil {
		t.Fatal(err)
	}
}

// send leases the only due message and records it as sent with a receipt.
func send(t *testing.T, s *Store, receipt string) {
	t.Helper()
	d := lease(t, s, notify.ChannelSlack, "w", start)
	if len(d) != 1 || d[0].Retraction {
		t.Fatalf("got %+v, want a message", d)
	}
	d[0].Receipt = receipt
	if err := s.Sent(t.Context(), d, start); err != nil {
		t.Fatal(err)
	}
}

// retraction leases the only due delivery, which has to be a retraction.
func retraction(t *testing.T, s *Store, receipt string, want message.Message) []notify.Delivery {
	t.Helper()
	d := lease(t, s, notify.ChannelSlack, "w", start)
	if len(d) != 1 || !d[0].Retraction || d[0].Receipt != receipt || d[0].Outcome != want || d[0].Attempts != 1 {
		t.Fatalf("got %+v, want the retraction of %q with %q", d, receipt, want.Text)
	}
	return d
}

func nothingDue(t *testing.T, s *Store, reason string) {
	t.Helper()
	if d := lease(t, s, notify.ChannelSlack, "w", start); len(d) != 0 {
		t.Errorf("%s: got %+v, want nothing", reason, d)
	}
}

func TestChangedTicketRetractsMessages(t *testing.T) {
	pending, rejected := message.AnswerOutcomeChanged(), message.AnswerOutcomeRejected()
	each(t, func(t *testing.T, s *Store) {
		route(t, s, answerable("bob", "e1", 3))
		send(t, s, "D1 1.1")
		nothingDue(t, s, "nothing happened")
		changed(t, s, 3, pending)
		nothingDue(t, s, "the message is about this version")
		changed(t, s, 4, pending)
		first := retraction(t, s, "D1 1.1", pending)
		nothingDue(t, s, "it is leased")
		changed(t, s, 5, rejected)
		if err := s.Sent(t.Context(), first, start); !errors.Is(err, notify.ErrLeaseLost) {
			t.Errorf("the ticket changed again during the retraction: got %v, want ErrLeaseLost", err)
		}
		second := retraction(t, s, "D1 1.1", rejected)
		if err := s.Postpone(t.Context(), second, start.Add(time.Minute), "no answer"); err != nil {
			t.Fatal(err)
		}
		nothingDue(t, s, "it is postponed")
		third := lease(t, s, notify.ChannelSlack, "w", start.Add(time.Minute))
		if len(third) != 1 || third[0].Attempts != 2 || third[0].Outcome != rejected {
			t.Fatalf("got %+v, want the second attempt", third)
		}
		if err := s.Sent(t.Context(), third, start); err != nil {
			t.Fatal(err)
		}
		nothingDue(t, s, "it is done")
		changed(t, s, 6, rejected)
		nothingDue(t, s, "the message says that already")
		changed(t, s, 7, pending)
		retraction(t, s, "D1 1.1", pending)
		if err := s.Prune(t.Context(), start.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if d := lease(t, s, notify.ChannelSlack, "w", start.Add(time.Hour)); len(d) != 0 {
			t.Errorf("after Prune: got %+v", d)
		}
	})
}

func TestMessagesThatAreNotSentYetAreSuperseded(t *testing.T) {
	pending := message.AnswerOutcomeChanged()
	each(t, func(t *testing.T, s *Store) {
		route(t, s, answerable("bob", "e1", 3))
		changed(t, s, 4, pending)
		d := lease(t, s, notify.ChannelSlack, "w", start)
		if len(d) != 1 || d[0].Retraction || d[0].Outcome != pending {
			t.Fatalf("got %+v, want the message with the outcome", d)
		}
		if err := s.Sent(t.Context(), d, start); err != nil {
			t.Fatal(err)
		}
		nothingDue(t, s, "it was sent without controls")

		route(t, s, answerable("bob", "e2", 5))
		d = lease(t, s, notify.ChannelSlack, "w", start)
		if len(d) != 1 || !d[0].Outcome.IsZero() {
			t.Fatalf("got %+v", d)
		}
		changed(t, s, 6, pending)
		d[0].Receipt = "D1 1.2"
		if err := s.Sent(t.Context(), d, start); err != nil {
			t.Fatalf("the change took the lease of a message that is being sent: %v", err)
		}
		retraction(t, s, "D1 1.2", pending)
	})
}

func TestWhoDecidedInTheMessageKeepsIt(t *testing.T) {
	pending, approved := message.AnswerOutcomeChanged(), message.AnswerOutcomeApproved()
	each(t, func(t *testing.T, s *Store) {
		route(t, s, answerable("bob", "e1", 3))
		send(t, s, "D1 1.1")
		route(t, s, answerable("eve", "e1", 3))
		send(t, s, "D2 1.1")
		changed(t, s, 4, pending, "bob")
		d := retraction(t, s, "D2 1.1", pending)
		if err := s.Sent(t.Context(), d, start); err != nil {
			t.Fatal(err)
		}
		nothingDue(t, s, "the message of bob shows what he did")
		changed(t, s, 5, approved, "eve")
		retraction(t, s, "D1 1.1", approved)
		nothingDue(t, s, "the message of eve shows what she did")
	})
}

// TestOtherMessagesAreNotRetracted checks that only messages with controls for an earlier version of the same ticket are.
func TestOtherMessagesAreNotRetracted(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		other := answerable("bob", "e1", 3)
		other.Ticket = 8
		digest := answerable("eve", "e2", 3)
		digest.Digest = true
		shared := answerable("", "e3", 3)
		plain := queuedMessage("bob", "e4", notify.ChannelSlack)
		for _, m := range []notify.QueuedMessage{other, digest, shared, plain} {
			route(t, s, m)
			send(t, s, "D1 1.1")
		}
		notice := answerable("bob", "e5", 3)
		notice.Channel = notify.ChannelInbox
		without := answerable("bob", "e6", 3)
		route(t, s, notice, without)
		send(t, s, "")
		changed(t, s, 4, message.AnswerOutcomeRejected())
		nothingDue(t, s, "none of them has controls for this ticket")
		if n, err := s.Unread(t.Context(), "bob"); err != nil || n != 1 {
			t.Errorf("the inbox has %d unread notices, %v", n, err)
		}
	})
}
