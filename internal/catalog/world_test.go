package catalog_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

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

// world is a service with the ledger lines that it wrote.
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

// recorder collects the ledger lines.
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
	return []catalog.Record{
		group("security", ""),
		group("storage", "frank"),
		person("dave", "security"),
		person("dora", "security"),
		person("frank", "storage"),
		person("bob", "storage"),
		person("alice"),
		person("zoe"),
		owned(catalog.KindResource, "cache", cacheName, user("bob")),
		owned(catalog.KindApplication, "app", "trnv1:rsc:trip-com:iam:sa:app/1", user("alice")),
	}
}

func reading(records ...catalog.Record) catalog.SourceContent {
	var r catalog.SourceContent
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
