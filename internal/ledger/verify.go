package ledger

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Witness is a head that an anchor stored.
type Witness struct {
	Anchor string // the anchor's name
	Head
}

// BrokenError reports the first line that does not continue the chain or differs from an anchored head.
type BrokenError struct {
	Seq    int64
	Reason message.Message
}

func (e *BrokenError) Error() string { return e.Message().Text }

// Message returns the error for people.
func (e *BrokenError) Message() message.Message {
	return message.LedgerBroken(int(e.Seq), e.Reason)
}

func broken(seq int64, reason message.Message) error { return &BrokenError{Seq: seq, Reason: reason} }

// Report describes the verified part of a ledger.
type Report struct {
	First, Last int64  // the lines that were read; Last is First-1 if there were none
	Hash        string // hash of the last line
	Covered     *Coverage
}

// Coverage describes which lines the anchored heads protect. A chain alone only proves that its lines fit each other; an attacker
// who can write the whole store can also write a new chain. A head that is stored elsewhere excludes this for the lines up to it,
// from the time at which it was anchored.
type Coverage struct {
	Line   int64     // lines up to this number are protected
	Since  time.Time // time of the first matching head
	Latest time.Time // time of the head of Line
	Heads  int       // number of matching heads
}

// Verify recomputes a chain from its first line and returns the number of lines and the hash of the last one. The error is a
// *BrokenError, or an error of reading the lines.
func Verify(lines iter.Seq2[Line, error]) (count int64, head string, err error) {
	r, err := Check(lines, 1, nil)
	return r.Last, r.Hash, err
}

// Check recomputes a chain that begins with line number first (1 for a whole ledger) and compares it with the anchored heads. It
// keeps one line in memory at a time. On an error, which is a *BrokenError or an error of reading the lines, the report describes
// the lines before it.
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
	report    Report
	pending   []Witness // pending witnesses, ordered by line
	lastMatch int64     // the last line that matched a witness
}

func newVerifier(first int64, witnesses []Witness) *verifier {
	pending := slices.Clone(witnesses)
	slices.SortStableFunc(pending, func(a, b Witness) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), a.At.Compare(b.At)) })
	v := &verifier{report: Report{First: first, Last: first - 1}, pending: pending}
	if first <= 1 {
		v.report.Hash = Genesis
	}
	// Heads before the first line do not apply, except that the last of them gives the hash that must precede.
	for len(v.pending) > 0 && v.pending[0].Seq < first {
		if v.pending[0].Seq == first-1 && first > 1 {
			v.report.Hash = v.pending[0].Hash
		}
		v.pending = v.pending[1:]
	}
	return v
}

func (v *verifier) add(l Line) error {
	want := v.report.Last + 1
	switch {
	case l.Seq > want:
		return broken(want, message.LedgerLineMissing(int(l.Seq)))
	case l.Seq < want:
		return broken(want, message.LedgerLineInPlace(int(l.Seq)))
	case hash(l.Text) != l.Hash:
		return broken(want, message.LedgerHashDiffers())
	}
	if !json.Valid([]byte(l.Text)) {
		return broken(want, message.LedgerNotJSON())
	}
	if !v.continues(l.Text, want) {
		return v.discontinued(l.Text, want)
	}
	v.report.Last, v.report.Hash = want, l.Hash
	return v.compare()
}

// continues reports whether a text contains the hash of the previous line and its own number. The keys of canonical JSON are
// sorted, so both are at its end; checking only the end keeps the verification of a million lines fast.
func (v *verifier) continues(text string, seq int64) bool {
	text, ok := strings.CutSuffix(text, `","seq":`+strconv.FormatInt(seq, 10)+"}")
	if !ok || len(text) < len(Genesis) {
		return false
	}
	before, prev := text[:len(text)-len(Genesis)], text[len(text)-len(Genesis):]
	return strings.HasSuffix(before, `,"prev":"`) && (v.report.Hash == "" || prev == v.report.Hash)
}

// discontinued returns the reason why a line does not continue the previous one.
func (v *verifier) discontinued(text string, seq int64) error {
	var body struct {
		Seq  int64  `json:"seq"`
		Prev string `json:"prev"`
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || body.Seq != seq {
		return broken(seq, message.LedgerOtherNumber(int(body.Seq)))
	}
	if v.report.Hash == "" || body.Prev == v.report.Hash {
		return broken(seq, message.LedgerNotInForm())
	}
	if seq == 1 {
		return broken(seq, message.LedgerNotFirst())
	}
	return broken(seq, message.LedgerNotContinued(int(seq-1)))
}

// compare compares the last line with the witnesses for it.
func (v *verifier) compare() error {
	for len(v.pending) > 0 && v.pending[0].Seq == v.report.Last {
		w := v.pending[0]
		v.pending = v.pending[1:]
		if w.Hash != v.report.Hash {
			return broken(w.Seq, message.LedgerAnchorDiffers(w.Anchor, stamp(w.At), int(v.lastMatch)))
		}
		v.lastMatch = w.Seq
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
	if len(v.pending) == 0 {
		return nil
	}
	w := v.pending[0]
	return broken(v.report.Last+1, message.LedgerMissingAtEnd(w.Anchor, int(w.Seq), stamp(w.At)))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
