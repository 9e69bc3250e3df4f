package approval_test

import (
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

const tenRange = "trnv1:rsc:org:net:cidr:10.0.0.0/8"

// standing returns the accesses that stand, and checks that each is the same when it is read alone.
func (m *model) standing() []approval.StandingGrant {
	m.t.Helper()
	all, err := m.svc.StandingGrants(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	for _, g := range all {
		one, ok, err := m.svc.StandingGrant(m.t.Context(), g.Target)
		if err != nil || !ok || one.Version != g.Version || one.Scope == nil != (g.Scope == nil) {
			m.t.Errorf("%+v in the list, and %+v alone (%t, %v)", g, one, ok, err)
		}
	}
	return all
}

// TestStandingStatements checks that an allow statement of a ticket is one access with its extensions, beside the grants, and that a deny is none.
func TestStandingStatements(t *testing.T) {
	m := quiet(t)
	began := m.now
	x := m.submit("alice", statementOn(v1alpha1.EffectAllow, 10*time.Hour, tenRange, "a"))
	deny := m.submit("bob", statementOn(v1alpha1.EffectDeny, 0, "a"))
	m.approveAll(x.Number)
	m.approveAll(deny.Number)
	m.settle()
	grant := m.granted(240 * time.Hour)
	all := m.standing()
	i := slices.IndexFunc(all, func(g approval.StandingGrant) bool { return g.Ticket == x.Number })
	if len(all) != 2 || i < 0 || all[1-i].Ticket != grant {
		t.Fatalf("the accesses are %+v, want the statement and the grant", all)
	}
	first := all[i]
	if first.Scope == nil || !slices.Contains(first.Scope.Subjects, tenRange) || first.ApplicationName != "" || first.End.IsZero() {
		t.Errorf("the statement is %+v", first)
	}
	if _, ok, err := m.svc.StandingGrant(t.Context(), approval.Target{Ticket: deny.Number}); ok || err != nil {
		t.Errorf("the deny is an access: %t, %v", ok, err)
	}
	m.now = m.now.Add(5 * time.Hour)
	later := m.submit("alice", approval.Request{Kind: approval.KindExtend, Reason: "r", Items: []approval.RequestItem{
		{Target: &approval.Target{Ticket: x.Number}, Duration: 10 * time.Hour}}})
	m.approveAll(later.Number)
	m.settle()
	all = m.standing()
	i = slices.IndexFunc(all, func(g approval.StandingGrant) bool { return g.Ticket == x.Number })
	if len(all) != 2 || i < 0 || len(all[i].SIDs) != 2 || all[i].Version == first.Version || !all[i].End.After(first.End) {
		t.Fatalf("the extension is no part of the access: %+v", all)
	}
	changed, _, err := m.svc.ChangedGrants(t.Context(), began, nil)
	if pair := approval.PairOf("", "", first.Scope); err != nil || len(changed) != 2 || !slices.Contains(changed, pair) {
		t.Errorf("the changed accesses are %v, %v, want the grant and %v", changed, err, pair)
	}
	m.now = m.now.Add(6 * time.Hour) // the first statement has ended
	m.settle()
	all = m.standing()
	i = slices.IndexFunc(all, func(g approval.StandingGrant) bool { return g.Ticket == later.Number })
	if len(all) != 2 || i < 0 || all[i].Since.After(began.Add(time.Hour)) {
		t.Errorf("the access is not older than its extension: %+v", all)
	}
}

// TestReviewOfStatements checks that a review gives a statement an earlier end, also if it had none, that it revokes it with its extensions, and that
// it never ends a deny.
func TestReviewOfStatements(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", statementOn(v1alpha1.EffectAllow, 0, tenRange, "a"))
	deny := m.submit("bob", statementOn(v1alpha1.EffectDeny, 0, "a"))
	m.approveAll(x.Number)
	m.approveAll(deny.Number)
	m.settle()
	m.is(x.Number, approval.StateEffective)
	until := m.now.Add(20 * time.Hour).Truncate(time.Second).UTC()
	d := approval.ReviewDecision{Person: "bob", Review: "R-1/1", SIDs: []string{approval.SID(x.Number, 0), approval.SID(deny.Number, 0)}, Until: until,
		Why: approval.Event{Comment: "too long"}}
	for range 2 { // the second execution finds the first one
		if got, err := m.svc.ShortenReviewed(t.Context(), approval.Target{Ticket: x.Number}, d); err != nil || !got.Changed {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	m.settle()
	if p, _ := m.host.Cached(policy.StatementsPolicy); len(p.Spec.Statements) != 2 ||
		!slices.ContainsFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return s.NotAfter != nil && s.NotAfter.Time.Equal(until) }) {
		t.Errorf("no statement ends at %s: %+v", until, p.Spec.Statements)
	}
	if end := m.get(x.Number).Items[0].End(); !end.Equal(until) {
		t.Errorf("the statement ends at %s, want %s", end, until)
	}
	later := m.submit("alice", approval.Request{Kind: approval.KindExtend, Reason: "r", Items: []approval.RequestItem{
		{Target: &approval.Target{Ticket: x.Number}, Duration: 100 * time.Hour}}})
	m.approveAll(later.Number)
	m.settle()
	d.Review, d.SIDs = "R-2/1", append(d.SIDs, approval.SID(later.Number, 0))
	for of, want := range map[int64]bool{deny.Number: false, x.Number: true} {
		if got, err := m.svc.RevokeReviewed(t.Context(), approval.Target{Ticket: of}, d); err != nil || got.Changed != want {
			t.Errorf("%s: %+v, %v, want %t", approval.FormatID(of), got, err, want)
		}
		if got, err := m.svc.ShortenReviewed(t.Context(), approval.Target{Ticket: deny.Number}, d); err != nil || got.Changed {
			t.Errorf("the deny is shortened: %+v, %v", got, err)
		}
	}
	m.settle()
	m.is(x.Number, approval.StateRevoked)
	m.is(later.Number, approval.StateRevoked)
	m.is(deny.Number, approval.StateEffective)
	if n := m.statements(); n != 1 {
		t.Errorf("%d statements are left, want the deny", n)
	}
}
