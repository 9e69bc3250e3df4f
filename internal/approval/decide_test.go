package approval_test

import (
	"testing"

	"github.com/acp-io/acp/internal/approval"
)

// TestGrowth checks that lines that were not shown are not approved.
func TestGrowth(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", grant(0))
	m.approve(x.Number, "carol")
	m.host.Grow("allow port 22")
	got, err := m.svc.Decide(t.Context(), m.actorOf("bob"), x.Number, 0, m.version(x.Number), true, "")
	if approval.CodeOf(err) != approval.CodeStale {
		t.Fatalf("the error does not require another review: %v", err)
	}
	if it := got.Items[0]; it.Current() != 0 || len(it.Steps[0].Votes) != 0 {
		t.Errorf("everybody is asked again: %+v", it.Steps)
	}
	if e := got.Events[len(got.Events)-1]; e.Kind != approval.EventVoided || e.Comment != "allow port 22" {
		t.Errorf("the difference is shown: %+v", e)
	}
	m.approve(x.Number, "carol", "bob")
	m.host.Shrink()
	m.approve(x.Number, "erin")
	m.host.Grow("allow port 22")
	m.settle()
	m.is(x.Number, approval.StateEffective) // that line was approved

	y := m.submit("alice", approval.Request{Items: []approval.RequestItem{{Application: "a", Resource: "high", Actions: []string{"x:write"}}}})
	m.approve(y.Number, "carol", "bob", "erin")
	m.host.Grow("allow port 23")
	m.settle()
	m.is(y.Number, approval.StatePending)
}

func TestDecideManyAndItems(t *testing.T) {
	m := quiet(t)
	two := approval.Request{
		Items: []approval.RequestItem{
			{Application: "a", Resource: "high", Actions: []string{"x:read"}},
			{Application: "a", Resource: "low", Actions: []string{"x:read"}},
		},
	}
	x := m.submit("alice", two)
	twice := approval.Request{Items: []approval.RequestItem{two.Items[0], two.Items[0]}}
	if p, err := m.svc.Plan(
		t.Context(), m.actorOf("alice"), twice,
	); err != nil || approval.CodeOf(p.Items[1].Err) != approval.CodeInvalid || p.Items[0].Duplicate != x.Number {
		t.Errorf("the same twice: %+v, %v", p, err)
	}
	m.approve(x.Number, "carol") // both items wait for her
	if got := m.get(x.Number); got.Items[0].Current() != 1 || got.Items[1].Current() != 1 {
		t.Fatalf("one decision for both: %+v", got.Items)
	}
	results, err := m.svc.DecideMany(
		t.Context(),
		m.actorOf("bob"),
		[]approval.Choice{{Ticket: x.Number, Item: approval.EveryItem, Version: m.version(x.Number)}, {Ticket: 99, Item: 0, Version: 1}},
		true,
		"",
	)
	if err != nil || results[0].Err != nil || approval.CodeOf(results[1].Err) != approval.CodeNotFound {
		t.Fatalf("each is a decision of its own: %+v, %v", results, err)
	}
	got := m.get(x.Number)
	if got.Items[0].State != approval.StatePending || got.Items[1].State != approval.StateApproved || got.State() != approval.StatePending {
		t.Errorf("each item has a state of its own: %s, %s", got.Items[0].State, got.Items[1].State)
	}
	if _, err := m.svc.Withdraw(t.Context(), m.actorOf("alice"), x.Number, "no need"); err != nil {
		t.Fatal(err)
	}
	m.settle()
	got = m.get(x.Number)
	if got.Items[0].State != approval.StateWithdrawn || got.Items[1].State != approval.StateEffective {
		t.Errorf("what waits is withdrawn, what was approved is not: %s, %s", got.Items[0].State, got.Items[1].State)
	}
	if _, err := m.svc.Revoke(t.Context(), m.actorOf("bob"), x.Number, 0, "r"); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("there is nothing to revoke of the first: %v", err)
	}
}
