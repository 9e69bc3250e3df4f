package catalog_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog"
)

func TestEdit(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.sync("hr", company()...)
	w.lines = nil
	made, err := w.Put(ctx, dave, owned(catalog.KindResource, "db", "trnv1:rsc:trip-com:mysql:clusters:db", user("bob")), 0)
	if err != nil || made.Version != w.Revision() || made.Source != catalog.Portal {
		t.Fatalf("%+v, %v", made, err)
	}
	changed := made.Record
	changed.Owners = []catalog.Owner{user("zoe")}
	if _, err := w.Put(ctx, dave, changed, made.Version-1); !errors.Is(err, catalog.ErrChanged) {
		t.Errorf("somebody else changed it since, got %v", err)
	}
	again, err := w.Put(ctx, dave, changed, made.Version)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := w.Put(ctx, dave, changed, again.Version); err != nil || same.Version != again.Version {
		t.Errorf("the same again changes nothing: %+v, %v", same, err)
	}
	left, err := w.Retire(ctx, dave, made.Ref(), again.Version)
	if err != nil || len(left.Owns) != 0 {
		t.Fatal(left, err)
	}
	if _, ok := w.Catalog().Resource("db"); ok || len(w.GoneEntities()) != 1 {
		t.Error("it is gone, and not removed")
	}
	back, err := w.Put(ctx, dave, changed, 0)
	if err != nil || len(w.GoneEntities()) != 0 {
		t.Errorf("it may be made again: %+v, %v", back, err)
	}
	want := []string{"catalog.synced portal", "catalog.created portal", "catalog.synced portal", "catalog.authority resource/db",
		"catalog.synced portal", "catalog.gone portal", "catalog.synced portal", "catalog.created portal"}
	if d := cmp.Diff(want, w.actions()); d != "" {
		t.Errorf("the ledger has it: -want +got\n%s", d)
	}
}

func TestEditRefuses(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.sync("hr", company()...)
	var field *catalog.FieldError
	for name, tc := range map[string]struct {
		reason  string
		actor   catalog.Actor
		rec     catalog.Record
		version int64
		want    error
		field   string
	}{
		"role":     {"security administrators only", alice, person("new"), 0, catalog.ErrForbidden, ""},
		"nobody":   {"an actor has a name", catalog.Actor{Security: true}, person("new"), 0, catalog.ErrForbidden, ""},
		"foreign":  {"what comes from a source is changed there", dave, person("bob"), 1, catalog.ErrConflict, ""},
		"unknown":  {"an update needs what it updates", dave, person("new"), 5, catalog.ErrNotFound, ""},
		"own":      {"the actor would gain authority", dave, owned(catalog.KindResource, "db", "trnv1:rsc:a:b:c:d", user("dave")), 0, catalog.ErrForbidden, ""},
		"name":     {"one entity for one name", dave, owned(catalog.KindResource, "db", cacheName, user("bob")), 0, nil, "name"},
		"wildcard": {"an exact name", dave, owned(catalog.KindResource, "db", "trnv1:rsc:a:b:c:*", user("bob")), 0, nil, "name"},
		"owners":   {"somebody has to decide", dave, owned(catalog.KindResource, "db", "trnv1:rsc:a:b:c:d"), 0, nil, "owners"},
		"kind":     {"no other kinds", dave, catalog.Record{Kind: "robot", ID: "x"}, 0, nil, "kind"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Put(ctx, tc.actor, tc.rec, tc.version)
			if tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%s: want %v, got %v", tc.reason, tc.want, err)
			}
			if tc.field != "" && (!errors.As(err, &field) || field.Field != tc.field) {
				t.Errorf("%s: want the field %s, got %v", tc.reason, tc.field, err)
			}
		})
	}
	bob := catalog.Ref{Kind: catalog.KindPerson, ID: "bob"}
	for name, err := range map[string]error{
		"foreign": func() error { _, err := w.Retire(ctx, dave, bob, 1); return err }(),
		"role":    func() error { _, err := w.Retire(ctx, alice, bob, 1); return err }(),
		"unknown": func() error { _, err := w.Retire(ctx, dave, catalog.Ref{Kind: "x", ID: "y"}, 1); return err }(),
		"remove":  w.Remove(ctx, alice, []catalog.Ref{bob}, w.Revision()),
	} {
		if err == nil {
			t.Errorf("%s: it was done", name)
		}
	}
}
