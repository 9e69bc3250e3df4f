package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/gormstore"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
)

var (
	dave  = catalog.Actor{ID: "dave", Security: true}
	dora  = catalog.Actor{ID: "dora", Security: true}
	alice = catalog.Actor{ID: "alice"}
)

// world is a service with what it wrote to the ledger.
type world struct {
	*catalog.Service
	t     *testing.T
	now   time.Time
	lines []ledger.Entry
	store catalog.Store
}

func newWorld(t *testing.T, sources ...catalog.Source) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	w.store = recorder{gormstore.New(databasetest.Open(t, databasetest.SQLite(t))), w}
	w.Service = w.replica(sources...)
	return w
}

// recorder keeps what was written to the ledger.
type recorder struct {
	catalog.Store
	w *world
}

func (r recorder) Write(ctx context.Context, at int64, x catalog.Write) (int64, error) {
	rev, err := r.Store.Write(ctx, at, x)
	if err == nil {
		r.w.lines = append(r.w.lines, x.Ledger...)
	}
	return rev, err
}

func (w *world) replica(sources ...catalog.Source) *catalog.Service {
	w.t.Helper()
	s, err := catalog.NewService(w.t.Context(), catalog.Config{Store: w.store, Sources: sources, Now: func() time.Time { return w.now },
		Log: slog.New(slog.DiscardHandler), Grants: func(name string) []catalog.Grant {
			if name != cacheName {
				return nil
			}
			return []catalog.Grant{{Subject: "s", Resource: name, Policy: "p", SID: "t-1-1"}}
		}})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

const cacheName = "trnv1:rsc:trip-com:redis:clusters:cache"

func person(id string, groups ...string) catalog.Record {
	return catalog.Record{Kind: catalog.KindPerson, ID: id, Groups: groups}
}

func group(id, lead string) catalog.Record {
	return catalog.Record{Kind: catalog.KindGroup, ID: id, Lead: lead}
}

func owned(kind catalog.Kind, id, name string, owners ...catalog.Owner) catalog.Record {
	return catalog.Record{Kind: kind, ID: id, Name: name, Owners: owners}
}

func user(id string) catalog.Owner { return catalog.Owner{Kind: catalog.OwnerPerson, ID: id} }

func company() []catalog.Record {
	return []catalog.Record{group("security", ""), group("storage", "frank"), person("dave", "security"), person("dora", "security"), person("frank", "storage"),
		person("bob", "storage"), person("alice"), person("zoe"),
		owned(catalog.KindResource, "cache", cacheName, user("bob")),
		owned(catalog.KindApplication, "app", "trnv1:rsc:trip-com:iam:sa:app/1", user("alice"))}
}

func reading(records ...catalog.Record) catalog.Reading {
	var r catalog.Reading
	for _, rec := range records {
		r.Add(rec)
	}
	return r
}

func without(records []catalog.Record, ids ...string) []catalog.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r catalog.Record) bool { return slices.Contains(ids, r.ID) })
}

func (w *world) sync(source string, records ...catalog.Record) catalog.Diff {
	w.t.Helper()
	_, token, err := w.Preview(w.t.Context(), dave, source, reading(records...))
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := w.Apply(w.t.Context(), dave, token, catalog.ApplyOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func refs(in []catalog.Change) string {
	var out []string
	for _, c := range in {
		out = append(out, c.Ref.String())
	}
	return strings.Join(out, " ")
}

func (w *world) actions() (out []string) {
	for _, l := range w.lines {
		out = append(out, l.Action+" "+l.Object)
	}
	w.lines = nil
	return out
}

func TestPreviewChangesNothing(t *testing.T) {
	w := newWorld(t)
	d, token, err := w.Preview(t.Context(), dave, "hr", reading(company()...))
	if err != nil || len(d.Created) != 10 || !w.Catalog().Empty() || len(w.lines) != 0 {
		t.Fatalf("a preview shows and changes nothing: %+v, %v", d, err)
	}
	if _, err := w.Apply(t.Context(), dora, token, catalog.ApplyOptions{}); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("a preview is for the person to whom it was shown, got %v", err)
	}
	if _, err := w.Apply(t.Context(), catalog.Actor{ID: "dave"}, token, catalog.ApplyOptions{}); !errors.Is(err, catalog.ErrForbidden) {
		t.Errorf("who is no longer a security administrator applies nothing, got %v", err)
	}
	if _, err := w.Apply(t.Context(), dave, token, catalog.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if p, ok := w.Catalog().Person("bob"); !ok || p.Groups[0] != "storage" {
		t.Errorf("it is applied: %+v", p)
	}
	if d := cmp.Diff([]string{"catalog.synced hr", "catalog.created hr"}, w.actions()); d != "" {
		t.Errorf("the ledger has it: -want +got\n%s", d)
	}
	if _, err := w.Apply(t.Context(), dave, token, catalog.ApplyOptions{}); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("a preview is applied once, got %v", err)
	}
	if _, _, err := w.Preview(t.Context(), alice, "hr", catalog.Reading{}); !errors.Is(err, catalog.ErrForbidden) {
		t.Errorf("others are refused, got %v", err)
	}
}

func TestApplyRefusesWhatChangedSince(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	_, token, err := w.Preview(t.Context(), dave, "hr", reading(without(company(), "zoe")...))
	if err != nil {
		t.Fatal(err)
	}
	other := w.replica() // another portal on the same database
	if _, err := other.Put(t.Context(), dave, person("new"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Apply(t.Context(), dave, token, catalog.ApplyOptions{}); !errors.Is(err, catalog.ErrChanged) {
		t.Errorf("what was shown is not what would happen, got %v", err)
	}
	if _, ok := w.Catalog().Person("new"); !ok {
		t.Error("the other replica's change is seen")
	}
	w.now = w.now.Add(2 * catalog.PreviewFor)
	if _, err := w.Apply(t.Context(), dave, token, catalog.ApplyOptions{}); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("a preview ends, got %v", err)
	}
}

func TestGoneIsNeverSilent(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	w.actions()
	d := w.sync("hr", without(company(), "bob", "frank", "cache")...)
	want := []catalog.Change{
		{Ref: catalog.Ref{Kind: catalog.KindResource, ID: "cache"}, Title: "cache", Authority: true,
			Leaves: &catalog.Leaves{Grants: []catalog.Grant{{Subject: "s", Resource: cacheName, Policy: "p", SID: "t-1-1"}}}},
		{Ref: catalog.Ref{Kind: catalog.KindPerson, ID: "bob"}, Title: "bob", Authority: true, Leaves: &catalog.Leaves{}},
		{Ref: catalog.Ref{Kind: catalog.KindPerson, ID: "frank"}, Title: "frank", Authority: true,
			Leaves: &catalog.Leaves{Leads: []catalog.Ref{{Kind: catalog.KindGroup, ID: "storage"}}}},
	}
	if diff := cmp.Diff(want, d.Gone); diff != "" {
		t.Errorf("what goes, and what it leaves behind: -want +got\n%s", diff)
	}
	if d := cmp.Diff([]string{"catalog.synced hr", "catalog.gone hr"}, w.actions()); d != "" {
		t.Errorf("the ledger has it: -want +got\n%s", d)
	}
	c := w.Catalog()
	if _, ok := c.Person("bob"); ok || len(c.Members("storage")) != 0 {
		t.Error("who is gone decides nothing")
	}
	if _, ok := c.ByName(cacheName); ok {
		t.Error("what is gone can be asked for nothing")
	}
	if got := w.Departed(); len(got) != 3 || got[0].ID != "cache" || len(got[0].Leaves.Grants) != 1 {
		t.Errorf("it is still there for who asks: %+v", got)
	}
	if err := w.Remove(t.Context(), dave, []catalog.Ref{{Kind: catalog.KindPerson, ID: "alice"}}, w.Revision()); !errors.Is(err, catalog.ErrConflict) {
		t.Errorf("only what is gone is removed, got %v", err)
	}
	gone := []catalog.Ref{{Kind: catalog.KindPerson, ID: "bob"}}
	if err := w.Remove(t.Context(), dave, gone, w.Revision()-1); !errors.Is(err, catalog.ErrChanged) {
		t.Errorf("who confirms has seen the catalog as it is, got %v", err)
	}
	if err := w.Remove(t.Context(), dave, gone, w.Revision()); err != nil {
		t.Fatal(err)
	}
	d = w.sync("hr", without(company(), "cache")...)
	if refs(d.Created) != "person/bob" || refs(d.Returned) != "person/frank" {
		t.Errorf("frank returns and bob is new: %+v", d)
	}
	if got := w.Departed(); len(got) != 1 || got[0].ID != "cache" {
		t.Errorf("the resource is still gone: %+v", got)
	}
}

func TestGoneMayBeRemovedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	_, token, err := w.Preview(t.Context(), dave, "hr", reading(without(company(), "bob")...))
	if err != nil {
		t.Fatal(err)
	}
	w.lines = nil
	d, err := w.Apply(t.Context(), dave, token, catalog.ApplyOptions{RemoveGone: true, Reason: "he left in March"})
	if err != nil || refs(d.Gone) != "person/bob" || len(w.Departed()) != 0 || w.lines[0].Details["reason"] != "he left in March" {
		t.Errorf("%+v, %v, %+v", d, err, w.lines)
	}
	if d := cmp.Diff([]string{"catalog.synced hr", "catalog.gone hr", "catalog.removed catalog"}, w.actions()); d != "" {
		t.Errorf("the ledger has it: -want +got\n%s", d)
	}
	if got, _, err := w.store.Load(t.Context()); err != nil || len(got) != len(company())-1 {
		t.Errorf("%d entities are left, %v", len(got), err)
	}
}

func TestAnOwnerWhoLeftIsReported(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	d := w.sync("hr", without(company(), "bob")...)
	want := []catalog.Ref{{Kind: catalog.KindResource, ID: "cache"}}
	if diff := cmp.Diff(want, d.Orphans); diff != "" {
		t.Errorf("nobody decides for the resource: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(&catalog.Leaves{Owns: want}, d.Gone[0].Leaves); diff != "" {
		t.Errorf("bob leaves it behind: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(want, w.Orphans()); diff != "" {
		t.Errorf("and it stays reported: -want +got\n%s", diff)
	}
	if e, _ := w.Catalog().Resource("cache"); !slices.Equal(e.Owners, []catalog.Owner{user("bob")}) {
		t.Errorf("the owner is shown, not dropped: %v", e.Owners)
	}
}

func TestOwnershipIsInTheLedger(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	w.lines = nil
	changed := without(company(), "cache")
	changed = append(changed, owned(catalog.KindResource, "cache", cacheName, user("frank")))
	changed[slices.IndexFunc(changed, func(r catalog.Record) bool { return r.ID == "zoe" })].Title = "Zoe"
	d := w.sync("hr", changed...)
	if refs(d.Updated) != "resource/cache person/zoe" || !d.Updated[0].Authority || d.Updated[1].Authority {
		t.Errorf("the owner decides, a title does not: %+v", d.Updated)
	}
	if len(w.lines) != 2 {
		t.Fatalf("one line for the sync and one for the owner: %+v", w.lines)
	}
	want := map[string]string{"source": "hr", "before": "name: " + cacheName + "; sensitivity: low; owners: user:bob", "after": "name: " + cacheName + "; sensitivity: low; owners: user:frank"}
	if diff := cmp.Diff(want, w.lines[1].Details); diff != "" || w.lines[1].Actor != "dave" || w.lines[1].Object != "resource/cache" {
		t.Errorf("%+v: -want +got\n%s", w.lines[1], diff)
	}
}

// TestEnvironmentIsInTheLedger: approval policies look at it, so who moves an entity to another environment chooses who
// is asked.
func TestEnvironmentIsInTheLedger(t *testing.T) {
	w := newWorld(t)
	moved := company()
	i := slices.IndexFunc(moved, func(r catalog.Record) bool { return r.ID == "cache" })
	moved[i].Environment = "prod"
	w.sync("hr", moved...)
	w.lines = nil
	moved[i].Environment = "dev"
	w.sync("hr", moved...)
	if len(w.lines) != 2 || !strings.Contains(w.lines[1].Details["before"], "environment: prod") || !strings.Contains(w.lines[1].Details["after"], "environment: dev") {
		t.Errorf("before and after: %+v", w.lines)
	}
}

func TestNobodyGivesAuthorityToHimself(t *testing.T) {
	records := func(change func(map[string]*catalog.Record)) []catalog.Record {
		all := company()
		byID := map[string]*catalog.Record{}
		for i := range all {
			byID[all[i].ID] = &all[i]
		}
		change(byID)
		return all
	}
	for name, tc := range map[string]struct {
		reason  string
		change  func(map[string]*catalog.Record)
		refused string
	}{
		"owner":        {"he would decide over its grants", func(m map[string]*catalog.Record) { m["cache"].Owners = []catalog.Owner{user("dave")} }, "owner of resource/cache"},
		"member":       {"he would own what the group owns", func(m map[string]*catalog.Record) { m["storage"].Members = []string{"dave"} }, "member of group/storage"},
		"leader":       {"he would decide for alice", func(m map[string]*catalog.Record) { m["alice"].Leader = "dave" }, "leader of person/alice"},
		"lead":         {"he would decide for bob", func(m map[string]*catalog.Record) { m["storage"].Lead = "dave" }, "leader of person/bob"},
		"further up":   {"he would decide where frank may not", func(m map[string]*catalog.Record) { m["frank"].Leader = "dave" }, "leader of person/bob"},
		"for another":  {"that is what he is there for", func(m map[string]*catalog.Record) { m["cache"].Owners = []catalog.Owner{user("zoe")} }, ""},
		"less for him": {"he may give authority away", func(m map[string]*catalog.Record) { m["dave"].Groups = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sync("hr", company()...)
			_, token, err := w.Preview(t.Context(), dave, "hr", reading(records(tc.change)...))
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Apply(t.Context(), dave, token, catalog.ApplyOptions{})
			if tc.refused == "" {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if !errors.Is(err, catalog.ErrForbidden) || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.refused, err)
			}
			_, token, err = w.Preview(t.Context(), dora, "hr", reading(records(tc.change)...))
			if err == nil {
				_, err = w.Apply(t.Context(), dora, token, catalog.ApplyOptions{})
			}
			if err != nil {
				t.Errorf("another one may: %v", err)
			}
		})
	}
}

func TestSourcesDoNotDisturbEachOther(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	cmdb := catalog.Reading{}
	cmdb.Add(person("bob"))                                                                            // hr's
	cmdb.Add(owned(catalog.KindResource, "other", cacheName, user("bob")))                             // the name of hr's cache
	cmdb.Add(owned(catalog.KindResource, "db", "trnv1:rsc:trip-com:mysql:clusters:db", user("bob")))   // fine
	cmdb.Add(owned(catalog.KindResource, "db2", "trnv1:rsc:trip-com:mysql:clusters:db", user("bob")))  // twice
	cmdb.Add(owned(catalog.KindResource, "bad", "trnv1:rsc:trip-com:mysql:clusters:*", user("alice"))) // no exact name
	d, token, err := w.Preview(t.Context(), dave, "cmdb", cmdb)
	if err != nil {
		t.Fatal(err)
	}
	if refs(d.Created) != "resource/db" || len(d.Problems) != 4 || len(d.Gone) != 0 {
		t.Errorf("what fits is taken, the rest are problems: %+v", d)
	}
	if _, err := w.Apply(t.Context(), dave, token, catalog.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	w.sync("hr", without(company(), "cache")...)
	if d := w.sync("cmdb", owned(catalog.KindResource, "cache", cacheName, user("zoe")), owned(catalog.KindResource, "db", "trnv1:rsc:trip-com:mysql:clusters:db", user("bob"))); refs(d.Returned) != "resource/cache" || d.Unchanged != 1 {
		t.Errorf("what is gone in one source may come from another: %+v", d)
	}
	if x, _ := w.Entity(catalog.Ref{Kind: catalog.KindResource, ID: "cache"}); x.Source != "cmdb" {
		t.Errorf("it is the other's now: %+v", x)
	}
}

func TestWhatCannotBeTakenIsNotGone(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	bad := reading(without(company(), "cache", "zoe")...)
	bad.Add(owned(catalog.KindResource, "cache", "nonsense", user("bob")))
	d, _, err := w.Preview(t.Context(), dave, "hr", bad)
	if err != nil || refs(d.Gone) != "person/zoe" || d.Incomplete {
		t.Errorf("it keeps what was known of it: %+v, %v", d, err)
	}
	bad.Problems = append(bad.Problems, catalog.Problem{Where: "people.yaml, document 3", Message: "not YAML"})
	if d, _, err = w.Preview(t.Context(), dave, "hr", bad); err != nil || len(d.Gone) != 0 || !d.Incomplete {
		t.Errorf("when a part could not be read, nothing is gone: %+v, %v", d, err)
	}
	// The name that the bad one keeps is not free for another one of the same sync.
	bad.Problems = bad.Problems[:1]
	bad.Add(owned(catalog.KindResource, "thief", cacheName, user("bob")))
	if d, _, err = w.Preview(t.Context(), dave, "hr", bad); err != nil || len(d.Created) != 0 || len(d.Problems) != 2 {
		t.Errorf("the name is still taken: %+v, %v", d, err)
	}
}

func TestNamesMayBeSwapped(t *testing.T) {
	w := newWorld(t)
	a, b := "trnv1:rsc:trip-com:redis:clusters:a", "trnv1:rsc:trip-com:redis:clusters:b"
	w.sync("hr", owned(catalog.KindResource, "a", a, user("x")), owned(catalog.KindResource, "b", b, user("x")))
	if d := w.sync("hr", owned(catalog.KindResource, "a", b, user("x")), owned(catalog.KindResource, "b", a, user("x"))); len(d.Updated) != 2 || len(d.Problems) != 0 {
		t.Errorf("in one sync: %+v", d)
	}
}

// script is a source that says what a test wants.
type script struct {
	r   catalog.Reading
	err error
}

func (*script) Name() string                                    { return "script" }
func (s *script) Read(context.Context) (catalog.Reading, error) { return s.r, s.err }

func TestSyncLetsLittleGoByItself(t *testing.T) {
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
	if err != nil || st.Waiting != "" {
		t.Fatal(st, err)
	}
	if _, ok := w.Catalog().Person("p00"); ok || len(w.Departed()) != 3 {
		t.Error("who left decides nothing from then on")
	}

	src.r = reading(append(slices.Clone(all[:20]), person("new"))...)
	st, err = w.Sync(t.Context(), "script")
	if err != nil || st.Going != 90 || st.Waiting == "" {
		t.Fatalf("a source that lost most of it waits for a person: %+v, %v", st, err)
	}
	if _, ok := w.Catalog().Person("p50"); !ok {
		t.Error("until then everybody stays")
	}
	if _, ok := w.Catalog().Person("new"); !ok {
		t.Error("and who is new is taken")
	}
	if again, err := w.Sync(t.Context(), "script"); err != nil || again.Waiting != st.Waiting {
		t.Errorf("the same reading waits under the same token: %+v, %v", again, err)
	}
	replica := w.replica(src)
	if there, err := replica.Sync(t.Context(), "script"); err != nil || there.Waiting != st.Waiting {
		t.Errorf("and in every replica: %+v, %v", there, err)
	}
	w.now = w.now.Add(catalog.PreviewFor - time.Minute)
	if again, err := w.Sync(t.Context(), "script"); err != nil || again.Waiting != st.Waiting {
		t.Errorf("before it ends it is made again: %+v, %v", again, err)
	}
	w.now = w.now.Add(2 * time.Minute)
	d, err := w.Show(t.Context(), dora, st.Waiting)
	if err != nil || len(d.Gone) != 90 {
		t.Errorf("any security administrator may look: %d, %v", len(d.Gone), err)
	}
	if _, err := w.Apply(t.Context(), dora, st.Waiting, catalog.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if st, err = w.Sync(t.Context(), "script"); err != nil || st.Waiting != "" || st.Going != 0 {
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
	if err != nil || len(sts) != 1 || sts[0].Error != "away" || sts[0].Good.IsZero() {
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
func (s *slow) Read(ctx context.Context) (catalog.Reading, error) {
	s.reads <- struct{}{}
	return s.script.Read(ctx)
}

func TestRunLeavesPacedSourcesAlone(t *testing.T) {
	often, rarely := &ticking{reads: make(chan struct{})}, &slow{reads: make(chan struct{}, 100)}
	w := newWorld(t, often, rarely)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx, time.Millisecond) }()
	for range 3 {
		<-often.reads
	}
	cancel()
	go func() { // a reading that is under way
		for range often.reads {
		}
	}()
	<-done
	close(often.reads)
	if n := len(rarely.reads); n != 0 {
		t.Errorf("it was read %d times within its hour", n)
	}
}

// ticking is read each time.
type ticking struct{ reads chan struct{} }

func (*ticking) Name() string { return "ticking" }
func (s *ticking) Read(context.Context) (catalog.Reading, error) {
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
	if st := sync(); w.Revision() != 1 || !st.Good.Equal(w.now) {
		t.Errorf("nothing is new, and that is said: %+v", st)
	}
	file("more.yaml", "kind: User\nmetadata: {name: new}\n---\nkind: User\nmetadata: {name: 'a b'}\n")
	if st := sync(); st.Entities != 3 || st.ProblemsTotal != 1 || w.Revision() != 2 {
		t.Errorf("a new file is read: %+v", st)
	}
	file("more.yaml", "kind: User\nmetadata: {name: newer}\n---\nkind: [\n")
	if sync(); len(w.Departed()) != 0 || len(w.Catalog().People()) != 4 {
		t.Errorf("a broken file takes nobody away: %+v", w.Departed())
	}
	file("more.yaml", "kind: User\nmetadata: {name: newer}\n")
	if sync(); len(w.Departed()) != 1 || w.Departed()[0].ID != "new" {
		t.Errorf("a mended one does: %+v", w.Departed())
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Sync(t.Context(), "files"); err == nil || len(w.Catalog().People()) != 3 {
		t.Errorf("a folder that is away changes nothing: %v", err)
	}
}
