package accesshistory

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// TestOutsideChangesAreTakenBack checks that the content of changes outside of the portal is used, and that what is not known is a gap of the
// objects concerned only.
func TestOutsideChangesAreTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// do acts on the world and returns the instant in question.
		do   func(w *world, r *recorder) time.Time
		want []string
		mode v1alpha1.Mode
		gaps []GapKind
	}{
		"a policy was changed": {"it is as it was", func(w *world, r *recorder) time.Time {
			r.by("eve", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(7)), hand("b", bobs, "Allow", app(8))) })
			at := w.now
			w.hour()
			r.by("eve", func() { w.setStatements("hand", hand("b", alices, "Allow", app(8)), hand("c", bobs, "Allow", app(9))) })
			return at
		}, []string{"app/7 [redis:connect]", "app/8 [redis:connect]"}, "Enforce", nil},
		"by somebody unknown": {"after the interval, it is certain", func(w *world, r *recorder) time.Time {
			r.by("", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(7))) })
			at := w.now
			w.hour()
			r.by("", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(8))) })
			return at
		}, []string{"app/7 [redis:connect]"}, "Enforce", nil},
		"within the interval": {"it may have been changed already", func(w *world, r *recorder) time.Time {
			r.by("", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(7))) })
			w.hour()
			at := w.now.Add(-10 * time.Second)
			r.by("", func() { w.setStatements("hand", hand("b", bobs, "Allow", app(8))) })
			return at
		}, []string{"app/7 [redis:connect] uncertain", "app/8 [redis:connect] uncertain"}, "Enforce", []GapKind{GapPolicy}},
		"a policy was deleted": {"the entry has all of it", func(w *world, r *recorder) time.Time {
			r.by("eve", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(7))) })
			at := w.now
			w.hour()
			r.by("eve", func() { w.remove("hand") })
			return at
		}, []string{"app/7 [redis:connect]"}, "Enforce", nil},
		"before the policy was created": {"", func(w *world, r *recorder) time.Time {
			at := w.now
			w.hour()
			r.by("", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(7))) })
			r.by("", func() { w.remove("hand") })
			return at
		}, nil, "Enforce", nil},
		"another policy was changed": {"it is not about the resource", func(w *world, r *recorder) time.Time {
			r.by("eve", func() { w.setStatements("hand", hand("a", alices, "Allow", app(7))) })
			at := w.now
			w.hour()
			r.by("", func() { w.setStatements("hand", hand("a", alices, "Allow", app(8))) })
			r.by("", func() { w.remove("hand") })
			return at
		}, nil, "Enforce", nil},
		"another policy, while no portal ran": {"it may have named the resource for a while", func(w *world, r *recorder) time.Time {
			r.by("eve", func() { w.setStatements("hand", hand("a", alices, "Allow", app(7))) })
			r.stop()
			at := w.now.Add(time.Minute)
			w.hour()
			r.by("", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(8))) })
			r.by("", func() { w.setStatements("hand", hand("a", alices, "Allow", app(8))) })
			r.start()
			return at
		}, nil, "Enforce", []GapKind{GapOthers}},
		"before no portal ran": {"the state before is known", func(w *world, r *recorder) time.Time {
			r.by("eve", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(7))) })
			at := w.now
			w.hour()
			r.stop()
			r.by("", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(8))) })
			r.by("", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(9))) })
			r.start()
			return at
		}, []string{"app/7 [redis:connect]"}, "Enforce", nil},
		"while no portal ran": {"it may have been anything", func(w *world, r *recorder) time.Time {
			r.by("eve", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(7))) })
			r.stop()
			w.hour()
			r.by("", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(8))) })
			at := w.now
			w.hour()
			r.start()
			return at
		}, []string{"app/7 [redis:connect] uncertain"}, "Enforce", []GapKind{GapPolicy}},
		"the statement of a ticket was removed": {"it was there until then", func(w *world, r *recorder) time.Time {
			r.portal(func() { w.grant(1, 0) })
			at := w.now
			w.hour()
			r.by("eve", func() { w.setStatements(ours) })
			return at
		}, []string{"app/1 T-2 [redis:connect]"}, "Enforce", nil},
		"after the statement of a ticket was removed": {"it was not there", func(w *world, r *recorder) time.Time {
			r.portal(func() { w.grant(1, 0) })
			r.by("eve", func() { w.setStatements(ours) })
			return w.now
		}, nil, "Enforce", nil},
		"the statement of a ticket was changed": {"it is as it was changed", func(w *world, r *recorder) time.Time {
			r.portal(func() { w.grant(1, 0) })
			r.by("eve", func() {
				st := w.policy(ours).Spec.Statements[0]
				st.Subjects = []v1alpha1.Subject{v1alpha1.Subject(app(9))}
				w.setStatements(ours, st)
			})
			at := w.now
			w.hour()
			r.by("eve", func() { w.remove(ours) })
			return at
		}, []string{"app/9 [redis:connect]"}, "Enforce", nil},
		"the mode was changed": {"it is as it was", func(w *world, r *recorder) time.Time {
			at := w.now
			w.hour()
			r.by("eve", func() { w.setMode("Observe") })
			return at
		}, nil, "Enforce", nil},
		"the mode was changed twice": {"it is as it was in between", func(w *world, r *recorder) time.Time {
			r.by("", func() { w.setMode("Audit") })
			at := w.now
			w.hour()
			r.by("", func() { w.setMode("Observe") })
			return at
		}, nil, "Audit", nil},
		"the protection was deleted": {"the entry has all of it", func(w *world, r *recorder) time.Time {
			r.by("", func() { w.setMode("Audit") })
			at := w.now
			w.hour()
			r.by("", func() { w.protect(nil) })
			return at
		}, nil, "Audit", nil},
		"another protection was deleted": {"it did not protect the resource", func(w *world, r *recorder) time.Time {
			at := w.now
			w.hour()
			other := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "others", CreationTimestamp: w.at()},
				Spec: v1alpha1.ProtectedResourceSpec{Resource: alices, Mode: "Enforce"}}
			before := w.input.Resources
			r.by("eve", func() { w.input.Resources = append(slices.Clone(before), other) })
			r.by("eve", func() { w.input.Resources = before })
			return at
		}, nil, "Enforce", nil},
		"a second protection": {"that was there for a while", func(w *world, r *recorder) time.Time {
			r.by("eve", func() { w.protect(nil) })
			other := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "by-hand", CreationTimestamp: w.at()},
				Spec: v1alpha1.ProtectedResourceSpec{Resource: bobs, Mode: "Audit"}}
			r.by("eve", func() { w.protect(other) })
			at := w.now
			w.hour()
			r.by("eve", func() { w.protect(nil) })
			return at
		}, nil, "Audit", nil},
		"a temporary audit by hand": {"it is in the entry, and no line is about it", func(w *world, r *recorder) time.Time {
			r.by("eve", func() {
				p := w.protection().DeepCopy()
				p.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: metav1.NewTime(w.now.Add(10 * time.Hour)), Reason: "incident"}
				w.protect(p)
			})
			at := w.now
			w.hour()
			r.portal(func() { w.audit(0) })
			return at
		}, nil, "Audit", nil},
		"the class was changed": {"actions are those of the time", func(w *world, r *recorder) time.Time {
			r.by("eve", func() {
				st := hand("old", bobs, "Allow", app(1))
				st.Actions = []v1alpha1.Action{"redis:*"}
				w.setStatements("hand", st)
			})
			at := w.now
			w.hour()
			r.by("", func() {
				next := w.input.ResourceClasses[0].DeepCopy()
				next.Spec.Actions = next.Spec.Actions[:1]
				w.input.ResourceClasses = []*v1alpha1.ResourceClass{next}
			})
			return at
		}, []string{"app/1 [redis:connect redis:admin]"}, "Enforce", nil},
		"it is not recorded what one of two policies was": {"the gap is of the one only", func(w *world, r *recorder) time.Time {
			r.by("eve", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(7))) })
			r.by("eve", func() { w.setStatements("old", hand("a", alices, "Allow", app(7))) })
			at := w.now
			w.hour()
			r.by("eve", func() { w.setStatements("hand") })
			w.outside("updated", kindPolicy, "old")
			return at
		}, []string{"app/7 [redis:connect]"}, "Enforce", []GapKind{GapOthers}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.record()
			r.portal(func() { w.mode("Enforce") })
			at := tc.do(w, r)
			got := w.records().WhoCould(at)
			wantAnswer(t, tc.reason, got, tc.mode, tc.want, tc.gaps)
		})
	}
}

// TestContentThatIsTooLarge checks that the gap of an object whose content was too large remains.
func TestContentThatIsTooLarge(t *testing.T) {
	w := newWorld(t)
	r := w.record()
	r.portal(func() { w.mode("Enforce") })
	var many []v1alpha1.Statement
	for i := range 512 {
		many = append(many, hand(fmt.Sprint("s", i), bobs, "Allow", app(1000+i)))
	}
	r.by("eve", func() { w.setStatements("hand", many...) })
	at := w.now
	w.hour()
	r.by("eve", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(7))) })
	if got := w.records().WhoCould(at); !slices.Equal(gaps(got), []GapKind{GapPolicy}) {
		t.Errorf("the gaps are %v", gaps(got))
	}
	// A small change of a large policy is recorded.
	r.by("eve", func() { w.setStatements("large", many...) })
	at = w.now
	w.hour()
	r.by("eve", func() { w.setStatements("large", append(slices.Clone(many[1:]), hand("a", bobs, "Allow", app(7)))...) })
	if got := w.records().WhoCould(at); len(got.Gaps) > 0 || len(got.Lines) != 513 {
		t.Errorf("%d lines, the gaps are %v", len(got.Lines), gaps(got))
	}
}

// TestPeriodsOfOutsideChanges checks the periods that changes outside of the portal begin and end.
func TestPeriodsOfOutsideChanges(t *testing.T) {
	w := newWorld(t)
	r := w.record()
	r.portal(func() { w.mode("Enforce") })
	r.by("eve", func() { w.setStatements("hand", hand("a", bobs, "Allow", app(1))) })
	end := metav1.NewTime(w.now.Add(2 * time.Hour))
	r.by("eve", func() {
		st := hand("a", bobs, "Allow", app(1))
		st.NotAfter = &end
		w.setStatements("hand", st)
	})
	w.pass(3 * time.Hour)
	r.stop()
	r.by("", func() { w.remove("hand") })
	r.start()
	w.hour()
	periods, cut, err := w.records().Periods(t.Context(), app(1))
	want := []string{"unknown Enforce <- records mode", "none Enforce <- mode", "allowed Enforce <- outside", "none Enforce <- expired",
		"unknown Enforce <- outside", "none Enforce <- outside"}
	if d := cmp.Diff(want, describe(periods)); d != "" || cut || err != nil {
		t.Errorf("%v %v %s", err, cut, d)
	}
}

// TestPeriodsFollowHours checks that the hours of a statement begin and end periods, also if the statement was removed later.
func TestPeriodsFollowHours(t *testing.T) {
	w := newWorld(t)
	r := w.record()
	r.portal(func() { w.mode("Enforce") })
	noon := time.Date(w.now.Year(), w.now.Month(), w.now.Day()+1, 12, 0, 0, 0, time.UTC)
	r.by("eve", func() {
		st := hand("a", bobs, "Allow", app(1))
		st.Hours = &v1alpha1.WeeklyHours{TimeZone: "UTC", Periods: []v1alpha1.DailyPeriod{{Days: v1alpha1.Weekdays(), From: "12:00", To: "14:00"}}}
		w.setStatements("hand", st)
	})
	w.now = noon.Add(30 * time.Hour)
	r.by("eve", func() { w.remove("hand") })
	w.pass(48 * time.Hour)
	periods, cut, err := w.records().Periods(t.Context(), app(1))
	if cut || err != nil {
		t.Fatal(cut, err)
	}
	open := map[time.Time]time.Time{}
	for _, p := range periods {
		if p.Reach == ReachAllowed && !p.From.Before(noon) {
			open[p.From] = p.To
		}
	}
	second := noon.Add(24 * time.Hour)
	if d := cmp.Diff(map[time.Time]time.Time{noon: noon.Add(2 * time.Hour), second: second.Add(2 * time.Hour)}, open); d != "" {
		t.Error(d)
	}
}

// TestModesOfOutsideChanges checks that the history of modes has those of changes outside of the portal.
func TestModesOfOutsideChanges(t *testing.T) {
	w := newWorld(t)
	r := w.record()
	r.by("eve", func() { w.setMode("Enforce") })
	r.by("eve", func() { w.setMode("Audit") })
	r.by("eve", func() { w.protect(nil) })
	h, err := w.reader().Modes(t.Context(), entity, w.input, w.now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range h.Changes {
		got = append(got, fmt.Sprintf("%s %s>%s", c.Kind, c.From, c.To))
	}
	if d := cmp.Diff([]string{"outside Audit>", "outside Enforce>Audit", "outside >Enforce"}, got); d != "" {
		t.Error(d)
	}
}

// TestReadHasEarlierChangesOfPolicies checks that what is read for an instant has the earlier removal of a ticket's statement.
func TestReadHasEarlierChangesOfPolicies(t *testing.T) {
	w := newWorld(t)
	r := w.record()
	r.portal(func() { w.mode("Enforce") })
	r.portal(func() { w.grant(1, 0) })
	r.by("eve", func() { w.setStatements(ours) })
	w.hour()
	at := w.now
	w.hour()
	// The portal removes what is not there.
	w.event(w.tickets[1], approval.EventRevokeWritten)
	w.hour()
	records, err := w.reader().Read(t.Context(), entity, w.input, w.records().Snapshot, at, w.now)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]Answer{"all records": w.records().WhoCould(at), "those that are read": records.WhoCould(at)} {
		if len(got.Lines) > 0 || len(got.Gaps) > 0 {
			t.Errorf("%s: lines %v, gaps %v", name, lineTexts(got), gaps(got))
		}
	}
}
