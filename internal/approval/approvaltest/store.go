// Package approvaltest contains the conformance suites of the stores of package approval, and implementations of its
// interfaces in memory for tests.
package approvaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// Start is the instant at which the suite's tickets begin.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)

// Ticket builds a pending ticket of alice for app-n on resource r, decided by carol and then bob.
func Ticket(app, resource, key string) *approval.Ticket {
	return TicketOf(Item(app, resource), key)
}

// TicketOf builds a ticket of alice with one item.
func TicketOf(it approval.Item, key string) *approval.Ticket {
	return approval.NewTicket(
		approval.Draft{Kind: approval.KindGrant, Requester: "alice", Reason: "because", IdempotencyKey: key, Items: []approval.Item{it}},
		Start,
	)
}

// Item is a grant of resource r to app-n for an hour, decided by carol and then bob.
func Item(app, resource string) approval.Item {
	it := approval.Item{Application: app, ApplicationName: "name:" + app, Resource: resource, ResourceName: "name:" + resource,
		Actions: []string{"redis:connect", "redis:info"}, Duration: time.Hour, Steps: []approval.Step{
			{
				Name:      "leader",
				From:      []v1alpha1.Approver{approval.FromLeader},
				Approvers: []string{"carol"},
				Quorum:    1,
			},
			{
				Name:      "owner",
				From:      []v1alpha1.Approver{approval.FromResourceOwner},
				Approvers: []string{"bob", "dan"},
				Quorum:    1,
				Note:      message.StepNoteRequesterOwns(),
			},
		}}
	it.Shown = Shown(it)
	return it
}

// Shown returns what a Host shows for an item, without additional lines.
func Shown(it approval.Item) approval.Shown {
	return approval.NewShown(append(approval.StatementLines(it), compiledLine(it)))
}

// Yes is an approval.
func Yes(person string, at time.Time) approval.Vote {
	return approval.Vote{Person: person, Approve: true, At: at, Comment: "ok"}
}

// Store implements all interfaces of package approval that a database implements.
type Store interface {
	OutboxStore
	approval.DelegationStore
}

// OutboxStore stores tickets, and leases their jobs.
type OutboxStore interface {
	approval.TicketStore
	approval.Outbox
}

// Run runs all suites. fresh returns an empty store.
func Run(t *testing.T, fresh func(t *testing.T) Store) {
	t.Run("tickets", func(t *testing.T) { RunTickets(t, func(t *testing.T) approval.TicketStore { return fresh(t) }) })
	t.Run("delegations", func(t *testing.T) {
		RunDelegations(t, func(t *testing.T) approval.DelegationStore { return fresh(t) })
	})
	t.Run("outbox", func(t *testing.T) { RunOutbox(t, func(t *testing.T) OutboxStore { return fresh(t) }) })
}

// RunTickets runs the suite of approval.TicketStore. fresh returns an empty store.
func RunTickets(t *testing.T, fresh func(t *testing.T) approval.TicketStore) {
	run(t, fresh, map[string]func(*testing.T, context.Context, approval.TicketStore){
		"round trip": roundTrip, "idempotency": idempotency, "claims": claims, "rollback": rollback, "filters": filters, "not found": notFound,
		"concurrent updates": concurrent, "items": items, "orders": orders, "ends": ends,
	})
}

// RunDelegations runs the suite of approval.DelegationStore. fresh returns an empty store.
func RunDelegations(t *testing.T, fresh func(t *testing.T) approval.DelegationStore) {
	run(t, fresh, map[string]func(*testing.T, context.Context, approval.DelegationStore){"delegations": delegations})
}

// RunOutbox runs the suite of approval.Outbox. fresh returns an empty store.
func RunOutbox(t *testing.T, fresh func(t *testing.T) OutboxStore) {
	run(
		t,
		fresh,
		map[string]func(*testing.T, context.Context, OutboxStore){"job order": jobOrder, "leases": leases, "clock ahead": clockAhead, "parked": parked},
	)
}

func run[S any](t *testing.T, fresh func(t *testing.T) S, cases map[string]func(*testing.T, context.Context, S)) {
	for name, f := range cases {
		t.Run(name, func(t *testing.T) { f(t, t.Context(), fresh(t)) })
	}
}

func create(t *testing.T, ctx context.Context, s approval.TicketStore, x *approval.Ticket) *approval.Ticket {
	t.Helper()
	out, err := s.Create(ctx, x)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func update(t *testing.T, ctx context.Context, s approval.TicketStore, n int64, f func(*approval.Ticket) error) *approval.Ticket {
	t.Helper()
	out, err := s.Update(ctx, n, f)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func approve(t *testing.T, ctx context.Context, s approval.TicketStore, n int64, who ...string) {
	t.Helper()
	for _, p := range who {
		update(t, ctx, s, n, func(x *approval.Ticket) error { return x.Vote(0, Yes(p, Start.Add(time.Minute))) })
	}
}

func roundTrip(t *testing.T, ctx context.Context, s approval.TicketStore) {
	made := create(t, ctx, s, Ticket("a", "r", ""))
	if made.Number == 0 || made.Items[0].SID != approval.SID(made.Number, 0) {
		t.Fatalf("a stored ticket has a number and its items a sid: %+v", made)
	}
	approve(t, ctx, s, made.Number, "carol")
	got := update(t, ctx, s, made.Number, func(x *approval.Ticket) error { return x.Vote(0, Yes("bob", Start.Add(2*time.Minute))) })
	again, err := s.Get(ctx, made.Number)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(got, again, cmpopts.IgnoreUnexported(approval.Ticket{}), cmpopts.EquateApproxTime(0)); d != "" {
		t.Errorf("what is read is what was stored: (-stored +read)\n%s", d)
	}
	if again.Version != 3 || again.State() != approval.StateApproved || again.Items[0].ExpiresAt.IsZero() || len(again.Events) != 4 {
		t.Errorf("two approvals: version %d, state %s, %d events", again.Version, again.State(), len(again.Events))
	}
}

func idempotency(t *testing.T, ctx context.Context, s approval.TicketStore) {
	first := create(t, ctx, s, Ticket("a", "r", "key-12345"))
	if second := create(t, ctx, s, Ticket("a", "r", "key-12345")); second.Number != first.Number {
		t.Errorf("the same key gives the same ticket, got %d and %d", first.Number, second.Number)
	}
	other := Ticket("b", "r", "key-12345")
	other.Requester = "zoe"
	if got := create(t, ctx, s, other); got.Number == first.Number {
		t.Error("another person's key is another key")
	}
}

func claims(t *testing.T, ctx context.Context, s approval.TicketStore) {
	first := create(t, ctx, s, Ticket("a", "r", ""))
	x := Ticket("a", "r", "")
	x.Items[0].Actions = []string{"redis:info"}
	_, err := s.Create(ctx, x)
	var dup *approval.Error
	if !errors.As(err, &dup) || dup.Code != approval.CodeDuplicate || dup.Ticket != first.Number {
		t.Fatalf("one shared action makes a duplicate that names the first ticket: %v", err)
	}
	if n, err := s.ClaimedBy(ctx, x.Claims()); err != nil || n != first.Number {
		t.Errorf("ClaimedBy: %d, %v", n, err)
	}
	other := create(t, ctx, s, Ticket("a", "other", ""))
	info, connect, unknown := x.Claims()[0], other.Claims()[0], approval.Claim{Application: "a", Resource: "none", Action: "redis:info"}
	many := slices.Repeat([]approval.Claim{unknown}, 600) // more than one statement has
	for _, asked := range [][]approval.Claim{{info, unknown, connect}, append(many, info, connect)} {
		holders, err := s.Claimants(ctx, asked)
		if d := cmp.Diff(map[approval.Claim]int64{info: first.Number, connect: other.Number}, holders); d != "" || err != nil {
			t.Errorf("Claimants: %v (-want +got)\n%s", err, d)
		}
	}
	if holders, err := s.Claimants(ctx, nil); len(holders) > 0 || err != nil {
		t.Errorf("Claimants of nothing: %v, %v", holders, err)
	}
	update(t, ctx, s, first.Number, func(x *approval.Ticket) error { return x.Withdraw("alice", "no", Start) })
	create(t, ctx, s, Ticket("a", "r", ""))
}

func rollback(t *testing.T, ctx context.Context, s approval.TicketStore) {
	made := create(t, ctx, s, Ticket("a", "r", ""))
	boom := &approval.Error{Code: approval.CodeConflict, Message: message.Verbatim("boom")}
	_, err := s.Update(ctx, made.Number, func(x *approval.Ticket) error {
		if err := x.Vote(0, Yes("carol", Start)); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("the transition's error is returned as it is, got %v", err)
	}
	got, err := s.Get(ctx, made.Number)
	if err != nil || got.Version != 1 || got.Items[0].Current() != 0 {
		t.Errorf("a failed transition changes nothing: %+v, %v", got, err)
	}
}

func filters(t *testing.T, ctx context.Context, s approval.TicketStore) {
	one := create(t, ctx, s, Ticket("a", "r", "")).Number
	two := create(t, ctx, s, Ticket("b", "r", "")).Number
	three := Ticket("c", "q", "")
	three.Requester = "zoe"
	create(t, ctx, s, three)
	approve(t, ctx, s, two, "carol")
	for name, tc := range map[string]struct {
		reason string
		f      approval.Filter
		want   []int64
	}{
		"all":       {"newest first", approval.Filter{}, []int64{three.Number, two, one}},
		"page":      {"before and limit", approval.Filter{After: approval.Cursor{Number: three.Number}, Limit: 1}, []int64{two}},
		"requester": {"mine", approval.Filter{Requester: "zoe"}, []int64{three.Number}},
		"waits carol": {
			"the step that is current, not one that she decided",
			approval.Filter{WaitsFor: &approval.Waits{Person: "carol"}}, []int64{three.Number, one},
		},
		"waits bob":   {"only the ticket that waits for bob", approval.Filter{WaitsFor: &approval.Waits{Person: "bob"}}, []int64{two}},
		"decided":     {"what carol decided", approval.Filter{DecidedBy: "carol"}, []int64{two}},
		"state":       {"none is rejected", approval.Filter{States: []approval.State{approval.StateRejected}}, nil},
		"application": {"by catalog id", approval.Filter{Application: "b"}, []int64{two}},
		"resource":    {"by catalog id", approval.Filter{Resource: "r"}, []int64{two, one}},
		"visible": {
			"owner of a resource sees all about it",
			approval.Filter{VisibleTo: &approval.Visible{Person: "x", Resources: []string{"name:q"}}}, []int64{three.Number},
		},
		"statements": {
			"these tickets, besides what the person requested",
			approval.Filter{VisibleTo: &approval.Visible{Person: "zoe", Statements: []int64{one, 999}}}, []int64{three.Number, one},
		},
		"approver": {"an approver of a later step sees it", approval.Filter{VisibleTo: &approval.Visible{Person: "dan"}}, []int64{three.Number, two, one}},
		"stranger": {"others see nothing", approval.Filter{VisibleTo: &approval.Visible{Person: "x"}}, nil},
		"combined": {"a filter does not widen visibility", approval.Filter{Requester: "zoe", VisibleTo: &approval.Visible{Person: "alice"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.List(ctx, tc.f)
			if err != nil {
				t.Fatal(err)
			}
			var ids []int64
			for _, x := range got {
				ids = append(ids, x.Number)
			}
			if d := cmp.Diff(tc.want, ids); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
		})
	}
	for _, omit := range []bool{false, true} {
		got, err := s.List(ctx, approval.Filter{Requester: "zoe", OmitEvents: omit})
		if err != nil || len(got) != 1 || len(got[0].Items) != 1 || len(got[0].Events) == 0 != omit {
			t.Errorf("a list has its items, and its events unless they are left out (%v): %+v, %v", omit, got, err)
		}
	}
	checkCommentsAreOmitted(ctx, t, s)
	counts, err := s.Count(ctx, approval.Filter{WaitsFor: &approval.Waits{Person: "carol"}, Limit: 1}, approval.Filter{Requester: "zoe"})
	if d := cmp.Diff([]int{2, 1}, counts); err != nil || d != "" {
		t.Errorf("counts, without regard to a limit: %v (-want +got)\n%s", err, d)
	}
	got, err := s.ChangedSince(ctx, Start.Add(time.Minute))
	if err != nil || len(got) != 1 || got[0].Number != two {
		t.Errorf("ChangedSince: %+v, %v", got, err)
	}
}

func notFound(t *testing.T, ctx context.Context, s approval.TicketStore) {
	if _, err := s.Get(ctx, 99); approval.CodeOf(err) != approval.CodeNotFound {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Update(ctx, 99, func(*approval.Ticket) error { return nil }); approval.CodeOf(err) != approval.CodeNotFound {
		t.Errorf("Update: %v", err)
	}
	if err := s.Ping(ctx); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

func concurrent(t *testing.T, ctx context.Context, s approval.TicketStore) {
	made := create(t, ctx, s, Ticket("a", "r", ""))
	approve(t, ctx, s, made.Number, "carol")
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		who := []string{"bob", "dan"}[i%2]
		wg.Go(func() {
			_, results[i] = s.Update(ctx, made.Number, func(x *approval.Ticket) error {
				if x.Version != 2 {
					return &approval.Error{Code: approval.CodeStale, Message: message.Verbatim("stale")}
				}
				return x.Vote(0, Yes(who, Start))
			})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range results {
		switch {
		case err == nil:
			won++
		case approval.CodeOf(err) != approval.CodeStale:
			t.Errorf("a concurrent change is reported as stale, got %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of the approvals at once won, want 1", won)
	}
}

func lease(t *testing.T, ctx context.Context, s approval.Outbox, worker string, now time.Time) string {
	t.Helper()
	j, err := s.Lease(ctx, worker, now, time.Minute)
	if errors.Is(err, approval.ErrNoJob) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %d", j.Kind, j.Ticket)
}

func jobOrder(t *testing.T, ctx context.Context, s OutboxStore) {
	a, b, c := create(t, ctx, s, Ticket("a", "r", "")).Number, create(t, ctx, s, Ticket("b", "r", "")).Number, create(t, ctx, s, Ticket("a", "q", "")).Number
	for _, n := range []int64{a, b, c} {
		approve(t, ctx, s, n, "carol", "bob")
	}
	update(t, ctx, s, a, func(x *approval.Ticket) error { return x.Revoke(0, "bob", "why", Start) })
	now := Start.Add(time.Hour)
	first, err := s.Lease(ctx, "w", now, time.Minute)
	if err != nil || first.Ticket != a || first.Kind != approval.JobApply || first.Key != "name:r" {
		t.Fatalf("the oldest job goes first: %+v, %v", first, err)
	}
	if got, want := lease(t, ctx, s, "w", now), fmt.Sprintf("apply %d", c); got != want {
		t.Errorf("another resource does not wait: got %s, want %s", got, want)
	}
	if got := lease(t, ctx, s, "w", now); got != "none" {
		t.Errorf("jobs of one resource wait for the earlier one, got %s", got)
	}
	if _, err := s.Finish(ctx, first, func(*approval.Ticket) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got, want := lease(t, ctx, s, "w", now), fmt.Sprintf("apply %d", b); got != want {
		t.Errorf("then the next of the resource: got %s, want %s", got, want)
	}
}

func leases(t *testing.T, ctx context.Context, s OutboxStore) {
	n := create(t, ctx, s, Ticket("a", "r", "")).Number
	approve(t, ctx, s, n, "carol", "bob")
	now := Start.Add(time.Hour)
	dead, err := s.Lease(ctx, "dead", now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := lease(t, ctx, s, "next", now.Add(59*time.Second)); got != "none" {
		t.Errorf("a lease holds until it ends, got %s", got)
	}
	next, err := s.Lease(ctx, "next", now.Add(time.Minute), time.Minute)
	if err != nil || next.Attempts != 2 {
		t.Fatalf("an ended lease can be taken: %+v, %v", next, err)
	}
	nothing := func(*approval.Ticket) error { return nil }
	if _, err := s.Finish(ctx, dead, nothing); !errors.Is(err, approval.ErrLeaseLost) {
		t.Errorf("a worker without its lease finishes nothing: %v", err)
	}
	if _, err := s.Postpone(ctx, dead, now, false, nothing); !errors.Is(err, approval.ErrLeaseLost) {
		t.Errorf("a worker without its lease postpones nothing: %v", err)
	}
	if _, err := s.Finish(ctx, next, func(x *approval.Ticket) error {
		x.Written(0, "p", approval.Written{Generation: 7, UID: "u"}, now)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(ctx, n)
	if err != nil || got.State() != approval.StateApplying || got.Items[0].WrittenGeneration != 7 || got.Items[0].PolicyUID != "u" {
		t.Errorf("finishing moves the ticket in the same transaction: %+v, %v", got, err)
	}
	if _, err := s.Finish(ctx, next, nothing); !errors.Is(err, approval.ErrLeaseLost) {
		t.Errorf("a job is finished once: %v", err)
	}
}

// clockAhead: a portal whose clock was ten minutes ahead leaves nothing behind that waits for ten minutes.
func clockAhead(t *testing.T, ctx context.Context, s OutboxStore) {
	n := create(t, ctx, s, Ticket("a", "r", "")).Number
	approve(t, ctx, s, n, "carol", "bob")
	right := Start.Add(time.Hour)
	wrong, want := right.Add(10*time.Minute), fmt.Sprintf("apply %d", n)
	if _, err := s.Lease(ctx, "dead", wrong, time.Minute); err != nil {
		t.Fatal(err)
	}
	j, err := s.Lease(ctx, "next", right, time.Minute)
	if err != nil || j.Ticket != n {
		t.Fatalf("a lease of a clock that was ahead is none: %+v, %v", j, err)
	}
	if got := lease(t, ctx, s, "third", right.Add(-approval.ClockTolerance)); got != "none" {
		t.Errorf("a lease of a clock that is a little ahead is one, got %s", got)
	}
	nothing := func(*approval.Ticket) error { return nil }
	if _, err := s.Postpone(ctx, j, wrong.Add(approval.LongestRetry), false, nothing); err != nil {
		t.Fatal(err)
	}
	if j, err = s.Lease(ctx, "next", right, time.Minute); err != nil {
		t.Fatalf("a wait of a clock that was ahead is none: %v", err)
	}
	if _, err := s.Postpone(ctx, j, right.Add(approval.LongestParked), true, nothing); err != nil {
		t.Fatal(err)
	}
	if got := lease(t, ctx, s, "next", right); got != "none" {
		t.Errorf("a parked job may wait for longer, got %s", got)
	}
	if _, err := s.Lease(ctx, "next", right.Add(approval.LongestParked), time.Minute); err != nil {
		t.Fatalf("until its time has come: %v", err)
	}
	if got := lease(t, ctx, s, "next", right.Add(-time.Hour)); got != want {
		t.Errorf("a clock that was an hour ahead: got %s, want %s", got, want)
	}
}

func parked(t *testing.T, ctx context.Context, s OutboxStore) {
	a, b := create(t, ctx, s, Ticket("a", "r", "")).Number, create(t, ctx, s, Ticket("b", "r", "")).Number
	approve(t, ctx, s, a, "carol", "bob")
	approve(t, ctx, s, b, "carol", "bob")
	now := Start.Add(time.Hour)
	for _, park := range []bool{false, true} {
		j, err := s.Lease(ctx, "w", now, time.Minute)
		if err != nil || j.Ticket != a {
			t.Fatalf("lease: %+v, %v", j, err)
		}
		if _, err := s.Postpone(ctx, j, now.Add(time.Second), park, func(*approval.Ticket) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if !park {
			if got := lease(t, ctx, s, "w", now); got != "none" {
				t.Errorf("a postponed job keeps its place, got %s", got)
			}
		}
		now = now.Add(time.Second)
	}
	now = now.Add(-time.Millisecond)
	if got, want := lease(t, ctx, s, "w", now), fmt.Sprintf("apply %d", b); got != want {
		t.Errorf("a parked job lets the next pass: got %s, want %s", got, want)
	}
	if got, want := lease(t, ctx, s, "w", now.Add(time.Millisecond)), fmt.Sprintf("apply %d", a); got != want {
		t.Errorf("a parked job comes back: got %s, want %s", got, want)
	}
}

// checkCommentsAreOmitted checks that a list has the events of its tickets without the comments if these are left out.
func checkCommentsAreOmitted(ctx context.Context, t *testing.T, s approval.TicketStore) {
	t.Helper()
	list, err := s.List(ctx, approval.Filter{Requester: "zoe"})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := s.Update(ctx, list[0].Number, func(t *approval.Ticket) error { return t.Comment("bob", "why now?", Start) }); err != nil {
		t.Fatal(err)
	}
	for _, omit := range []bool{false, true} {
		got, err := s.List(ctx, approval.Filter{Requester: "zoe", OmitComments: omit})
		if err != nil || len(got) != 1 || len(got[0].Events) == 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		if has := slices.ContainsFunc(got[0].Events, func(e approval.Event) bool { return e.Kind == approval.EventComment }); has == omit {
			t.Errorf("comments are left out: %v, and the list has one: %v", omit, has)
		}
	}
}
