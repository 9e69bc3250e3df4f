package conformance

import (
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
)

// Run runs the suite. Every test leaves the fleet as it was.
func Run(t *testing.T, f Fleet) {
	for name, test := range map[string]func(*scene){
		"reaches-placed":      (*scene).reachesPlaced,
		"overrides":           (*scene).overrides,
		"foreign-fields":      (*scene).foreignFieldsGo,
		"narrowed":            (*scene).narrowed,
		"removal-protocol":    (*scene).removalProtocol,
		"removal-while-away":  (*scene).removalWhileAway,
		"revoked-while-away":  (*scene).revokedWhileAway,
		"engine-restart":      (*scene).engineRestart,
		"stale-after-restart": (*scene).removalDuringRestart,
		"drift":               (*scene).drift,
		"record-by-force":     (*scene).recordRemovedByForce,
		"quarantine":          (*scene).quarantine,
		"created-again":       (*scene).createdAgain,
		"quick-reversal":      (*scene).quickReversal,
		"placed-nowhere":      (*scene).placedNowhere,
		"record-edited":       (*scene).recordEdited,
		"record-metadata":     (*scene).recordMetadata,
		"record-deleted":      (*scene).recordDeleted,
		"deleted-while-away":  (*scene).deletedWhileAway,
		"local-object":        (*scene).localObject,
		"labels":              (*scene).labels,
		"unregistered":        (*scene).unregistered,
		"member-without-kind": (*scene).memberWithoutKind,
	} {
		t.Run(name, func(t *testing.T) {
			test(&scene{T: t, Fleet: f, name: v1alpha1.ObjectPrefix + "conformance-" + name})
		})
	}
}

// reachesPlaced checks that members have the object where it is placed, and that a change arrives.
func (s *scene) reachesPlaced() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	s.until("the engine reports that the members have it", func() error {
		o, _ := s.Store.Get(s.key())
		for _, m := range []string{m1, m2} {
			if r := o.ReportIn(m); !r.Handled || !r.Applied || r.Reason != "" {
				return fmt.Errorf("%s: %+v", m, r)
			}
		}
		return nil
	})
	if labels := s.live(m1).GetLabels(); labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy {
		s.Errorf("the object has the labels %v", labels)
	}
	s.record(s.object("889", m1, m2))
	s.seen(m1, "889")
	s.seen(m2, "889")
}

// overrides checks that one member can have another spec.
func (s *scene) overrides() {
	defer s.removed()
	o := s.object("888", m1, m2)
	o.Overrides = map[string]federation.Override{m2: {Spec: spec("999"), Labels: map[string]string{v1alpha1.LabelRevision: enforcer.Revision(spec("999"))}}}
	s.record(o)
	s.seen(m1, "888")
	s.seen(m2, "999")
	s.record(s.object("888", m1, m2))
	s.seen(m2, "888")
	s.labelled(m2, "888")
}

// foreignFieldsGo checks that fields which another manager wrote do not survive a change: they could admit somebody.
func (s *scene) foreignFieldsGo() {
	defer s.removed()
	s.record(s.object("888", m1))
	s.seen(m1, "888")
	added := map[string]any{"spec": map[string]any{"ingressDeny": []any{map[string]any{"fromEntities": []any{"world"}}}},
		"specs": []any{spec("mallory")}}
	raw, err := json.Marshal(added)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.policies(m1).Patch(s.ctx(), s.name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: "other"}); err != nil {
		s.Fatal(err)
	}
	s.record(s.object("889", m1))
	s.seen(m1, "889")
}

// narrowed checks that a member that the placement no longer names loses the object, and only that member.
func (s *scene) narrowed() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	s.record(s.object("888", m1))
	s.seen(m2, "")
	s.released(m2)
	s.seen(m1, "888")
}

// removalProtocol checks that an object that is placed nowhere leaves every member, and that its record can then be deleted.
func (s *scene) removalProtocol() {
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	s.removed()
	for _, m := range []string{m1, m2} {
		if s.live(m) != nil {
			s.Errorf("%s still has the object", m)
		}
	}
}

// removalWhileAway checks that an object does not count as gone from a member that is away, and leaves it when the member is back.
func (s *scene) removalWhileAway() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	s.away(m2)
	s.record(s.object("888").PlacedIn(nil, []string{m1, m2}))
	s.seen(m1, "")
	s.released(m1)
	if o, _ := s.Store.Get(s.key()); o.SeenWithout(m2, s.Read.Observe(m2, s.key())) {
		s.Error("a member that is away counts as seen without the object")
	}
	if absent, err := s.Read.Absent(s.ctx(), m2, s.key()); err == nil {
		s.Errorf("a member that is away was read: %v", absent)
	}
	s.Reconnect(m2)
	s.seen(m2, "")
	s.released(m2)
}

// revokedWhileAway checks that a change reaches the other members at once, and a member that is away when it is back.
func (s *scene) revokedWhileAway() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	s.seen(m2, "888")
	s.away(m2)
	s.Store.Engines.DeliverUrgent(s.record(s.object("889", m1, m2)))
	s.seen(m1, "889")
	s.Reconnect(m2)
	s.seen(m2, "889")
}

// engineRestart checks that what was recorded while the engine did not run is carried out, and that what was carried out stays.
func (s *scene) engineRestart() {
	defer s.removed()
	s.record(s.object("888", m1))
	s.seen(m1, "888")
	s.Stop()
	s.record(s.object("889", m1, m2))
	if app := "888"; s.check(m1, app) != nil {
		s.Errorf("the member changed without an engine: %v", s.check(m1, app))
	}
	s.Start()
	s.seen(m1, "889")
	s.seen(m2, "889")
}

// removalDuringRestart checks that an object whose placement was emptied while the engine did not run leaves the members.
func (s *scene) removalDuringRestart() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	s.Stop()
	s.record(s.object("888").PlacedIn(nil, []string{m1, m2}))
	s.Start()
	for _, m := range []string{m1, m2} {
		s.seen(m, "")
		s.released(m)
	}
}

// drift checks that an object that was changed or deleted in a member is restored.
func (s *scene) drift() {
	defer s.removed()
	s.record(s.object("888", m1))
	s.seen(m1, "888")
	open := []byte(`{"spec":{"ingress":[{"fromEntities":["all"]}]}}`)
	if _, err := s.policies(m1).Patch(s.ctx(), s.name, types.MergePatchType, open, metav1.PatchOptions{FieldManager: "other"}); err != nil {
		s.Fatal(err)
	}
	s.until("the change is reverted", func() error {
		u := s.live(m1)
		if u == nil {
			return fmt.Errorf("it is gone")
		}
		if have, _ := u.Object["spec"].(map[string]any); enforcer.Revision(have) != enforcer.Revision(spec("888")) {
			return fmt.Errorf("it has %v", have)
		}
		return nil
	})
	uid := s.live(m1).GetUID()
	if err := s.policies(m1).Delete(s.ctx(), s.name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	s.until("it is created again", func() error {
		if u := s.live(m1); u == nil || u.GetUID() == uid {
			return fmt.Errorf("it is gone")
		}
		return nil
	})
	s.seen(m1, "888")
}

// recordRemovedByForce checks that a member keeps what closes a resource there when the record vanishes without the removal protocol.
func (s *scene) recordRemovedByForce() {
	s.record(s.object("888", m1))
	s.seen(m1, "888")
	s.Stop()
	s.edit(`{"metadata":{"finalizers":null}}`)
	s.deleted()
	s.Start()
	s.handled(m1) // The engine works again, and has handled the record's absence.
	s.orphaned(m1, "888")
	// With a record, the object can be removed again.
	s.record(s.object("888", m1))
	s.removed()
}

// quarantine checks that nothing is written into a quarantined member, and that it converges afterwards.
func (s *scene) quarantine() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	s.Quarantine(m2)
	before := s.live(m2).GetResourceVersion()
	s.record(s.object("889", m1, m2))
	s.seen(m1, "889")
	if after := s.live(m2).GetResourceVersion(); after != before {
		s.Errorf("the quarantined member was written: resource version %s, then %s", before, after)
	}
	s.Release(m2)
	s.seen(m2, "889")
}

// createdAgain checks that a record that replaces a deleted one of the same name prevails.
func (s *scene) createdAgain() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	s.removed()
	s.record(s.object("889", m1))
	s.seen(m1, "889")
	s.seen(m2, "")
}

// quickReversal checks that of several changes in quick succession the last one prevails.
func (s *scene) quickReversal() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	for range 5 {
		s.record(s.object("889", m1, m2))
		s.record(s.object("888", m1, m2))
	}
	s.record(s.object("887", m1, m2))
	s.seen(m1, "887")
	s.seen(m2, "887")
	s.until("the engine is done", func() error {
		o, _ := s.Store.Get(s.key())
		if a, b := o.ReportIn(m1), o.ReportIn(m2); !a.Handled || !b.Handled {
			return fmt.Errorf("%+v, %+v", a, b)
		}
		return nil
	})
	s.seen(m1, "887")
	s.seen(m2, "887")
}

// away disconnects a member, and waits until the read-back has noticed.
func (s *scene) away(member string) {
	s.Helper()
	s.Disconnect(member)
	s.Cleanup(func() { s.Reconnect(member) })
	s.until(member+" counts as away", func() error {
		if s.Read.Observe(member, s.key()).Reachable {
			return fmt.Errorf("it is read")
		}
		return nil
	})
}
