package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

func newHost(t *testing.T, config *rest.Config) *host.Host {
	t.Helper()
	h, err := host.New(config, func(string) {}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func statement(sid, resource string) v1alpha1.Statement {
	return v1alpha1.Statement{SID: sid, Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{portaltest.App888},
		Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)}}
}

func yes(context.Context, bool) error { return nil }

func sids(t *testing.T, h *host.Host, name string) []string {
	t.Helper()
	p, err := h.Live(t.Context(), name)
	if err != nil || p == nil {
		t.Fatalf("policy %s: %v, %v", name, p, err)
	}
	var out []string
	for _, s := range p.Spec.Statements {
		out = append(out, s.SID)
	}
	slices.Sort(out)
	return out
}

func TestWriter(t *testing.T) {
	h := newHost(t, portaltest.APIServer(t, true))
	if err := h.CheckKinds(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, ctx := h.Writer(), t.Context()

	one, err := w.Put(ctx, "idem", portaltest.BobsCluster, []v1alpha1.Statement{statement("t-1-1", portaltest.BobsCluster)}, yes)
	if err != nil {
		t.Fatal(err)
	}
	until := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	timed := statement("t-2-1", portaltest.BobsCluster)
	timed.NotAfter = &until
	two, err := w.Put(ctx, "idem", portaltest.BobsCluster, []v1alpha1.Statement{timed}, yes)
	if err != nil || two.Generation != one.Generation+1 || two.UID != one.UID {
		t.Fatalf("a second statement is added: %+v then %+v, %v", one, two, err)
	}
	if again, err := w.Put(ctx, "idem", portaltest.BobsCluster, []v1alpha1.Statement{timed}, yes); err != nil || again != two {
		t.Errorf("writing the same again changes nothing: %+v, %v", again, err)
	}
	if _, err := w.Drop(ctx, "idem", portaltest.BobsCluster, []string{"t-1-1"}, yes); err != nil {
		t.Fatal(err)
	}
	if got := sids(t, h, "idem"); !slices.Equal(got, []string{"t-2-1"}) {
		t.Errorf("only the dropped one is gone: %v", got)
	}

	stop := errors.New("stop")
	if _, err := w.Put(
		ctx, "checked", portaltest.BobsCluster, []v1alpha1.Statement{statement("x", portaltest.BobsCluster)}, func(context.Context, bool) error { return stop },
	); !errors.Is(err, stop) {
		t.Errorf("the check's error is returned as it is: %v", err)
	}
	if p, err := h.Live(ctx, "checked"); p != nil || err != nil {
		t.Errorf("a check that fails writes nothing: %v, %v", p, err)
	}

	var refused *approval.RefusedError
	if _, err := w.Put(ctx, "bad", "x", []v1alpha1.Statement{statement("t-3-1", "not a name")}, yes); !errors.As(err, &refused) || refused.Message.IsZero() {
		t.Errorf("what the API server validates away is refused for good: %v", err)
	}

	calls := 0
	_, err = w.Put(
		ctx,
		"fenced",
		portaltest.BobsCluster,
		[]v1alpha1.Statement{statement("late", portaltest.BobsCluster)},
		func(ctx context.Context, _ bool) error {
			if calls++; calls > 1 {
				return stop // the ticket is revoked when it is looked at again
			}
			_, err := w.Drop(ctx, "fenced", portaltest.BobsCluster, []string{"late"}, yes)
			return err
		},
	)
	if got := sids(t, h, "fenced"); !errors.Is(err, stop) || len(got) != 0 {
		t.Errorf("a removal fences writes that were prepared before: %v, %v", got, err)
	}
}

func TestWriterWithoutAServer(t *testing.T) {
	h := newHost(t, &rest.Config{Host: "http://127.0.0.1:1"})
	var refused *approval.RefusedError
	if _, err := h.Writer().Put(t.Context(), "x", "y", nil, yes); err == nil || errors.As(err, &refused) {
		t.Errorf("an API server that is away is tried again: %v", err)
	}
	if err := h.CheckKinds(t.Context()); err == nil || errors.Is(err, host.ErrKindMissing) {
		t.Errorf("an API server that is away does not lack kinds: %v", err)
	}
	if _, ok := h.Snapshot(); ok || h.Ready() {
		t.Error("nothing is known yet, and that is said")
	}
}

// TestReplicas: two portals on one database file write many tickets into one real API server.
func TestReplicas(t *testing.T) {
	config := portaltest.APIServer(t, true)
	dsn := databasetest.SQLite(t)
	const tickets = 30
	resources := []string{portaltest.BobsCluster, portaltest.LedgerCache}
	names := map[string]string{resources[0]: "bobs", resources[1]: "ledger"}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var services []*approval.Service
	var h *host.Host
	for replica := range 2 {
		store := gormstore.New(databasetest.Open(t, dsn))
		h = newHost(t, config)
		var workers []*approval.Worker
		svc, err := approval.NewService(
			approval.Config{
				Store:       store,
				Delegations: store,
				Catalog:     func() *catalog.Catalog { return &catalog.Catalog{} },
				Host:        &approvaltest.Host{},
				Now:         time.Now,
				Requeue: func() {
					for _, w := range workers {
						w.Requeue()
					}
				},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			workers = append(
				workers,
				approval.NewWorker(approval.WorkerConfig{
					Name:       fmt.Sprint(replica, "-", i),
					Service:    svc,
					Outbox:     store,
					Writer:     h.Writer(),
					PolicyName: func(r string) string { return names[r] },
					Log:        slog.New(slog.DiscardHandler),
					Lease:      10 * time.Second,
					Poll:       50 * time.Millisecond,
				}),
			)
		}
		for _, w := range workers {
			running.Go(func() { w.Run(ctx) })
		}
		services = append(services, svc)
	}
	want := map[string][]string{}
	var numbers []int64
	for i := range tickets {
		svc, r := services[i%2], resources[i%len(resources)]
		x := approvaltest.Ticket(fmt.Sprint("a", i), "r", "")
		x.Items[0].ApplicationName, x.Items[0].ResourceName = fmt.Sprintf("trnv1:rsc:trip-com:iam:sa:app/%d", i), r
		x.Items[0].Shown = approvaltest.Shown(x.Items[0])
		x, err := svc.Store.Create(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		for _, who := range []string{"carol", "bob"} {
			if _, err := svc.Apply(t.Context(), x.Number, func(x *approval.Ticket) error {
				return x.Vote(0, approval.Vote{Person: who, Approve: true, Comment: "", At: time.Now()})
			}); err != nil {
				t.Fatal(err)
			}
		}
		numbers = append(numbers, x.Number)
		want[r] = append(want[r], approval.SID(x.Number, 0))
	}
	var slowest time.Duration
	for _, n := range numbers {
		for {
			x, err := services[0].Store.Get(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			if x.State() == approval.StateFailed {
				t.Fatalf("%s failed: %s", x.ID(), x.Items[0].Message)
			}
			if x.State() != approval.StateApplying || x.Items[0].WrittenGeneration == 0 {
				continue
			}
			writes := 0
			var approved, written time.Time
			for _, e := range x.Events {
				switch e.Kind {
				case approval.EventApproved:
					approved = e.At
				case approval.EventWritten:
					written = e.At
					writes++
				}
			}
			if writes != 1 {
				t.Errorf("%s was written %d times", x.ID(), writes)
			}
			slowest = max(slowest, written.Sub(approved))
			break
		}
	}
	t.Logf("slowest from approval to statement: %s", slowest)
	for r, sid := range want {
		slices.Sort(sid)
		if got := sids(t, h, names[r]); !slices.Equal(got, sid) {
			t.Errorf("%s has %v, want %v", r, got, sid)
		}
	}
}
