package core

import (
	"testing"
)

func TestTraceURL(t *testing.T) {
	for template, ok := range map[string]bool{
		"":                                       true,
		"https://jaeger.example/trace/{traceId}": true,
		"http://127.0.0.1:16686/trace/{traceId}": true,
		"https://grafana.example/explore?left=%7B%22query%22:%22{traceId}%22%7D": true,
		"https://x.example/#/{traceId}":                                          true,
		"https://jaeger.example/trace/":                                          false,
		"https://{traceId}.example/":                                             false,
		"https://x.example/{traceId}/{traceId}":                                  false,
		"javascript:alert('{traceId}')":                                          false,
		"//x.example/{traceId}":                                                  false,
		"https://u:p@x.example/{traceId}":                                        false,
	} {
		if err := checkTraceURL(template); (err == nil) != ok {
			t.Errorf("%q: %v", template, err)
		}
	}
}
