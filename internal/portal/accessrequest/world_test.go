package accessrequest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/host"
)

// newScheme returns the scheme with the kinds of the tests.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme)); err != nil {
		panic(err) // the kinds are registered once
	}
	return scheme
}

// newHost returns a host cluster that numbers generations and gives UIDs, as an API server does.
func newHost() client.Client {
	var made atomic.Int64
	return fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(&v1alpha1.AccessRequest{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(types.UID(fmt.Sprint("uid-", made.Add(1))))
			o.SetGeneration(1)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			o.SetGeneration(o.GetGeneration() + 1)
			return c.Update(ctx, o, opts...)
		},
	}).Build()
}

// failing is a client whose writes can be made to fail after or instead of the call, as if the portal ended there.
type failing struct {
	client.Client
	fail func(verb string) error
}

func (f *failing) Status() client.SubResourceWriter { return &failingStatus{f.Client.Status(), f} }

func (f *failing) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if err := f.fail("patch"); err != nil {
		return err
	}
	return f.Client.Patch(ctx, o, p, opts...)
}

type failingStatus struct {
	client.SubResourceWriter
	f *failing
}

func (s *failingStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	if err := s.f.fail("status"); err != nil {
		return err
	}
	return s.SubResourceWriter.Update(ctx, o, opts...)
}

type world struct {
	t         *testing.T
	namespace string
	store     *gormstore.Store
	svc       *approval.Service
	host      *approvaltest.Host
	r         *Reconciler
	// admin is the host cluster.
	admin   client.Client
	mu      sync.Mutex
	now     time.Time
	changed func(*approval.Ticket)
	crash   func(verb string) error
}

func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// newWorld makes a namespace that stands for an application, if it is not empty. alice owns the applications; bob and dan own the
// resources.
func newWorld(t *testing.T, application string) *world {
	t.Helper()
	return newWorldOn(t, newHost(), application)
}

// newWorldOn is newWorld on a host cluster.
func newWorldOn(t *testing.T, admin client.Client, application string) *world {
	t.Helper()
	w := &world{t: t, admin: admin, host: &approvaltest.Host{Actions: []string{"redis:connect", "redis:admin"}}, now: time.Now().UTC().Truncate(time.Second),
		store: gormstore.New(databasetest.Open(t, databasetest.SQLite(t))), changed: func(*approval.Ticket) {}, crash: func(string) error { return nil }}
	owned := func(people ...string) (out []catalog.Owner) {
		for _, p := range people {
			out = append(out, catalog.Owner{Kind: catalog.OwnerPerson, ID: p})
		}
		return out
	}
	people := catalog.Build([]catalog.Record{
		{Kind: catalog.KindPerson, ID: "alice"}, {Kind: catalog.KindPerson, ID: "bob"},
		{Kind: catalog.KindPerson, ID: "dan"},
		{Kind: catalog.KindApplication, ID: "shop", Name: shop, Owners: owned("alice")},
		{Kind: catalog.KindApplication, ID: "bank", Name: bank, Owners: owned("alice")},
		{Kind: catalog.KindResource, ID: "carts", Name: redis, Owners: owned("bob", "dan")},
		{Kind: catalog.KindResource, ID: "queue", Name: queue, Owners: owned("bob", "dan")},
	})
	var err error
	w.svc, err = approval.NewService(approval.Config{Store: w.store, Delegations: w.store, Catalog: func() *catalog.Catalog { return people }, Host: w.host,
		Now: w.Now, OnChange: func(x *approval.Ticket) { w.changed(x) }})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if application != "" {
		ns.Labels = map[string]string{v1alpha1.LabelApplication: application}
	}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	w.namespace = ns.Name
	w.r = &Reconciler{Config: Config{Tickets: w.svc, Catalog: w.svc.Catalog, Now: w.Now, URL: TicketURL("https://acp.example/"),
		Log: slog.New(slog.DiscardHandler)}, Cached: &failing{admin, func(verb string) error { return w.crash(verb) }}, Live: admin}
	return w
}

func (w *world) label(application string) {
	w.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"acp.io/app-id":%s}}}`, application))
	if err := w.admin.Patch(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, patch); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(name string, change func(*v1alpha1.AccessRequest)) {
	w.t.Helper()
	o := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: v1alpha1.AccessRequestSpec{Reason: "carts",
		Access:   []v1alpha1.RequestedAccess{{Resource: redis, Actions: []v1alpha1.Action{"redis:connect"}}},
		Duration: &metav1.Duration{Duration: time.Hour}}}
	if change != nil {
		change(o)
	}
	if err := w.admin.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(name string) *v1alpha1.AccessRequest {
	w.t.Helper()
	var o v1alpha1.AccessRequest
	if err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &o); err != nil {
		w.t.Fatal(err)
	}
	return &o
}

func (w *world) update(name string, change func(*v1alpha1.AccessRequest)) {
	w.t.Helper()
	o := w.get(name)
	change(o)
	if err := w.admin.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) reconcile(name string) error {
	_, err := w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: name}})
	return err
}

func (w *world) must(name string) *v1alpha1.AccessRequest {
	w.t.Helper()
	if err := w.reconcile(name); err != nil {
		w.t.Fatal(err)
	}
	return w.get(name)
}

// tickets are all tickets, oldest first.
func (w *world) tickets() []*approval.Ticket {
	w.t.Helper()
	list, err := w.store.List(w.t.Context(), approval.Filter{Oldest: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (w *world) states() string {
	var out []string
	for _, t := range w.tickets() {
		out = append(out, string(t.State()))
	}
	return strings.Join(out, " ")
}

func (w *world) decide(n int64, approve bool, who ...string) {
	w.t.Helper()
	for _, p := range who {
		t, err := w.store.Get(w.t.Context(), n)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.svc.Decide(w.t.Context(), approval.Actor{ID: p}, n, approval.EveryItem, t.Version, approve, "because"); err != nil {
			w.t.Fatalf("%s: %v", p, err)
		}
	}
}

// writePolicies does the jobs of approved tickets, on the API server.
func (w *world) writePolicies() {
	w.t.Helper()
	worker := approval.NewWorker(approval.WorkerConfig{Name: "w", Service: w.svc, Outbox: w.store, Writer: &host.Writer{Client: w.admin}, Objects: w.host,
		Log: slog.New(slog.DiscardHandler), PolicyName: policy.PolicyNameFor, Lease: time.Minute, Poll: time.Second})
	if err := worker.Drain(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) statements() (out []string) {
	w.t.Helper()
	var p v1alpha1.AccessControlPolicy
	if err := w.admin.Get(w.t.Context(), client.ObjectKey{Name: policy.PolicyNameFor(redis)}, &p); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	for _, s := range p.Spec.Statements {
		out = append(out, fmt.Sprint(s.Subjects, s.Actions))
	}
	return out
}

// expect checks conditions as "Type=Status/Reason".
func expect(t *testing.T, o *v1alpha1.AccessRequest, want ...string) {
	t.Helper()
	for _, x := range want {
		kind, rest, _ := strings.Cut(x, "=")
		c := meta.FindStatusCondition(o.Status.Conditions, kind)
		if c == nil || string(c.Status)+"/"+c.Reason != rest || c.ObservedGeneration != o.Generation || c.Message == "" {
			t.Errorf("%s: %+v; want %s", kind, c, x)
		}
	}
	if o.Status.ObservedGeneration != o.Generation {
		t.Errorf("the status is about generation %d, not %d", o.Status.ObservedGeneration, o.Generation)
	}
}
