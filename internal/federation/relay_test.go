package federation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestParseRegisteredRelay(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation, proxy string
		address, through  string
		problem           string
	}{
		"address":        {annotation: `{"address": "relay.m1.example:443"}`, address: "relay.m1.example:443"},
		"yaml":           {annotation: "address: '[2001:db8::1]:4245'\nserverName: relay.m1", address: "[2001:db8::1]:4245"},
		"proxy":          {annotation: "address: relay:4245", proxy: "http://proxy:3128", address: "relay:4245", through: "http://proxy:3128"},
		"without proxy":  {annotation: "{address: relay:4245, withoutProxy: true}", proxy: "http://proxy:3128", address: "relay:4245"},
		"unknown field":  {annotation: "{address: relay:4245, authority: x}", problem: "authority"},
		"no port":        {annotation: "address: relay", problem: "is not HOST:PORT"},
		"empty":          {annotation: "", problem: "is not HOST:PORT"},
		"no certificate": {annotation: "{address: relay:4245, ca: none}", problem: "no PEM certificate"},
		"too long":       {annotation: "address: " + strings.Repeat("a", 70_000), problem: "more than"},
		"proxy no URL":   {annotation: "address: relay:4245", proxy: "http://user:secret@a b", problem: "proxyURL"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"proxyURL": tc.proxy}}}
			u.SetName("m1")
			u.SetAnnotations(map[string]string{AnnotationHubble: tc.annotation})
			got, err := parseRegisteredRelay(u)
			if err != nil || got.Member != "m1" {
				t.Fatalf("%+v, %v", got, err)
			}
			if tc.problem != "" {
				if got.Problem == nil || got.Relay != nil || !strings.Contains(got.Problem.Error(), tc.problem) ||
					strings.Contains(got.Problem.Error(), "secret") {
					t.Fatalf("relay %+v, problem %v, want %q", got.Relay, got.Problem, tc.problem)
				}
				return
			}
			if got.Problem != nil || got.Relay.Address != tc.address || proxyText(got.Relay.Proxy) != tc.through {
				t.Fatalf("relay %+v, problem %v", got.Relay, got.Problem)
			}
		})
	}
	none, err := parseRegisteredRelay(&unstructured.Unstructured{Object: map[string]any{}})
	if err != nil || none.Relay != nil || none.Problem != nil {
		t.Errorf("without the annotation: %+v, %v", none, err)
	}
}
