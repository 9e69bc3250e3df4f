package approvaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

func numbers(t *testing.T, ctx context.Context, s approval.TicketStore, f approval.Filter) []int64 {
	t.Helper()
	got, err := s.List(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	var out []int64
	for _, x := range got {
		out = append(out, x.Number)
	}
	return out
}

// items: each has a state and a chain of its own, and filters about items look at one of them at a time.
func items(t *testing.T, ctx context.Context, s approval.TicketStore) {
	second := Item("b", "q")
	second.Steps = []approval.Step{
		{Name: "leader", Approvers: []string{"erin", "dan"}, Quorum: 2, Timeout: time.Hour, OnTimeout: v1alpha1.TimeoutEscalate, EscalateTo: []string{"zoe"}},
	}
	second.Target = &approval.Target{Ticket: 1, Item: 3}
	second.Package = &approval.PackageRef{Name: "pay", Version: 2, Digest: "d", Team: "team", Owners: []string{"user:bob"}, HolderUpdate: true, Ticket: 5,
		Until: Start.Add(time.Hour), Security: true}
	x := approval.NewTicket(
		approval.Draft{Kind: approval.KindGrant, Requester: "alice", Reason: "because", Items: []approval.Item{Item("a", "r"), second}},
		Start,
	)
	n := create(t, ctx, s, x).Number
	chinese := Ticket("c", "r", "")
	chinese.Reason = "because of 订单缓存"
	other := create(t, ctx, s, chinese).Number
	approve(t, ctx, s, n, "carol", "bob")
	update(t, ctx, s, n, func(x *approval.Ticket) error {
		x.Written(0, "p", approval.Written{Generation: 1, UID: "u"}, Start)
		return x.Vote(1, approval.Vote{Person: "frank", OnBehalfOf: "erin", Approve: true, At: Start})
	})
	for name, tc := range map[string]struct {
		reason string
		f      approval.Filter
		want   []int64
	}{
		"sum":        {"one item waits, so the ticket does", approval.Filter{States: []approval.State{approval.StatePending}}, []int64{other, n}},
		"item state": {"the first item is written", approval.Filter{ItemStates: []approval.State{approval.StateApplying}}, []int64{n}},
		"policy":     {"where it is written", approval.Filter{Policy: "p", ItemStates: []approval.State{approval.StateApplying}}, []int64{n}},
		"one item": {
			"the item in the policy is not the one that waits",
			approval.Filter{Policy: "p", ItemStates: []approval.State{approval.StatePending}}, nil,
		},
		"kind":          {"all are grants", approval.Filter{Kinds: []approval.Kind{approval.KindMode}}, nil},
		"target":        {"the grant that it is about", approval.Filter{Target: &approval.Target{Ticket: 1, Item: 3}}, []int64{n}},
		"other target":  {"another item of that ticket", approval.Filter{Target: &approval.Target{Ticket: 1, Item: 0}}, nil},
		"package":       {"the package that an item is a part of", approval.Filter{Package: "pay"}, []int64{n}},
		"other package": {"another one", approval.Filter{Package: "pa"}, nil},
		"package and state": {
			"another item has the state", approval.Filter{Package: "pay", ItemStates: []approval.State{approval.StateApplying}}, nil,
		},
		"numbers":             {"those that are named", approval.Filter{Numbers: []int64{n, 999}}, []int64{n}},
		"reason":              {"a word of it, in any case", approval.Filter{Text: "BECAUS"}, []int64{other, n}},
		"part of a word":      {"not its beginning", approval.Filter{Text: "ecaus"}, nil},
		"two words":           {"it has both", approval.Filter{Text: "beca q"}, []int64{n}},
		"chinese":             {"two characters that follow each other", approval.Filter{Text: "单缓"}, []int64{other}},
		"a chinese character": {"the last of the word", approval.Filter{Text: "存"}, []int64{other}},
		"nothing":             {"there is nothing to search by", approval.Filter{Text: "%"}, nil},
		"an item's resource":  {"part of its id", approval.Filter{Text: "q"}, []int64{n}},
		"no wildcard":         {"what people type is no pattern", approval.Filter{Text: "b%e"}, nil},
		"oldest":              {"the first of them", approval.Filter{Oldest: true, Limit: 1}, []int64{n}},
		"oldest that waits":   {"the first of those", approval.Filter{Oldest: true, Limit: 1, WaitsFor: &approval.Waits{Person: "dan"}}, []int64{n}},
		"due":                 {"the step's deadline is the next", approval.Filter{DueBy: Start.Add(time.Hour)}, []int64{n}},
		"not due":             {"before it", approval.Filter{DueBy: Start.Add(time.Second)}, nil},
		"expires":             {"the first item ends an hour after its approval", approval.Filter{ExpiresBy: Start.Add(61 * time.Minute)}, []int64{n}},
		"expires later":       {"not before", approval.Filter{ExpiresBy: Start.Add(60 * time.Minute)}, nil},
		"waits":               {"one of two approvals is missing", approval.Filter{WaitsFor: &approval.Waits{Person: "dan"}}, []int64{n}},
		"has voted":           {"their delegate voted for them", approval.Filter{WaitsFor: &approval.Waits{Person: "erin"}}, nil},
		"stands for":          {"as a delegate", approval.Filter{WaitsFor: &approval.Waits{Person: "gina", StandsFor: []string{"dan"}}}, []int64{n}},
		"stands and decided": {
			"a person fills one step, also as a delegate",
			approval.Filter{WaitsFor: &approval.Waits{Person: "frank", StandsFor: []string{"dan"}}}, nil,
		},
		"stands for their own": {"requesters do not decide their own requests",
			approval.Filter{WaitsFor: &approval.Waits{Person: "alice", StandsFor: []string{"dan"}}}, nil},
		"decided by delegate": {"the delegate decided", approval.Filter{DecidedBy: "frank"}, []int64{n}},
		"decided for":         {"the represented person decided, too", approval.Filter{DecidedBy: "erin"}, []int64{n}},
		"escalation":          {"whom it may escalate to does not see it before", approval.Filter{VisibleTo: &approval.Visible{Person: "zoe"}}, nil},
		"delegate sees": {
			"what the people whom they represent have to decide",
			approval.Filter{VisibleTo: &approval.Visible{Person: "x", StandsFor: []string{"dan"}}}, []int64{other, n},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, numbers(t, ctx, s, tc.f)); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
		})
	}
	update(t, ctx, s, n, func(x *approval.Ticket) error {
		x.Tick(Start.Add(2 * time.Hour))
		return nil
	})
	for _, v := range []approval.Visible{{Person: "zoe"}, {Person: "x", StandsFor: []string{"zoe"}}} {
		if d := cmp.Diff([]int64{n}, numbers(t, ctx, s, approval.Filter{VisibleTo: &v})); d != "" {
			t.Errorf("%+v does not see the escalated ticket: (-want +got)\n%s", v, d)
		}
	}
}

// orders checks that the pages of each order contain every ticket once, also if several were changed in one instant.
func orders(t *testing.T, ctx context.Context, s approval.TicketStore) {
	var made []int64
	for i := range 5 {
		made = append(made, create(t, ctx, s, Ticket(fmt.Sprint("a", i), "r", "")).Number)
	}
	one, two, three, four, five := made[0], made[1], made[2], made[3], made[4]
	approve(t, ctx, s, two, "carol")
	approve(t, ctx, s, four, "carol")
	for name, tc := range map[string]struct {
		f    approval.Filter
		want []int64
	}{
		"newest":                      {approval.Filter{}, []int64{five, four, three, two, one}},
		"oldest":                      {approval.Filter{Oldest: true}, made},
		"last changed":                {approval.Filter{ByUpdate: true}, []int64{four, two, five, three, one}},
		"longest unchanged":           {approval.Filter{ByUpdate: true, Oldest: true}, []int64{one, three, five, two, four}},
		"oldest of a person":          {approval.Filter{Oldest: true, WaitsFor: &approval.Waits{Person: "carol"}}, []int64{one, three, five}},
		"last changed of a state":     {approval.Filter{ByUpdate: true, States: []approval.State{approval.StatePending}}, []int64{four, two, five, three, one}},
		"last changed of a requester": {approval.Filter{ByUpdate: true, Requester: "alice"}, []int64{four, two, five, three, one}},
		"longest unchanged that is visible": {
			approval.Filter{ByUpdate: true, Oldest: true, VisibleTo: &approval.Visible{Person: "carol"}},
			[]int64{one, three, five, two, four},
		},
	} {
		for _, limit := range []int{1, 2, 3, 5, 6} {
			f := tc.f
			f.Limit = limit
			var got []int64
			for {
				page, err := s.List(ctx, f)
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range page {
					got = append(got, x.Number)
				}
				if len(page) < limit || len(got) > len(made) {
					break
				}
				last := page[len(page)-1]
				f.After = approval.Cursor{UpdatedAt: last.UpdatedAt, Number: last.Number}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s in pages of %d: (-want +got)\n%s", name, limit, d)
			}
		}
	}
}

func delegations(t *testing.T, ctx context.Context, s approval.DelegationStore) {
	make := func(from, to string, start, end time.Duration) approval.Delegation {
		d, err := s.Delegate(
			ctx,
			approval.Delegation{From: from, To: to, Start: Start.Add(start), End: Start.Add(end), Reason: "away", CreatedBy: from, CreatedAt: Start},
		)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	now := make("bob", "frank", 0, time.Hour)
	later := make("bob", "gina", time.Hour, 2*time.Hour)
	if now.ID == 0 || later.ID <= now.ID {
		t.Fatalf("delegations are numbered in order: %d, %d", now.ID, later.ID)
	}
	ids := func(f approval.DelegationFilter) []int64 {
		got, err := s.Delegations(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		var out []int64
		for _, d := range got {
			out = append(out, d.ID)
		}
		return out
	}
	for name, tc := range map[string]struct {
		f    approval.DelegationFilter
		want []int64
	}{
		"all":           {approval.DelegationFilter{}, []int64{later.ID, now.ID}},
		"page":          {approval.DelegationFilter{Before: later.ID, Limit: 1}, []int64{now.ID}},
		"from":          {approval.DelegationFilter{From: "bob"}, []int64{later.ID, now.ID}},
		"to":            {approval.DelegationFilter{To: "gina"}, []int64{later.ID}},
		"begins":        {approval.DelegationFilter{ActiveAt: Start}, []int64{now.ID}},
		"has ended":     {approval.DelegationFilter{To: "frank", ActiveAt: Start.Add(time.Hour)}, nil},
		"begins as one": {approval.DelegationFilter{ActiveAt: Start.Add(time.Hour)}, []int64{later.ID}},
	} {
		if d := cmp.Diff(tc.want, ids(tc.f)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
	boom := &approval.Error{Code: approval.CodeForbidden, Message: message.Verbatim("boom")}
	if _, err := s.EndDelegation(ctx, now.ID, func(*approval.Delegation) error { return boom }); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("the change's error is returned as it is, got %v", err)
	}
	ended, err := s.EndDelegation(ctx, now.ID, func(d *approval.Delegation) error {
		d.EndedAt, d.EndedBy = Start.Add(time.Minute), "bob"
		return nil
	})
	if err != nil || ended.EndedBy != "bob" {
		t.Fatalf("end: %+v, %v", ended, err)
	}
	if got := ids(approval.DelegationFilter{ActiveAt: Start.Add(time.Minute)}); len(got) != 0 {
		t.Errorf("an ended delegation is not active: %v", got)
	}
	if _, err := s.EndDelegation(ctx, 99, func(*approval.Delegation) error { return nil }); approval.CodeOf(err) != approval.CodeNotFound {
		t.Errorf("one that does not exist: %v", err)
	}
	delegationBounds(t, ctx, s)
}

// delegationBounds checks the bounds of the delegations that have not ended.
func delegationBounds(t *testing.T, ctx context.Context, s approval.DelegationStore) {
	add := func(from, to string, start, end time.Duration) (approval.Delegation, error) {
		return s.Delegate(ctx, approval.Delegation{From: from, To: to, Start: Start.Add(start), End: Start.Add(end), Reason: "away", CreatedBy: from,
			CreatedAt: Start})
	}
	refused := func(reason, code string, err error) {
		t.Helper()
		var e *approval.Error
		if !errors.As(err, &e) || e.Code != approval.CodeConflict || e.Message.Code != code {
			t.Errorf("%s: got %v, want a conflict with the message %s", reason, err, code)
		}
	}
	accepted := func(reason string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
	first, err := add("ann", "ben", time.Hour, 2*time.Hour)
	accepted("the first", err)
	for reason, times := range map[string][2]time.Duration{"the same": {time.Hour, 2 * time.Hour}, "a longer one": {0, 3 * time.Hour},
		"one within it": {80 * time.Minute, 90 * time.Minute}, "one that extends it": {90 * time.Minute, 5 * time.Hour}} {
		_, err := add("ann", "ben", times[0], times[1])
		refused(reason, "delegation.overlaps", err)
	}
	_, err = add("ann", "ben", 0, time.Hour)
	accepted("one that ends when the first begins", err)
	_, err = add("ann", "cid", time.Hour, 2*time.Hour)
	accepted("one to another person", err)
	_, err = add("ben", "ann", time.Hour, 2*time.Hour)
	accepted("one in the other direction", err)
	if _, err := s.EndDelegation(ctx, first.ID, func(d *approval.Delegation) error {
		d.EndedAt, d.EndedBy = Start, "ann"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_, err = add("ann", "ben", time.Hour, 9*time.Hour)
	accepted("a longer one, after the first was ended", err)

	for i := range approval.MaxDelegationsMade - 3 { // three of ann have not ended
		_, err := add("ann", "delegate-"+strconv.Itoa(i), 0, time.Hour)
		accepted("up to the limit", err)
	}
	_, err = add("ann", "dan", 0, time.Hour)
	refused("one more than a person may make", "delegation.too-many-made", err)
	_, err = s.Delegate(ctx, approval.Delegation{From: "ann", To: "dan", Start: Start.Add(10 * time.Hour), End: Start.Add(11 * time.Hour), Reason: "away",
		CreatedBy: "ann", CreatedAt: Start.Add(10 * time.Hour)})
	accepted("one after the others have ended", err)

	for i := range approval.MaxDelegationsReceived {
		_, err := add("person-"+strconv.Itoa(i), "eve", 0, time.Hour)
		accepted("up to the limit", err)
	}
	_, err = add("fay", "eve", 2*time.Hour, 3*time.Hour)
	refused("one more than a person may receive", "delegation.too-many-received", err)
	delegateAtOnce(t, ctx, s)
}

// delegateAtOnce checks that the same delegation is made once if it is requested several times at the same instant.
func delegateAtOnce(t *testing.T, ctx context.Context, s approval.DelegationStore) {
	var all sync.WaitGroup
	var made atomic.Int32
	for range 8 {
		all.Go(func() {
			_, err := s.Delegate(ctx, approval.Delegation{From: "gus", To: "hal", Start: Start, End: Start.Add(time.Hour), Reason: "away", CreatedBy: "gus",
				CreatedAt: Start})
			switch {
			case err == nil:
				made.Add(1)
			case approval.CodeOf(err) != approval.CodeConflict:
				t.Errorf("at the same time: %v", err)
			}
		})
	}
	if all.Wait(); made.Load() != 1 {
		t.Errorf("%d of the same delegations were made at the same time, want 1", made.Load())
	}
}

// ends checks the order by the first end, of the items that meet the conditions together, and that the number of tickets is exact.
func ends(t *testing.T, ctx context.Context, s approval.TicketStore) {
	access := func(app string, state approval.State, minutes int) approval.Item {
		it := Item(app, "r")
		it.State = state
		if minutes > 0 {
			it.ExpiresAt = Start.Add(time.Duration(minutes) * time.Minute)
		}
		return it
	}
	made := func(kind approval.Kind, items ...approval.Item) int64 {
		x := approval.NewTicket(approval.Draft{Kind: kind, Requester: "alice", Reason: "because", Items: items}, Start)
		for i := range items {
			x.Items[i].State, x.Items[i].ExpiresAt = items[i].State, items[i].ExpiresAt
		}
		return create(t, ctx, s, x).Number
	}
	const effective, failed = approval.StateEffective, approval.StateFailed
	soonest := made(approval.KindGrant, access("a", effective, 5))
	late := made(approval.KindGrant, access("a", effective, 90))
	two := made(approval.KindGrant, access("a", effective, 50), access("b", failed, 20))
	other := made(approval.KindGrant, access("c", effective, 10), access("a", effective, 0))
	tie := made(approval.KindExtend, access("b", effective, 50))
	made(approval.KindGrant, access("a", approval.StateExpired, 1))
	made(approval.KindGrant, access("a", effective, 0))
	shortened := made(approval.KindGrant, access("b", effective, 200))
	update(t, ctx, s, shortened, func(x *approval.Ticket) error {
		_, err := x.Shorten(0, Start.Add(30*time.Minute), approval.Event{Actor: "zoe"}, Start.Add(time.Minute))
		return err
	})
	owned := make([]string, 0, 600)
	for i := range 600 {
		owned = append(owned, fmt.Sprint("name:many-", i))
	}
	granting := []approval.State{effective, failed}
	hour := Start.Add(time.Hour)
	for name, tc := range map[string]struct {
		reason string
		f      approval.Filter
		want   []int64
	}{
		"one application": {"another item of the ticket may end earlier, and an access without an end never does",
			approval.Filter{Applications: []string{"name:a"}, ItemStates: granting}, []int64{soonest, two}},
		"two applications": {"the first end counts, also the earlier end of a shortened access; then the number",
			approval.Filter{Applications: []string{"name:a", "name:b"}, ItemStates: granting}, []int64{soonest, two, shortened, tie}},
		"a state": {"the item of that state", approval.Filter{Applications: []string{"name:a", "name:b"}, ItemStates: []approval.State{effective}},
			[]int64{soonest, shortened, two, tie}},
		"a kind": {"a condition about the ticket",
			approval.Filter{Applications: []string{"name:a", "name:b"}, ItemStates: granting, Kinds: []approval.Kind{approval.KindExtend}}, []int64{tie}},
		"many applications": {"more than one part of a statement has", approval.Filter{Applications: append(owned, "name:b"), ItemStates: granting},
			[]int64{two, shortened, tie}},
		"all applications": {"no condition", approval.Filter{ItemStates: granting}, []int64{soonest, other, two, shortened, tie}},
		"nobody's":         {"no item of these", approval.Filter{Applications: owned, ItemStates: granting}, nil},
	} {
		tc.f.ByEnd, tc.f.ExpiresBy = true, hour
		for _, limit := range []int{0, 1, 3, 5} {
			tc.f.Limit = limit
			want := tc.want
			if limit > 0 {
				want = want[:min(limit, len(want))]
			}
			if d := cmp.Diff(want, numbers(t, ctx, s, tc.f), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s, at most %d: %s (-want +got)\n%s", name, limit, tc.reason, d)
			}
		}
		counts, err := s.Count(ctx, tc.f)
		if err != nil {
			t.Fatal(err)
		}
		if counts[0] != len(tc.want) {
			t.Errorf("%s: counts %d, want %d", name, counts[0], len(tc.want))
		}
		tc.f.ByEnd, tc.f.Limit = false, 0
		newest := slices.Sorted(slices.Values(tc.want))
		slices.Reverse(newest)
		if d := cmp.Diff(newest, numbers(t, ctx, s, tc.f), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s by number: (-want +got)\n%s", name, d)
		}
	}
	f := approval.Filter{Applications: []string{"name:a"}, ItemStates: granting, ExpiresBy: Start.Add(2 * time.Hour), ByEnd: true}
	if d := cmp.Diff([]int64{soonest, two, late}, numbers(t, ctx, s, f)); d != "" {
		t.Errorf("by a later instant: (-want +got)\n%s", d)
	}
	list, err := s.List(ctx, f)
	if err != nil || len(list) == 0 || len(list[0].Events) == 0 {
		t.Errorf("the events are missing: %v", err)
	}
	f.OmitEvents = true
	if list, err = s.List(ctx, f); err != nil || len(list) == 0 || len(list[0].Events) > 0 {
		t.Errorf("the events are not omitted: %v", err)
	}
}
