package gormstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/database/databasetest"
)

func creations(some ...*approval.Ticket) (out []*creation) {
	for _, t := range some {
		out = append(out, &creation{ticket: t})
	}
	return out
}

// inOne applies writes in one batch, as if they had waited at the same time.
func inOne[T any](t *testing.T, s *Store, do func(tx *gorm.DB, some []T) ([]error, error), some []T) (refused []error) {
	t.Helper()
	if err := s.db.Write(t.Context(), func(tx *gorm.DB) (err error) {
		refused, err = do(tx, some)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return refused
}

// Requests in one batch have the results that they would have one after the other.
func TestRequestsInOneStatement(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := New(databasetest.Open(t, dsn))
		there, err := s.Create(t.Context(), approvaltest.Ticket("there", "r", "key-of-there"))
		if err != nil {
			t.Fatal(err)
		}
		// One of its claims is free, and the other is taken.
		wide := approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: "alice", Reason: "because",
			Items: []approval.Item{approvaltest.Item("wide", "r"), approvaltest.Item("there", "r")}}, approvaltest.Start)
		some := creations(approvaltest.Ticket("a", "r", ""), approvaltest.Ticket("a", "r", ""), wide, approvaltest.Ticket("there", "r", "key-of-there"),
			approvaltest.Ticket("b", "r", "key-of-b"), approvaltest.Ticket("b", "r", "key-of-b"), approvaltest.Ticket("wide", "r", ""))
		refused := inOne(t, s, createAll, some)
		for i, tc := range []struct {
			reason string
			same   *approval.Ticket // nil: one of its own
			other  *approval.Ticket // that has what it asks for; nil: nobody
		}{
			0: {reason: "the first who asks"},
			1: {reason: "who asks for the same is told of him", other: some[0].ticket},
			2: {reason: "who asks for what a ticket has is told of that one", other: there},
			3: {reason: "the same request again", same: there},
			4: {reason: "another request with a key"},
			5: {reason: "the same request beside it", same: some[4].ticket},
			6: {reason: "what a refused one asked for is free"},
		} {
			var dup *approval.Error
			switch {
			case tc.other != nil && (!errors.As(refused[i], &dup) || dup.Code != approval.CodeDuplicate || dup.Ticket != tc.other.Number):
				t.Errorf("%s: want %s of ticket %d, got %v", tc.reason, approval.CodeDuplicate, tc.other.Number, refused[i])
			case tc.other == nil && refused[i] != nil:
				t.Errorf("%s: %v", tc.reason, refused[i])
			case tc.same != nil && some[i].stored.Number != tc.same.Number:
				t.Errorf("%s: got ticket %d, want %d", tc.reason, some[i].stored.Number, tc.same.Number)
			case tc.same == nil && tc.other == nil && some[i].stored != some[i].ticket:
				t.Errorf("%s: it is its own ticket", tc.reason)
			}
		}
		all, err := s.List(t.Context(), approval.Filter{})
		if err != nil || len(all) != 4 {
			t.Errorf("%d tickets, want 4: %v", len(all), err)
		}
		if n := verify(t, s); n != 4 {
			t.Errorf("%d lines in the ledger, want 4", n)
		}
	})
}

// Transitions that wait at the same time have the results that they would have one after the other, and what is kept of
// them is what is stored.
func TestTransitionsInOneStatement(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := New(databasetest.Open(t, dsn))
		var numbers []int64
		for i := range 4 {
			x, err := s.Create(t.Context(), approvaltest.Ticket(fmt.Sprint("a", i), "r", ""))
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, x.Number)
		}
		own := errors.New("own")
		by := func(people ...string) func(*approval.Ticket) error {
			return func(x *approval.Ticket) error { return approve(x, people...) }
		}
		some := []*transition{
			{number: numbers[0], change: by("carol")},
			{number: numbers[1], change: func(x *approval.Ticket) error { return errors.Join(approve(x, "carol"), own) }},
			{number: numbers[2], change: func(*approval.Ticket) error { return nil }},
			{number: 999, change: by("carol")},
			{number: numbers[0], change: by("bob")},
			{number: numbers[3], change: func(x *approval.Ticket) error { return x.Withdraw("alice", "no", approvaltest.Start) }},
		}
		refused := inOne(t, s, s.updateAll, some)
		for i, want := range []error{nil, own, nil, gorm.ErrRecordNotFound, nil, nil} {
			if !errors.Is(refused[i], want) {
				t.Errorf("transition %d: got %v, want %v", i, refused[i], want)
			}
			if x := some[i].ticket; want == nil {
				s.stored(x)
			}
		}
		fresh := New(s.db)
		for i, want := range []struct {
			state   approval.State
			version int64
		}{{approval.StateApproved, 3}, {approval.StatePending, 1}, {approval.StatePending, 1}, {approval.StateWithdrawn, 2}} {
			got, err := fresh.Get(t.Context(), numbers[i])
			if err != nil || got.State() != want.state || got.Version != want.version {
				t.Errorf("ticket %d is %s in version %d, want %s in %d: %v", i, got.State(), got.Version, want.state, want.version, err)
			}
			if kept, ok := s.ticketCache.get(rowOf(got)); !ok {
				t.Errorf("ticket %d was written and is not kept", i)
			} else if d := cmp.Diff(got, kept, cmpopts.IgnoreUnexported(approval.Ticket{})); d != "" {
				t.Errorf("ticket %d: what is kept is what is stored: (-stored +kept)\n%s", i, d)
			}
		}
		if n := verify(t, s); n != 8 { // the second approval has two lines
			t.Errorf("%d lines in the ledger, want 8", n)
		}
		if job, err := s.Lease(t.Context(), "w", approvaltest.Start, 1); err != nil || job.Ticket != numbers[0] {
			t.Errorf("the approved one has a job: %+v, %v", job, err)
		}
		if claimed, err := s.ClaimedBy(t.Context(), approvaltest.Ticket("a3", "r", "").Claims()); err != nil || claimed != 0 {
			t.Errorf("what was withdrawn claims nothing: %d, %v", claimed, err)
		}
	})
}
