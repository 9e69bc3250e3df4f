package protectedresource

import (
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// Limits of the Events of the type Normal. After a change of a class every resource would get one at the same time: they
// would be a quarter of the host's writes then, and delay the revocations among them.
const (
	normalEventsPerSecond = 5
	normalEventsBurst     = 50
)

// LimitEvents returns a recorder that leaves out Events of the type Normal beyond a burst of 50 and 5 per second. The
// statuses contain what these report. Warnings are always recorded.
func LimitEvents(recorder events.EventRecorder) events.EventRecorder {
	return &limitedRecorder{recorder, rate.NewLimiter(normalEventsPerSecond, normalEventsBurst)}
}

type limitedRecorder struct {
	recorder events.EventRecorder
	normal   *rate.Limiter
}

// Eventf records an Event, or leaves it out.
func (l *limitedRecorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	if eventType == corev1.EventTypeNormal && !l.normal.Allow() {
		return
	}
	l.recorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}
