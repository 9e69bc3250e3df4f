package tracing

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

const (
	traceID  = "0af7651916cd43dd8448eb211c80319c"
	position = "00-" + traceID + "-b7ad6b7169203331-01"
)

func TestPositionIsParsedStrictly(t *testing.T) {
	for name, tc := range map[string]struct{ reason, in, want string }{
		"valid":        {"what Position writes", position, traceID},
		"empty":        {"nothing was traced", "", ""},
		"upper case":   {"the standard says lower case", strings.ToUpper(position), ""},
		"version":      {"only version 00 is written", "01" + position[2:], ""},
		"not sampled":  {"nobody records that trace", position[:len(position)-1] + "0", ""},
		"other flags":  {"they are not written", position[:len(position)-2] + "03", ""},
		"zero trace":   {"the standard forbids it", "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", ""},
		"zero span":    {"the standard forbids it", "00-" + traceID + "-" + strings.Repeat("0", 16) + "-01", ""},
		"not hex":      {"g is no digit", strings.Replace(position, "0af", "0ag", 1), ""},
		"more":         {"version 00 has no more fields", position + "-00", ""},
		"space":        {"it is not trimmed", " " + position, ""},
		"other dashes": {"the parts have fixed lengths", "00-" + traceID[:31] + "-" + traceID[31:] + "b7ad6b7169203331-01", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ID(tc.in); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPositionRoundTrip(t *testing.T) {
	c, ok := parse(position)
	if !ok {
		t.Fatal("it is valid")
	}
	ctx := trace.ContextWithSpanContext(t.Context(), c)
	if got := Position(ctx); got != position {
		t.Errorf("%q", got)
	}
	if got := Position(trace.ContextWithSpanContext(t.Context(), c.WithTraceFlags(0))); got != "" {
		t.Errorf("a span that is not recorded has the position %q", got)
	}
	if got := Position(t.Context()); got != "" {
		t.Errorf("no span has the position %q", got)
	}
}

// While tracing is off there is no tracer, and nothing is recorded by any call.
func TestNoTracer(t *testing.T) {
	var off *Tracer
	if off.On() {
		t.Error("it is on")
	}
	ctx, span := off.Start(t.Context(), "x")
	if span.IsRecording() || Position(ctx) != "" {
		t.Errorf("%v", span)
	}
	if _, span = off.Continue(t.Context(), position, "x"); span.IsRecording() {
		t.Error("it records")
	}
	if n := testing.AllocsPerRun(100, func() { off.Start(ctx, "x") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
