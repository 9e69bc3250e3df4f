package protectedresource

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
)

// Reasons of Events. An Event is emitted once per change, and not again while the state lasts.
const (
	// EventRealized means that every member has the current unit.
	EventRealized = "Realized"
	// EventMember is the prefix of the events about one member: MemberDrifted, MemberLeaked, MemberUnreachable,
	// MemberQuarantined, MemberOverridden, MemberDowngraded.
	EventMember = "Member"
)

// emitEvents emits Events for what changed since the last report.
func (r *Reconciler) emitEvents(f *facts, before statuscache.Report, had bool, now *statuscache.Report) {
	for _, o := range f.Objects {
		for _, m := range changes(f, now) {
			r.event(o, corev1.EventTypeWarning, EventMember+string(m.State), string(m.Name)+": "+m.Message)
		}
		if had && now.Wanted && now.Revision != "" && now.Realized() && len(now.Clusters) > 0 &&
			(before.Revision != now.Revision || !before.Realized()) {
			r.event(o, corev1.EventTypeNormal, EventRealized, "every member has revision "+now.Revision)
		}
	}
}

// changes returns the members that entered a notable state since the last report, including the last report of the
// previous process.
func changes(f *facts, now *statuscache.Report) []v1alpha1.ClusterState {
	var out []v1alpha1.ClusterState
	for _, c := range now.Clusters {
		switch c.State {
		case v1alpha1.MemberDrifted,
			v1alpha1.MemberLeaked,
			v1alpha1.MemberUnreachable,
			v1alpha1.MemberQuarantined,
			v1alpha1.MemberOverridden,
			v1alpha1.MemberDowngraded:
			if f.LastStates[string(c.Name)].State != c.State {
				out = append(out, c)
			}
		}
	}
	return out
}

func (r *Reconciler) event(o runtime.Object, eventType, reason, note string) {
	r.Events.Eventf(o, nil, eventType, reason, "Reconcile", "%s", statusfields.Truncate(note))
}
