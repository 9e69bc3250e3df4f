package approval_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// missing is the answer about a schedule that the configuration does not have.
func missing() approval.Duty {
	return approval.Duty{Missing: true, Reason: message.OnCallNotConfigured("shop")}
}

// withTimeout returns a step that is limited to who is on call, with a timeout.
func withTimeout(after time.Duration, action v1alpha1.TimeoutAction, to ...v1alpha1.Approver) v1alpha1.ApprovalStep {
	s := onCallStep("")
	s.Timeout = &v1alpha1.StepTimeout{After: metav1.Duration{Duration: after}, Action: action, EscalateTo: to}
	return s
}

// withoutReminders returns the events that are no reminders.
func withoutReminders(events []string) (out []string) {
	for _, e := range events {
		if !strings.HasPrefix(e, "remind") && !strings.HasPrefix(e, "last-") {
			out = append(out, e)
		}
	}
	return out
}

// TestMissingScheduleEndsTheWait checks that a step whose on-call schedule does not exist any more says so once, and denies its item after
// a week, unless others can decide it. Nobody can decide it for this reason.
func TestMissingScheduleEndsTheWait(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		step   v1alpha1.ApprovalStep
		duty   approval.Duty
		want   []string
		state  approval.State
		may    []string // after all
	}{
		"removed": {"it is denied", onCallStep(""), missing(), []string{"schedule-missing@0.5", "timed-out@7.5"}, approval.StateTimedOut, nil},
		"no answer": {"the source may answer later", onCallStep(""), approval.Duty{Reason: message.OnCallNoAnswer("shop")}, nil,
			approval.StatePending, nil},
		"nobody on call": {"somebody may be later", onCallStep(""), shift("zoe"), nil, approval.StatePending, nil},
		"fallback": {"every approver may decide", onCallStep(v1alpha1.LimitApprovers), missing(), nil, approval.StatePending,
			[]string{"bob", "carol", "dan"}},
		"escalation": {"others may decide later, and then now", withTimeout(20*day, v1alpha1.TimeoutEscalate, "person:zoe"), missing(),
			[]string{"escalated@20"}, approval.StatePending, []string{"zoe"}},
		"escalation to nobody": {"there is nobody to wait for", withTimeout(20*day, v1alpha1.TimeoutEscalate, "person:alice"), missing(),
			[]string{"schedule-missing@0.5", "timed-out@7.5"}, approval.StateTimedOut, nil},
		"the timeout denies before": {"as the policy says", withTimeout(3*day, v1alpha1.TimeoutDeny), missing(),
			[]string{"schedule-missing@0.5", "timed-out@3"}, approval.StateTimedOut, nil},
		"the timeout denies later": {"the policy's time is too long", withTimeout(50*day, v1alpha1.TimeoutDeny), missing(),
			[]string{"schedule-missing@0.5", "timed-out@7.5"}, approval.StateTimedOut, nil},
		"the timeout reminds": {"that does not end the wait", withTimeout(2*day, v1alpha1.TimeoutRemind), missing(),
			[]string{"schedule-missing@0.5", "timed-out@7.5"}, approval.StateTimedOut, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t, policyOf("p", 1, "", tc.step))
			m.onCall = tc.duty
			x := m.submit("alice", grant(0))
			if d := cmp.Diff(tc.want, withoutReminders(m.inTime(x.Number, 100*day, 12*time.Hour))); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
			m.is(x.Number, tc.state)
			var may []string
			for _, p := range modelPeople {
				if approval.MayDo(m.catalog, approval.Actor{ID: p, OnCall: m.svc.OnCall}, m.get(x.Number)).Approve {
					may = append(may, p)
				}
			}
			if d := cmp.Diff(tc.may, may); d != "" {
				t.Errorf("%s: who may decide: (-want +got)\n%s", tc.reason, d)
			}
		})
	}
}

// TestMissingScheduleIsSaid checks what the ticket says about a schedule that does not exist, and that the request can be made again after
// it was denied.
func TestMissingScheduleIsSaid(t *testing.T) {
	m := quiet(t, policyOf("p", 1, "", onCallStep("")))
	m.onCall = shift("bob")
	x := m.submit("alice", grant(0))
	m.inTime(x.Number, day, time.Hour)
	m.onCall = missing()
	m.inTime(x.Number, time.Hour, time.Hour)
	x = m.get(x.Number)
	s, e := x.Items[0].Steps[0], x.Events[len(x.Events)-1]
	denied := m.now.Add(approval.MissingScheduleGrace)
	if e.Kind != approval.EventScheduleMissing || e.Step != "team" || e.Actor != "" ||
		e.Message != message.TicketScheduleMissing(message.OnCallNotConfigured("shop"), denied) || !s.DeniedAt().Equal(denied) {
		t.Errorf("the timeline says %+v, and the step is denied at %s, want %s", e, s.DeniedAt(), denied)
	}
	if _, err := m.svc.Decide(t.Context(), m.actorOf("bob"), x.Number, 0, m.version(x.Number), true, ""); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("bob decides without a schedule: %v", err)
	}
	m.inTime(x.Number, 8*day, day)
	m.is(x.Number, approval.StateTimedOut)
	x = m.get(x.Number)
	why := message.TicketScheduleDenied(message.OnCallNotConfigured("shop"))
	if it := x.Items[0]; it.Message != why || x.Events[len(x.Events)-1].Message != why || it.Steps[0].State != approval.StepTimedOut {
		t.Errorf("the denied item says %q, its step is %s, and the timeline says %+v", it.Message.Text, it.Steps[0].State, x.Events[len(x.Events)-1])
	}
	m.onCall = shift("bob")
	again := m.submit("alice", grant(0))
	m.approve(again.Number, "bob")
}

// TestScheduleThatExistsAgain checks that the time begins again when a schedule was there in the meantime, without another notification.
func TestScheduleThatExistsAgain(t *testing.T) {
	m := quiet(t, policyOf("p", 1, "", onCallStep("")))
	m.onCall = missing()
	x := m.submit("alice", grant(0))
	got := m.inTime(x.Number, 6*day, day)
	m.onCall = shift("bob")
	got = append(got, m.inTime(x.Number, day, day)...)
	if at := m.get(x.Number).Items[0].Steps[0].DeniedAt(); !at.IsZero() {
		t.Errorf("the schedule exists, and the request is denied at %s", at)
	}
	m.onCall = missing()
	got = append(got, m.inTime(x.Number, 6*day, day)...)
	m.is(x.Number, approval.StatePending)
	if d := cmp.Diff([]string{"schedule-missing@1"}, withoutReminders(got)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	m.inTime(x.Number, 2*day, day)
	m.is(x.Number, approval.StateTimedOut)
}

// TestMissingScheduleOfALaterStep checks that a step counts only when it waits, and that a void chain begins without what was before.
func TestMissingScheduleOfALaterStep(t *testing.T) {
	limited := onCallStep("")
	m := quiet(t, policyOf("p", 1, "", asked("first", "person:carol"), limited))
	m.onCall = missing()
	x := m.submit("alice", grant(0))
	if got := m.inTime(x.Number, 30*day, day); len(got) != 0 {
		t.Errorf("before its turn: %v", got)
	}
	m.approve(x.Number, "carol")
	m.inTime(x.Number, 2*day, day)
	if s := m.get(x.Number).Items[0].Steps[1]; s.MissingSince.IsZero() {
		t.Error("the step does not say that its schedule does not exist")
	}
	m.host.Grow("tcp:6380")
	m.onCall = shift("bob")
	if _, err := m.svc.Decide(t.Context(), m.actorOf("bob"), x.Number, 0, m.version(x.Number), true, ""); approval.CodeOf(err) != approval.CodeStale {
		t.Fatalf("the request grants more: %v", err)
	}
	if s := m.get(x.Number).Items[0].Steps[1]; !s.MissingSince.IsZero() || s.MissingSaid {
		t.Errorf("the step is not as at its beginning: %+v", s)
	}
}

// TestWithoutSchedulesEveryScheduleIsMissing: an installation whose portal lost the whole setting does not wait for ever, either.
func TestWithoutSchedulesEveryScheduleIsMissing(t *testing.T) {
	m := quiet(t, policyOf("p", 1, "", onCallStep("")))
	m.svc.OnCall = nil
	x := m.submit("alice", grant(0))
	m.inTime(x.Number, 9*day, day)
	m.is(x.Number, approval.StateTimedOut)
}
