package approval_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/catalog"
)

var errCrash = errors.New("crash")

// untilCrash ends like a killed process: what was committed stays, nothing else happens.
func untilCrash(w *approval.Worker) (err error) {
	defer func() {
		if v := recover(); v != nil {
			crash, ok := v.(error)
			if !ok || !errors.Is(crash, errCrash) {
				panic(v)
			}
			err = crash
		}
	}()
	return w.Drain(context.Background())
}

// TestCrashAnywhere kills a worker at each point at which it can be killed, once before and once during a revocation,
// and lets another replica go on after the lease.
func TestCrashAnywhere(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		a, b := w.approved("a", "r"), w.approved("b", "r")
		calls, point := 0, ""
		crash := func(p string) {
			if calls++; calls == at {
				point = p
				panic(errCrash)
			}
		}
		first := w.worker("first")
		first.SetStep(crash)
		err := untilCrash(first)
		if err == nil {
			w.revoke(a)
			err = untilCrash(first)
		} else {
			w.revoke(a) // while the dead worker's lease still holds
		}
		if err == nil {
			if at < 12 {
				t.Fatalf("only %d points were tried; the worker has more", at-1)
			}
			return
		}
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		w.clock.pass(lease)
		w.drain(w.worker("second"))
		if got, want := w.sids("r"), []string{approval.SID(b, 0)}; !slices.Equal(got, want) {
			t.Errorf("crash %d at %q: the policy has %v, want %v", at, point, got, want)
		}
		if got := w.state(a); got != approval.StateRevoking {
			t.Errorf("crash %d at %q: the revoked ticket is %s", at, point, got)
		}
		if got := w.state(b); got != approval.StateApplying {
			t.Errorf("crash %d at %q: the other ticket is %s", at, point, got)
		}
		if _, err := w.store.Lease(t.Context(), "x", w.clock.Now().Add(time.Hour), lease); !errors.Is(err, approval.ErrNoJob) {
			t.Errorf("crash %d at %q: a job is left: %v", at, point, err)
		}
	}
}

// TestExpiredLeaseWritesNothing suspends a worker just before its write for longer than its lease; meanwhile the ticket is
// revoked and another replica processes it. The late write must fail, in each state of the policy.
func TestExpiredLeaseWritesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		before func(*world) // what the policy has before
		want   func(n int64) []string
	}{
		"no policy": {"the fence creates it", func(*world) {}, func(int64) []string { return nil }},
		"policy of others": {"the fence changes its version", func(w *world) {
			w.approved("other", "r")
			w.drain(w.worker("early"))
		}, func(n int64) []string { return []string{approval.SID(n-1, 0)} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.before(w)
			n := w.approved("a", "r")
			sleeper, slept := w.worker("sleeper"), false
			sleeper.SetStep(func(p string) {
				if p == "checked" && !slept {
					slept = true
					w.revoke(n)
					w.clock.pass(lease)
					w.drain(w.worker("other"))
				}
			})
			w.drain(sleeper)
			if !slept {
				t.Fatal("the sleeper never came to its write")
			}
			if got, want := w.sids("r"), tc.want(n); !slices.Equal(got, want) {
				t.Errorf("%s: the policy has %v, want %v", tc.reason, got, want)
			}
			if got := w.state(n); got != approval.StateRevoking {
				t.Errorf("the ticket is %s", got)
			}
		})
	}
}

// TestReplicas: two services on one database, several workers each, many tickets of few resources, some revoked on
// the way. Each statement that should be there is there once.
func TestReplicas(t *testing.T) {
	w := newWorld(t)
	const tickets = 24
	for i := range tickets { // a write that is retried is checked against the catalog
		w.records = append(
			w.records,
			catalog.Record{Kind: catalog.KindApplication, ID: fmt.Sprint("a", i), Name: fmt.Sprint("name:a", i), Owners: ownedBy("alice")},
		)
	}
	for i := range 3 {
		w.records = append(
			w.records,
			catalog.Record{Kind: catalog.KindResource, ID: fmt.Sprint("r", i), Name: fmt.Sprint("name:r", i), Owners: ownedBy("bob", "dan")},
		)
	}
	want := map[string][]string{}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 4 {
		x := w.worker(fmt.Sprint("w", i))
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := x.Drain(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("drain: %v", err)
				}
			}
		})
	}
	for i := range tickets {
		resource := fmt.Sprint("r", i%3)
		n := w.approved(fmt.Sprint("a", i), resource)
		if i%4 == 0 {
			w.revoke(n)
		} else {
			want[resource] = append(want[resource], approval.SID(n, 0))
		}
	}
	cancel()
	wg.Wait()
	w.clock.pass(lease)
	w.drain(w.worker("last"))
	for r, sids := range want {
		slices.Sort(sids)
		if got := w.sids(r); !slices.Equal(got, sids) {
			t.Errorf("%s has %v, want %v", r, got, sids)
		}
	}
}

func TestUnavailableHost(t *testing.T) {
	w := newWorld(t)
	n := w.approved("a", "r")
	w.down = func() error { return errors.New("connection refused") }
	x := w.worker("w")
	w.drain(x)
	got, err := w.store.Get(t.Context(), n)
	if err != nil || got.State() != approval.StateApplying || got.Items[0].Message.IsZero() {
		t.Fatalf("the ticket waits and says so: %+v, %v", got, err)
	}
	w.down = func() error { return nil }
	w.clock.pass(time.Second)
	w.drain(x)
	if got := w.sids("r"); len(got) != 1 {
		t.Errorf("it is written once the API server is back: %v", got)
	}
}

// TestWriteIsRetriedWhileValid checks that a write which the host cluster refused, or for which it could not be reached, is retried only
// while the ticket may still be applied.
func TestWriteIsRetriedWhileValid(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*world)
		want   approval.State
		says   string
	}{
		"nothing changed": {"it is written", func(*world) {}, approval.StateApplying, "waiting for the adapter"},
		"the requester left": {
			"nobody asks for it any more", func(w *world) { w.records[4].Owners = ownedBy("dan") },
			approval.StateFailed, "the requester may not request it any more",
		},
		"the resource went": {
			"nobody speaks for it", func(w *world) { w.records = w.records[:6] },
			approval.StateFailed, "the catalog does not contain the resource any more",
		},
		"the resource is other": {"the security team was not asked", func(w *world) {
			w.records[6].Sensitivity = catalog.SensitivityHigh
			w.records = append(w.records, catalog.Record{Kind: catalog.KindPerson, ID: "dave"}, catalog.Record{
				Kind: catalog.KindGroup, ID: catalog.GroupSecurity, Members: []string{"dave"},
			})
		}, approval.StatePending, "More approvals are required"},
		"it grew": {"nobody was shown that", func(w *world) { w.host.Grow("allow anyone") }, approval.StatePending, "approved again"},
	} {
		for _, refused := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, refused %v", name, refused), func(t *testing.T) {
				w := newWorld(t)
				n := w.approved("a", "r")
				tries := 0
				once := func(err error) func() error {
					return func() error {
						if tries++; tries == 1 {
							return err
						}
						return nil
					}
				}
				before := approval.StateApplying
				if refused {
					before = approval.StateFailed
					w.refuse = once(apierrors.NewForbidden(schema.GroupResource{Resource: "accesscontrolpolicies"}, "p-r", errors.New("quota")))
				} else {
					w.down = once(errors.New("connection refused"))
				}
				x := w.worker("w")
				w.drain(x)
				if got := w.state(n); got != before || len(w.sids("r")) > 0 {
					t.Fatalf("it was written: %s", got)
				}
				tc.change(w)
				w.clock.pass(time.Minute)
				w.drain(x)
				got, err := w.store.Get(t.Context(), n)
				if err != nil || got.State() != tc.want || !strings.Contains(got.Items[0].Message.Text, tc.says) {
					t.Errorf("%s: %s %q, want %s", tc.reason, got.State(), got.Items[0].Message.Text, tc.want)
				}
				if written := len(w.sids("r")) > 0; written != (tc.want == approval.StateApplying) {
					t.Errorf("%s: written: %v", tc.reason, written)
				}
			})
		}
	}
}

// TestWrittenStatementIsRecorded kills a worker after its write. Meanwhile the ticket would need more approvals and grant more, and the next
// worker records the write: the statement is on the host, so the ticket must not wait for approvals as if it were not.
func TestWrittenStatementIsRecorded(t *testing.T) {
	w := newWorld(t)
	n := w.approved("a", "r")
	first := w.worker("first")
	first.SetStep(func(point string) {
		if point == "written" {
			panic(errCrash)
		}
	})
	if err := untilCrash(first); !errors.Is(err, errCrash) || len(w.sids("r")) != 1 {
		t.Fatalf("it was not written: %v, %v", err, w.sids("r"))
	}
	w.records[6].Sensitivity = catalog.SensitivityHigh
	w.records = append(w.records, catalog.Record{Kind: catalog.KindPerson, ID: "dave"},
		catalog.Record{Kind: catalog.KindGroup, ID: catalog.GroupSecurity, Members: []string{"dave"}})
	w.host.Grow("allow anyone")
	w.clock.pass(lease)
	w.drain(w.worker("second"))
	if got := w.state(n); got != approval.StateApplying {
		t.Errorf("the ticket of a written statement is %s", got)
	}
}

// TestApprovedRevocationIsDone kills a worker before and after it revokes a grant as a ticket asks. Meanwhile the resource leaves the catalog,
// or needs more approvals; the next worker does the rest all the same.
func TestApprovedRevocationIsDone(t *testing.T) {
	for _, point := range []string{"leased", "written"} {
		for reason, change := range map[string]func(*world){
			"the resource went": func(w *world) { w.records = w.records[:6] },
			"more approvals are needed": func(w *world) {
				w.records[6].Sensitivity = catalog.SensitivityHigh
				w.records = append(w.records, catalog.Record{Kind: catalog.KindPerson, ID: "dave"},
					catalog.Record{Kind: catalog.KindGroup, ID: catalog.GroupSecurity, Members: []string{"dave"}})
			},
		} {
			w := newWorld(t)
			n := w.approved("a", "r")
			w.drain(w.worker("early"))
			ask := approvaltest.Ticket("a", "r", "")
			it := &ask.Items[0]
			ask.Kind, it.Target = approval.KindRevoke, &approval.Target{Ticket: n}
			it.Shown = approval.NewShown([]string{fmt.Sprintf("revoke %s: %s may not use %s of %s any more", approval.SID(n, 0), it.ApplicationName,
				strings.Join(it.Actions, ", "), it.ResourceName)})
			ask, err := w.store.Create(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			w.vote(ask.Number)
			first := w.worker("first")
			first.SetStep(func(p string) {
				if p == point {
					panic(errCrash)
				}
			})
			if err := untilCrash(first); !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			change(w)
			w.clock.pass(lease)
			w.drain(w.worker("second"))
			if got := w.state(n); got != approval.StateRevoking || len(w.sids("r")) > 0 {
				t.Errorf("%s, crash when %s: the grant is %s, with %v on the host", reason, point, got, w.sids("r"))
			}
			if got := w.state(ask.Number); got != approval.StateApplying {
				t.Errorf("%s, crash when %s: the revocation is %s", reason, point, got)
			}
		}
	}
}

func TestRefusedJobDoesNotBlockOthers(t *testing.T) {
	w := newWorld(t)
	bad, good := w.approved("a", "r"), w.approved("b", "r")
	tries := 0
	w.refuse = func() error {
		if tries++; tries == 1 {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "accesscontrolpolicies"}, "p-r", errors.New("quota"))
		}
		return nil
	}
	x := w.worker("w")
	w.drain(x)
	got, err := w.store.Get(t.Context(), bad)
	if err != nil || got.State() != approval.StateFailed || !strings.Contains(got.Items[0].Message.Text, "quota") {
		t.Fatalf("the message of the refusal is not that of the host: %+v, %v", got, err)
	}
	if got := w.state(good); got != approval.StateApplying {
		t.Errorf("the next ticket of the resource does not wait for it: %s", got)
	}
	w.clock.pass(time.Minute)
	w.drain(x)
	if got := w.sids("r"); len(got) != 2 || w.state(bad) != approval.StateApplying {
		t.Errorf("it is tried again later: %v, %s", got, w.state(bad))
	}
}

func TestExpiryRemovesEmptyPolicies(t *testing.T) {
	w := newWorld(t)
	n := w.approved("a", "r")
	x := w.worker("w")
	w.drain(x)
	w.clock.pass(time.Hour - time.Second) // the ticket asks for an hour
	if err := w.svc.Tick(t.Context()); err != nil || w.state(n) != approval.StateApplying {
		t.Fatalf("not before its time: %s, %v", w.state(n), err)
	}
	w.clock.pass(time.Second)
	if err := w.svc.Tick(t.Context()); err != nil || w.state(n) != approval.StateRevoking {
		t.Fatalf("at its time: %s, %v", w.state(n), err)
	}
	w.drain(x)
	if got := w.sids("r"); len(got) != 0 || w.state(n) != approval.StateRevoking {
		t.Errorf("the statement is removed, and the members are still to be seen without it: %v, %s", got, w.state(n))
	}
	p := &v1alpha1.AccessControlPolicy{Status: v1alpha1.AccessControlPolicyStatus{ObservedGeneration: 9, Units: []v1alpha1.PolicyUnit{
		{Resource: v1alpha1.ResourceName("name:r"), Clusters: []v1alpha1.ClusterState{{Name: "m1", State: v1alpha1.MemberUnreachable}}}}}}
	progress := func(ticket *approval.Ticket) error {
		ticket.Removed(0, "p-r", approval.Written{Generation: 5}, w.clock.Now())
		ticket.Progress(0, p, w.clock.Now())
		return nil
	}
	w.apply(n, progress)
	if got := w.state(n); got != approval.StateRevoking {
		t.Errorf("a member that cannot be read may still have it: %s", got)
	}
	p.Status.Units = nil // the adapter's last word: no member has it
	w.apply(n, func(ticket *approval.Ticket) error {
		ticket.Events = append([]approval.Event{{Kind: approval.EventRealized, Cluster: "m1"}}, ticket.Events...)
		return progress(ticket)
	})
	if ticket, err := w.store.Get(t.Context(), n); err != nil || !slices.ContainsFunc(ticket.Events, func(e approval.Event) bool {
		return e.Kind == approval.EventRealized && e.Cluster == "m1" && !e.At.IsZero()
	}) {
		t.Errorf("the timeline does not contain when the member was seen without it: %+v, %v", ticket, err)
	}
	if got := w.state(n); got != approval.StateExpired {
		t.Errorf("every member was seen without it: %s", got)
	}
}

// TestPolicyDeletedDuringRevocation: only a policy's status can say that no member has a statement, so it is written again.
func TestPolicyDeletedDuringRevocation(t *testing.T) {
	w := newWorld(t)
	n := w.approved("a", "r")
	x := w.worker("w")
	w.drain(x)
	w.revoke(n)
	w.drain(x)
	p, err := statuses{w}.Live(t.Context(), "p-r")
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	w.apply(n, func(x *approval.Ticket) error { // the fake server counts no generations
		x.Removed(0, "p-r", approval.Written{Generation: 5, UID: "u"}, w.clock.Now())
		return nil
	})
	if err := w.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	f := approval.NewFollower(w.svc, statuses{w}, nil, time.Minute, slog.New(slog.DiscardHandler))
	if err := f.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.drain(x)
	if p, err := (statuses{w}).Live(t.Context(), "p-r"); err != nil || p == nil || len(p.Spec.Statements) != 0 {
		t.Errorf("the policy is there again, without the statement: %+v, %v", p, err)
	}
	if got := w.state(n); got != approval.StateRevoking {
		t.Errorf("it is not revoked before the members say so: %s", got)
	}
}

// TestSyncReachesEveryPage checks that the full comparison, which reads tickets page by page, leaves out no ticket.
func TestSyncReachesEveryPage(t *testing.T) {
	w := newWorld(t)
	var all []int64
	for i := range 2*approval.SyncAtOnce + 1 {
		n := w.approved(fmt.Sprint("a", i), "r")
		w.apply(n, func(x *approval.Ticket) error {
			x.Written(0, "p-r", approval.Written{Generation: 1, UID: "u"}, w.clock.Now())
			return nil
		})
		all = append(all, n)
	}
	f := approval.NewFollower(w.svc, statuses{w}, nil, time.Minute, slog.New(slog.DiscardHandler))
	if err := f.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if got := w.state(n); got != approval.StateFailed {
			t.Fatalf("ticket %d, whose policy is not there, is %s", n, got)
		}
	}
}
