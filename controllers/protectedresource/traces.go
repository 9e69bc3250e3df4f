package protectedresource

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/tracing"
)

const (
	// maxFollowed is the number of changes whose read-back is followed at a time. Of further ones only the reconcile is traced.
	maxFollowed = 1000
	// maxTracedMembers is the number of members of a change that have a span each. The span of the change counts all of them.
	maxTracedMembers = 64
	// maxTracedAttempts is the number of reconciles of a change that are traced while it is followed.
	maxTracedAttempts = 8
	// sweepInterval is the time between two looks for changes that are followed for longer than tracing.MaxAge.
	sweepInterval = time.Minute
)

// tracedChange is a change of a policy that the portal has traced.
type tracedChange struct {
	tracing.Change
	Policy string
}

// objectWrite is one write of a Federated object.
type objectWrite struct {
	Object     *federation.Object
	Begin, End time.Time
	// Urgent reports whether the engines distribute it before everything that is not urgent (Engines.DeliverUrgent).
	Urgent bool
}

// reconcileTimes are the times of the steps of a reconcile.
type reconcileTimes struct{ Begin, Gathered, Acted time.Time }

// changesOf returns the traced changes of the portal's policies of a resource. Annotations of other policies are not read.
func (r *Reconciler) changesOf(resource string, now time.Time) []tracedChange {
	if !r.Tracer.On() {
		return nil
	}
	base := policy.PolicyNameFor(resource)
	first, _, ok := r.Cache.Policy(base)
	if !ok {
		return nil
	}
	var out []tracedChange
	for n := 1; n <= policy.ShardCount(first); n++ {
		name := policy.PolicyShard(base, n)
		p, _, ok := r.Cache.Policy(name)
		if !ok {
			continue
		}
		for _, c := range tracing.ParseChanges(p.Annotations[v1alpha1.AnnotationTraces], now) {
			out = append(out, tracedChange{c, name})
		}
	}
	slices.SortStableFunc(out, func(a, b tracedChange) int { return b.At.Compare(a.At) })
	return out[:min(len(out), tracing.MaxChanges)]
}

// annotateTraces adds the positions of traces to a Federated object that is about to be written. They are not compared with
// what was written before, so that they never cause a write, and are not a part of what members get.
func annotateTraces(f *facts, o *federation.Object) {
	if len(f.Changes) == 0 {
		return
	}
	changes := make([]tracing.Change, len(f.Changes))
	for i, c := range f.Changes {
		changes[i] = c.Change
	}
	o.Meta.Annotations = federation.Overlay(o.Meta.Annotations, map[string]string{v1alpha1.AnnotationTraces: tracing.AddChanges("", f.Now, changes...)})
}

// changeTraces continues the traces of changes: a span for each reconcile that decides or writes because of a change, and one
// that ends when every member was read back with it. Its state need not be stored: after a restart, changes that are still being propagated are
// found by the annotation.
type changeTraces struct {
	mu      sync.Mutex
	started time.Time
	swept   time.Time
	// handled are the positions of the changes of each resource that were seen.
	handled map[string]map[string]bool
	// followed are the changes of each resource that not every member has, and count is their number.
	followed map[string][]*followedChange
	count    int
}

// followedChange is a change that not every member was read back with.
type followedChange struct {
	tracedChange
	attempts int
	all      trace.Span
	members  map[string]*memberTrace
}

type memberTrace struct {
	span               trace.Span
	propagated, closed bool
}

// start records the time of the first use, which separates changes from before a restart from later ones.
func (x *changeTraces) start(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.handled == nil {
		x.started, x.swept = now, now
		x.handled, x.followed = map[string]map[string]bool{}, map[string][]*followedChange{}
	}
}

// trace records a reconcile of a resource with the changes of its facts.
func (r *Reconciler) trace(ctx context.Context, done *outcome) {
	f := done.Facts
	if !r.Tracer.On() {
		return
	}
	x := &r.traces
	x.start(f.Now)
	report, _ := r.Reports.Get(f.Resource)
	x.mu.Lock()
	defer x.mu.Unlock()
	handled := x.handled[f.Resource]
	now := map[string]bool{}
	for _, c := range f.Changes {
		// A reconcile that failed before anything was known about the members is not the last one of the change.
		now[c.Position] = handled[c.Position] || done.Err == nil || len(report.Clusters) > 0
		// A change from before this process that is in force, or without effect, was traced by the process before.
		old := c.At.Before(x.started) && !done.wrote() && report.Realized()
		if !handled[c.Position] && !old {
			x.begin(ctx, r.Tracer, c, done, &report)
		}
	}
	var still []*followedChange
	for _, c := range x.followed[f.Resource] {
		if c.attempts > 0 && c.attempts < maxTracedAttempts && (done.wrote() || done.Err != nil) {
			traceAttempt(ctx, r.Tracer, &c.tracedChange, done)
		}
		c.attempts++
		if !c.observe(&report, f.Now) {
			still = append(still, c)
		}
	}
	x.keep(f.Resource, now, still)
	if f.Now.Sub(x.swept) >= sweepInterval {
		x.sweep(f.Now)
	}
}

// begin records the first reconcile of a change and, if members have to get it, follows it. The caller holds the lock.
func (x *changeTraces) begin(ctx context.Context, t *tracing.Tracer, c tracedChange, done *outcome, report *statuscache.Report) {
	f, times := done.Facts, &done.Times
	ctx = traceAttempt(ctx, t, &c, done)
	if len(report.Clusters) == 0 || x.count >= maxFollowed {
		return
	}
	x.count++
	followed := &followedChange{tracedChange: c, members: map[string]*memberTrace{}}
	ctx, followed.all = t.Start(ctx, "unit.realize", trace.WithTimestamp(times.Acted), trace.WithAttributes(tracing.Resource.String(f.Resource)))
	for i := range report.Clusters {
		if len(followed.members) == maxTracedMembers {
			break
		}
		m := &memberTrace{}
		name := string(report.Clusters[i].Name)
		_, m.span = t.Start(
			ctx,
			"member.realize",
			trace.WithTimestamp(times.Acted),
			trace.WithAttributes(tracing.Member.String(name), tracing.Resource.String(f.Resource)),
		)
		followed.members[name] = m
	}
	x.followed[f.Resource] = append(x.followed[f.Resource], followed)
}

// traceAttempt records one reconcile as a span, with children for the compilation and each write, and returns a context with
// it.
func traceAttempt(ctx context.Context, t *tracing.Tracer, c *tracedChange, done *outcome) context.Context {
	f, times := done.Facts, &done.Times
	options := []trace.SpanStartOption{trace.WithTimestamp(times.Begin), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		tracing.Resource.String(f.Resource), tracing.Policy.String(c.Policy), tracing.Statement.String(c.SID), tracing.Outcome.String(done.label()))}
	ctx, span := t.Continue(context.WithoutCancel(ctx), c.Position, "unit.reconcile", options...)
	if done.Err != nil {
		tracing.Fail(span, "failed, and tried again")
	}
	_, compile := t.Start(ctx, "unit.compile", trace.WithTimestamp(times.Begin))
	compile.End(trace.WithTimestamp(times.Gathered))
	for _, w := range done.ObjectWrites {
		attributes := []attribute.KeyValue{tracing.Object.String(w.Object.Key()), tracing.Revision.String(w.Object.Meta.Labels[v1alpha1.LabelRevision]),
			tracing.Members.Int(len(w.Object.Placement)), attribute.Bool("acp.urgent", w.Urgent)}
		_, write := t.Start(ctx, "unit.write", trace.WithTimestamp(w.Begin), trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attributes...))
		write.End(trace.WithTimestamp(w.End))
	}
	span.End()
	return ctx
}

// wrote reports whether the plan changed a Federated object.
func (o *outcome) wrote() bool { return len(o.ObjectWrites) > 0 }

// label names the outcome of a reconcile for its span.
func (o *outcome) label() string {
	switch {
	case o.Err != nil:
		return "failed"
	case o.Problem != nil:
		return o.Problem.Reason
	case o.deferred():
		return "deferred"
	case o.wrote():
		return "written"
	}
	return "unchanged"
}

// observe records what a report says about the members, and reports whether the change need not be followed any more: every
// member was read back with what it must have, or tracing.MaxAge is over.
func (c *followedChange) observe(report *statuscache.Report, now time.Time) (over bool) {
	realized := 0
	states := map[string]v1alpha1.MemberState{}
	for i := range report.Clusters {
		m := &report.Clusters[i]
		states[string(m.Name)] = m.State
		if m.State == v1alpha1.MemberRealized {
			realized++
		}
	}
	expired := now.Sub(c.At) > tracing.MaxAge
	for name, m := range c.members {
		state, listed := states[name]
		if !m.propagated && report.Pushed[name] {
			m.propagated = true
			m.span.AddEvent("propagated")
		}
		if !m.closed && (!listed || state == v1alpha1.MemberRealized || expired) {
			m.close(state, listed)
		}
	}
	if realized < len(report.Clusters) && !expired {
		return false
	}
	c.all.SetAttributes(tracing.Members.Int(realized), tracing.MembersTotal.Int(len(report.Clusters)))
	if realized < len(report.Clusters) {
		tracing.Fail(c.all, "not every member was read back with the change in time")
	}
	c.all.End()
	return true
}

// close ends the span of a member. A member that is not listed any more has nothing of the unit, and needs nothing.
func (m *memberTrace) close(state v1alpha1.MemberState, listed bool) {
	m.closed = true
	if listed {
		m.span.SetAttributes(tracing.MemberState.String(string(state)))
		if state != v1alpha1.MemberRealized {
			tracing.Fail(m.span, "not read back in time")
		}
	}
	m.span.End()
}

// keep replaces what is recorded about the changes of a resource. The caller holds the lock.
func (x *changeTraces) keep(resource string, handled map[string]bool, followed []*followedChange) {
	x.count += len(followed) - len(x.followed[resource])
	x.handled[resource], x.followed[resource] = handled, followed
	if len(handled) == 0 {
		delete(x.handled, resource)
	}
	if len(followed) == 0 {
		delete(x.followed, resource)
	}
}

// sweep ends the spans of changes that are followed for too long, of resources that nothing reconciles. The caller holds the
// lock.
func (x *changeTraces) sweep(now time.Time) {
	x.swept = now
	for resource, all := range x.followed {
		var still []*followedChange
		for _, c := range all {
			if now.Sub(c.At) <= tracing.MaxAge {
				still = append(still, c)
				continue
			}
			for _, m := range c.members {
				if !m.closed {
					m.close(v1alpha1.MemberPending, true)
				}
			}
			tracing.Fail(c.all, "not every member was read back with the change in time")
			c.all.End()
		}
		x.keep(resource, x.handled[resource], still)
	}
}
