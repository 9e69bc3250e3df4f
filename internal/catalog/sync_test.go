package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/catalog"
)

// script is a source whose content a test sets.
type script struct {
	r   catalog.SourceContent
	err error
}

func (*script) Name() string                                          { return "script" }
func (s *script) Read(context.Context) (catalog.SourceContent, error) { return s.r, s.err }

func TestSyncWithManyRemovalsNeedsConfirmation(t *testing.T) {
	src := &script{}
	w := newWorld(t, src)
	src.err = errors.New("away")
	if err := w.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("without any catalog nobody can do anything: %v", err)
	}
	all := company()
	for i := range 100 {
		all = append(all, person(fmt.Sprintf("p%02d", i)))
	}
	src.r, src.err = reading(all...), nil
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	src.r = reading(without(all, "p00", "p01", "zoe")...)
	st, err := w.Sync(t.Context(), "script")
	if err != nil || st.PendingPreview != "" {
		t.Fatal(st, err)
	}
	if _, ok := w.Catalog().Person("p00"); ok || len(w.GoneEntities()) != 3 {
		t.Error("who left decides nothing from then on")
	}

	src.r = reading(append(slices.Clone(all[:20]), person("new"))...)
	st, err = w.Sync(t.Context(), "script")
	if err != nil || st.PendingRemovals != 90 || st.PendingPreview == "" {
		t.Fatalf("a source that lost most of it waits for a person: %+v, %v", st, err)
	}
	if _, ok := w.Catalog().Person("p50"); !ok {
		t.Error("until then everybody stays")
	}
	if _, ok := w.Catalog().Person("new"); !ok {
		t.Error("and who is new is taken")
	}
	if again, err := w.Sync(t.Context(), "script"); err != nil || again.PendingPreview != st.PendingPreview {
		t.Errorf("the same reading waits under the same token: %+v, %v", again, err)
	}
	replica := w.replica(src)
	if there, err := replica.Sync(t.Context(), "script"); err != nil || there.PendingPreview != st.PendingPreview {
		t.Errorf("and in every replica: %+v, %v", there, err)
	}
	w.now = w.now.Add(catalog.PreviewLifetime - time.Minute)
	if again, err := w.Sync(t.Context(), "script"); err != nil || again.PendingPreview != st.PendingPreview {
		t.Errorf("before it ends it is made again: %+v, %v", again, err)
	}
	w.now = w.now.Add(2 * time.Minute)
	d, err := w.ShowPreview(t.Context(), dora, st.PendingPreview)
	if err != nil || len(d.Gone) != 90 {
		t.Errorf("any security administrator may look: %d, %v", len(d.Gone), err)
	}
	if _, err := w.Apply(t.Context(), dora, st.PendingPreview, catalog.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if st, err = w.Sync(t.Context(), "script"); err != nil || st.PendingPreview != "" || st.PendingRemovals != 0 {
		t.Errorf("then nothing waits: %+v, %v", st, err)
	}
	if _, ok := w.Catalog().Person("p50"); ok {
		t.Error("and they are gone")
	}

	src.err = errors.New("away")
	if _, err := w.Sync(t.Context(), "script"); err == nil {
		t.Error("an error is said")
	}
	sts, err := w.Statuses(t.Context())
	if err != nil || len(sts) != 1 || sts[0].Error != "away" || sts[0].SucceededAt.IsZero() {
		t.Errorf("and kept for who looks: %+v, %v", sts, err)
	}
	if _, ok := w.Catalog().Person("alice"); !ok || w.Start(t.Context()) != nil {
		t.Error("what was known stays, also for who starts now")
	}
}

func TestSyncWithNothingNewWritesNothing(t *testing.T) {
	src := &script{r: reading(company()...)}
	w := newWorld(t, src)
	for range 3 {
		if _, err := w.Sync(t.Context(), "script"); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(time.Hour)
	}
	if w.Revision() != 1 || len(w.lines) != 2 {
		t.Errorf("revision %d, %+v", w.Revision(), w.lines)
	}
}

// slow is a source that counts its readings.
type slow struct {
	script
	reads chan struct{}
}

func (s *slow) Every() time.Duration { return time.Hour }
func (s *slow) Read(ctx context.Context) (catalog.SourceContent, error) {
	s.reads <- struct{}{}
	return s.script.Read(ctx)
}

func TestRunRespectsTheIntervalsOfSources(t *testing.T) {
	often, rarely := &ticking{reads: make(chan struct{})}, &slow{reads: make(chan struct{}, 100)}
	w := newWorld(t, often, rarely)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx, time.Millisecond) }()
	for range 3 {
		<-often.reads
	}
	cancel()
	go func() { // a reading in progress
		for range often.reads {
		}
	}()
	<-done
	close(often.reads)
	if n := len(rarely.reads); n != 0 {
		t.Errorf("it was read %d times within its hour", n)
	}
}

// ticking is a source that is read each time.
type ticking struct{ reads chan struct{} }

func (*ticking) Name() string { return "ticking" }
func (s *ticking) Read(context.Context) (catalog.SourceContent, error) {
	s.reads <- struct{}{}
	return reading(company()...), nil
}

func TestSyncOfAFolder(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file("people.csv", "id\nann\nbob\n")
	w := newWorld(t, catalog.Folder{ID: "files", Dir: dir})
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	sync := func() catalog.Status {
		t.Helper()
		w.now = w.now.Add(2 * time.Minute)
		st, err := w.Sync(t.Context(), "files")
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	if st := sync(); w.Revision() != 1 || !st.SucceededAt.Equal(w.now) {
		t.Errorf("nothing is new, and that is said: %+v", st)
	}
	file("more.yaml", "kind: User\nmetadata: {name: new}\n---\nkind: User\nmetadata: {name: 'a b'}\n")
	if st := sync(); st.Entities != 3 || st.ProblemsTotal != 1 || w.Revision() != 2 {
		t.Errorf("a new file is read: %+v", st)
	}
	file("more.yaml", "kind: User\nmetadata: {name: newer}\n---\nkind: [\n")
	if sync(); len(w.GoneEntities()) != 0 || len(w.Catalog().People()) != 4 {
		t.Errorf("a broken file takes nobody away: %+v", w.GoneEntities())
	}
	file("more.yaml", "kind: User\nmetadata: {name: newer}\n")
	if sync(); len(w.GoneEntities()) != 1 || w.GoneEntities()[0].ID != "new" {
		t.Errorf("a corrected source does: %+v", w.GoneEntities())
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Sync(t.Context(), "files"); err == nil || len(w.Catalog().People()) != 3 {
		t.Errorf("a folder that is away changes nothing: %v", err)
	}
}
