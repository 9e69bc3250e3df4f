package protectedresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestEnded(t *testing.T) {
	const bobs = "trnv1:rsc:trip-com:redis:clusters:bobs"
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := since.Add(time.Minute)
	at := func(d time.Duration) *metav1.Time {
		x := metav1.NewTime(since.Add(d))
		return &x
	}
	for _, c := range []struct {
		reason   string
		end      *metav1.Time
		resource v1alpha1.ResourceName
		want     bool
	}{
		{"it has no end", nil, bobs, false},
		{"it ended before the last write", at(-time.Second), bobs, false},
		{"the last write took it out", at(0), bobs, false},
		{"it ended since", at(time.Second), bobs, true},
		{"it ends now", at(time.Minute), bobs, true},
		{"it has not ended", at(2 * time.Minute), bobs, false},
		{"it is about all of them", at(time.Second), "trnv1:rsc:trip-com:redis:clusters:*", true},
		{"it is about others", at(time.Second), "trnv1:rsc:trip-com:redis:clusters:bobs2", false},
		{"it is about others by prefix", at(time.Second), "trnv1:rsc:trip-com:redis:clusters:c*", false},
	} {
		s := v1alpha1.Statement{NotAfter: c.end, Resources: []v1alpha1.ResourceName{c.resource}}
		if _, got := ended(&s, bobs, since, now); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

func TestEndedHours(t *testing.T) {
	const bobs = "trnv1:rsc:trip-com:redis:clusters:bobs"
	s := v1alpha1.Statement{Resources: []v1alpha1.ResourceName{bobs}, Hours: &v1alpha1.WeeklyHours{TimeZone: "UTC", Periods: []v1alpha1.DailyPeriod{
		{Days: v1alpha1.Weekdays(), From: "09:00", To: "18:00"}}}}
	at := func(hour, minute int) time.Time { return time.Date(2026, 1, 1, hour, minute, 0, 0, time.UTC) }
	for _, c := range []struct {
		since, now time.Time
		want       bool
	}{
		{at(17, 0), at(18, 0), true}, {at(17, 0), at(17, 59), false}, {at(18, 0), at(18, 1), false}, {at(7, 0), at(10, 0), false},
	} {
		end, got := ended(&s, bobs, c.since, c.now)
		if got != c.want || got && !end.Equal(at(18, 0)) {
			t.Errorf("from %s to %s: got %s, %t", c.since, c.now, end, got)
		}
	}
}
