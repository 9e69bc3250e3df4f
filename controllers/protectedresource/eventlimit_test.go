package protectedresource

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestEventsOfManyChangesAreLimited: one change of a class realizes every resource at the same time.
func TestEventsOfManyChangesAreLimited(t *testing.T) {
	const changes = 1000
	recorder := events.NewFakeRecorder(2 * changes)
	limited := LimitEvents(recorder)
	for range changes {
		limited.Eventf(&v1alpha1.ProtectedResource{}, nil, corev1.EventTypeNormal, EventRealized, "Reconcile", "%s", "every member has it")
		limited.Eventf(&v1alpha1.ProtectedResource{}, nil, corev1.EventTypeWarning, EventMember+"Drifted", "Reconcile", "%s", "m1")
	}
	close(recorder.Events)
	normal, warnings := 0, 0
	for e := range recorder.Events {
		if strings.HasPrefix(e, corev1.EventTypeNormal) {
			normal++
		} else {
			warnings++
		}
	}
	// The calls take far less than ten seconds, in which 50 more Events would be admitted.
	if normal < normalEventsBurst || normal > 2*normalEventsBurst {
		t.Errorf("%d of %d Events of the type Normal, want about %d", normal, changes, normalEventsBurst)
	}
	if warnings != changes {
		t.Errorf("%d of %d warnings", warnings, changes)
	}
}
