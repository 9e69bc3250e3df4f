package accesshistory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
)

// lineTexts returns the lines of an answer as text: the subject, the ticket, the reached actions, and what is uncertain or does not count.
func lineTexts(a Answer) []string {
	out := []string{}
	for _, l := range a.Lines {
		text := l.Subject[len("trnv1:rsc:trip-com:iam:sa:"):]
		if l.Ticket != nil {
			text += " " + l.Ticket.ID()
		}
		text += fmt.Sprint(" ", l.Reached)
		if l.Uncertain {
			text += " uncertain"
		}
		out = append(out, text)
	}
	return out
}

// wantAnswer compares an answer with the mode, the lines and the kinds of gaps that it should have.
func wantAnswer(t *testing.T, reason string, got Answer, mode v1alpha1.Mode, lines []string, kinds []GapKind) {
	t.Helper()
	if d := cmp.Diff(append([]string{}, lines...), lineTexts(got)); d != "" {
		t.Errorf("%s: lines: %s", reason, d)
	}
	if d := cmp.Diff(append([]GapKind{}, kinds...), gaps(got)); d != "" || got.Mode != mode {
		t.Errorf("%s: mode %s, want %s; gaps: %s", reason, got.Mode, mode, d)
	}
}

func gaps(a Answer) []GapKind {
	out := []GapKind{}
	for _, g := range a.Gaps {
		out = append(out, g.Kind)
	}
	return out
}

func TestWhoCould(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// do acts on the world and returns the instant in question.
		do   func(w *world) time.Time
		want []string
		mode v1alpha1.Mode
		gaps []GapKind
	}{
		"a grant": {"a statement is there from when it was written", func(w *world) time.Time {
			w.mode("Enforce")
			w.grant(1, 0)
			return w.now
		}, []string{"app/1 T-2 [redis:connect]"}, "Enforce", nil},
		"before a grant": {"not before", func(w *world) time.Time {
			w.mode("Enforce")
			at := w.now.Add(-time.Minute)
			w.grant(1, 0)
			return at
		}, nil, "Enforce", nil},
		"a revoked grant": {"the ticket has what the statement was", func(w *world) time.Time {
			w.mode("Enforce")
			ticket := w.grant(1, 0)
			at := w.now
			w.hour()
			w.revoke(ticket)
			return at
		}, []string{"app/1 T-2 [redis:connect]"}, "Enforce", nil},
		"after the revocation": {"nobody, for certain", func(w *world) time.Time {
			w.mode("Enforce")
			ticket := w.grant(1, 0)
			w.revoke(ticket)
			return w.now
		}, nil, "Enforce", nil},
		"an expired grant": {"its own end counts, before anything is removed", func(w *world) time.Time {
			w.mode("Enforce")
			w.grant(1, 3*time.Hour)
			w.pass(2 * time.Hour)
			return w.now
		}, nil, "Enforce", nil},
		"another mode": {"of the time, and everybody reached it", func(w *world) time.Time {
			w.mode("Audit")
			w.grant(1, 0)
			at := w.now
			w.hour()
			w.mode("Enforce")
			return at
		}, []string{"app/1 T-2 [redis:connect]"}, "Audit", nil},
		"not onboarded yet": {"the creation by a ticket is recorded", func(w *world) time.Time {
			at := w.now
			w.hour()
			w.mode("Enforce")
			return at
		}, nil, "Observe", nil},
		"offboarded since": {"the ticket of the deletion has what the protection was", func(w *world) time.Time {
			w.mode("Enforce")
			w.mode("Observe")
			at := w.now
			w.hour()
			w.mode("")
			return at
		}, nil, "Observe", nil},
		"while a rollout is under way": {"some members do not enforce yet", func(w *world) time.Time {
			w.mode("Audit")
			at := w.now.Add(time.Minute)
			w.mode("Enforce")
			return at
		}, nil, "Enforce", []GapKind{GapWaves}},
		"during a temporary audit": {"which is no ticket", func(w *world) time.Time {
			w.mode("Enforce")
			w.audit(10 * time.Hour)
			at := w.now
			w.hour()
			w.audit(0)
			return at
		}, nil, "Audit", nil},
		"after the end of a temporary audit": {"by itself", func(w *world) time.Time {
			w.mode("Enforce")
			w.audit(2 * time.Hour)
			w.pass(5 * time.Hour)
			return w.now
		}, nil, "Enforce", nil},
		"a failed temporary audit": {"it never began", func(w *world) time.Time {
			w.mode("Enforce")
			w.lines = append(w.lines, ledger.Entry{At: w.now, Action: "resource.temporary-audit", Object: "bobs-cluster",
				Details: map[string]string{"until": w.now.Add(24 * time.Hour).Format(time.RFC3339)}},
				ledger.Entry{At: w.now.Add(time.Second), Action: "resource.temporary-audit-failed", Object: "bobs-cluster"})
			w.hour()
			at := w.now
			w.hour()
			w.mode("Audit")
			return at
		}, nil, "Enforce", nil},
		"a policy by hand": {"as it is now, because nobody changed it since", func(w *world) time.Time {
			w.mode("Enforce")
			w.kubectl("hand", bobs, v1alpha1.Subject(app(7)))
			at := w.now
			w.pass(30 * time.Hour)
			return at
		}, []string{"app/7 [redis:connect]"}, "Enforce", nil},
		"before a policy by hand": {"its creation is recorded", func(w *world) time.Time {
			w.mode("Enforce")
			at := w.now
			w.hour()
			w.kubectl("hand", bobs, v1alpha1.Subject(app(7)))
			return at
		}, nil, "Enforce", nil},
		"a policy that was changed by hand": {"the content of its change is not recorded", func(w *world) time.Time {
			w.mode("Enforce")
			w.kubectl("hand", bobs, v1alpha1.Subject(app(7)))
			at := w.now
			w.hour()
			w.kubectl("hand", bobs, v1alpha1.Subject(app(8)))
			return at
		}, []string{"app/8 [redis:connect] uncertain"}, "Enforce", []GapKind{GapPolicy}},
		"a policy that was deleted by hand": {"it may have named the resource", func(w *world) time.Time {
			w.mode("Enforce")
			w.kubectl("hand", bobs, v1alpha1.Subject(app(7)))
			at := w.now
			w.hour()
			w.kubectl("hand", bobs)
			return at
		}, nil, "Enforce", []GapKind{GapOthers}},
		"a policy of another resource that was changed": {"it may have named this one", func(w *world) time.Time {
			w.mode("Enforce")
			w.kubectl("hand", bobs, v1alpha1.Subject(app(7)))
			at := w.now
			w.hour()
			w.kubectl("hand", alices, v1alpha1.Subject(app(7)))
			return at
		}, nil, "Enforce", []GapKind{GapOthers}},
		"the portal's policy was changed by hand": {"the tickets still say what was granted", func(w *world) time.Time {
			w.mode("Enforce")
			ticket := w.grant(1, 0)
			at := w.now
			w.hour()
			w.edit(ours, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = nil })
			w.outside("updated", kindPolicy, ours)
			w.event(ticket, approval.EventFailed)
			ticket.Items[0].State = approval.StateFailed
			w.hour()
			return at
		}, []string{"app/1 T-2 [redis:connect]"}, "Enforce", []GapKind{GapPolicy}},
		"the mode was changed by hand": {"and is not known before", func(w *world) time.Time {
			w.mode("Enforce")
			w.outside("updated", kindProtection, ours)
			at := w.now
			w.hour()
			w.outside("updated", kindProtection, ours)
			return at
		}, nil, "Enforce", []GapKind{GapMode}},
		"the mode was changed by hand after a ticket": {"until then the ticket's counts", func(w *world) time.Time {
			w.mode("Audit")
			at := w.now
			w.hour()
			p := w.protection().DeepCopy()
			p.Spec.Mode = "Enforce"
			w.protect(p)
			w.outside("updated", kindProtection, ours)
			return at
		}, nil, "Audit", nil},
		"the class was changed by a ticket": {"actions are those of the time", func(w *world) time.Time {
			w.mode("Enforce")
			w.edit(ours, func(p *v1alpha1.AccessControlPolicy) {
				p.Spec.Statements = append(p.Spec.Statements, v1alpha1.Statement{SID: "old", Effect: "Allow",
					Subjects: []v1alpha1.Subject{v1alpha1.Subject(app(1))},
					Actions:  []v1alpha1.Action{"redis:*"}, Resources: []v1alpha1.ResourceName{bobs}})
			})
			w.hour()
			at := w.now
			w.hour()
			w.class()
			return at
		}, []string{"app/1 [redis:connect redis:admin]"}, "Enforce", nil},
		"the class was changed by hand": {"its actions are not known", func(w *world) time.Time {
			w.mode("Enforce")
			at := w.now
			w.hour()
			w.outside("updated", kindClass, "redis")
			return at
		}, nil, "Enforce", []GapKind{GapClass}},
		"before the records": {"nothing is known of then", func(w *world) time.Time {
			return start.Add(-time.Hour)
		}, nil, "Observe", []GapKind{GapBeforeRecords}},
		"before a restore": {"the tickets in between are lost", func(w *world) time.Time {
			w.mode("Enforce")
			at := w.now
			w.hour()
			w.restored = []time.Time{w.now}
			w.hour()
			return at
		}, nil, "Enforce", []GapKind{GapRestored}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			at := tc.do(w)
			got := w.records().WhoCould(at)
			wantAnswer(t, tc.reason, got, tc.mode, tc.want, tc.gaps)
		})
	}
}

// TestIncompleteRecords checks that the present objects are no evidence of an instant after which changes may not be recorded.
func TestIncompleteRecords(t *testing.T) {
	w := newWorld(t)
	w.mode("Enforce")
	w.grant(1, 0)
	w.kubectl("hand", bobs, v1alpha1.Subject(app(7)))
	at := w.now
	w.hour()
	known := []string{"app/1 T-2 [redis:connect]", "app/7 [redis:connect]"}
	doubtful := []string{"app/1 T-2 [redis:connect]", "app/7 [] uncertain"}
	for name, tc := range map[string]struct {
		change func(r *Records)
		known  bool
		want   []string
	}{
		"complete":           {func(*Records) {}, true, known},
		"restored later":     {func(r *Records) { r.Restored = []time.Time{w.now} }, false, doubtful},
		"not all was read":   {func(r *Records) { r.Unread = w.now }, false, doubtful},
		"before the records": {func(r *Records) { r.Begin = w.now }, false, doubtful},
	} {
		r := w.records()
		tc.change(r)
		got := r.WhoCould(at)
		if d := cmp.Diff(tc.want, lineTexts(got)); d != "" || got.ModeKnown != tc.known || got.Open() {
			t.Errorf("%s: mode known %v, open %v; lines: %s", name, got.ModeKnown, got.Open(), d)
		}
	}
	if got := w.records().WhoCould(start.Add(-time.Hour)); got.ModeKnown || got.Open() {
		t.Errorf("before the records, the mode is known (%v) or nobody was refused (%v)", got.ModeKnown, got.Open())
	}
}

func TestDeniesDecide(t *testing.T) {
	w := newWorld(t)
	w.mode("Enforce")
	w.grant(1, 0)
	w.kubectl("hand", bobs, v1alpha1.Subject(app(1)))
	w.edit("hand", func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements[0].Effect = v1alpha1.EffectDeny })
	got := w.records().WhoCould(w.now)
	if len(got.Lines) != 2 || len(got.Lines[0].Reached)+len(got.Lines[1].Reached) != 0 || !got.Lines[0].Decided {
		t.Errorf("a deny overrides the grant: %+v", got.Lines)
	}
}

// TestRandomHistories compares the reconstruction with what the host cluster had at each instant of random histories. Where the records
// have no gap, both are equal; where they do, no line that is certain is wrong. The present is always known.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		var grants []*approval.Ticket
		truths := []truth{w.truth()}
		for range 25 {
			w.pass(time.Minute)
			switch random.IntN(9) {
			case 0, 1, 2:
				grants = append(grants, w.grant(random.IntN(4), time.Duration(random.IntN(3)*20)*time.Hour))
			case 3:
				if len(grants) > 0 {
					i := random.IntN(len(grants))
					w.revoke(grants[i])
					grants = slices.Delete(grants, i, i+1)
				}
			case 4:
				modes := []v1alpha1.Mode{"Observe", "Audit", "Enforce", ""}
				if w.protection() != nil || random.IntN(2) == 0 {
					if mode := modes[random.IntN(len(modes))]; mode != "" || w.protection() != nil {
						w.mode(mode)
					}
				}
			case 5:
				if w.protection() != nil {
					w.audit(time.Duration(random.IntN(3)*9) * time.Hour)
				}
			case 6:
				w.class()
			default:
				name := fmt.Sprint("hand-", random.IntN(3))
				switch {
				case w.policy(name) == nil && seed%2 == 0, random.IntN(3) > 0 && seed%4 == 0:
					w.kubectl(name, []string{bobs, alices}[random.IntN(2)], v1alpha1.Subject(app(10+random.IntN(3))))
				case w.policy(name) != nil && seed%4 == 0:
					w.kubectl(name, bobs)
				}
			}
			w.pass(time.Minute)
			truths = append(truths, w.truth())
		}
		r := w.records()
		for i, want := range truths {
			compare(t, fmt.Sprintf("seed %d, step %d", seed, i), want, r.WhoCould(want.at))
		}
		if got := r.WhoCould(w.now); len(got.Gaps) > 0 {
			t.Errorf("seed %d: the present has gaps: %v", seed, got.Gaps)
		}
	}
}
