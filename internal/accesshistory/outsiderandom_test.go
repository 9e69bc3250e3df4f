package accesshistory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/policy"
)

// outsideGaps are the gaps because of changes outside of the portal.
var outsideGaps = []GapKind{GapPolicy, GapOthers, GapMode, GapClass}

// intervals reports whether a change outside of the portal may have been made before or after an instant.
func intervals(lines []ledger.Entry, at time.Time) bool {
	return slices.ContainsFunc(lines, func(e ledger.Entry) bool {
		r, ok := externalchanges.ReadEntry(e)
		return ok && !at.Before(r.Since) && at.Before(r.At)
	})
}

// act does something random outside of the portal.
func (w *world) act(random *rand.Rand) {
	name := fmt.Sprint("hand-", random.IntN(3))
	statement := func(sid string) v1alpha1.Statement {
		st := hand(sid, []string{bobs, alices}[random.IntN(2)], []v1alpha1.Effect{"Allow", "Allow", "Deny"}[random.IntN(3)], app(10+random.IntN(3)))
		if random.IntN(4) == 0 {
			st.NotAfter = &metav1.Time{Time: w.now.Add(time.Duration(1+random.IntN(20)) * time.Hour)}
		}
		return st
	}
	switch old := w.policy(ours); random.IntN(8) {
	case 0: // of the portal's policy
		if old != nil && len(old.Spec.Statements) > 0 {
			i := random.IntN(len(old.Spec.Statements))
			w.setStatements(ours, slices.Delete(slices.Clone(old.Spec.Statements), i, i+1)...)
		}
	case 1:
		if old != nil {
			list := slices.DeleteFunc(slices.Clone(old.Spec.Statements), func(s v1alpha1.Statement) bool { return s.SID == "by-hand" })
			w.setStatements(ours, append(list, statement("by-hand"))...)
		}
	case 2:
		if old != nil && len(old.Spec.Statements) > 0 {
			list := slices.Clone(old.Spec.Statements)
			i := random.IntN(len(list))
			list[i].Actions = []v1alpha1.Action{"redis:admin"}
			w.setStatements(ours, list...)
		}
	case 3:
		w.setMode([]v1alpha1.Mode{"Observe", "Audit", "Enforce"}[random.IntN(3)])
	case 4:
		next := w.input.ResourceClasses[0].DeepCopy()
		if next.Spec.Actions = next.Spec.Actions[:1]; random.IntN(2) == 0 {
			next.Spec.Actions = append(next.Spec.Actions, v1alpha1.ClassAction{Name: "redis:admin", Ports: []v1alpha1.Port{{Port: 6380}}})
		}
		w.input.ResourceClasses = []*v1alpha1.ResourceClass{next}
	default:
		w.setStatements(name, statement("a"), statement("b"))
	}
}

// actRemove removes something random outside of the portal. Something that was created while no portal runs is kept, because nothing would
// say that it existed.
func (w *world) actRemove(random *rand.Rand, since time.Time) {
	name := fmt.Sprint("hand-", random.IntN(3))
	if random.IntN(4) == 0 {
		name = ours
	}
	if p := w.policy(name); p != nil && p.CreationTimestamp.Time.Before(since) {
		w.remove(name)
	}
	if p := w.protection(); random.IntN(6) == 0 && p != nil && p.CreationTimestamp.Time.Before(since) {
		w.protect(nil)
	}
}

// TestRandomHistoriesWithOutsideChanges compares the reconstruction with what the host cluster said at each instant of random histories in
// which objects, also those of the portal, are changed outside of the portal, and no portal runs for a while. There is a gap because of these
// changes only where it is not known whether a change was made before or after the instant.
func TestRandomHistoriesWithOutsideChanges(t *testing.T) {
	exact := 0
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(t)
		r := w.record()
		truths := []truth{w.truth()}
		see := func() { truths = append(truths, w.truth()) }
		for range 30 {
			w.pass(time.Minute)
			user := []string{"eve", ""}[random.IntN(2)]
			begin := w.now.Add(time.Second)
			switch action := random.IntN(12); {
			case action < 4:
				r.portal(func() { w.portalAct(random) })
			case action < 8:
				r.by(user, func() { w.act(random) })
			case action < 9:
				r.by(user, func() { w.actRemove(random, begin) })
			case action < 10: // two at once, of which the portal sees the content of the last only
				r.by(user, func() {
					r.watched = w.now.Add(-30 * time.Second)
					w.act(random)
					r.find(false, user, random.IntN(2) == 0)
					w.pass(time.Second)
					w.act(random)
				})
			default:
				r.stop()
				for range random.IntN(4) {
					w.pass(time.Minute)
					r.by(user, func() { w.act(random) })
					see()
					w.pass(time.Minute)
					r.by(user, func() { w.actRemove(random, begin) })
					see()
				}
				w.hour()
				r.start()
			}
			w.pass(time.Minute)
			see()
		}
		records := w.records()
		for i, want := range truths {
			got := records.WhoCould(want.at)
			if len(got.Gaps) == 0 {
				exact++
			}
			compare(t, fmt.Sprintf("seed %d, step %d", seed, i), want, got)
			inside := intervals(w.lines, want.at)
			if outside := slices.ContainsFunc(gaps(got), func(k GapKind) bool { return slices.Contains(outsideGaps, k) }); outside && !inside {
				t.Fatalf("seed %d, step %d: the content of all changes is recorded, and there are the gaps %v", seed, i, got.Gaps)
			}
		}
		if got := records.WhoCould(w.now); len(got.Gaps) > 0 {
			t.Errorf("seed %d: the present has gaps: %v", seed, got.Gaps)
		}
	}
	if exact < 1000 {
		t.Errorf("only %d instants were compared exactly", exact)
	}
}

// portalAct does something random in the portal.
func (w *world) portalAct(random *rand.Rand) {
	var grants []*approval.Ticket
	for _, t := range w.tickets {
		if t.Kind == approval.KindGrant && t.Items[0].State == approval.StateEffective && statementOf(w.policy(ours), &t.Items[0]) != nil {
			grants = append(grants, t)
		}
	}
	switch random.IntN(6) {
	case 0, 1:
		w.grant(random.IntN(4), time.Duration(random.IntN(3)*20)*time.Hour)
	case 2:
		if len(grants) > 0 {
			w.revoke(grants[random.IntN(len(grants))])
		}
	case 3:
		if mode := []v1alpha1.Mode{"Observe", "Audit", "Enforce", ""}[random.IntN(4)]; mode != "" || w.protection() != nil {
			w.mode(mode)
		}
	case 4:
		if w.protection() != nil {
			w.audit(time.Duration(random.IntN(3)*9) * time.Hour)
		}
	case 5:
		w.class()
	}
}

// compare compares an answer with the truth: where it has no gap, both are equal; where it has, no line that is certain is wrong.
func compare(t *testing.T, name string, want truth, got Answer) {
	t.Helper()
	var lines, certain []policy.Grant
	for _, l := range got.Lines {
		lines = append(lines, l.Grant)
		if !l.Uncertain {
			certain = append(certain, l.Grant)
		}
	}
	if len(got.Gaps) == 0 {
		if d := cmp.Diff(want.grants, lines); d != "" || got.Mode != want.mode {
			t.Fatalf("%s: mode %s, want %s; grants %s", name, got.Mode, want.mode, d)
		}
		return
	}
	for _, g := range certain {
		there := slices.ContainsFunc(want.grants, func(x policy.Grant) bool {
			if !got.ModeKnown { // nor whether the resource was onboarded, so that its statements counted
				x.Counting = g.Counting
			}
			if slices.Contains(gaps(got), GapClass) { // nor which actions there were
				x.Actions = g.Actions
			}
			return cmp.Equal(x, g)
		})
		if !there {
			t.Fatalf("%s: a certain line that was not there: %+v; gaps %v", name, g, got.Gaps)
		}
	}
}
