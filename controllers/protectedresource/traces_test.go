package protectedresource

import (
	"errors"
	"fmt"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/tracing"
)

// tracedScene is a reconciler that traces, for the reports that a test makes up.
type tracedScene struct {
	*Reconciler
	t        *testing.T
	recorder *tracetest.SpanRecorder
	now      time.Time
}

func newTracedScene(t *testing.T) *tracedScene {
	r := tracetest.NewSpanRecorder()
	return &tracedScene{
		Reconciler: &Reconciler{Reports: statuscache.New(), Tracer: tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(r)))},
		t:          t,
		recorder:   r,
		now:        time.Unix(1e9, 0),
	}
}

func (s *tracedScene) change(sid string) tracedChange {
	ctx, span := tracing.New(sdk.NewTracerProvider()).Start(s.t.Context(), "host.write")
	span.End()
	return tracedChange{tracing.Change{SID: sid, Position: tracing.Position(ctx), At: s.now}, "portal-x"}
}

// reconcile records a reconcile with changes, after which the members have states.
func (s *tracedScene) reconcile(resource string, err error, states []v1alpha1.MemberState, changes ...tracedChange) {
	report := statuscache.Report{Resource: resource}
	for i, state := range states {
		report.Clusters = append(report.Clusters, v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprint("m", i)), State: state})
	}
	s.Reports.Put(report)
	s.trace(
		s.t.Context(),
		&outcome{
			Step:  stepApplied,
			Facts: &facts{Resource: resource, Now: s.now, Changes: changes},
			Err:   err,
			Times: reconcileTimes{time.Now(), time.Now(), time.Now()},
		},
	)
}

func (s *tracedScene) ended(name string) (out []sdk.ReadOnlySpan) {
	for _, x := range s.recorder.Ended() {
		if x.Name() == name {
			out = append(out, x)
		}
	}
	return out
}

func states(state v1alpha1.MemberState, n int) (out []v1alpha1.MemberState) {
	for range n {
		out = append(out, state)
	}
	return out
}

// TestTracesAreBounded checks that the number of changes that are followed is bounded, and so is the number of members of a
// change that have spans.
func TestTracesAreBounded(t *testing.T) {
	s := newTracedScene(t)
	s.reconcile("r", nil, states(v1alpha1.MemberPending, 500), s.change("one"))
	if n := len(s.recorder.Started()); n > maxTracedMembers+10 {
		t.Errorf("%d spans for one change", n)
	}
	s.reconcile("r", nil, states(v1alpha1.MemberRealized, 500), s.change("one"))
	if all := s.ended("unit.realize"); len(all) == 0 {
		t.Error("the change of which all members are read back is followed on")
	}
	for i := range maxFollowed + 10 {
		s.reconcile(fmt.Sprint("r", i), nil, states(v1alpha1.MemberPending, 1), s.change("one"))
	}
	if s.traces.count > maxFollowed || len(s.traces.followed) > maxFollowed {
		t.Errorf("%d changes are followed", s.traces.count)
	}
	if n := len(s.ended("unit.reconcile")); n < maxFollowed+10 {
		t.Errorf("%d reconciles are recorded", n)
	}
}

// A member that does not get a change does not keep its trace open for ever, also when nothing is reconciled any more.
func TestTraceOfAnUnreachableMemberEnds(t *testing.T) {
	s := newTracedScene(t)
	c := s.change("one")
	s.reconcile("r", nil, []v1alpha1.MemberState{v1alpha1.MemberRealized, v1alpha1.MemberUnreachable}, c)
	if n := len(s.ended("member.realize")); n != 1 {
		t.Fatalf("%d members were read back", n)
	}
	s.now = s.now.Add(tracing.MaxAge + time.Second)
	s.reconcile("another", nil, nil)
	all, members := s.ended("unit.realize"), s.ended("member.realize")
	if len(all) != 1 || len(members) != 2 || all[0].Status().Description == "" || members[1].Status().Description == "" || s.traces.count != 0 {
		t.Errorf("%d changes and %d members ended, %d are followed", len(all), len(members), s.traces.count)
	}
}

// TestFailedReconcileIsTracedAgain checks that a reconcile that fails before anything is known does not end the trace, and
// that one that changes nothing is recorded once.
func TestFailedReconcileIsTracedAgain(t *testing.T) {
	s := newTracedScene(t)
	c := s.change("one")
	s.reconcile("r", errors.New("secret"), nil, c)
	s.reconcile("r", nil, states(v1alpha1.MemberPending, 1), c)
	s.reconcile("r", nil, states(v1alpha1.MemberPending, 1), c)
	s.reconcile("r", nil, states(v1alpha1.MemberRealized, 1), c)
	all := s.ended("unit.reconcile")
	if len(all) != 2 || all[0].Status().Description != "failed, and tried again" || len(s.ended("unit.realize")) != 1 {
		t.Errorf("%d reconciles, %d read-backs", len(all), len(s.ended("unit.realize")))
	}
	s.reconcile("r", nil, states(v1alpha1.MemberRealized, 1))
	if len(s.traces.handled) != 0 || len(s.traces.followed) != 0 {
		t.Errorf("something is kept: %v, %v", s.traces.handled, s.traces.followed)
	}
}

func TestNoTracerReadsNothing(t *testing.T) {
	r := &Reconciler{} // without a cache, it would panic
	if c := r.changesOf("r", time.Now()); c != nil {
		t.Error(c)
	}
	r.trace(t.Context(), &outcome{Facts: &facts{}})
}
