package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog"
)

func TestAnOwnerWhoLeftIsReported(t *testing.T) {
	w := newWorld(t)
	w.sync("hr", company()...)
	d := w.sync("hr", without(company(), "bob")...)
	want := []catalog.Ref{{Kind: catalog.KindResource, ID: "cache"}}
	if diff := cmp.Diff(want, d.Orphans); diff != "" {
		t.Errorf("nobody decides for the resource: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(&catalog.Dependents{Owns: want}, d.Gone[0].Dependents); diff != "" {
		t.Errorf("bob leaves it behind: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(want, w.Orphans()); diff != "" {
		t.Errorf("Orphans (-want +got)\n%s", diff)
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
	want := map[string]string{
		"source": "hr",
		"before": "name: " + cacheName + "; sensitivity: low; owners: user:bob",
		"after":  "name: " + cacheName + "; sensitivity: low; owners: user:frank",
	}
	if diff := cmp.Diff(want, w.lines[1].Details); diff != "" || w.lines[1].Actor != "dave" || w.lines[1].Object != "resource/cache" {
		t.Errorf("%+v: -want +got\n%s", w.lines[1], diff)
	}
}

// TestEnvironmentIsInTheLedger checks that changes of the environment are recorded: approval policies use it, so a
// person who moves an entity to another environment chooses its approvers.
func TestEnvironmentIsInTheLedger(t *testing.T) {
	w := newWorld(t)
	moved := company()
	i := slices.IndexFunc(moved, func(r catalog.Record) bool { return r.ID == "cache" })
	moved[i].Environment = "prod"
	w.sync("hr", moved...)
	w.lines = nil
	moved[i].Environment = "dev"
	w.sync("hr", moved...)
	if len(w.lines) != 2 || !strings.Contains(w.lines[1].Details["before"], "environment: prod") ||
		!strings.Contains(w.lines[1].Details["after"], "environment: dev") {
		t.Errorf("before and after: %+v", w.lines)
	}
}

// TestAddressIsInTheLedger checks that changes of mail addresses are recorded: whoever has the Slack account of an address decides as its
// person.
func TestAddressIsInTheLedger(t *testing.T) {
	w := newWorld(t)
	moved := company()
	i := slices.IndexFunc(moved, func(r catalog.Record) bool { return r.ID == "bob" })
	moved[i].Email = "bob@example.com"
	w.sync("hr", moved...)
	w.lines = nil
	moved[i].Email = "mallory@example.com"
	d := w.sync("hr", moved...)
	if !d.Updated[0].Authority || len(w.lines) != 2 {
		t.Fatalf("one line for the sync and one for the address: %+v", w.lines)
	}
	if l := w.lines[1]; l.Object != "person/bob" || l.Actor != "dave" || l.Details["email"] != "changed" || strings.Contains(fmt.Sprint(l.Details), "@") {
		t.Errorf("it says whose address changed, and by whom, without the addresses: %+v", l)
	}
}

// TestOwnersCannotTakeAnotherName checks that the owner of one entity cannot give it the name of another one, because the name
// determines who decides about a resource.
func TestOwnersCannotTakeAnotherName(t *testing.T) {
	w := newWorld(t)
	const toyName = "trnv1:rsc:trip-com:redis:clusters:toy"
	with := func(ofCache, ofToy string) catalog.SourceContent {
		return reading(
			append(
				without(company(), "cache"),
				owned(catalog.KindResource, "cache", ofCache, user("bob")),
				owned(catalog.KindResource, "toy", ofToy, user("dave")),
			)...)
	}
	take := func(who catalog.Actor, r catalog.SourceContent) error {
		_, token, err := w.Preview(t.Context(), who, "hr", r)
		if err == nil {
			_, err = w.Apply(t.Context(), who, token, catalog.ApplyOptions{})
		}
		return err
	}
	if err := take(dora, with(cacheName, toyName)); err != nil {
		t.Fatal(err)
	}
	if err := take(
		dave, with(toyName, cacheName),
	); !errors.Is(err, catalog.ErrForbidden) || !strings.Contains(err.Error(), "owner of resource/toy ("+cacheName+")") {
		t.Errorf("dave would decide over the grants of bob's cache: %v", err)
	}
	if err := take(dora, with(toyName, cacheName)); err != nil {
		t.Errorf("another one may: %v", err)
	}
}

func TestEditorsCannotGrantThemselvesAuthority(t *testing.T) {
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
		"owner": {
			"dave would decide about its grants",
			func(m map[string]*catalog.Record) { m["cache"].Owners = []catalog.Owner{user("dave")} }, "owner of resource/cache",
		},
		"member": {
			"dave would own what the group owns",
			func(m map[string]*catalog.Record) { m["storage"].Members = []string{"dave"} }, "member of group/storage",
		},
		"leader":     {"dave would decide for alice", func(m map[string]*catalog.Record) { m["alice"].Leader = "dave" }, "leader of person/alice"},
		"lead":       {"dave would decide for bob", func(m map[string]*catalog.Record) { m["storage"].Lead = "dave" }, "leader of person/bob"},
		"further up": {"dave would decide where frank may not", func(m map[string]*catalog.Record) { m["frank"].Leader = "dave" }, "leader of person/bob"},
		"address": {
			"dave would decide in Slack in the place of bob, if the address is that of his own account",
			func(m map[string]*catalog.Record) { m["bob"].Email, m["dave"].Email = " Dave@Example.com", "" }, "mail address of person/bob",
		},
		"another address of their own": {
			"the first of two steps to the same end; dave may also be on call by it",
			func(m map[string]*catalog.Record) { m["dave"].Email = "other@example.com" }, "mail address of person/dave",
		},
		"address of another": {
			"whoever has the account of the address decides as bob, and the ledger says who changed it",
			func(m map[string]*catalog.Record) { m["bob"].Email = "bob@other.example.com" }, "",
		},
		"for another": {
			"security administrators change the authority of others",
			func(m map[string]*catalog.Record) { m["cache"].Owners = []catalog.Owner{user("zoe")} }, "",
		},
		"less for them": {"an actor may give up authority", func(m map[string]*catalog.Record) { m["dave"].Groups = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sync("hr", records(func(m map[string]*catalog.Record) { m["dave"].Email = "dave@example.com" })...)
			_, token, err := w.Preview(t.Context(), dave, "hr", reading(records(func(m map[string]*catalog.Record) {
				m["dave"].Email = "dave@example.com"
				tc.change(m)
			})...))
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
