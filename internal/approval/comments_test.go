package approval_test

import (
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/approval"
)

func TestComments(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", grant(0))
	for who, code := range map[string]approval.Code{"bob": "", "alice": "", "otto": approval.CodeForbidden, "zoe": approval.CodeNotFound} {
		if _, err := m.svc.Comment(t.Context(), m.actorOf(who), x.Number, " hello "); approval.CodeOf(err) != code {
			t.Errorf("%s: %v", who, err)
		}
	}
	if _, err := m.svc.Comment(t.Context(), m.actorOf("bob"), x.Number, strings.Repeat("x", approval.MaxText+1)); approval.CodeOf(err) != approval.CodeInvalid {
		t.Errorf("too long: %v", err)
	}
}

// TestCommentsAreBounded checks that a ticket takes no more than MaxComments comments, of all people together, because every reader of the ticket
// reads them.
func TestCommentsAreBounded(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", grant(0))
	for i := range approval.MaxComments {
		if _, err := m.svc.Comment(t.Context(), m.actorOf("alice"), x.Number, "more"); err != nil {
			t.Fatalf("comment %d: %v", i+1, err)
		}
	}
	for _, who := range []string{"alice", "bob"} {
		if _, err := m.svc.Comment(t.Context(), m.actorOf(who), x.Number, "and more"); approval.CodeOf(err) != approval.CodeConflict {
			t.Errorf("%s: %v", who, err)
		}
	}
	m.approve(x.Number, "carol") // what else happens to the ticket is still recorded
}
