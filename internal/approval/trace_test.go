package approval_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/tracing"
)

// recorded makes the world trace, and returns what is recorded.
func (w *world) recorded() *tracetest.SpanRecorder {
	r := tracetest.NewSpanRecorder()
	w.svc.Tracer = tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(r)))
	return r
}

func attributeOf(s sdk.ReadOnlySpan, key attribute.Key) string {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

func (w *world) submit() *approval.Ticket {
	w.t.Helper()
	x, err := w.svc.Submit(
		w.t.Context(),
		approval.Actor{ID: "alice"},
		approval.Request{Reason: "secret reason", Items: []approval.RequestItem{{Application: "a", Resource: "r", Actions: []string{"redis:connect"}}}},
	)
	if err != nil {
		w.t.Fatal(err)
	}
	return x
}

func (w *world) decide(n int64, people ...string) {
	w.t.Helper()
	for _, p := range people {
		x, err := w.store.Get(w.t.Context(), n)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.svc.Decide(w.t.Context(), approval.Actor{ID: p}, n, approval.EveryItem, x.Version, true, "secret comment"); err != nil {
			w.t.Fatal(err)
		}
	}
}

// annotation of the policy of a resource.
func (w *world) annotation(resource string) string {
	w.t.Helper()
	var p v1alpha1.AccessControlPolicy
	if err := w.client.Get(context.Background(), client.ObjectKey{Name: "p-" + resource}, &p); err != nil {
		w.t.Fatal(err)
	}
	return p.Annotations[v1alpha1.AnnotationTraces]
}

// A ticket has one trace from its submission over days of waiting to the write, with a span for each attempt to write, and to
// its revocation.
func TestTicketHasOneTrace(t *testing.T) {
	w := newWorld(t)
	w.host.Actions = []string{"redis:connect"}
	r := w.recorded()
	x := w.submit()
	if tracing.ID(x.TraceParent) == "" {
		t.Fatalf("the ticket has no trace: %q", x.TraceParent)
	}
	w.clock.pass(20 * time.Hour)
	w.decide(x.Number, "carol", "bob")
	w.down = func() error { return errors.New("secret error") }
	w.drain(w.worker("one"))
	w.down = func() error { return nil }
	w.clock.pass(time.Minute)
	w.drain(w.worker("two"))
	if _, err := w.svc.Revoke(t.Context(), approval.Actor{ID: "bob"}, x.Number, 0, "secret reason"); err != nil {
		t.Fatal(err)
	}
	w.drain(w.worker("two"))
	var got []string
	for _, s := range r.Ended() {
		if s.SpanContext().TraceID().String() != tracing.ID(x.TraceParent) {
			t.Errorf("%s is in another trace", s.Name())
		}
		text := s.Name()
		if a := attributeOf(s, tracing.Attempt); a != "" {
			text += " " + a + " " + attributeOf(s, tracing.Outcome)
		}
		got = append(got, text)
		for _, a := range s.Attributes() {
			if strings.Contains(a.Value.String(), "secret") || slices.Contains([]string{"alice", "bob", "carol"}, a.Value.String()) {
				t.Errorf("%s says %s", s.Name(), a.Value.String())
			}
		}
		if strings.Contains(s.Status().Description, "secret") {
			t.Errorf("%s failed with %s", s.Name(), s.Status().Description)
		}
	}
	want := []string{
		"ticket.submit",
		"ticket.step-approved",
		"ticket.approved",
		"host.write",
		"outbox.apply 1 failed, and tried again",
		"host.write",
		"outbox.apply 2 written",
		"ticket.revoke-requested",
		"host.write",
		"outbox.remove 1 written",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("spans (-want +got)\n%s", d)
	}
	var last sdk.ReadOnlySpan
	for _, s := range r.Ended() {
		if s.Name() == "host.write" {
			last = s
		}
	}
	changes := tracing.ParseChanges(w.annotation("r"), time.Now())
	if len(changes) != 1 || changes[0].SID != "t-1-1" || !strings.Contains(changes[0].Position, last.SpanContext().SpanID().String()) {
		t.Errorf("the adapter continues from the last write: %+v", changes)
	}
}

// Without a tracer there is no position in the database and no annotation, also for a ticket whose submission was traced before.
func TestNothingIsTracedByDefault(t *testing.T) {
	w := newWorld(t)
	w.host.Actions = []string{"redis:connect"}
	x := w.submit()
	w.decide(x.Number, "carol", "bob")
	w.drain(w.worker("one"))
	if x, err := w.store.Get(t.Context(), x.Number); err != nil || x.TraceParent != "" {
		t.Errorf("%q, %v", x.TraceParent, err)
	}
	if a := w.annotation("r"); a != "" {
		t.Errorf("annotation %q", a)
	}
	// A ticket whose submission was not traced has no later spans.
	r := w.recorded()
	if _, err := w.svc.Revoke(t.Context(), approval.Actor{ID: "bob"}, x.Number, 0, "enough"); err != nil {
		t.Fatal(err)
	}
	w.drain(w.worker("one"))
	if n := len(r.Ended()); n != 0 || w.annotation("r") != "" {
		t.Errorf("%d spans, annotation %q", n, w.annotation("r"))
	}
}
