package policy

import (
	"testing"

	"github.com/acp-io/acp/internal/message"
)

// TestReasonsAreMessages checks that stored codes of reasons are read back, and that a reason costs nothing per decision.
func TestReasonsAreMessages(t *testing.T) {
	for r := ReasonNone + 1; int(r) < len(decisionReasons); r++ {
		if m := r.Message(); m.IsZero() || m.Params != "" || message.Decode(r.Code()) != m {
			t.Errorf("reason %d: the code %q is read as %+v, want %+v", r, r.Code(), message.Decode(r.Code()), m)
		}
		if n := testing.AllocsPerRun(10, func() { _ = r.Code() }); n != 0 {
			t.Errorf("the code of %s takes %v allocations", r, n)
		}
	}
	if ReasonNone.Code() != "" || !ReasonNone.Message().IsZero() {
		t.Error("no reason has a message")
	}
}
