package gormstore_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
)

// contents are the lines about objects, as "GENERATION FORM BEFORE -> AFTER".
func (s *scene) contents() (out []string, entries []ledger.Entry) {
	s.t.Helper()
	lines, _, err := ledgerstore.NewReader(s.db).List(s.t.Context(), ledger.Filter{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range slices.Backward(lines) {
		e, err := l.Entry()
		if err != nil {
			s.t.Fatal(err)
		}
		r, ok := externalchanges.ReadEntry(e)
		if !ok {
			s.t.Fatalf("%+v is not about an object", e)
		}
		out = append(out, e.Details["generation"]+" "+string(r.Form)+" "+string(r.Before)+" -> "+string(r.After))
		entries = append(entries, e)
	}
	return out, entries
}

func (s *scene) wantContents(want ...string) []ledger.Entry {
	s.t.Helper()
	got, entries := s.contents()
	if d := cmp.Diff(want, got); d != "" {
		s.t.Fatal(d)
	}
	return entries
}

// since returns how long before a line its change was made at most; zero if the line has an exact time.
func since(t *testing.T, e ledger.Entry) time.Duration {
	t.Helper()
	r, ok := externalchanges.ReadEntry(e)
	if !ok || r.Since.IsZero() {
		t.Fatalf("nothing is known about the time of %+v", e)
	}
	return r.At.Sub(r.Since)
}

// TestContentsAreRecorded checks that lines have what was changed, also after the portal did not run, with the interval of the change.
func TestContentsAreRecorded(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn)
		s.write("u1", 7, "")
		s.portals(2)

		s.after(time.Hour)
		s.write("u1", 8, "")
		s.after(6 * time.Second)
		want := []string{`8 statements [{"sid":"g7"}] -> [{"sid":"g8"}]`}
		entries := s.wantContents(want...)
		if d := since(t, entries[0]); d < 2*time.Minute || d > 3*time.Minute {
			t.Errorf("the change was made in the last %s", d)
		}

		// Two quick changes are two lines, because the watch reported both.
		s.write("u1", 9, "")
		s.write("u1", 10, "alice")
		s.after(6 * time.Second)
		want = append(want, `9 statements [{"sid":"g8"}] -> [{"sid":"g9"}]`, `10 statements [{"sid":"g9"}] -> [{"sid":"g10"}]`)
		s.wantContents(want...)

		// While no portal runs: the last line contains all changes.
		s.after(10 * time.Minute)
		s.watch = nil
		s.after(3 * time.Hour)
		s.write("u1", 11, "")
		s.write("u1", 12, "alice")
		s.write("u1", 13, "")
		s.portals(2)
		s.after(6 * time.Second)
		want = append(want, "11 later  -> ", "12 later  -> ", `13 statements [{"sid":"g10"}] -> [{"sid":"g13"}]`)
		entries = s.wantContents(want...)
		last := entries[len(entries)-1]
		if d := since(t, last); last.Details["covers"] != "11-13" || d < 3*time.Hour || d > 3*time.Hour+15*time.Minute {
			t.Errorf("the line contains %s of the last %s", last.Details["covers"], d)
		}

		s.remove("bob")
		s.after(6 * time.Second)
		want = append(want, `13 statements [{"sid":"always"},{"sid":"g13"}] -> `)
		s.wantContents(want...)
	})
}

// TestChangesWhileTheHostDoesNotAnswer checks that a change that the watch reports late is not said to be recent.
func TestChangesWhileTheHostDoesNotAnswer(t *testing.T) {
	s := newScene(t, databasetest.SQLite(t))
	s.write("u1", 1, "")
	s.portals(1)
	s.after(time.Hour)
	s.away = s.now
	for range 60 { // The watch is broken.
		s.after(time.Minute)
	}
	s.away = time.Time{}
	s.after(time.Second)
	s.write("u1", 2, "") // reported now
	s.after(6 * time.Second)
	_, entries := s.contents()
	if d := since(t, entries[0]); d < time.Hour {
		t.Errorf("the change was made in the last %s", d)
	}
}

// TestContentOfEarlierVersions checks that content that was not recorded, because an earlier version of the portal recorded the object, is
// unknown, and is known again from then on.
func TestContentOfEarlierVersions(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn)
		s.write("u1", 1, "")
		s.portals(1)
		s.watch = nil
		s.sql("UPDATE ledger_objects SET generation = 2 WHERE kind <> ''") // by an earlier version
		s.sql("DELETE FROM ledger_watched")
		s.write("u1", 3, "")
		s.portals(1)
		s.after(6 * time.Second)
		s.write("u1", 4, "")
		s.after(6 * time.Second)
		entries := s.wantContents("3 unknown  -> ", `4 statements [{"sid":"g3"}] -> [{"sid":"g4"}]`)
		if _, has := entries[0].Details["since"]; has {
			t.Errorf("it is not known when the first change was made: %v", entries[0].Details)
		}
		s.watch = nil
		s.sql("DELETE FROM ledger_contents")
		s.portals(1) // records the present content again
		s.write("u1", 5, "")
		s.after(6 * time.Second)
		s.wantContents("3 unknown  -> ", `4 statements [{"sid":"g3"}] -> [{"sid":"g4"}]`, `5 statements [{"sid":"g4"}] -> [{"sid":"g5"}]`)
	})
}

func (s *scene) sql(statement string) {
	s.t.Helper()
	err := s.db.Write(s.t.Context(), func(tx *gorm.DB) error {
		_, err := database.Exec(tx, statement)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestWatchedIsNotLost checks that changes that a portal has noticed and not recorded, when it stops, are not said to be made after it.
func TestWatchedIsNotLost(t *testing.T) {
	s := newScene(t, databasetest.SQLite(t))
	s.write("u1", 1, "")
	s.portals(1)
	s.after(time.Hour)
	s.watch = nil
	s.after(24 * time.Hour)
	s.write("u1", 2, "")
	s.portals(1) // notices it, and stops before it is recorded
	s.watch = nil
	s.after(24 * time.Hour)
	s.portals(1)
	s.after(6 * time.Second)
	_, entries := s.contents()
	if d := since(t, entries[0]); len(entries) != 1 || d < 48*time.Hour {
		t.Errorf("%d lines; the change was made in the last %s", len(entries), d)
	}
}

// TestRecordedContentIsCanonical checks that the same content has the same text, whatever the order and the form in which it is written.
func TestRecordedContentIsCanonical(t *testing.T) {
	for _, text := range []string{`{"b": {"d": 1, "c": "<&>"}, "a": [10000000000000001]}`, `{"a":[10000000000000001],"b":{"c":"<&>","d":1}}`} {
		got, err := externalchanges.Canonical(json.RawMessage(text))
		if want := `{"a":[10000000000000001],"b":{"c":"<&>","d":1}}`; err != nil || string(got) != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
}
