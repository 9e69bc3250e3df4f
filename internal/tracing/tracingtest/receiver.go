// Package tracingtest receives traces in tests, as a collector would: OTLP over HTTP on a loopback address.
package tracingtest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it arrived.
type Span struct {
	Service, Name             string
	TraceID, SpanID, ParentID string
	// Links are the ids of the traces that the span has links to.
	Links      []string
	Events     []string
	Attributes map[string]string
	Failed     bool
	Begin, End time.Time
}

// Receiver is a collector.
type Receiver struct {
	// URL is the value of the setting tracing-endpoint.
	URL string

	mu      sync.Mutex
	spans   []Span
	headers []http.Header
	changed chan struct{}
}

// NewReceiver starts a receiver, which ends with the test.
func NewReceiver(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{changed: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", r.receive)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

func (r *Receiver) receive(w http.ResponseWriter, req *http.Request) {
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(raw, &request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.headers = append(r.headers, req.Header.Clone())
	for _, of := range request.GetResourceSpans() {
		service := attributes(of.GetResource().GetAttributes())["service.name"]
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				span := Span{Service: service, Name: s.GetName(), TraceID: hex.EncodeToString(s.GetTraceId()), SpanID: hex.EncodeToString(s.GetSpanId()),
					ParentID: hex.EncodeToString(s.GetParentSpanId()), Attributes: attributes(s.GetAttributes()), Failed: s.GetStatus().GetCode() == 2,
					Begin: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano()))}
				for _, e := range s.GetEvents() {
					span.Events = append(span.Events, e.GetName())
				}
				for _, l := range s.GetLinks() {
					span.Links = append(span.Links, hex.EncodeToString(l.GetTraceId()))
				}
				r.spans = append(r.spans, span)
			}
		}
	}
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{}) // it is empty
	_, _ = w.Write(answer)                                              // the sender retries
}

func attributes(all []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range all {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[a.GetKey()] = v.StringValue
		default:
			out[a.GetKey()] = a.GetValue().String()
		}
	}
	return out
}

// Spans returns the spans that have arrived, in the order in which they began.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.spans)
	slices.SortStableFunc(out, func(a, b Span) int { return a.Begin.Compare(b.Begin) })
	return out
}

// Headers returns the HTTP headers of the requests that have arrived.
func (r *Receiver) Headers() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.headers)
}

// Until waits until the spans that have arrived are enough, at most for a time, and returns them.
func (r *Receiver) Until(t testing.TB, most time.Duration, enough func([]Span) bool) []Span {
	t.Helper()
	timeout := time.After(most)
	for {
		all := r.Spans()
		if enough(all) {
			return all
		}
		select {
		case <-r.changed:
		case <-timeout:
			for _, s := range all {
				t.Logf("%s %s: %s %v", s.TraceID, s.Service, s.Name, s.Attributes)
			}
			t.Fatalf("after %s %d spans have arrived, and they are not enough", most, len(all))
		}
	}
}
