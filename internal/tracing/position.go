package tracing

import (
	"context"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// positionLength is the length of a W3C traceparent of version 00: version, trace, parent and flags.
const positionLength = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")

// Position returns the context's span as a W3C traceparent, or "" if it is not recorded.
func Position(ctx context.Context) string { return positionOf(trace.SpanContextFromContext(ctx)) }

func positionOf(c trace.SpanContext) string {
	if !c.IsValid() || !c.IsSampled() {
		return ""
	}
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-01"
}

// ID returns the id of the trace of a position, or "" if the position is empty or invalid.
func ID(position string) string {
	c, ok := parse(position)
	if !ok {
		return ""
	}
	return c.TraceID().String()
}

// parse is strict: exactly what Position returns is accepted, and nothing else that the standard would allow.
func parse(position string) (trace.SpanContext, bool) {
	if len(position) != positionLength || position != strings.ToLower(position) {
		return trace.SpanContext{}, false
	}
	parts := strings.Split(position, "-")
	if len(parts) != 4 || parts[0] != "00" || parts[3] != "01" {
		return trace.SpanContext{}, false
	}
	var id trace.TraceID
	var span trace.SpanID
	if len(parts[1]) != hex.EncodedLen(len(id)) || len(parts[2]) != hex.EncodedLen(len(span)) {
		return trace.SpanContext{}, false
	}
	if _, err := hex.Decode(id[:], []byte(parts[1])); err != nil {
		return trace.SpanContext{}, false
	}
	if _, err := hex.Decode(span[:], []byte(parts[2])); err != nil {
		return trace.SpanContext{}, false
	}
	c := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true})
	return c, c.IsValid() // no zeros
}
