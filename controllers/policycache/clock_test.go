package policycache

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

// wantUnit waits for the next unit in a queue, which has to be that of a resource.
func wantUnit(t *testing.T, queue workqueue.TypedRateLimitingInterface[string], resource, reason string) {
	t.Helper()
	limit := time.AfterFunc(20*time.Second, queue.ShutDown)
	defer limit.Stop()
	got, stopped := queue.Get()
	if stopped || got != resource {
		t.Fatalf("%s: %q", reason, got)
	}
	queue.Done(got)
}

// TestExpiryWhileStarting: units are decided as soon as the index is complete, so an instant that passes between that and
// the clock's first look must not be lost.
func TestExpiryWhileStarting(t *testing.T) {
	const resource = "trnv1:rsc:o:redis:clusters:r"
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	queues := NewQueues(clock)
	x := New(queues)
	end := metav1.NewTime(clock.Now().Add(time.Second))
	x.policyChanged(nil, &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{
		Statements: []v1alpha1.Statement{{SID: "s", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{"trnv1:rsc:o:iam:sa:app/a"},
			Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{resource}, NotAfter: &end}}}})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := func(context.Context) error { return nil }
	if err := queues.Units.Source(ready).Start(ctx, queue); err != nil {
		t.Fatal(err)
	}
	next := func(reason string) {
		t.Helper()
		wantUnit(t, queue, resource, reason)
	}
	next("the unit is decided while the statement is in force")
	done := make(chan error, 1)
	go func() {
		done <- (&Clock{Cache: x, Time: clock, Ready: func(context.Context) error {
			clock.Step(time.Minute)
			return nil
		}}).Start(ctx)
	}()
	next("and again, because it is not any more")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestHoursAreEnqueued checks that a unit is decided again when the hours of a statement end, and when they begin again.
func TestHoursAreEnqueued(t *testing.T) {
	const resource = "trnv1:rsc:o:redis:clusters:r"
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)) // a Friday
	queues := NewQueues(clock)
	x := New(queues)
	hours := &v1alpha1.WeeklyHours{TimeZone: "UTC", Periods: []v1alpha1.DailyPeriod{{Days: []v1alpha1.Weekday{"Fri", "Sat"}, From: "11:00", To: "13:00"}}}
	x.policyChanged(nil, &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{
		Statements: []v1alpha1.Statement{{SID: "s", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{"trnv1:rsc:o:iam:sa:app/a"},
			Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{resource}, Hours: hours}}}})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	if err := queues.Units.Source(func(context.Context) error { return nil }).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	next := func(reason string) {
		t.Helper()
		wantUnit(t, queue, resource, reason)
	}
	next("the unit is decided when the policy is read")
	at := clock.Now()
	for _, tc := range []struct {
		after  time.Duration
		reason string // empty: nothing changes
	}{
		{59 * time.Minute, ""}, {time.Minute, "the hours end"}, {20 * time.Hour, ""}, {2 * time.Hour, "the hours begin"}, {24 * time.Hour, "they have ended"},
	} {
		from := at
		at = at.Add(tc.after)
		x.EnqueueChanges(from, at)
		if tc.reason != "" {
			next(tc.reason)
		} else if queue.Len() > 0 {
			t.Fatalf("something is enqueued at %s", at)
		}
	}
	x.EnqueueExpired(at)
	next("the hours may have ended while no adapter ran")
}
