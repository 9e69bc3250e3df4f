package rollout_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/rollout"
)

// gated is a view of a host for one replica, whose writes wait before they read the object, and can be sent although the replica sees a failure.
type gated struct {
	*host
	gate    chan struct{}
	arrived chan string   // the names of objects whose writes wait
	written chan struct{} // after each write that was let through
}

func gate(h *host) *gated {
	return &gated{h, make(chan struct{}), make(chan string, 10), make(chan struct{}, 10)}
}

func (g *gated) SetTemporaryAudit(
	ctx context.Context,
	name, version string,
	audit *v1alpha1.TemporaryAudit,
	check func(context.Context, v1alpha1.ProtectedResourceSpec) error,
) (*v1alpha1.ProtectedResource, error) {
	g.arrived <- name
	<-g.gate
	o, err := g.host.SetTemporaryAudit(ctx, name, version, audit, check)
	g.written <- struct{}{}
	return o, err
}

// observed is a store that reports each change of the leases.
type observed struct {
	rollout.Store
	changed chan struct{}
}

func (s observed) Change(ctx context.Context, name string, change func(*rollout.State) (rollout.News, error)) (rollout.State, error) {
	x, err := s.Store.Change(ctx, name, change)
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return x, err
}

// replica returns another replica of a portal, with its own way to the same host cluster and the same store.
func replica(t *testing.T, d *rollout.FleetDowngrader, h rollout.HostWriter, store rollout.Store) *rollout.FleetDowngrader {
	service := *d.Service
	service.Writer, service.Store = h, store
	return &rollout.FleetDowngrader{Service: &service, Objects: d.Objects, ClassOf: classOf, MaxWait: time.Minute, Running: t.Context()}
}

// began begins a downgrade of everything, of which one of three resources is open and the writes of the others wait.
func began(t *testing.T, w *world, a *rollout.FleetDowngrader, g *gated) rollout.TemporaryAuditRequest {
	t.Helper()
	hour := rollout.TemporaryAuditRequest{Until: w.now.Add(time.Hour), Reason: "an outage"}
	a.MaxWait = time.Millisecond
	if r, err := a.Begin(t.Context(), sam, rollout.FleetDowngradeScope{}, hour); err != nil || !r.FinishedAt.IsZero() {
		t.Fatalf("%+v %v", r, err)
	}
	for range 3 {
		<-g.arrived
	}
	g.gate <- struct{}{}
	<-g.written
	if open := g.open(w.now); len(open) != 1 {
		t.Fatalf("open: %v", open)
	}
	a.MaxWait = time.Minute
	return hour
}

// TestEndStopsADowngradeOfAnotherReplica checks that the end of a downgrade, which reaches another replica than the one that still opens resources,
// leaves none open.
func TestEndStopsADowngradeOfAnotherReplica(t *testing.T) {
	w, h, d := downgrades(t)
	g := gate(h)
	a := replica(t, d, g, w.store)
	began(t, w, a, g)
	stopped := observed{w.store, make(chan struct{}, 1)}
	b := replica(t, d, h, stopped)
	var end rollout.FleetDowngradeRun
	var err error
	var ends sync.WaitGroup
	ends.Go(func() { end, err = b.Resume(t.Context(), sam, rollout.FleetDowngradeScope{}, "it is back") })
	<-stopped.changed
	if open := h.open(w.now); len(open) != 1 {
		t.Errorf("nothing is closed while the other replica may open more: %v", open)
	}
	close(g.gate)
	ends.Wait()
	if err != nil || end.FinishedAt.IsZero() || end.Done != 1 || end.FailedTotal != 0 {
		t.Errorf("%+v %v", end, err)
	}
	if last, ok := a.Last(); !ok || last.Resume || last.Done != 1 || last.FailedTotal != 2 {
		t.Errorf("the downgrade was not stopped: %+v", last)
	}
	if open := h.open(w.now); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
	if states, err := w.store.States(t.Context()); err != nil || len(states["FleetDowngrade"].FleetDowngrades) != 0 {
		t.Errorf("leases are left: %+v, %v", states, err)
	}
	want := []string{
		"downgrade.begun",
		"resource.temporary-audit",
		"resource.temporary-audit",
		"resource.temporary-audit",
		"resource.temporary-audit-failed",
		"resource.temporary-audit-failed",
		"downgrade.ended",
		"resource.temporary-audit-ended",
	}
	if diff := cmp.Diff(want, w.actions()); diff != "" {
		t.Error(diff)
	}
}

// TestEndStopsADowngradeOfTheSameReplica checks the same in one replica.
func TestEndStopsADowngradeOfTheSameReplica(t *testing.T) {
	w, h, d := downgrades(t)
	g := gate(h)
	stopped := observed{w.store, make(chan struct{}, 1)}
	a := replica(t, d, g, stopped)
	began(t, w, a, g)
	for len(stopped.changed) > 0 {
		<-stopped.changed
	}
	var ends sync.WaitGroup
	ends.Go(func() {
		if r, err := a.Resume(t.Context(), sam, rollout.FleetDowngradeScope{}, "it is back"); err != nil || r.FinishedAt.IsZero() || r.Done != 1 {
			t.Errorf("%+v %v", r, err)
		}
	})
	<-stopped.changed
	close(g.gate)
	ends.Wait()
	if open := h.open(w.now); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
}

// TestSuspendedDowngradeOpensNothing checks that the end of a downgrade waits for a replica that does not answer until its lease has expired, and
// that the replica opens nothing when it goes on after the end.
func TestSuspendedDowngradeOpensNothing(t *testing.T) {
	w, h, d := downgrades(t)
	g := gate(h)
	a := replica(t, d, g, w.store)
	hour := began(t, w, a, g)
	b := replica(t, d, h, w.store)
	b.MaxWait = time.Millisecond
	end := func() (rollout.FleetDowngradeRun, error) {
		return b.Resume(t.Context(), sam, rollout.FleetDowngradeScope{}, "it is back")
	}
	if _, err := end(); approval.CodeOf(err) != approval.CodeConflict || len(h.open(w.now)) != 1 {
		t.Fatalf("an end is reported while the other replica may open more: %v", err)
	}
	w.now = w.now.Add(2 * time.Minute)
	b.MaxWait = time.Minute
	if r, err := end(); err != nil || r.FinishedAt.IsZero() || r.Done != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	close(g.gate)
	if r, err := a.Begin(t.Context(), sam, rollout.FleetDowngradeScope{}, hour); err != nil || r.FailedTotal != 2 { // joins the run
		t.Errorf("%+v %v", r, err)
	}
	if open := h.open(w.now); len(open) != 0 {
		t.Errorf("opened after the end: %v", open)
	}
	if r, err := a.Begin(t.Context(), sam, rollout.FleetDowngradeScope{}, hour); err != nil || r.Done != 3 { // another downgrade may begin
		t.Errorf("%+v %v", r, err)
	}
}

// TestDowngradesOfReplicas checks which runs of two replicas exclude each other.
func TestDowngradesOfReplicas(t *testing.T) {
	all, redis := rollout.FleetDowngradeScope{}, rollout.FleetDowngradeScope{Class: "redis"}
	w, h, d := downgrades(t)
	g := gate(h)
	a, b := replica(t, d, g, w.store), replica(t, d, h, w.store)
	hour := began(t, w, a, g)
	if _, err := b.Resume(t.Context(), sam, redis, "a part"); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("the end of a part does not stop the whole: %v", err)
	}
	if r, err := b.Begin(t.Context(), sam, all, hour); err != nil || r.Done != 2 {
		t.Errorf("the same downgrade may run twice, as after a crash: %+v %v", r, err)
	}
	close(g.gate)
	if r, err := a.Begin(t.Context(), sam, all, hour); err != nil || r.FailedTotal != 0 {
		t.Errorf("%+v %v", r, err)
	}
	g.gate = make(chan struct{})
	for len(g.arrived) > 0 {
		<-g.arrived
	}
	a.MaxWait = time.Millisecond
	if r, err := a.Resume(t.Context(), sam, all, "it is back"); err != nil || !r.FinishedAt.IsZero() {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := b.Begin(t.Context(), sam, all, hour); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("no downgrade begins during an end: %v", err)
	}
	if r, err := b.Resume(t.Context(), sam, all, "it is back"); err != nil || r.Done != 3 {
		t.Errorf("the same end may run twice: %+v %v", r, err)
	}
	close(g.gate)
	a.MaxWait = time.Minute
	if r, err := a.Resume(t.Context(), sam, all, "it is back"); err != nil || r.FailedTotal != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if open := h.open(w.now); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
}

// TestLateWriteOfADowngrade checks that the end of a downgrade waits until a write that failed for an unknown reason cannot arrive any more.
func TestLateWriteOfADowngrade(t *testing.T) {
	w, h, d := downgrades(t)
	a, b := replica(t, d, h, w.store), replica(t, d, h, w.store)
	h.fails["carts"] = context.DeadlineExceeded
	r, err := a.Begin(t.Context(), sam, rollout.FleetDowngradeScope{}, rollout.TemporaryAuditRequest{Until: w.now.Add(time.Hour), Reason: "an outage"})
	if err != nil || r.FailedTotal != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	clear(h.fails)
	b.MaxWait = time.Millisecond
	if _, err := b.Resume(t.Context(), sam, rollout.FleetDowngradeScope{}, "it is back"); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("the write may still arrive: %v", err)
	}
	b.MaxWait = time.Minute
	w.now = w.now.Add(2 * time.Minute)
	if r, err := b.Resume(t.Context(), sam, rollout.FleetDowngradeScope{}, "it is back"); err != nil || r.Done != 2 {
		t.Errorf("%+v %v", r, err)
	}
}
