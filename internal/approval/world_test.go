package approval_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/portal/host"
)

const lease = time.Minute

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is one database and one host cluster, for as many replicas as a test starts.
type world struct {
	t      *testing.T
	store  *gormstore.Store
	client client.Client
	clock  *clock
	down   func() error // what the API server says to every read
	refuse func() error // and to every creation
	svc    *approval.Service
	host   *approvaltest.Host
	// records of the catalog: alice, whom carol leads, owns the applications, and bob and dan own the resources.
	records []catalog.Record
}

func ownedBy(people ...string) (out []catalog.Owner) {
	for _, p := range people {
		out = append(out, catalog.Owner{Kind: catalog.OwnerPerson, ID: p})
	}
	return out
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := gormstore.New(databasetest.Open(t, databasetest.SQLite(t)))
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{
		t:      t,
		host:   &approvaltest.Host{},
		store:  s,
		clock:  &clock{now: approvaltest.Start.Add(time.Hour)},
		down:   func() error { return nil },
		refuse: func() error { return nil },
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := w.down(); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := w.refuse(); err != nil {
				return err
			}
			o.SetGeneration(1)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			o.SetGeneration(o.GetGeneration() + 1)
			return c.Update(ctx, o, opts...)
		},
	}).Build()
	w.records = []catalog.Record{
		{Kind: catalog.KindPerson, ID: "alice", Leader: "carol"},
		{Kind: catalog.KindPerson, ID: "carol"},
		{Kind: catalog.KindPerson, ID: "bob"},
		{Kind: catalog.KindPerson, ID: "dan"},
	}
	for _, a := range []string{"a", "b"} {
		w.records = append(w.records, catalog.Record{Kind: catalog.KindApplication, ID: a, Name: "name:" + a, Owners: ownedBy("alice")})
	}
	for _, r := range []string{"r", "q"} {
		w.records = append(w.records, catalog.Record{Kind: catalog.KindResource, ID: r, Name: "name:" + r, Owners: ownedBy("bob", "dan")})
	}
	var err error
	w.svc, err = approval.NewService(
		approval.Config{Store: s, Delegations: s, Catalog: func() *catalog.Catalog { return catalog.Build(w.records) }, Host: w.host, Now: w.clock.Now},
	)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) worker(name string) *approval.Worker {
	return approval.NewWorker(
		approval.WorkerConfig{
			Name:       name,
			Service:    w.svc,
			Outbox:     w.store,
			Writer:     &host.Writer{Client: w.client},
			Objects:    w.host,
			Log:        slog.New(slog.DiscardHandler),
			PolicyName: func(r string) string { return "p-" + r[len("name:"):] },
			Lease:      lease,
			Poll:       time.Second,
		},
	)
}

func (w *world) approved(app, resource string) int64 {
	w.t.Helper()
	x, err := w.store.Create(w.t.Context(), approvaltest.Ticket(app, resource, ""))
	if err != nil {
		w.t.Fatal(err)
	}
	w.vote(x.Number)
	return x.Number
}

// vote approves a ticket by everybody who has to.
func (w *world) vote(n int64) {
	w.t.Helper()
	for _, p := range []string{"carol", "bob"} {
		w.apply(n, func(x *approval.Ticket) error {
			return x.Vote(0, approval.Vote{Person: p, Approve: true, Comment: "", At: w.clock.Now()})
		})
	}
}

func (w *world) apply(n int64, f func(*approval.Ticket) error) {
	w.t.Helper()
	if _, err := w.svc.Apply(context.Background(), n, f); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) revoke(n int64) {
	w.t.Helper()
	w.apply(n, func(x *approval.Ticket) error { return x.Revoke(0, "bob", "enough", w.clock.Now()) })
}

func (w *world) state(n int64) approval.State {
	w.t.Helper()
	x, err := w.store.Get(context.Background(), n)
	if err != nil {
		w.t.Fatal(err)
	}
	return x.State()
}

func (w *world) sids(resource string) []string {
	w.t.Helper()
	var p v1alpha1.AccessControlPolicy
	if err := w.client.Get(context.Background(), client.ObjectKey{Name: "p-" + resource}, &p); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, s := range p.Spec.Statements {
		out = append(out, s.SID)
	}
	slices.Sort(out)
	return out
}

func (w *world) drain(x *approval.Worker) {
	w.t.Helper()
	if err := x.Drain(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// statuses is a host cluster that the test reports for.
type statuses struct{ w *world }

func (s statuses) Ready() bool { return true }

func (s statuses) Seen(ctx context.Context, kind, name string) (approval.ObjectSeen, error) {
	return s.w.host.Seen(ctx, kind, name)
}

func (s statuses) Cached(name string) (*v1alpha1.AccessControlPolicy, bool) {
	p, err := s.Live(context.Background(), name)
	return p, err == nil && p != nil
}

func (s statuses) Live(ctx context.Context, name string) (*v1alpha1.AccessControlPolicy, error) {
	var p v1alpha1.AccessControlPolicy
	err := s.w.client.Get(ctx, client.ObjectKey{Name: name}, &p)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return &p, nil
}
