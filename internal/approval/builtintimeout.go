package approval

import (
	"fmt"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// BuiltinTimeout defines the reminders and the timeout of the steps of the built-in chain. The zero value has neither: a step
// waits without limit, and nobody is reminded.
type BuiltinTimeout struct {
	RemindEvery time.Duration // 0 means no reminders
	After       time.Duration // 0 means no timeout
	Action      v1alpha1.TimeoutAction
}

// Validate returns an error if the values contradict each other or are too short.
func (b BuiltinTimeout) Validate() error {
	switch b.Action {
	case v1alpha1.TimeoutEscalate, v1alpha1.TimeoutDeny, v1alpha1.TimeoutRemind:
	default:
		if b.After != 0 || b.Action != "" {
			return fmt.Errorf("timeout action %q: use %s, %s or %s", b.Action, v1alpha1.TimeoutEscalate, v1alpha1.TimeoutDeny, v1alpha1.TimeoutRemind)
		}
	}
	for name, d := range map[string]time.Duration{"interval of reminders": b.RemindEvery, "timeout": b.After} {
		if d != 0 && d < leastTimeout {
			return fmt.Errorf("%s %s: use 0 for none, or at least %s", name, d, leastTimeout)
		}
	}
	return nil
}

// addTimeouts sets the reminders and the timeout of the steps of the built-in chain. An escalation adds only people whom the
// step's own rule selects: the next leader up. If there is none, the approvers are reminded. A revocation is never denied by
// a timeout, because the access would remain.
func (a about) addTimeouts(steps []Step, kind Kind) {
	b := a.timeouts
	for i := range steps {
		s := &steps[i]
		s.Remind = b.RemindEvery
		if b.After == 0 {
			continue
		}
		next := a.leaderAbove(s)
		switch {
		case b.Action == v1alpha1.TimeoutEscalate && next != "":
			s.Timeout, s.OnTimeout = b.After, v1alpha1.TimeoutEscalate
			s.EscalateFrom, s.EscalateTo = []v1alpha1.Approver{FromLeader}, []string{next}
		case b.Action == v1alpha1.TimeoutDeny && kind != KindRevoke:
			s.Timeout, s.OnTimeout = b.After, v1alpha1.TimeoutDeny
		case b.RemindEvery == 0:
			s.Timeout, s.OnTimeout = b.After, v1alpha1.TimeoutRemind
		}
	}
}

// leaderAbove returns the next leader above the one who decides a step; empty if there is none, or if it is not decided by a
// leader.
func (a about) leaderAbove(s *Step) string {
	if len(s.From) != 1 || s.From[0] != FromLeader || len(s.Approvers) != 1 {
		return ""
	}
	leaders := a.leaders()
	for i := 0; i+1 < len(leaders); i++ {
		if leaders[i] == s.Approvers[0] {
			return leaders[i+1]
		}
	}
	return ""
}
