package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Unix(1700000000, 5).UTC()

func entry() Entry {
	return Entry{At: start, Actor: "bob", Action: "ticket.approved", Object: "T-1", Details: map[string]string{"z": "<&>", "a": "1"}}
}

func chain(t *testing.T, n int) []Line {
	t.Helper()
	return extend(t, nil, n, entry())
}

func extend(t *testing.T, out []Line, n int, e Entry) []Line {
	t.Helper()
	seq, prev := int64(0), Genesis
	if len(out) > 0 {
		seq, prev = out[len(out)-1].Seq, out[len(out)-1].Hash
	}
	for range n {
		l, err := Append(seq, prev, e)
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
	want := `{"action":"ticket.approved","actor":"bob","at":"2023-11-14T22:13:20.000000005Z","details":{"a":"1","z":"<&>"},"object":"T-1","prev":"` +
		Genesis + `","seq":1}`
	l := chain(t, 1)[0]
	if l.Text != want {
		t.Errorf("want %s\n got %s", want, l.Text)
	}
	got, err := l.Entry()
	if d := cmp.Diff(entry(), got); err != nil || d != "" {
		t.Errorf("Entry: got error %v, diff %s", err, d)
	}
}

func TestVerifyNamesTheFirstBrokenLine(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		edit   func([]Line) []Line
		broken int64 // number of the broken line; 0 means none
		says   string
	}{
		"whole":  {"an untouched chain is whole", func(l []Line) []Line { return l }, 0, ""},
		"empty":  {"nothing is a whole chain, too", func([]Line) []Line { return nil }, 0, ""},
		"edited": {"a changed text has another hash", func(l []Line) []Line { l[1].Text = l[1].Text[:len(l[1].Text)-1] + ` }`; return l }, 2, "its hash"},
		"rehashed": {"a changed text with a fresh hash breaks the next line", func(l []Line) []Line {
			l[1].Text = strings.Replace(l[1].Text, "bob", "eve", 1)
			l[1].Hash = hash(l[1].Text)
			return l
		}, 3, "continue line 2"},
		"padded": {
			"no other form is taken, whatever its hash",
			func(l []Line) []Line { l[1].Text += " "; l[1].Hash = hash(l[1].Text); return l }, 2, "form of the ledger",
		},
		"replaced": {"another line of the same ledger in its place", func(l []Line) []Line { l[2] = l[1]; return l }, 3, "line 2 is in its place"},
		"renumbered": {"a copy with another number is detected by its text", func(l []Line) []Line {
			l[2] = l[1]
			l[2].Seq = 3
			return l
		}, 3, "contains the line number 2"},
		"removed":     {"a gap is seen", func(l []Line) []Line { return slices.Delete(l, 1, 2) }, 2, "line 3 follows"},
		"swapped":     {"order counts", func(l []Line) []Line { l[0], l[1] = l[1], l[0]; return l }, 1, "line 2 follows"},
		"begins late": {"a ledger begins with line 1", func(l []Line) []Line { return l[1:] }, 1, "line 2 follows"},
		"not the first": {"the first line has nothing before it", func(l []Line) []Line {
			fake, err := Append(0, hash("x"), entry())
			if err != nil {
				panic(err)
			}
			l[0] = fake
			return l
		}, 1, "not the first"},
		"other form": {"the text of another program", func(l []Line) []Line {
			l[0].Text = `{"seq":1,"prev":"` + Genesis + `"}`
			l[0].Hash = hash(l[0].Text)
			return l
		}, 1, "form of the ledger"},
		"no json": {"a text that is not JSON", func(l []Line) []Line { l[0].Text = "x"; l[0].Hash = hash("x"); return l }, 1, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := tc.edit(chain(t, 4))
			count, _, err := Verify(seq(lines))
			var broken *BrokenError
			switch errors.As(err, &broken); {
			case tc.broken == 0 && (err != nil || count != int64(len(lines))):
				t.Errorf("%s: got %d lines, %v", tc.reason, count, err)
			case tc.broken != 0 && (broken == nil || broken.Seq != tc.broken || !strings.Contains(broken.Reason.Text, tc.says)):
				t.Errorf("%s: want line %d, got %v", tc.reason, tc.broken, err)
			}
		})
	}
}

func witness(l Line, after time.Duration) Witness {
	return Witness{Anchor: "file", Head: Head{Seq: l.Seq, Hash: l.Hash, At: start.Add(after)}}
}

func TestCheckComparesWithAnchors(t *testing.T) {
	whole := chain(t, 6)
	other := extend(t, slices.Clone(whole[:3]), 3, Entry{At: start, Actor: "mallory"})
	for name, tc := range map[string]struct {
		reason    string
		lines     []Line
		first     int64
		witnesses []Witness
		covered   *Coverage
		broken    int64
		says      string
	}{
		"no anchor": {"without an anchor nothing is vouched for", whole, 1, nil, nil, 0, ""},
		"covered": {"lines up to the last head are vouched for since the first", whole, 1,
			[]Witness{witness(whole[4], time.Hour), witness(whole[1], time.Minute)},
			&Coverage{Line: 5, Since: start.Add(time.Minute), Latest: start.Add(time.Hour), Heads: 2}, 0, ""},
		"two anchors": {"of two heads of one line the earlier counts", whole, 1,
			[]Witness{witness(whole[1], time.Hour), witness(whole[1], time.Minute)},
			&Coverage{Line: 2, Since: start.Add(time.Minute), Latest: start.Add(time.Minute), Heads: 2}, 0, ""},
		"truncated": {"a chain that ends before an anchored head lost its tail", whole[:3], 1,
			[]Witness{witness(whole[1], 0), witness(whole[4], time.Hour)}, nil, 4, "kept line 5"},
		"emptied": {"a ledger that was emptied is one, too", nil, 1, []Witness{witness(whole[1], 0)}, nil, 1, "kept line 2"},
		"rewritten": {"a chain that fits itself, but not the anchor, was rewritten", other, 1,
			[]Witness{witness(whole[1], 0), witness(whole[4], time.Hour)}, nil, 5, "after 2"},
		"extract": {"lines from the middle, with what was before them anchored", whole[3:], 4, []Witness{witness(whole[2], 0)}, nil, 0, ""},
		"extract, unanchored": {"lines from the middle alone", whole[3:], 4, []Witness{witness(whole[5], 0)},
			&Coverage{Line: 6, Since: start, Latest: start, Heads: 1}, 0, ""},
		"extract of another": {
			"lines from the middle that do not continue the anchored head", other[4:],
			5, []Witness{witness(whole[3], 0)}, nil, 5, "continue line 4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Check(seq(tc.lines), tc.first, tc.witnesses)
			var broken *BrokenError
			if tc.broken != 0 {
				if !errors.As(err, &broken) || broken.Seq != tc.broken || !strings.Contains(broken.Reason.Text, tc.says) {
					t.Errorf("%s: want line %d, got %v", tc.reason, tc.broken, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if d := cmp.Diff(tc.covered, r.Covered); d != "" || r.First != tc.first || r.Last != tc.first+int64(len(tc.lines))-1 {
				t.Errorf("%s: got lines %d to %d, diff %s", tc.reason, r.First, r.Last, d)
			}
		})
	}
}

func TestExportIsVerifiedOffline(t *testing.T) {
	lines := chain(t, 5)
	var file bytes.Buffer
	if n, err := Export(&file, seq(lines)); err != nil || n != 5 {
		t.Fatalf("Export: got %d, %v", n, err)
	}
	if n, head, err := Verify(ReadExport(bytes.NewReader(file.Bytes()))); err != nil || n != 5 || head != lines[4].Hash {
		t.Errorf("Verify of a complete export: got %d %s %v", n, head, err)
	}
	rows := strings.SplitAfter(file.String(), "\n")
	for name, tc := range map[string]struct {
		reason, text string
		line         int64
	}{
		"edited":   {"an edited text", strings.Replace(file.String(), "bob", "eve", 3), 1},
		"removed":  {"a removed line", rows[0] + rows[2], 2},
		"cut off":  {"a file that ends in a line", file.String()[:file.Len()-9], 5},
		"no lines": {"something else", "hello\n", 1},
		"two":      {"two documents in a line", strings.TrimSuffix(rows[0], "\n") + rows[1], 1},
		"foreign":  {"fields that no export has", `{"seq":1,"hash":"x","name":"y"}` + "\n", 1},
		"long":     {"a line without an end", rows[0] + strings.Repeat("x", MaxLine+1) + "\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Verify(ReadExport(strings.NewReader(tc.text)))
			var chain *BrokenError
			var form *FormatError
			named := errors.As(err, &chain) && chain.Seq == tc.line || errors.As(err, &form) && form.Line == tc.line
			if !named {
				t.Errorf("%s: want line %d, got %v", tc.reason, tc.line, err)
			}
		})
	}
}

func TestReadErrorsAreNotTheEndOfTheFile(t *testing.T) {
	for _, cause := range []error{errors.New("disk"), io.ErrUnexpectedEOF, fmt.Errorf("no answer: %w", io.EOF)} {
		if _, _, err := Verify(ReadExport(iotest.ErrReader(cause))); !errors.Is(err, cause) {
			t.Errorf("want %v, got %v", cause, err)
		}
	}
}

// FuzzReadExport verifies that a chain which Verify accepts ends with the number and hash that Verify returns.
func FuzzReadExport(f *testing.F) {
	l, err := Append(0, Genesis, entry())
	if err != nil {
		f.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := Export(&file, seq([]Line{l})); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"seq":9223372036854775807,"hash":"","text":"{\"seq\":-1}"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		count, head, err := Verify(ReadExport(bytes.NewReader(data)))
		if err != nil || count == 0 {
			return
		}
		var last Line
		for l, err := range ReadExport(bytes.NewReader(data)) {
			if err != nil {
				t.Fatal(err)
			}
			last = l
		}
		if last.Seq != count || last.Hash != head || hash(last.Text) != head {
			t.Errorf("Verify returned %d lines and head %s, but the last line is %+v", count, head, last)
		}
	})
}
