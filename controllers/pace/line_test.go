package pace

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	noon   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	limits = Limits{Owed: 2, Patience: 5 * time.Second}
)

func turns(of ...Turn) []Turn { return of }

func TestLineUrgentNeverWaits(t *testing.T) {
	l := NewLine("test", limits)
	for i := range 100 {
		l.Owe(fmt.Sprint("object", i), true, noon)
	}
	for i, kind := range []Kind{Revocation, Downgrade} {
		if !l.Ask(fmt.Sprint("unit", i), kind, noon) {
			t.Errorf("a %s waits", kind)
		}
	}
	if l.Ask("grant", Grant, noon) || l.Ask("bulk", Bulk, noon) {
		t.Error("what is not urgent does not wait while KubeFed owes much")
	}
	if !l.Ask("bulk", Revocation, noon) {
		t.Error("a unit that waits for a grant waits with a revocation")
	}
	if diff := cmp.Diff([]string{"grant"}, l.Waiting()); diff != "" {
		t.Error(diff)
	}
}

func TestLineOrder(t *testing.T) {
	l := NewLine("test", limits)
	for _, unit := range []string{"a", "b"} {
		if !l.Ask(unit, Bulk, noon) {
			t.Fatalf("%s waits though KubeFed owes nothing", unit)
		}
	}
	l.Ask("c", Bulk, noon)
	l.Ask("d", Bulk, noon)
	l.Ask("e", Grant, noon)
	l.Ask("d", Grant, noon) // asked for by somebody now
	l.Ask("d", Bulk, noon)  // and looked at again
	if got := l.Next(noon); got != nil {
		t.Fatalf("%v may go while two are on their way", got)
	}
	l.Owe("object-a", true, noon)
	l.Done("a")
	if got := l.Next(noon); got != nil {
		t.Fatalf("%v may go though KubeFed owes what a was written for", got)
	}
	l.Owe("object-a", false, noon)
	l.Done("b") // there was nothing to write
	if diff := cmp.Diff(turns(Turn{"e", Grant}, Turn{"d", Grant}), l.Next(noon)); diff != "" {
		t.Errorf("grants come first, in the order in which they were asked for: -want +got:\n%s", diff)
	}
	if l.Ask("f", Grant, noon) {
		t.Error("there is no room")
	}
	if !l.Ask("e", Grant, noon) || !l.Ask("d", Bulk, noon) {
		t.Error("whose turn it is may write")
	}
	l.Done("c") // it is as it should be by now
	l.Done("d")
	l.Done("e")
	if diff := cmp.Diff(turns(Turn{"f", Grant}), l.Next(noon)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLineBulkHasItsShare(t *testing.T) {
	l := NewLine("test", Limits{Owed: 1, Patience: time.Minute})
	l.Ask("busy", Grant, noon)
	l.Ask("bulk", Bulk, noon)
	for i := range 3 * share {
		l.Ask(fmt.Sprint("grant", i), Grant, noon)
	}
	l.Done("busy")
	for i := range share {
		next := l.Next(noon)
		if len(next) != 1 {
			t.Fatalf("%d may go, with room for one", len(next))
		}
		if next[0].Unit == "bulk" {
			return
		}
		if l.Done(next[0].Unit); i == share-1 {
			t.Errorf("%d grants came before the bulk", share)
		}
	}
}

func TestLinePatience(t *testing.T) {
	l := NewLine("test", limits)
	l.Owe("x", true, noon)
	l.Owe("y", true, noon.Add(time.Second))
	l.Ask("a", Bulk, noon.Add(time.Second))
	for _, c := range []struct {
		after  time.Duration
		told   func(now time.Time)
		want   []Turn
		reason string
	}{
		{4999 * time.Millisecond, nil, nil, "both count"},
		{5 * time.Second, nil, turns(Turn{"a", Bulk}), "x counts no more"},
		{6 * time.Second, func(now time.Time) { l.Owe("x", true, now); l.Done("a"); l.Ask("b", Bulk, now) }, nil, "b goes at once: y does not count either, and that x is still owed begins nothing anew"},
		{7 * time.Second, func(now time.Time) {
			l.Owe("x", false, now)
			l.Owe("x", true, now)
			l.Ask("c", Bulk, now)
			l.Ask("d", Bulk, now)
		}, nil, "x is owed again, and b on its way"},
		{11 * time.Second, nil, turns(Turn{"c", Bulk}), "b did not come back"},
	} {
		now := noon.Add(c.after)
		if c.told != nil {
			c.told(now)
		}
		if diff := cmp.Diff(c.want, l.Next(now)); diff != "" {
			t.Fatalf("%s: -want +got:\n%s", c.reason, diff)
		}
	}
}
