package accesshistory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// describe returns periods as text: what could be reached, in which mode, by which tickets, and what began them.
func describe(periods []Period) []string {
	out := []string{}
	for _, p := range periods {
		text := string(p.Reach)
		if p.ModeKnown {
			text += " " + string(p.Mode)
		}
		for _, l := range p.Lines {
			if l.Ticket != nil {
				text += " " + l.Ticket.ID()
			}
		}
		var kinds []string
		for _, c := range p.Began {
			kinds = append(kinds, string(c.Kind))
		}
		out = append(out, text+" <- "+strings.Join(kinds, " "))
	}
	return out
}

func TestWhen(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		do     func(w *world)
		want   []string
	}{
		"granted and revoked": {"the ticket began it and ended it", func(w *world) {
			w.mode("Enforce")
			w.revoke(w.grant(1, 0))
		}, []string{"open Observe <- records", "unknown Enforce <- mode", "none Enforce <- mode", "allowed Enforce T-2 <- granted", "none Enforce <- revoked"}},
		"expired": {"at the end of the statement", func(w *world) {
			w.mode("Enforce")
			w.grant(1, 3*time.Hour)
			w.pass(5 * time.Hour)
		}, []string{"open Observe <- records", "unknown Enforce <- mode", "none Enforce <- mode", "allowed Enforce T-2 <- granted", "none Enforce <- expired"}},
		"opened for a while": {"by a temporary audit", func(w *world) {
			w.mode("Enforce")
			w.audit(3 * time.Hour)
			w.pass(5 * time.Hour)
		}, []string{"open Observe <- records", "unknown Enforce <- mode", "none Enforce <- mode", "open Audit <- audit", "none Enforce <- audit-ended"}},
		"changed by hand": {"the time before is not known", func(w *world) {
			w.mode("Enforce")
			w.kubectl("hand", bobs, v1alpha1.Subject(app(1)))
			w.hour()
			w.kubectl("hand", bobs)
		}, []string{"open Observe <- records", "unknown Enforce <- mode", "none Enforce <- mode", "unknown Enforce <- outside", "none Enforce <- outside"}},
		"others": {"their tickets begin nothing", func(w *world) {
			w.mode("Enforce")
			w.grant(2, 0)
		}, []string{"open Observe <- records", "unknown Enforce <- mode", "none Enforce <- mode"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.pass(-time.Hour)
			w.lines[0].At = w.now
			begin := w.now
			w.hour()
			tc.do(w)
			r := w.records()
			r.Begin = begin
			periods, cut, err := r.Periods(t.Context(), app(1))
			if d := cmp.Diff(tc.want, describe(periods)); d != "" || cut || err != nil {
				t.Errorf("%s: %v %s", tc.reason, cut, d)
			}
			for i := 1; i < len(periods); i++ {
				if !periods[i-1].To.Equal(periods[i].From) || len(periods[i-1].Ended) == 0 {
					t.Errorf("period %d ends at %s, the next begins at %s", i-1, periods[i-1].To, periods[i].From)
				}
			}
			if last := periods[len(periods)-1]; !last.To.IsZero() {
				t.Error("the last period lasts")
			}
		})
	}
}

// TestWhenIsBounded checks that many changes are cut to the newest.
func TestWhenIsBounded(t *testing.T) {
	w := newWorld(t)
	w.mode("Enforce")
	for i := range mostInstants {
		w.kubectl("hand", bobs, v1alpha1.Subject(app(10+i%2)))
	}
	periods, cut, err := w.records().Periods(t.Context(), app(10))
	if err != nil || !cut || len(periods) == 0 || len(periods) > mostInstants {
		t.Errorf("%d periods, cut %v", len(periods), cut)
	}
}

// TestPeriodsAgreeWithAnswers checks that an answer about an instant within a period says the same as the period.
func TestPeriodsAgreeWithAnswers(t *testing.T) {
	w := newWorld(t)
	w.mode("Audit")
	first := w.grant(1, 0)
	w.mode("Enforce")
	w.revoke(first)
	w.grant(1, 4*time.Hour)
	w.pass(10 * time.Hour)
	w.audit(5 * time.Hour)
	w.pass(10 * time.Hour)
	r := w.records()
	periods, _, err := r.Periods(t.Context(), app(1))
	if err != nil {
		t.Fatal(err)
	}
	if len(periods) < 6 {
		t.Fatalf("%d periods", len(periods))
	}
	for _, p := range periods {
		at := p.From.Add(time.Second)
		a := r.WhoCould(at)
		var refs, lines []policy.Ref
		for _, l := range a.Lines {
			refs = append(refs, l.Ref)
		}
		for _, l := range p.Lines {
			lines = append(lines, l.Ref)
		}
		if d := cmp.Diff(refs, lines); d != "" || a.Mode != p.Mode {
			t.Errorf("%s: mode %s, period %s; %s", fmt.Sprint(at), a.Mode, p.Mode, d)
		}
	}
}
