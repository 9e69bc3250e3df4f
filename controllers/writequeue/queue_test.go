package writequeue

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	noon   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	limits = Limits{MaxPending: 2, PendingTimeout: 5 * time.Second}
)

func turns(of ...Admission) []Admission { return of }

func TestQueueUrgentNeverWaits(t *testing.T) {
	l := New("test", limits)
	for i := range 100 {
		l.SetPending(fmt.Sprint("object", i), noMembers, noon)
	}
	for i, kind := range []Priority{Revocation, Opening} {
		if !l.TryAdmit(Request{Unit: fmt.Sprint("unit", i), Priority: kind}, noon) {
			t.Errorf("a %s waits", kind)
		}
	}
	if l.TryAdmit(Request{Unit: "grant", Priority: Grant}, noon) || l.TryAdmit(Request{Unit: "bulk", Priority: Bulk}, noon) {
		t.Error("what is not urgent does not wait while KubeFed owes much")
	}
	if !l.TryAdmit(Request{Unit: "bulk", Priority: Revocation}, noon) {
		t.Error("a unit that waits for a grant waits with a revocation")
	}
	if diff := cmp.Diff([]string{"grant"}, l.Waiting()); diff != "" {
		t.Error(diff)
	}
}

func TestQueueBusy(t *testing.T) {
	l := New("test", limits)
	check := func(reason string, want bool, at time.Time) {
		t.Helper()
		if l.Busy(at) != want {
			t.Errorf("%s: busy is %t", reason, !want)
		}
	}
	check("nothing", false, noon)
	l.TryAdmit(Request{Unit: "a", Priority: Bulk}, noon)
	check("a unit is about to be written", true, noon)
	l.SetPending("object-a", noMembers, noon)
	l.Done("a")
	check("KubeFed owes it", true, noon)
	check("KubeFed owes it for too long", false, noon.Add(limits.PendingTimeout))
	l.TryAdmit(Request{Unit: "b", Priority: Bulk}, noon)
	l.SetPending("object-a", nil, noon)
	l.Done("b")
	check("all is done", false, noon)
}

func TestQueueOrder(t *testing.T) {
	l := New("test", limits)
	for _, unit := range []string{"a", "b"} {
		if !l.TryAdmit(Request{Unit: unit, Priority: Bulk}, noon) {
			t.Fatalf("%s waits though KubeFed owes nothing", unit)
		}
	}
	l.TryAdmit(Request{Unit: "c", Priority: Bulk}, noon)
	l.TryAdmit(Request{Unit: "d", Priority: Bulk}, noon)
	l.TryAdmit(Request{Unit: "e", Priority: Grant}, noon)
	l.TryAdmit(Request{Unit: "d", Priority: Grant}, noon) // requested by a person now
	l.TryAdmit(Request{Unit: "d", Priority: Bulk}, noon)  // and looked at again
	if got := l.AdmitNext(noon); got != nil {
		t.Fatalf("%v may go while two are on their way", got)
	}
	l.SetPending("object-a", noMembers, noon)
	l.Done("a")
	if got := l.AdmitNext(noon); got != nil {
		t.Fatalf("%v may go though KubeFed owes what a was written for", got)
	}
	l.SetPending("object-a", nil, noon)
	l.Done("b") // there was nothing to write
	if diff := cmp.Diff(turns(Admission{"e", Grant}, Admission{"d", Grant}), l.AdmitNext(noon)); diff != "" {
		t.Errorf("grants come first, in the order in which they were asked for: -want +got:\n%s", diff)
	}
	if l.TryAdmit(Request{Unit: "f", Priority: Grant}, noon) {
		t.Error("there is no room")
	}
	if !l.TryAdmit(Request{Unit: "e", Priority: Grant}, noon) || !l.TryAdmit(Request{Unit: "d", Priority: Bulk}, noon) {
		t.Error("whose turn it is may write")
	}
	l.Done("c") // it is as it should be by now
	l.Done("d")
	l.Done("e")
	if diff := cmp.Diff(turns(Admission{"f", Grant}), l.AdmitNext(noon)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestQueueBulkHasItsShare(t *testing.T) {
	l := New("test", Limits{MaxPending: 1, PendingTimeout: time.Minute})
	l.TryAdmit(Request{Unit: "busy", Priority: Grant}, noon)
	l.TryAdmit(Request{Unit: "bulk", Priority: Bulk}, noon)
	for i := range 3 * bulkShare {
		l.TryAdmit(Request{Unit: fmt.Sprint("grant", i), Priority: Grant}, noon)
	}
	l.Done("busy")
	for i := range bulkShare {
		next := l.AdmitNext(noon)
		if len(next) != 1 {
			t.Fatalf("%d may go, with room for one", len(next))
		}
		if next[0].Unit == "bulk" {
			return
		}
		if l.Done(next[0].Unit); i == bulkShare-1 {
			t.Errorf("%d grants came before the bulk", bulkShare)
		}
	}
}

func TestPendingTimeout(t *testing.T) {
	l := New("test", limits)
	l.SetPending("x", noMembers, noon)
	l.SetPending("y", noMembers, noon.Add(time.Second))
	l.TryAdmit(Request{Unit: "a", Priority: Bulk}, noon.Add(time.Second))
	for _, c := range []struct {
		after  time.Duration
		told   func(now time.Time)
		want   []Admission
		reason string
	}{
		{4999 * time.Millisecond, nil, nil, "both count"},
		{5 * time.Second, nil, turns(Admission{"a", Bulk}), "x counts no more"},
		{6 * time.Second, func(now time.Time) {
			l.SetPending("x", noMembers, now)
			l.Done("a")
			l.TryAdmit(Request{Unit: "b", Priority: Bulk}, now)
		}, nil, "b goes at once: y does not count either, and that x is still owed begins nothing anew"},
		{7 * time.Second, func(now time.Time) {
			l.SetPending("x", nil, now)
			l.SetPending("x", noMembers, now)
			l.TryAdmit(Request{Unit: "c", Priority: Bulk}, now)
			l.TryAdmit(Request{Unit: "d", Priority: Bulk}, now)
		}, nil, "x is owed again, and b on its way"},
		{11 * time.Second, nil, turns(Admission{"c", Bulk}), "b did not come back"},
	} {
		now := noon.Add(c.after)
		if c.told != nil {
			c.told(now)
		}
		if diff := cmp.Diff(c.want, l.AdmitNext(now)); diff != "" {
			t.Fatalf("%s: -want +got:\n%s", c.reason, diff)
		}
	}
}

// TestQueueLimitsTheRate checks that non-urgent writes leave the reserve to KubeFed's clients, for each member separately, and that urgent ones
// are counted, too.
func TestQueueLimitsTheRate(t *testing.T) {
	l := New("test", Limits{MaxPending: 1000, PendingTimeout: time.Minute, Rate: 10, Burst: 5, Reserved: 2})
	ask := func(unit string, kind Priority, members ...string) bool {
		t.Helper()
		may := l.TryAdmit(Request{unit, kind, members}, noon)
		if may {
			l.Done(unit)
		}
		return may
	}
	for i := range 3 {
		if !ask(fmt.Sprint("first", i), Bulk, "m1") {
			t.Fatalf("%d waits though KubeFed has rested", i)
		}
	}
	if ask("a", Bulk, "m1") || ask("b", Grant, "m1", "m2") {
		t.Error("what is spared was used up")
	}
	if ask("c", Bulk, "m2") {
		t.Error("c overtakes b, which waits for the same member and asked before it")
	}
	if !ask("d", Bulk, "m3") {
		t.Error("a unit waits for members that it does not need")
	}
	if !ask("urgent", Revocation, "m1") {
		t.Error("a revocation waits")
	}
	if got := l.AdmitNext(noon); got != nil {
		t.Errorf("%v may go", got)
	}
	// Four are away, and five is full: one for a and the one that is spared have to come.
	if idle, ends := l.nextChange(noon); !ends || idle != 200*time.Millisecond {
		t.Errorf("it is idle for %s, %v", idle, ends)
	}
	if diff := cmp.Diff(turns(Admission{"b", Grant}, Admission{"c", Bulk}), l.AdmitNext(noon.Add(200*time.Millisecond))); diff != "" {
		t.Errorf("a grant goes first, and then what needs only the other member: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(turns(Admission{"a", Bulk}), l.AdmitNext(noon.Add(301*time.Millisecond))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A unit that needs a member which lacks what others have does not wait for it; a unit that needs only that member does.
func TestQueueDoesNotWaitForALaggingMember(t *testing.T) {
	const lag = time.Second
	l := New("test", Limits{MaxPending: 2, PendingTimeout: time.Minute, LagTimeout: lag})
	both := []string{"fast", "slow"}
	write := func(unit string, now time.Time, members ...string) bool {
		if !l.TryAdmit(Request{unit, Bulk, members}, now) {
			return false
		}
		l.SetPending(unit, members, now)
		l.Done(unit)
		return true
	}
	for _, unit := range []string{"a", "b"} {
		if !write(unit, noon, both...) {
			t.Fatalf("%s waits though nothing is in flight", unit)
		}
	}
	l.SetPending("a", []string{"slow"}, noon)
	l.SetPending("b", []string{"slow"}, noon)
	if write("c", noon, both...) {
		t.Error("the slow member has no room, and is not known to lag yet")
	}
	if !write("fast-only", noon, "elsewhere") {
		t.Error("a unit waits for members that it does not need")
	}
	now := noon.Add(lag)
	if diff := cmp.Diff(turns(Admission{"c", Bulk}), l.AdmitNext(now)); diff != "" {
		t.Errorf("the slow member lags, and the fast one has room: -want +got:\n%s", diff)
	}
	l.SetPending("c", both, now)
	l.Done("c")
	for i := range 20 {
		unit := fmt.Sprint("more", i)
		now = now.Add(time.Millisecond)
		if !write(unit, now, both...) {
			t.Fatalf("%s waits for a member that lags", unit)
		}
		l.SetPending(unit, []string{"slow"}, now)
	}
	if write("slow-only", now, "slow") {
		t.Error("the slow member alone is given more than it may have in flight")
	}
	if !write("again", now, both...) {
		t.Error("a unit waits behind one that needs only the member that lags")
	}
	// The slow member catches up, and counts again.
	for _, unit := range append([]string{"a", "b", "c", "again"}, func() (out []string) {
		for i := range 20 {
			out = append(out, fmt.Sprint("more", i))
		}
		return out
	}()...) {
		l.SetPending(unit, nil, now)
	}
	if diff := cmp.Diff(turns(Admission{"slow-only", Bulk}), l.AdmitNext(now)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	l.Done("slow-only")
	l.SetPending("x", both, now)
	l.SetPending("y", both, now)
	if write("z", now, both...) {
		t.Error("a member that caught up is waited for again")
	}
}
