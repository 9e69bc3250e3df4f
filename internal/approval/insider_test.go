package approval_test

import (
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
)

// TestReviewEndsWhatExtends: who breaks the glass twice must not keep by the second time what the review of the first
// one took away.
func TestReviewEndsWhatExtends(t *testing.T) {
	m := quiet(t, glass("alice"))
	ask := grant(time.Hour)
	ask.BreakGlass, ask.Reason = true, "the shop is down"
	first := m.submit("alice", ask)
	m.settle()
	ask.Items[0].Duration = 3 * time.Hour
	again := m.submit("alice", ask)
	m.settle()
	m.is(first.Number, approval.StateEffective)
	m.is(again.Number, approval.StateEffective)
	if target := again.Items[0].Target; target == nil || target.Ticket != first.Number {
		t.Fatalf("the second extends the first: %+v", target)
	}
	for name, tc := range map[string]struct{ reason, who, comment string }{
		"requester":  {"nobody reviews himself", "alice", "fine"},
		"stranger":   {"he does not review", "dan", "no"},
		"auditor":    {"he only reads", "otto", "no"},
		"no comment": {"a review says what it found", "erin", " "},
	} {
		if _, err := m.svc.Review(t.Context(), m.actorOf(tc.who), first.Number, 0, false, tc.comment); err == nil {
			t.Errorf("%s: %s", name, tc.reason)
		}
		m.is(again.Number, approval.StateEffective)
	}
	if _, err := m.svc.Review(t.Context(), m.actorOf("erin"), first.Number, 0, false, "the shop was not down"); err != nil {
		t.Fatal(err)
	}
	m.settle()
	m.is(first.Number, approval.StateRevoked)
	m.is(again.Number, approval.StateRevoked)
}
