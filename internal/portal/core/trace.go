package core

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/acp-io/acp/internal/tracing"
)

// TraceIDPlaceholder stands for the id of a trace in --trace-url.
const TraceIDPlaceholder = "{traceId}"

var errTraceURL = errors.New(
	"--trace-url must be an http or https address with " + TraceIDPlaceholder +
		" in its path, query or fragment, such as https://jaeger.example.com/trace/" + TraceIDPlaceholder,
)

// checkTraceURL checks the address of a page about a trace.
func checkTraceURL(template string) error {
	if template == "" {
		return nil
	}
	a, err := url.Parse(strings.Replace(template, TraceIDPlaceholder, "a", 1))
	b, err2 := url.Parse(strings.Replace(template, TraceIDPlaceholder, "b", 1))
	if err != nil || err2 != nil || a.Host == "" || a.Scheme != "https" && a.Scheme != "http" || a.User != nil ||
		strings.Count(template, TraceIDPlaceholder) != 1 || a.Host != b.Host {
		return errTraceURL
	}
	return nil
}

// TracePage returns the address of the page about a trace, or nil.
func (s *Server) TracePage(id string) *string {
	if id == "" || s.TraceURL == "" {
		return nil
	}
	return new(strings.Replace(s.TraceURL, TraceIDPlaceholder, id, 1))
}

// untraced lists the routes whose requests are not recorded: probes, and event streams, which last as long as their page is open.
var untraced = map[string]bool{"/healthz": true, "/readyz": true, APIBase + "/events": true}

// trace records a request as a span that is named after its route. It records neither the path nor the query, which contain
// ids and search terms, nor the caller, and it does not continue a trace that the caller names: callers do not decide what is
// recorded.
func (s *Server) trace(c *gin.Context) {
	route := c.FullPath()
	if !s.Tracer.On() || route == "" || untraced[route] {
		return
	}
	method := c.Request.Method
	if _, known := s.table[method+" "+route]; !known {
		return
	}
	ctx, span := s.Tracer.Start(c.Request.Context(), method+" "+route, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", method), attribute.String("http.route", route), tracing.RequestID.String(c.GetString(keyRequestID))))
	defer func() {
		status := c.Writer.Status()
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			tracing.Fail(span, http.StatusText(status))
		}
		span.End()
	}()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}
