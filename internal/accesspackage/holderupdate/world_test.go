package holderupdate

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/accesspackage/accesspackagetest"
	packagestore "github.com/acp-io/acp/internal/accesspackage/gormstore"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
)

// world is a portal without HTTP: pat publishes packages, led by lee; bob owns the resources; alice owns the applications, led by carol.
type world struct {
	t        *testing.T
	now      time.Time
	db       *database.DB
	store    *gormstore.Store
	packages *packagestore.Store
	host     *approvaltest.Host
	svc      *approval.Service
	outbox   *approval.Worker
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := databasetest.Open(t, databasetest.SQLite(t))
	w := &world{t: t, now: approvaltest.Start, db: db, store: gormstore.New(db), packages: packagestore.New(db),
		host: &approvaltest.Host{Actions: []string{"x:read", "x:write"}}}
	records := []catalog.Record{
		{Kind: catalog.KindPerson, ID: "alice", Leader: "carol"}, {Kind: catalog.KindPerson, ID: "carol"}, {Kind: catalog.KindPerson, ID: "bob"},
		{Kind: catalog.KindPerson, ID: "pat", Leader: "lee"}, {Kind: catalog.KindPerson, ID: "lee"},
		{Kind: catalog.KindGroup, ID: "pub", Members: []string{"pat"}},
	}
	owned := func(kind catalog.Kind, owner string, ids ...string) {
		for _, id := range ids {
			records = append(records, catalog.Record{Kind: kind, ID: id, Name: "name:" + id, Owners: []catalog.Owner{{Kind: catalog.OwnerPerson, ID: owner}}})
		}
	}
	owned(catalog.KindApplication, "alice", "a", "b", "c")
	owned(catalog.KindResource, "bob", "kept", "gone", "less", "more")
	all := catalog.Build(records)
	var err error
	w.svc, err = approval.NewService(approval.Config{Store: w.store, Delegations: w.store, Catalog: func() *catalog.Catalog { return all }, Host: w.host,
		Packages: w.packages, Now: func() time.Time { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	w.outbox = approval.NewWorker(approval.WorkerConfig{Name: "outbox", Service: w.svc, Outbox: w.store, Writer: w.host, Objects: w.host,
		PolicyName: func(r string) string { return "p-" + r }, Log: slog.New(slog.DiscardHandler), Lease: time.Minute, Poll: time.Second})
	return w
}

// worker returns the worker of a replica.
func (w *world) worker(name string) *Worker {
	return &Worker{Name: name, Store: w.packages, Tickets: w.svc, Reader: w.store, Now: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler)}
}

func (w *world) drain() {
	w.t.Helper()
	if err := w.outbox.Drain(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// effective reports every written statement as being in force in every member, as the adapter would.
func (w *world) effective() {
	w.t.Helper()
	w.drain()
	w.host.Report(true)
	f := approval.NewFollower(w.svc, w.host, nil, time.Minute, slog.New(slog.DiscardHandler))
	if err := f.Sync(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// submit submits a request, lets these people approve it, and returns its number.
func (w *world) submit(who string, r approval.Request, approvers ...string) int64 {
	w.t.Helper()
	r.Reason = "work"
	x, err := w.svc.Submit(w.t.Context(), approval.Actor{ID: who}, r)
	if err != nil {
		w.t.Fatalf("%s: %v", who, err)
	}
	w.approve(x.Number, approvers...)
	return x.Number
}

func (w *world) approve(number int64, approvers ...string) {
	w.t.Helper()
	for _, p := range approvers {
		if _, err := w.svc.Decide(w.t.Context(), approval.Actor{ID: p}, number, approval.EveryItem, w.get(number).Version, true, ""); err != nil {
			w.t.Fatalf("%s approves: %v", p, err)
		}
	}
	w.effective()
}

func (w *world) get(number int64) *approval.Ticket {
	w.t.Helper()
	x, err := w.store.Get(w.t.Context(), number)
	if err != nil {
		w.t.Fatal(err)
	}
	return x
}

// publish publishes a version of pay with these actions by resource.
func (w *world) publish(toHolders bool, resources map[string][]string) {
	w.t.Helper()
	w.approve(w.requestUpdate(toHolders, resources), "lee", "bob")
}

// requestUpdate requests a version of pay, and returns the number of the ticket.
func (w *world) requestUpdate(toHolders bool, resources map[string][]string) int64 {
	w.t.Helper()
	d := &approval.PackageDraft{Name: "pay", Spec: accesspackage.Spec{Title: "Payments", Team: "pub", Chain: accesspackage.ChainOwners,
		DurationSeconds: 30 * 86400}, ToHolders: toHolders}
	for id, actions := range resources {
		d.Resources = append(d.Resources, approval.PackageResource{ID: id, Actions: actions})
	}
	return w.submit("pat", approval.Request{Kind: approval.KindPackage, Items: []approval.RequestItem{{Package: d}}})
}

// queue publishes version 1 of pay, which these applications are given although they hold nothing.
func (w *world) queue(applications ...string) {
	w.t.Helper()
	x := w.submit("alice", approval.Request{Items: []approval.RequestItem{{Application: "c", Resource: "kept", Actions: []string{"x:read"}}}})
	content := accesspackagetest.ForHolders(w.t, "One", applications...)
	if err := w.packages.Publish(w.t.Context(), accesspackage.Publication{Name: "pay", Content: content, Ticket: x, By: "pat", At: w.now}); err != nil {
		w.t.Fatal(err)
	}
}

// holds lets an application hold the current version.
func (w *world) holds(application string) int64 {
	w.t.Helper()
	p, err := w.packages.Package(w.t.Context(), "pay")
	if err != nil {
		w.t.Fatal(err)
	}
	return w.submit("alice", approval.Request{Package: &approval.PackageChoice{Name: "pay", Version: p.Current.Number},
		Items: []approval.RequestItem{{Application: application}}}, "carol", "bob")
}

var (
	first  = map[string][]string{"kept": {"x:read"}, "gone": {"x:read"}, "less": {"x:read", "x:write"}}
	second = map[string][]string{"kept": {"x:read"}, "less": {"x:read"}, "more": {"x:read"}}
)

// requireDecisions makes everything that holders are given wait for bob.
func (w *world) requireDecisions() {
	w.host.Policies = []*v1alpha1.ApprovalPolicy{{Spec: v1alpha1.ApprovalPolicySpec{Match: `request.kind == "grant"`,
		Steps: []v1alpha1.ApprovalStep{{Name: "own", Approvers: []v1alpha1.Approver{"resource.owner"}}}}}}
	w.host.Policies[0].Name, w.host.Policies[0].ResourceVersion = "p", "1"
}

func (w *world) round() {
	w.t.Helper()
	if err := w.worker("one").Once(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.effective()
}

// update returns the update of a version, and its applications by name.
func (w *world) update(version int) (accesspackage.Update, map[string]accesspackage.HolderUpdate) {
	w.t.Helper()
	all, err := w.packages.UpdatesOf(w.t.Context(), "pay", 10)
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(u accesspackage.Update) bool { return u.Version == version })
	if i < 0 {
		w.t.Fatalf("version %d has no update: %+v", version, all)
	}
	list, err := w.packages.HolderUpdates(w.t.Context(), accesspackage.HolderFilter{Package: "pay", Version: version})
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]accesspackage.HolderUpdate{}
	for _, h := range list {
		out[h.Application[len("name:"):]] = h
	}
	return all[i], out
}

// access returns what an application has in the host cluster, as resource/action.
func (w *world) access(application string) []string {
	var out []string
	for _, r := range []string{"gone", "kept", "less", "more"} {
		p, ok := w.host.Cached("p-name:" + r)
		if !ok {
			continue
		}
		for _, s := range p.Spec.Statements {
			if slices.Contains(s.Subjects, v1alpha1.Subject("name:"+application)) {
				for _, a := range s.Actions {
					out = append(out, r+"/"+string(a))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// entries returns the entries of the ledger with an action.
func (w *world) entries(action string) []ledger.Entry {
	w.t.Helper()
	var out []ledger.Entry
	for l, err := range ledgerstore.NewReader(w.db).Lines(w.t.Context(), 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		if e, err := l.Entry(); err != nil {
			w.t.Fatal(err)
		} else if e.Action == action {
			out = append(out, e)
		}
	}
	return out
}
