package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Witness is a head that an anchor kept.
type Witness struct {
	Anchor string // the anchor's name
	Head
}

// BrokenError names the first line that does not fit the chain, or that an anchor knows otherwise.
type BrokenError struct {
	Seq    int64
	Reason string
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("ledger is broken at line %d: %s", e.Seq, e.Reason)
}

func broken(seq int64, format string, args ...any) error {
	return &BrokenError{Seq: seq, Reason: fmt.Sprintf(format, args...)}
}

// Report is what a verification found whole.
type Report struct {
	First, Last int64  // the lines that were read; Last is First-1 when there was none
	Hash        string // of the last line
	Covered     *Coverage
}

// Coverage says what the anchors vouch for. A chain alone shows that its lines fit each other; whoever can write the
// whole store can also write a new chain that fits. A head that was kept elsewhere excludes it for the lines up to it,
// from the instant when it was kept.
type Coverage struct {
	Line   int64     // lines up to this one are vouched for
	Since  time.Time // when the first head that still fits was kept
	Latest time.Time // when the head of Line was kept
	Heads  int       // how many heads fit
}

// Verify recomputes a chain from its first line and returns the number of lines and the head's hash. The error is a
// *BrokenError, or what reading the lines gave.
func Verify(lines iter.Seq2[Line, error]) (count int64, head string, err error) {
	r, err := Check(lines, 1, nil)
	return r.Last, r.Hash, err
}

// Check recomputes a chain that begins with line first (1: a whole ledger) and compares it with the heads that
// anchors kept. It holds one line at a time. The report is that of the lines before the break; the error is a
// *BrokenError, or what reading the lines gave.
func Check(lines iter.Seq2[Line, error], first int64, witnesses []Witness) (Report, error) {
	v := newVerifier(first, witnesses)
	for l, err := range lines {
		if err == nil {
			err = v.add(l)
		}
		if err != nil {
			return v.report, err
		}
	}
	return v.report, v.end()
}

type verifier struct {
	report  Report
	rest    []Witness // by line; those of lines that were read are gone
	fitting int64     // the last line that a witness agreed with
}

func newVerifier(first int64, witnesses []Witness) *verifier {
	rest := slices.Clone(witnesses)
	slices.SortStableFunc(rest, func(a, b Witness) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), a.At.Compare(b.At)) })
	v := &verifier{report: Report{First: first, Last: first - 1}, rest: rest}
	if first <= 1 {
		v.report.Hash = Genesis
	}
	// Heads before the first line say nothing about what is read, but the last of them names what must come before.
	for len(v.rest) > 0 && v.rest[0].Seq < first {
		if v.rest[0].Seq == first-1 && first > 1 {
			v.report.Hash = v.rest[0].Hash
		}
		v.rest = v.rest[1:]
	}
	return v
}

func (v *verifier) add(l Line) error {
	want := v.report.Last + 1
	switch {
	case l.Seq > want:
		return broken(want, "it is missing: line %d follows", l.Seq)
	case l.Seq < want:
		return broken(want, "line %d stands in its place", l.Seq)
	case hash(l.Text) != l.Hash:
		return broken(want, "its hash is not that of its text: one of them was changed")
	}
	if !json.Valid([]byte(l.Text)) {
		return broken(want, "its text is not JSON")
	}
	if !v.continues(l.Text, want) {
		return v.discontinued(l.Text, want)
	}
	v.report.Last, v.report.Hash = want, l.Hash
	return v.compare()
}

// continues tells whether a text names the line before it and its own number. The keys of canonical JSON are sorted, so
// these two are its end, and need not be looked for in a million lines.
func (v *verifier) continues(text string, seq int64) bool {
	text, ok := strings.CutSuffix(text, `","seq":`+strconv.FormatInt(seq, 10)+"}")
	if !ok || len(text) < len(Genesis) {
		return false
	}
	before, prev := text[:len(text)-len(Genesis)], text[len(text)-len(Genesis):]
	return strings.HasSuffix(before, `,"prev":"`) && (v.report.Hash == "" || prev == v.report.Hash)
}

// discontinued says why a line does not continue the one before it.
func (v *verifier) discontinued(text string, seq int64) error {
	var body struct {
		Seq  int64  `json:"seq"`
		Prev string `json:"prev"`
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || body.Seq != seq {
		return broken(seq, "its text says that it is line %d", body.Seq)
	}
	if v.report.Hash == "" || body.Prev == v.report.Hash {
		return broken(seq, "its text is not in the form of the ledger")
	}
	if seq == 1 {
		return broken(seq, "it names a line before it, so it was not the first")
	}
	return broken(seq, "it does not continue line %d: one of the two was replaced", seq-1)
}

// compare asks the witnesses of the line that was read last.
func (v *verifier) compare() error {
	for len(v.rest) > 0 && v.rest[0].Seq == v.report.Last {
		w := v.rest[0]
		v.rest = v.rest[1:]
		if w.Hash != v.report.Hash {
			return broken(w.Seq, "%s kept another hash for it at %s: it, or a line after %d, was rewritten", w.Anchor, stamp(w.At), v.fitting)
		}
		v.fitting = w.Seq
		c := v.report.Covered
		if c == nil {
			c = &Coverage{Since: w.At}
			v.report.Covered = c
		}
		if w.At.Before(c.Since) {
			c.Since = w.At
		}
		if w.Seq > c.Line || w.At.Before(c.Latest) {
			c.Line, c.Latest = w.Seq, w.At
		}
		c.Heads++
	}
	return nil
}

func (v *verifier) end() error {
	if len(v.rest) == 0 {
		return nil
	}
	w := v.rest[0]
	return broken(v.report.Last+1, "it is missing at the end: %s kept line %d at %s", w.Anchor, w.Seq, stamp(w.At))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
