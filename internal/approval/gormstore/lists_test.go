package gormstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
)

// office is a small set of people, applications and tickets that are changed at random.
type office struct {
	*rand.Rand
	t      *testing.T
	people []string
	now    time.Time
}

func newOffice(t *testing.T) *office {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return &office{rand.New(rand.NewPCG(seed, 0)), t, []string{"ann", "bob", "cid", "dan", "eve"}, approvaltest.Start}
}

func (o *office) one(of ...string) string { return of[o.IntN(len(of))] }

func (o *office) ticket() *approval.Ticket {
	var items []approval.Item
	for range 1 + o.IntN(2) {
		it := approvaltest.Item(fmt.Sprint("a", o.IntN(4)), fmt.Sprint("r", o.IntN(4)))
		it.Actions = []string{fmt.Sprint("redis:", o.Uint64())} // nobody's claim
		it.Steps[0].Approvers, it.Steps[1].Approvers = []string{o.one(o.people...)}, []string{o.one(o.people...), o.one(o.people...)}
		items = append(items, it)
	}
	kind := approval.KindGrant
	if o.IntN(4) == 0 {
		kind = approval.KindExtend
	}
	return approval.NewTicket(approval.Draft{Kind: kind, Requester: o.one(o.people...), Reason: "because", Items: items}, o.now)
}

// change applies a random transition to a ticket, which may be refused.
func (o *office) change(x *approval.Ticket) error {
	o.now = o.now.Add(time.Second)
	person, i := o.one(o.people...), o.IntN(len(x.Items))
	switch o.IntN(5) {
	case 0:
		return x.Withdraw(x.Requester, "no more", o.now)
	case 1:
		return x.Comment(person, "what for?", o.now)
	default:
		return x.Vote(i, approval.Vote{Person: person, OnBehalfOf: o.one("", "", o.one(o.people...)), Approve: o.IntN(4) > 0, Comment: "so", At: o.now})
	}
}

// filters are those of the pages in the portal.
func (o *office) filters() (out []approval.Filter) {
	for _, p := range o.people {
		v := &approval.Visible{Person: p, StandsFor: []string{"ann"}, Applications: []string{"name:a1"}, Resources: []string{"name:r2"},
			Statements: []int64{2, 9}}
		w := &approval.Waits{Person: p, StandsFor: []string{"eve"}}
		for _, f := range []approval.Filter{
			{Requester: p, VisibleTo: v}, {DecidedBy: p, VisibleTo: v}, {VisibleTo: v}, {VisibleTo: &approval.Visible{Person: p}},
			{VisibleTo: v, States: []approval.State{approval.StatePending}}, {VisibleTo: v, ByUpdate: true}, {VisibleTo: v, After: approval.Cursor{Number: 12}},
			{Requester: p, ByUpdate: true}, {DecidedBy: p, ByUpdate: true, Oldest: true}, {VisibleTo: v, Oldest: true, After: approval.Cursor{Number: 7}},
			{ByUpdate: true, States: []approval.State{approval.StatePending}}, {WaitsFor: w, ByUpdate: true},
			{VisibleTo: v, ByUpdate: true, Text: "because", Oldest: true},
			{WaitsFor: w, ItemStates: []approval.State{approval.StatePending}}, {VisibleTo: v, Application: "a1"},
			{Resource: "r1", States: []approval.State{approval.StateRejected}},
			{Kinds: []approval.Kind{approval.KindExtend}}, {VisibleTo: v, Applications: []string{"name:a1", "name:a2"}},
			{Applications: []string{"name:a1", "name:a2"}, ItemStates: []approval.State{approval.StateApproved},
				ExpiresBy: approvaltest.Start.Add(time.Hour + 50*time.Second), ByEnd: true},
		} {
			f.Limit = 4
			out = append(out, f)
		}
	}
	return out
}

// TestListsMatchTheFilter checks that the SQL of a list selects what the domain's filter matches, in the order and within the
// limit of the filter, after random changes by two replicas.
func TestListsMatchTheFilter(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		o := newOffice(t)
		db, other := databasetest.Open(t, dsn), databasetest.Open(t, dsn)
		stores := []*Store{New(db), New(other)}
		filters := o.filters()
		var last int64
		for range 100 {
			s := stores[o.IntN(2)]
			if last < 8 || o.IntN(4) == 0 {
				x, err := s.Create(t.Context(), o.ticket())
				if err != nil {
					t.Fatal(err)
				}
				last = x.Number
			} else if _, err := s.Update(t.Context(), 1+o.Int64N(last), o.change); approval.CodeOf(err) == approval.CodeStoreUnavailable {
				t.Fatal(err)
			}
			all, err := stores[o.IntN(2)].List(t.Context(), approval.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			for range 8 {
				f := filters[o.IntN(len(filters))]
				limits := limitsOfPages
				limits.sorted = o.IntN(4)
				got, err := stores[o.IntN(2)].listWith(t.Context(), f, limits)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(matching(all, f), got, cmpopts.IgnoreUnexported(approval.Ticket{}), cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("%+v (-matched by the filter +listed)\n%s", f, d)
				}
			}
		}
	})
}

// matching returns the page of a filter among all tickets, which are given newest first.
func matching(all []*approval.Ticket, f approval.Filter) (out []*approval.Ticket) {
	for _, x := range all {
		if f.Matches(x) && (f.After.Number == 0 || x.Number != f.After.Number && x.Number < f.After.Number != f.Oldest) {
			out = append(out, x)
		}
	}
	if f.ByUpdate {
		slices.SortStableFunc(out, func(a, b *approval.Ticket) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	}
	if f.Oldest || f.ByEnd {
		slices.Reverse(out)
	}
	if f.ByEnd {
		slices.SortStableFunc(out, func(a, b *approval.Ticket) int { return f.FirstEnd(a).Compare(f.FirstEnd(b)) })
	}
	return out[:min(len(out), f.Limit)]
}

func rowsOf(t *testing.T, db *database.DB, table string) (n int) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *gorm.DB) error { return tx.Raw("SELECT COUNT(*) FROM " + table).Scan(&n).Error }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDelegationsTakeEffectAtOnce checks that every replica reads the delegations of the others.
func TestDelegationsTakeEffectAtOnce(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		a, b := New(databasetest.Open(t, dsn)), New(databasetest.Open(t, dsn))
		at := approvaltest.Start
		activeDelegations := func(at time.Time) int {
			t.Helper()
			out, err := a.Delegations(t.Context(), approval.DelegationFilter{To: "bob", ActiveAt: at})
			if err != nil {
				t.Fatal(err)
			}
			return len(out)
		}
		if n := activeDelegations(at); n != 0 {
			t.Errorf("nobody yet: %d", n)
		}
		d, err := b.Delegate(t.Context(), approval.Delegation{From: "ann", To: "bob", Start: at, End: at.Add(time.Hour), CreatedAt: at, CreatedBy: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			reason string
			at     time.Time
			want   int
		}{{"it has begun", at, 1}, {"before", at.Add(-time.Second), 0}, {"in the middle", at.Add(time.Minute), 1}, {"it is over", at.Add(time.Hour), 0}} {
			if n := activeDelegations(tc.at); n != tc.want {
				t.Errorf("%s: %d", tc.reason, n)
			}
		}
		if _, err := b.EndDelegation(t.Context(), d.ID, func(d *approval.Delegation) error {
			d.EndedAt, d.EndedBy = at.Add(time.Second), "ann"
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if n := activeDelegations(at.Add(time.Minute)); n != 0 {
			t.Errorf("another replica has ended it: %d", n)
		}
	})
}
