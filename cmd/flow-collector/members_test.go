package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParseMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                        string
		relays, exporters, accessLogs []string
		want                          []member
		sources                       []string
		problem                       string
	}{
		"Hubble": {reason: "one source", relays: []string{"m1=relay:4245"}, want: []member{{name: "m1", address: "relay:4245"}},
			sources: []string{"m1"}},
		"Istio": {reason: "a member without Cilium", accessLogs: []string{"m1=a.log"}, want: []member{{name: "m1", accessLog: "a.log"}},
			sources: []string{"m1/istio"}},
		"Both": {reason: "two sources of one member", relays: []string{"m1=relay:4245"}, exporters: []string{"m2=-"},
			accessLogs: []string{"m2=a.log", "m3=b.log"},
			want:       []member{{name: "m1", address: "relay:4245"}, {name: "m2", file: "-", accessLog: "a.log"}, {name: "m3", accessLog: "b.log"}},
			sources:    []string{"m1", "m2", "m2/istio", "m3/istio"}},
		"Twice": {reason: "two logs of one member", accessLogs: []string{"m1=a.log", "m1=b.log"}, problem: "member m1 is given twice"},
		"TwoHubbles": {reason: "two Hubbles of one member", relays: []string{"m1=relay:4245"}, exporters: []string{"m1=a.log"},
			problem: "member m1 is given twice"},
		"TwoInputs": {reason: "there is one standard input", exporters: []string{"m1=-"}, accessLogs: []string{"m2=-"}, problem: "only one source can use"},
		"Name":      {reason: "a slash is that of sources", accessLogs: []string{"m1/istio=a.log"}, problem: "--istio-access-log"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseMembers(tc.relays, tc.exporters, tc.accessLogs)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("%s: got %v, want %q", tc.reason, err, tc.problem)
				}
				return
			}
			var sources []string
			for _, m := range got {
				sources = append(sources, m.sources()...)
			}
			if err != nil || !slices.Equal(got, tc.want) || !slices.Equal(sources, tc.sources) {
				t.Errorf("%s: got %+v, %v with the sources %v, want %+v", tc.reason, got, err, sources, tc.want)
			}
		})
	}
}
