package accesshistory

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
)

// store has the tickets and the lines of a world.
type store struct {
	w     *world
	reads int
}

func (s *store) List(_ context.Context, f approval.Filter) ([]*approval.Ticket, error) {
	var out []*approval.Ticket
	for _, t := range slices.Backward(s.w.tickets) {
		if f.Matches(t) && (f.Limit == 0 || len(out) < f.Limit) {
			out = append(out, t)
		}
	}
	return out, nil
}

// lines implements ledger.Reader for the queries of Reader.
type lines struct{ *store }

func (s lines) List(_ context.Context, f ledger.Filter) (out []ledger.Line, next int64, err error) {
	s.reads++
	entries := slices.Clone(s.w.lines)
	seqs := make([]int64, len(entries))
	for i := range seqs {
		seqs[i] = int64(i + 1)
	}
	if !f.Oldest {
		slices.Reverse(entries)
		slices.Reverse(seqs)
	}
	for i, e := range entries {
		switch {
		case f.Action != "" && e.Action != f.Action, f.Object != "" && e.Object != f.Object, !f.From.IsZero() && e.At.Before(f.From),
			!f.To.IsZero() && !e.At.Before(f.To), f.After > 0 && seqs[i] >= f.After:
			continue
		}
		if len(out) == f.Limit {
			return out, out[len(out)-1].Seq, nil
		}
		l, err := ledger.Append(seqs[i]-1, ledger.Genesis, e)
		if err != nil {
			return nil, 0, err
		}
		out = append(out, l)
	}
	return out, 0, nil
}

func (lines) Lines(context.Context, int64) iter.Seq2[ledger.Line, error]      { return nil }
func (lines) Line(context.Context, int64) (l ledger.Line, ok bool, err error) { return l, false, nil }
func (lines) Last(context.Context) (l ledger.Line, ok bool, err error)        { return l, false, nil }

func (w *world) reader() *Reader {
	s := &store{w: w}
	return &Reader{Tickets: s, Ledger: lines{s}}
}

var entity = catalog.Entity{ID: "bobs-cluster", Name: bobs}

func TestModes(t *testing.T) {
	w := newWorld(t)
	w.mode("Audit")
	w.mode("Enforce")
	w.audit(30 * time.Hour)
	w.audit(0)
	w.audit(2 * time.Hour)
	w.pass(10 * time.Hour)
	w.outside("updated", kindProtection, ours)
	w.outside("updated", kindProtection, "another")
	w.grant(1, 0)
	h, err := w.reader().Modes(t.Context(), entity, w.input, w.now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range h.Changes {
		got = append(got, string(c.Kind)+" "+string(c.From)+">"+string(c.To))
	}
	want := []string{"outside >", "audit-expired >", "audit >", "audit-ended >", "audit >", "ticket Audit>Enforce", "ticket >Audit"}
	if d := cmp.Diff(want, got); d != "" || h.Cut || !h.Begin.Equal(start) {
		t.Errorf("cut %v, begin %s, %s", h.Cut, h.Begin, d)
	}
}

// TestReadIsBounded checks that too many records are cut, and that the answer says so.
func TestReadIsBounded(t *testing.T) {
	w := newWorld(t)
	w.mode("Enforce")
	before := w.now
	for range mostLines + 100 {
		w.lines = append(w.lines, ledger.Entry{At: w.now, Actor: "unknown", Action: "object.updated", Object: "AccessControlPolicy/other"})
		w.pass(time.Second)
	}
	r := w.reader()
	records, err := r.Read(t.Context(), entity, w.input, w.records().Snapshot, before, w.now)
	if err != nil {
		t.Fatal(err)
	}
	if len(records.Lines) > mostLines+10 || !records.Unread.After(before) {
		t.Errorf("%d lines, unread until %s", len(records.Lines), records.Unread)
	}
	if a := records.WhoCould(before); !slices.Contains(gaps(a), GapUnread) {
		t.Errorf("no gap: %v", gaps(a))
	}
	if a := records.WhoCould(w.now); len(a.Gaps) > 0 {
		t.Errorf("the present has gaps: %v", gaps(a))
	}
}

// TestReadHasWhatAnswersNeed checks that the answers from what is read for an instant are those from all records.
func TestReadHasWhatAnswersNeed(t *testing.T) {
	w := newWorld(t)
	w.mode("Audit")
	first := w.grant(1, 0)
	w.kubectl("hand", bobs, "trnv1:rsc:trip-com:iam:sa:app/9")
	w.mode("Enforce")
	at := w.now
	w.hour()
	w.audit(3 * time.Hour)
	w.revoke(first)
	w.class()
	w.kubectl("hand", bobs)
	records, err := w.reader().Read(t.Context(), entity, w.input, w.records().Snapshot, at, w.now)
	if err != nil {
		t.Fatal(err)
	}
	want, got := w.records().WhoCould(at), records.WhoCould(at)
	if d := cmp.Diff(lineTexts(want), lineTexts(got)); d != "" || want.Mode != got.Mode {
		t.Errorf("mode %s, want %s; %s", got.Mode, want.Mode, d)
	}
	if d := cmp.Diff(gaps(want), gaps(got)); d != "" {
		t.Error(d)
	}
}
