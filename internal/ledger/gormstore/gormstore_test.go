package gormstore

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	_     = ledger.Reader(&Reader{})
)

func write(t *testing.T, db *database.DB, entries ...ledger.Entry) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *gorm.DB) error { return Append(tx, entries...) }); err != nil {
		t.Fatal(err)
	}
}

func seqs(lines []ledger.Line) (out []int64) {
	for _, l := range lines {
		out = append(out, l.Seq)
	}
	return out
}

func TestList(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		r := NewReader(db)
		if _, ok, err := r.Last(t.Context()); ok || err != nil {
			t.Errorf("Last of an empty ledger: got %v %v", ok, err)
		}
		for i, e := range []ledger.Entry{
			{Actor: "ann", Action: "ticket.submitted", Object: "T-1"},
			{Actor: "bob", Action: "ticket.approved", Object: "T-1", Details: map[string]string{"comment": `it's "fine" ' OR 1=1 --`}},
			{Actor: "", Action: "ticket.written", Object: "T-1"},
			{Actor: "bob", Action: "ticket.approved", Object: "T-2"},
			{Actor: "王磊", Action: "ticket.submitted", Object: "T-2"},
		} {
			e.At = start.Add(time.Duration(i) * 500 * time.Millisecond)
			write(t, db, e)
		}
		for name, tc := range map[string]struct {
			reason string
			f      ledger.Filter
			want   []int64
			next   int64
		}{
			"all":            {"the newest first", ledger.Filter{}, []int64{5, 4, 3, 2, 1}, 0},
			"a page":         {"with a cursor", ledger.Filter{Limit: 2}, []int64{5, 4}, 4},
			"the next page":  {"behind the cursor", ledger.Filter{Limit: 3, After: 4}, []int64{3, 2, 1}, 0},
			"oldest first":   {"ascending", ledger.Filter{Limit: 3, Oldest: true}, []int64{1, 2, 3}, 3},
			"then the next":  {"behind the cursor in that order", ledger.Filter{Limit: 3, Oldest: true, After: 3}, []int64{4, 5}, 0},
			"actor":          {"one person's", ledger.Filter{Actor: "bob"}, []int64{4, 2}, 0},
			"another script": {"in any script", ledger.Filter{Actor: "王磊"}, []int64{5}, 0},
			"all of it":      {"together", ledger.Filter{Actor: "bob", Action: "ticket.approved", Object: "T-1"}, []int64{2}, 0},
			"injection":      {"a value is never SQL", ledger.Filter{Actor: "' OR 1=1 --"}, nil, 0},
			"from":           {"from that second on", ledger.Filter{From: start.Add(time.Second)}, []int64{5, 4, 3}, 0},
			"to":             {"before that second", ledger.Filter{To: start.Add(time.Second)}, []int64{2, 1}, 0},
			"to, in between": {"a second that has begun is in it", ledger.Filter{To: start.Add(1100 * time.Millisecond)}, []int64{4, 3, 2, 1}, 0},
			"another zone":   {"instants are instants", ledger.Filter{From: start.Add(2 * time.Second).In(time.FixedZone("", 8*3600))}, []int64{5}, 0},
		} {
			lines, next, err := r.List(t.Context(), tc.f)
			if d := cmp.Diff(tc.want, seqs(lines)); err != nil || d != "" || next != tc.next {
				t.Errorf("%s: %s: got next %d, error %v, diff %s", name, tc.reason, next, err, d)
			}
		}
		if l, ok, err := r.Line(t.Context(), 2); err != nil || !ok || l.Seq != 2 {
			t.Errorf("Line: got %+v %v", l, err)
		} else if e, err := l.Entry(); err != nil || e.Details["comment"] != `it's "fine" ' OR 1=1 --` {
			t.Errorf("Entry: got %+v %v", e, err)
		}
		if _, ok, err := r.Line(t.Context(), 6); ok || err != nil {
			t.Errorf("Line with an unknown number: got %v %v", ok, err)
		}
		if rep, err := ledger.Check(r.Lines(t.Context(), 4), 4, nil); err != nil || rep.Last != 5 {
			t.Errorf("Check from a later line: got %+v %v", rep, err)
		}
		for _, err := range r.Lines(t.Context(), 1) {
			if err != nil {
				t.Error(err)
			}
			break // stopping early must not leave the rows open
		}
	})
}

func TestTamperingIsReportedAtItsLine(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		r := NewReader(db)
		for range 6 {
			write(t, db, ledger.Entry{At: start, Actor: "bob", Action: "ticket.approved"})
		}
		for _, tc := range []struct {
			reason, sql string
			line        int64
		}{
			{"the tail was cut; only an anchor knows", "DELETE FROM ledger WHERE seq = 6", 0},
			{"edited", "UPDATE ledger SET text = replace(text, 'bob', 'eve') WHERE seq = 4", 4},
			{"removed", "DELETE FROM ledger WHERE seq = 2", 2},
		} {
			if err := db.Write(t.Context(), func(tx *gorm.DB) error { return tx.Exec(tc.sql).Error }); err != nil {
				t.Fatal(err)
			}
			_, _, err := ledger.Verify(r.Lines(t.Context(), 1))
			var broken *ledger.BrokenError
			if tc.line == 0 && err != nil || tc.line != 0 && (!errors.As(err, &broken) || broken.Seq != tc.line) {
				t.Errorf("%s: want line %d, got %v", tc.reason, tc.line, err)
			}
		}
		if lines, _, err := r.List(t.Context(), ledger.Filter{Actor: "eve"}); err != nil || len(lines) != 1 {
			t.Errorf("List must filter by the content of the text: got %v %v", lines, err)
		}
	})
}

func TestConcurrentWritersWriteOneChain(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		const replicas, each = 4, 15
		var all sync.WaitGroup
		for i := range replicas {
			db := databasetest.Open(t, dsn)
			all.Go(func() {
				for k := range each {
					err := db.Write(t.Context(), func(tx *gorm.DB) error {
						return Append(tx, ledger.Entry{At: start, Actor: fmt.Sprint(i)}, ledger.Entry{At: start, Actor: fmt.Sprint(k)})
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n, _, err := ledger.Verify(NewReader(databasetest.Open(t, dsn)).Lines(t.Context(), 1)); err != nil || n != replicas*each*2 {
			t.Errorf("got %d lines, %v", n, err)
		}
	})
}
