package approval_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// inTime lets time pass in steps and returns the events that it causes as "kind@days".
func (m *model) inTime(n int64, passes, step time.Duration) (out []string) {
	m.t.Helper()
	begin := m.now
	for m.now.Sub(begin) < passes {
		m.now = m.now.Add(step)
		before := len(m.get(n).Events)
		if err := m.svc.Tick(m.t.Context()); err != nil {
			m.t.Fatal(err)
		}
		for _, e := range m.get(n).Events[before:] {
			out = append(out, fmt.Sprintf("%s@%g", e.Kind, m.now.Sub(begin).Hours()/24))
		}
	}
	return out
}

// timed returns a step with a timeout; without an interval of reminders if that is 0.
func timed(after time.Duration, action v1alpha1.TimeoutAction, remind time.Duration, to ...v1alpha1.Approver) v1alpha1.ApprovalStep {
	s := asked("team", "group:team")
	s.Timeout = &v1alpha1.StepTimeout{After: metav1.Duration{Duration: after}, Action: action, EscalateTo: to}
	if remind > 0 {
		s.Timeout.RemindEvery = &metav1.Duration{Duration: remind}
	}
	return s
}

// TestRemindersEnd checks that the intervals of reminders grow up to a week, and that there is a last reminder, after which the ticket
// still waits.
func TestRemindersEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		step   v1alpha1.ApprovalStep
		days   int
		want   []string
	}{
		"daily": {"the timeout reminds", timed(day, v1alpha1.TimeoutRemind, 0), 400,
			[]string{"reminded@1", "reminded@3", "reminded@7", "reminded@14", "reminded@21", "reminded@28", "last-reminder@35"}},
		"rare": {"an interval of more than a week stays as it is", timed(10*day, v1alpha1.TimeoutRemind, 0), 400,
			[]string{"reminded@10", "reminded@20", "last-reminder@30"}},
		"very rare": {"the first one is the last one", timed(50*day, v1alpha1.TimeoutRemind, 0), 400, []string{"last-reminder@50"}},
		"both": {"the timeout is one of the reminders", timed(10*day, v1alpha1.TimeoutRemind, 2*day), 400,
			[]string{"reminded@2", "reminded@6", "reminded@10", "reminded@17", "reminded@24", "last-reminder@31"}},
		"denied later": {"no reminder is the last one before the timeout", timed(44*day, v1alpha1.TimeoutDeny, 4*day), 400,
			[]string{"reminded@4", "reminded@11", "reminded@18", "reminded@25", "reminded@32", "reminded@39", "timed-out@44"}},
		"escalated": {"the people whom the escalation adds get as many", timed(40*day, v1alpha1.TimeoutEscalate, 10*day, "person:zoe"), 400,
			[]string{"reminded@10", "reminded@20", "reminded@30", "escalated@40", "reminded@50", "reminded@60", "last-reminder@70"}},
		"escalated without reminders": {"there are none afterwards", timed(3*day, v1alpha1.TimeoutEscalate, 0, "person:zoe"), 400, []string{"escalated@3"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t, policyOf("p", 1, "", tc.step))
			x := m.submit("alice", grant(0))
			if d := cmp.Diff(tc.want, m.inTime(x.Number, time.Duration(tc.days)*day, day)); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
			x = m.get(x.Number)
			if due := x.Items[0].Due(); !due.IsZero() {
				t.Errorf("the item is due at %s, after its last reminder", due)
			}
			if x.State() == approval.StatePending {
				m.approve(x.Number, "dan") // it waits all the same
			}
		})
	}
}

// TestRemindersOfShortIntervals checks that a short first interval grows in the same way, so that an inbox does not fill.
func TestRemindersOfShortIntervals(t *testing.T) {
	m := quiet(t, policyOf("p", 1, "", timed(time.Second, v1alpha1.TimeoutRemind, 0)))
	x := m.submit("alice", grant(0))
	if got := m.inTime(x.Number, 3*time.Hour, time.Minute); len(got) != 7 {
		t.Errorf("%d reminders in three hours: %v", len(got), got)
	}
	m.inTime(x.Number, 60*day, time.Hour)
	if e := m.get(x.Number).Events; e[len(e)-1].Kind != approval.EventLastReminder || len(e) > 25 {
		t.Errorf("%d events, and the last one is %s", len(e), e[len(e)-1].Kind)
	}
}

// TestReviewRemindersEnd checks that the reviewers of break-glass are reminded after the access ended, too, and not for ever.
func TestReviewRemindersEnd(t *testing.T) {
	m := quiet(t, breakGlassPolicy("alice"))
	ask := grant(2 * time.Hour)
	ask.BreakGlass = true
	x := m.submit("alice", ask)
	m.settle()
	var got []string
	for _, e := range m.inTime(x.Number, 400*day, day) {
		if kind := e[:4]; kind == "remi" || kind == "last" {
			got = append(got, e)
		}
	}
	want := []string{"reminded@1", "reminded@3", "reminded@7", "reminded@14", "reminded@21", "reminded@28", "last-reminder@35"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if _, err := m.svc.Review(t.Context(), m.actorOf("erin"), x.Number, 0, true, "late"); err != nil {
		t.Errorf("the review: %v", err)
	}
}

// TestNoRemindersAfterTheDecision checks that an item that does not wait any more is never reminded, however it ended.
func TestNoRemindersAfterTheDecision(t *testing.T) {
	for name, end := range map[string]func(m *model, n int64) error{
		"approved": func(m *model, n int64) error { m.approve(n, "dan"); return nil },
		"rejected": func(m *model, n int64) error {
			_, err := m.svc.Decide(m.t.Context(), m.actorOf("dan"), n, 0, m.version(n), false, "no")
			return err
		},
		"withdrawn": func(m *model, n int64) error {
			_, err := m.svc.Withdraw(m.t.Context(), m.actorOf("alice"), n, "not needed")
			return err
		},
		"timed out": func(m *model, n int64) error { m.inTime(n, 9*day, day); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t, policyOf("p", 1, "", timed(9*day, v1alpha1.TimeoutDeny, day)))
			x := m.submit("alice", grant(0))
			if err := end(m, x.Number); err != nil {
				t.Fatal(err)
			}
			if got := m.inTime(x.Number, 100*day, day); len(got) != 0 {
				t.Errorf("afterwards: %v", got)
			}
		})
	}
}
