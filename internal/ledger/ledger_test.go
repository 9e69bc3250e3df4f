package ledger

import (
	"errors"
	"iter"
	"slices"
	"testing"
	"time"
)

func chain(t *testing.T, n int) []Line {
	t.Helper()
	var out []Line
	seq, prev := int64(0), Genesis
	for range n {
		l, err := Append(seq, prev, Entry{At: time.Unix(1700000000, 5), Actor: "bob", Action: "ticket.approved", Object: "T-1",
			Details: map[string]string{"z": "<&>", "a": "1"}})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
		seq, prev = l.Seq, l.Hash
	}
	return out
}

func seq(lines []Line) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for _, l := range lines {
			if !yield(l, nil) {
				return
			}
		}
	}
}

func TestTextIsCanonical(t *testing.T) {
	want := `{"action":"ticket.approved","actor":"bob","at":"2023-11-14T22:13:20.000000005Z","details":{"a":"1","z":"<&>"},"object":"T-1","prev":"` + Genesis + `","seq":1}`
	if got := chain(t, 1)[0].Text; got != want {
		t.Errorf("want %s\n got %s", want, got)
	}
}

func TestVerifyNamesTheFirstBrokenLine(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		edit   func([]Line) []Line
		broken int64 // 0: whole
	}{
		"whole":    {"an untouched chain is whole", func(l []Line) []Line { return l }, 0},
		"edited":   {"a changed text has another hash", func(l []Line) []Line { l[1].Text = l[1].Text[:len(l[1].Text)-1] + ` }`; return l }, 2},
		"rehashed": {"a changed text with a fresh hash breaks the next line", func(l []Line) []Line { l[1].Text += " "; l[1].Hash = hash(l[1].Text); return l }, 3},
		"removed":  {"a gap is seen", func(l []Line) []Line { return slices.Delete(l, 1, 2) }, 2},
		"swapped":  {"order counts", func(l []Line) []Line { l[0], l[1] = l[1], l[0]; return l }, 1},
		"no json":  {"a text that is not JSON", func(l []Line) []Line { l[0].Text = "x"; l[0].Hash = hash("x"); return l }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			count, _, err := Verify(seq(tc.edit(chain(t, 4))))
			var broken *BrokenError
			switch errors.As(err, &broken); {
			case tc.broken == 0 && (err != nil || count != 4):
				t.Errorf("%s: %d lines, %v", tc.reason, count, err)
			case tc.broken != 0 && (broken == nil || broken.Seq != tc.broken):
				t.Errorf("%s: want line %d, got %v", tc.reason, tc.broken, err)
			}
		})
	}
}
