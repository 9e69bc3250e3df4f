package portal

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/tracing"
)

// traceSite returns a portal that records spans.
func traceSite(t *testing.T) (*site, *tracetest.SpanRecorder) {
	x := newSite(t)
	r := tracetest.NewSpanRecorder()
	x.Tracer = tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(r)))
	x.Tickets.Tracer = x.Tracer
	x.TraceURL = "https://jaeger.example/trace/" + core.TraceIDPlaceholder
	return x, r
}

type tracedTicket struct{ ID, TraceID, TraceURL string }

// TestTicketShowsItsTrace checks that a ticket shows the id of its trace, and that its spans contain no personal data.
func TestTicketShowsItsTrace(t *testing.T) {
	x, r := traceSite(t)
	alice := x.as("alice")
	var made, shown tracedTicket
	a := alice.Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	a.Into(t, &made)
	alice.Get("/api/v1/tickets/"+made.ID+"?q=secret").Into(t, &shown)
	if len(shown.TraceID) != 32 || shown != made || shown.TraceURL != "https://jaeger.example/trace/"+shown.TraceID {
		t.Errorf("%+v, then %+v", made, shown)
	}
	var submit, post sdk.ReadOnlySpan
	for _, s := range r.Ended() {
		switch s.Name() {
		case "ticket.submit":
			submit = s
		case "POST /api/v1/tickets":
			post = s
		}
		for _, a := range s.Attributes() {
			if v := a.Value.String(); strings.Contains(v, "secret") || strings.Contains(v, "alice") {
				t.Errorf("%s has %s=%s", s.Name(), a.Key, v)
			}
		}
	}
	if submit == nil || post == nil || submit.Parent().SpanID() != post.SpanContext().SpanID() || submit.SpanContext().TraceID().String() != shown.TraceID {
		t.Fatalf("the submission is not below its request: %v, %v", submit, post)
	}
	// A decision is a request of its own, and its span in the ticket's trace has a link to that.
	carol := x.as("carol")
	if a := carol.Post("/api/v1/tickets/"+made.ID+"/decision", map[string]any{"decision": "approve", "version": 1}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	i := slices.IndexFunc(r.Ended(), func(s sdk.ReadOnlySpan) bool { return s.Name() == "ticket.step-approved" })
	j := slices.IndexFunc(r.Ended(), func(s sdk.ReadOnlySpan) bool { return s.Name() == "POST /api/v1/tickets/:id/decision" })
	if i < 0 || j < 0 {
		t.Fatalf("the decision is not recorded: %d, %d", i, j)
	}
	step, request := r.Ended()[i], r.Ended()[j]
	if step.SpanContext().TraceID() != submit.SpanContext().TraceID() || len(step.Links()) != 1 ||
		step.Links()[0].SpanContext.TraceID() != request.SpanContext().TraceID() {
		t.Errorf("%v with links %v", step.SpanContext(), step.Links())
	}
}

func TestTicketsHaveNoTraceByDefault(t *testing.T) {
	x := newSite(t)
	a := x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	if a.Status != http.StatusCreated || strings.Contains(string(a.Body), "trace") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestRecordedRequests checks that callers choose neither whether a request is recorded nor its trace, and that probes, pages and unknown paths are
// not recorded.
func TestRecordedRequests(t *testing.T) {
	x, r := traceSite(t)
	for _, path := range []string{"/healthz", "/readyz", "/", "/assets/app-1a2b.js", "/api/v1/nothing?token=secret", "/tickets/T-1"} {
		x.as("").Get(path)
	}
	if n := len(r.Ended()); n != 0 {
		t.Errorf("%d spans, the first is %s", n, r.Ended()[0].Name())
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.base+"/api/v1/me", nil)
	if err != nil {
		t.Fatal(err)
	}
	const forged = "0af7651916cd43dd8448eb211c80319c"
	req.Header.Set("Traceparent", "00-"+forged+"-b7ad6b7169203331-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close() // nothing is read
	all := r.Ended()
	if len(all) != 1 || all[0].Name() != "GET /api/v1/me" || all[0].SpanContext().TraceID().String() == forged || all[0].Parent().IsValid() {
		t.Errorf("%v", all)
	}
}
