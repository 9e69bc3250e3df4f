package tracing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func changeOf(sid string, at time.Time) Change {
	return Change{SID: sid, Position: position, At: at}
}

func sids(all []Change) string {
	var out []string
	for _, c := range all {
		out = append(out, c.SID)
	}
	return strings.Join(out, " ")
}

func TestAnnotationRoundTrip(t *testing.T) {
	a := AddChanges("", now, changeOf("t-1-1", now.Add(-time.Minute)))
	a = AddChanges(a, now, changeOf("t-2-1", now.Add(300*time.Millisecond)), changeOf("t-2-2", now))
	want := "t-2-1 " + position + " 1795435200,t-2-2 " + position + " 1795435200,t-1-1 " + position + " 1795435140"
	if d := cmp.Diff(want, a); d != "" {
		t.Fatal(d)
	}
	got := ParseChanges(a, now)
	if sids(got) != "t-2-1 t-2-2 t-1-1" || got[0].Position != position || !got[2].At.Equal(now.Add(-time.Minute)) {
		t.Errorf("%+v", got)
	}
	again := AddChanges(a, now.Add(time.Second), changeOf("t-1-1", now.Add(time.Second)))
	if got := ParseChanges(again, now.Add(time.Second)); sids(got) != "t-1-1 t-2-1 t-2-2" {
		t.Errorf("a statement has one entry, its last change: %s", again)
	}
}

// The annotation keeps the latest changes within a number and a size, and drops those whose read-back is not awaited.
func TestAnnotationIsBounded(t *testing.T) {
	a := ""
	for i := range 600 {
		a = AddChanges(a, now, changeOf(fmt.Sprintf("t-%d-1", 100_000_000_000+i), now))
		if len(a) > MaxAnnotation {
			t.Fatalf("%d bytes after %d changes", len(a), i+1)
		}
	}
	got := ParseChanges(a, now)
	if len(got) != MaxChanges || got[0].SID != "t-100000000599-1" || got[MaxChanges-1].SID != "t-100000000584-1" {
		t.Errorf("%s", sids(got))
	}
	if got := ParseChanges(a, now.Add(MaxAge+time.Second)); len(got) != 0 {
		t.Errorf("an hour later: %s", sids(got))
	}
	if a = AddChanges(
		a, now.Add(2*MaxAge), changeOf("new", now.Add(2*MaxAge)),
	); sids(ParseChanges(a, now.Add(2*MaxAge))) != "new" || strings.Count(a, ",") != 0 {
		t.Errorf("old entries stay: %s", a)
	}
	if a := AddChanges(
		"",
		now,
		changeOf(strings.Repeat("x", maxSID+1), now),
		changeOf("a b", now),
		changeOf("", now),
		Change{SID: "t-1-1", Position: "no", At: now},
	); a != "" {
		t.Errorf("invalid entries are written: %s", a)
	}
}

// Anybody who may write the policy may have written the annotation.
func TestForeignAnnotationIsIgnored(t *testing.T) {
	good := "t-1-1 " + position + " 1795435200"
	for name, tc := range map[string]struct{ reason, in, want string }{
		"empty":        {"there is none", "", ""},
		"garbage":      {"it is no entry", "hello, world,,  ,= =", ""},
		"among others": {"the valid ones count", "x," + good + ",t-2-1 00-0-0-01 1795435200", "t-1-1"},
		"twice":        {"one entry for a sid", good + "," + good, "t-1-1"},
		"old":          {"nobody waits for it", "t-1-1 " + position + " 1795431500", ""},
		"future":       {"no clock is that wrong", "t-1-1 " + position + " 1795436000", ""},
		"no time":      {"three fields", "t-1-1 " + position, ""},
		"more fields":  {"three fields", good + " x", ""},
		"huge number":  {"it is no time", "t-1-1 " + position + " 99999999999999999999999", ""},
		"sid":          {"a sid has no such signs", "t/1 " + position + " 1795435200", ""},
		"too long":     {"it is not ACP's, so nothing in it counts", good + strings.Repeat(",", MaxAnnotation), ""},
		"many": {
			"each sid counts once",
			strings.TrimSuffix(strings.Repeat("a "+position+" 1795435200,", MaxChanges), ",") + ",b " + position + " 1795435200", "a b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sids(ParseChanges(tc.in, now)); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func FuzzParseChanges(f *testing.F) {
	f.Add("t-1-1 " + position + " 1795435200")
	f.Add("a,b c d")
	f.Fuzz(func(t *testing.T, a string) {
		all := ParseChanges(a, now)
		if len(all) > MaxChanges {
			t.Fatalf("%d entries", len(all))
		}
		again := ParseChanges(AddChanges("", now, all...), now)
		if d := cmp.Diff(all, again); d != "" {
			t.Errorf("%q is not what is written: %s", a, d)
		}
	})
}
