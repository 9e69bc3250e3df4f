package approval

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/acp-io/acp/internal/tracing"
)

// transitionTrace records a transition of a ticket as a span of the ticket's trace, with the entries that it adds to the
// timeline. People and texts are not recorded.
type transitionTrace struct {
	tracer *tracing.Tracer
	ctx    context.Context // of the call that makes the transition
	begin  time.Time
	ticket *Ticket
	events []Event
}

// traceTransition begins to record; it returns nil, on which the methods do nothing, while tracing is off.
func (s *Service) traceTransition(ctx context.Context) *transitionTrace {
	if !s.Tracer.On() {
		return nil
	}
	return &transitionTrace{tracer: s.Tracer, ctx: ctx, begin: time.Now()}
}

// addEvents takes the entries of the timeline that are not stored yet. A store calls a transition again after a conflict.
func (x *transitionTrace) addEvents(t *Ticket) {
	if x == nil {
		return
	}
	x.ticket, x.events = t, nil
	for _, e := range t.Events {
		if !e.Saved {
			x.events = append(x.events, e)
		}
	}
}

// end records the span after the transition was stored. It is named after the last entry, which says where the transition led:
// the last of several approvals is "ticket.approved". Without new entries of the timeline there is no span.
func (x *transitionTrace) end() {
	if x == nil || len(x.events) == 0 || x.ticket.TraceParent == "" {
		return
	}
	_, span := x.tracer.Continue(x.ctx, x.ticket.TraceParent, "ticket."+string(x.events[len(x.events)-1].Kind), trace.WithTimestamp(x.begin),
		trace.WithAttributes(tracing.Ticket.String(x.ticket.ID()), tracing.TicketState.String(string(x.ticket.State()))))
	for _, e := range x.events {
		attributes := []attribute.KeyValue{tracing.Item.Int(e.Item)}
		if e.Cluster != "" {
			attributes = append(attributes, tracing.Member.String(e.Cluster))
		}
		span.AddEvent(string(e.Kind), trace.WithAttributes(attributes...))
	}
	span.End()
}

// create stores a new ticket in a span with which its trace begins.
func (s *Service) create(ctx context.Context, t *Ticket) (*Ticket, error) {
	ctx, span := s.Tracer.Start(ctx, "ticket.submit", trace.WithAttributes(tracing.TicketKind.String(string(t.Kind)), tracing.Items.Int(len(t.Items))))
	defer span.End()
	t.TraceParent = tracing.Position(ctx)
	stored, err := s.Store.Create(ctx, t)
	if err != nil {
		tracing.Fail(span, "the ticket was not stored")
		return nil, err
	}
	span.SetAttributes(tracing.Ticket.String(stored.ID()), tracing.TicketState.String(string(stored.State())))
	return stored, nil
}

// traceJob starts the span of one attempt of a job, which began when the job was leased. Later attempts follow a failure, and
// have a higher number.
func (s *Service) traceJob(ctx context.Context, t *Ticket, j *Job, begin time.Time) (context.Context, trace.Span) {
	return s.Tracer.Continue(
		ctx,
		t.TraceParent,
		"outbox."+string(j.Kind),
		trace.WithTimestamp(begin),
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(
			tracing.Ticket.String(t.ID()),
			tracing.TicketKind.String(string(t.Kind)),
			tracing.Item.Int(j.Item),
			tracing.Attempt.Int(j.Attempts),
		),
	)
}

// traceOutcome records what became of an attempt. Errors are named by their kind, because their texts can be long and name
// what does not belong into a trace.
func traceOutcome(span trace.Span, err error) {
	outcome := outcomeOf(err)
	span.SetAttributes(tracing.Outcome.String(outcome))
	if err != nil && !errors.Is(err, errSuperseded) {
		tracing.Fail(span, outcome)
	}
}

func outcomeOf(err error) string {
	var refused *RefusedError
	switch {
	case err == nil:
		return "written"
	case errors.Is(err, errSuperseded):
		return "superseded"
	case errors.As(err, &refused):
		return "refused by the host cluster"
	case needsNoRetry(err):
		return "no longer approved"
	case errors.Is(err, ErrLeaseLost):
		return "lease lost"
	}
	return "failed, and tried again"
}

// traceWrite starts the span of a write to the host cluster. The writer adds its position to the policy that it writes.
func (s *Service) traceWrite(ctx context.Context, object string, it Item) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, noop.Span{}
	}
	attributes := []attribute.KeyValue{tracing.Object.String(object)}
	if it.ResourceName != "" {
		attributes = append(attributes, tracing.Resource.String(it.ResourceName))
	}
	if it.Change == nil {
		attributes = append(attributes, tracing.Statement.String(it.SID))
	}
	return s.Tracer.Start(ctx, "host.write", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

func endWrite(span trace.Span, written Written, err error) {
	if err != nil {
		tracing.Fail(span, outcomeOf(err))
	} else {
		span.SetAttributes(tracing.Generation.Int64(written.Generation))
	}
	if written.Policy != "" { // it can be another shard than the first
		span.SetAttributes(tracing.Object.String(written.Policy))
	}
	span.End()
}
