package catalog_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

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
	if _, _, err := w.Preview(t.Context(), alice, "hr", catalog.SourceContent{}); !errors.Is(err, catalog.ErrForbidden) {
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
	w.now = w.now.Add(2 * catalog.PreviewLifetime)
	if _, err := w.Apply(t.Context(), dave, token, catalog.ApplyOptions{}); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("a preview ends, got %v", err)
	}
}

func TestRemovalsAreReported(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	w.actions()
	d := w.sync("hr", without(company(), "bob", "frank", "cache")...)
	want := []catalog.Change{
		{Ref: catalog.Ref{Kind: catalog.KindResource, ID: "cache"}, Title: "cache", Authority: true,
			Dependents: &catalog.Dependents{Grants: []catalog.Grant{{Subject: "s", Resource: cacheName, Policy: "p", SID: "t-1-1"}}}},
		{Ref: catalog.Ref{Kind: catalog.KindPerson, ID: "bob"}, Title: "bob", Authority: true, Dependents: &catalog.Dependents{}},
		{Ref: catalog.Ref{Kind: catalog.KindPerson, ID: "frank"}, Title: "frank", Authority: true,
			Dependents: &catalog.Dependents{Leads: []catalog.Ref{{Kind: catalog.KindGroup, ID: "storage"}}}},
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
	if got := w.GoneEntities(); len(got) != 3 || got[0].ID != "cache" || len(got[0].Dependents.Grants) != 1 {
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
	if got := w.GoneEntities(); len(got) != 1 || got[0].ID != "cache" {
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
	d, err := w.Apply(t.Context(), dave, token, catalog.ApplyOptions{RemoveGone: true, Reason: "they left in March"})
	if err != nil || refs(d.Gone) != "person/bob" || len(w.GoneEntities()) != 0 || w.lines[0].Details["reason"] != "they left in March" {
		t.Errorf("%+v, %v, %+v", d, err, w.lines)
	}
	if d := cmp.Diff([]string{"catalog.synced hr", "catalog.gone hr", "catalog.removed catalog"}, w.actions()); d != "" {
		t.Errorf("the ledger has it: -want +got\n%s", d)
	}
	if got, _, err := w.store.Load(t.Context()); err != nil || len(got) != len(company())-1 {
		t.Errorf("%d entities are left, %v", len(got), err)
	}
}

func TestSourcesDoNotDisturbEachOther(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	cmdb := catalog.SourceContent{}
	cmdb.Add(person("bob"))                                                                            // belongs to hr
	cmdb.Add(owned(catalog.KindResource, "other", cacheName, user("bob")))                             // has the name of hr's cache
	cmdb.Add(owned(catalog.KindResource, "db", "trnv1:rsc:trip-com:mysql:clusters:db", user("bob")))   // is valid
	cmdb.Add(owned(catalog.KindResource, "db2", "trnv1:rsc:trip-com:mysql:clusters:db", user("bob")))  // repeats a name
	cmdb.Add(owned(catalog.KindResource, "bad", "trnv1:rsc:trip-com:mysql:clusters:*", user("alice"))) // has no exact name
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
	if d := w.sync(
		"cmdb",
		owned(catalog.KindResource, "cache", cacheName, user("zoe")),
		owned(catalog.KindResource, "db", "trnv1:rsc:trip-com:mysql:clusters:db", user("bob")),
	); refs(d.Returned) != "resource/cache" || d.Unchanged != 1 {
		t.Errorf("what is gone in one source may come from another: %+v", d)
	}
	if x, _ := w.Entity(catalog.Ref{Kind: catalog.KindResource, ID: "cache"}); x.Source != "cmdb" {
		t.Errorf("it is the other's now: %+v", x)
	}
}

// TestDuplicateDefinitionsDoNotTransferOwnership checks that a person who may write a part of a source does not get what another part
// owns by defining it again where it is read first.
func TestDuplicateDefinitionsDoNotTransferOwnership(t *testing.T) {
	cache := catalog.Ref{Kind: catalog.KindResource, ID: "cache"}
	for name, defineAgain := range map[string]func(r *catalog.SourceContent, mine, theirs catalog.Record){
		"read before": func(r *catalog.SourceContent, mine, theirs catalog.Record) { r.Add(mine); r.Add(theirs) },
		"read after":  func(r *catalog.SourceContent, mine, theirs catalog.Record) { r.Add(theirs); r.Add(mine) },
		"the other one is broken": func(r *catalog.SourceContent, mine, theirs catalog.Record) {
			r.Add(mine)
			theirs.Name = "nonsense"
			r.Add(theirs)
		},
		"three times": func(r *catalog.SourceContent, mine, theirs catalog.Record) { r.Add(mine); r.Add(mine); r.Add(theirs) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sync("hr", company()...)
			before, _ := w.Entity(cache)
			r := reading(without(company(), "cache")...)
			mine, theirs := before.Record, before.Record
			mine.Where, mine.Owners, theirs.Where = "aaa/x.yaml, document 1", []catalog.Owner{user("zoe")}, "storage.yaml, document 1"
			defineAgain(&r, mine, theirs)
			d, token, err := w.Preview(t.Context(), dave, "hr", r)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Apply(t.Context(), dave, token, catalog.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			if len(d.Problems) == 0 || len(d.Updated)+len(d.Gone)+len(d.Created) != 0 {
				t.Errorf("%+v", d)
			}
			if now, ok := w.Entity(cache); !ok || len(now.Owners) != 1 || now.Owners[0] != before.Owners[0] {
				t.Errorf("it is %+v now, and was %+v", now, before)
			}
		})
	}
}

func TestRefusedEntitiesAreNotGone(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	bad := reading(without(company(), "cache", "zoe")...)
	bad.Add(owned(catalog.KindResource, "cache", "nonsense", user("bob")))
	d, _, err := w.Preview(t.Context(), dave, "hr", bad)
	if err != nil || refs(d.Gone) != "person/zoe" || d.Incomplete {
		t.Errorf("it keeps what was known of it: %+v, %v", d, err)
	}
	bad.Problems = append(bad.Problems, catalog.Problem{Where: "people.yaml, document 3", Message: message.Stored{Message: message.Verbatim("not YAML")}})
	if d, _, err = w.Preview(t.Context(), dave, "hr", bad); err != nil || len(d.Gone) != 0 || !d.Incomplete {
		t.Errorf("when a part could not be read, nothing is gone: %+v, %v", d, err)
	}
	// The name that the bad record keeps is not available to another record of the same sync.
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
	if d := w.sync(
		"hr", owned(catalog.KindResource, "a", b, user("x")), owned(catalog.KindResource, "b", a, user("x")),
	); len(d.Updated) != 2 || len(d.Problems) != 0 {
		t.Errorf("in one sync: %+v", d)
	}
}
