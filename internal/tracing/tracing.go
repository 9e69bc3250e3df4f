package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope is the name under which all spans of ACP are recorded.
const scope = "github.com/acp-io/acp"

// Attributes of ACP's spans. Their values are names of objects, never of people, and no reasons or comments.
const (
	// Ticket is the number of the ticket as users see it, such as T-12.
	Ticket = attribute.Key("acp.ticket")
	// TicketKind is the kind of the ticket, such as grant.
	TicketKind = attribute.Key("acp.ticket.kind")
	// TicketState is the state of the ticket after the span.
	TicketState = attribute.Key("acp.ticket.state")
	// Items is the number of items.
	Items = attribute.Key("acp.ticket.items")
	// Item is the position of the item, from 0.
	Item = attribute.Key("acp.ticket.item")
	// Job is the kind of the outbox job: apply or remove.
	Job = attribute.Key("acp.job.kind")
	// Attempt is the number of the attempt, from 1.
	Attempt = attribute.Key("acp.job.attempt")
	// Outcome is the result of the operation.
	Outcome = attribute.Key("acp.outcome")
	// Object is the name of a policy, or an object as Kind/name.
	Object = attribute.Key("acp.object")
	// Generation is the generation of Object.
	Generation = attribute.Key("acp.generation")
	// Resource is the name of the resource.
	Resource = attribute.Key("acp.resource")
	// Statement is the sid of the statement.
	Statement = attribute.Key("acp.statement.sid")
	// Policy is the name of the policy that contains the statement.
	Policy = attribute.Key("acp.policy")
	// Revision is the revision that a member should have.
	Revision = attribute.Key("acp.revision")
	// Member is the name of the member.
	Member = attribute.Key("acp.member")
	// MemberState is the state of the unit in the member, such as Realized.
	MemberState = attribute.Key("acp.member.state")
	// Members is a number of members, of MembersTotal.
	Members = attribute.Key("acp.members")
	// MembersTotal is the number of all members concerned.
	MembersTotal = attribute.Key("acp.members.total")
	// RequestID is the id of the HTTP request, as in the header X-Request-Id and in the log.
	RequestID = attribute.Key("acp.request.id")
)

// none is a span that records nothing.
var none trace.Span = noop.Span{}

// Tracer starts spans. A nil Tracer starts none, which is how tracing is off.
type Tracer struct{ tracer trace.Tracer }

// New returns a tracer of a provider.
func New(p trace.TracerProvider) *Tracer { return &Tracer{p.Tracer(scope)} }

// On reports whether spans are made, so that a caller can save the work of preparing one.
func (t *Tracer) On() bool { return t != nil }

// Start starts a span as a child of the context's span. The caller ends it.
func (t *Tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t == nil {
		return ctx, none
	}
	return t.tracer.Start(ctx, name, options...)
}

// Continue starts a span as a child of a position that Position returned, perhaps in another program. The span has a link to
// the context's span, which usually belongs to the HTTP request that is handled. If the position is empty or invalid, it makes
// no span: what was not traced at its beginning is not traced later.
func (t *Tracer) Continue(ctx context.Context, position, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t == nil {
		return ctx, none
	}
	parent, ok := parse(position)
	if !ok {
		return trace.ContextWithSpan(ctx, none), none
	}
	if current := trace.SpanContextFromContext(ctx); current.IsValid() && current.TraceID() != parent.TraceID() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: current}))
	}
	return t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, parent), name, options...)
}

// Record records a span of Continue that began before and is over now.
func (t *Tracer) Record(ctx context.Context, position, name string, begin, end time.Time, attributes ...attribute.KeyValue) {
	if t == nil {
		return
	}
	_, span := t.Continue(ctx, position, name, trace.WithTimestamp(begin), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(end))
}

// Fail marks a span as failed. The reason is one of few fixed texts: errors can contain what does not belong into a trace.
func Fail(span trace.Span, reason string) { span.SetStatus(codes.Error, reason) }
