package main

import (
	"strings"
	"testing"

	"github.com/acp-io/acp/playground/node/internal/cluster"
)

func TestConfigure(t *testing.T) {
	for _, c := range []struct {
		reason  string
		names   []string
		options map[string]cluster.Options
		problem string
	}{
		{reason: "several clusters", names: []string{"host", "m1"}, options: map[string]cluster.Options{"m1": {APIPort: 1}}},
		{reason: "a name that is no host name", names: []string{"../x"}, problem: "no name for a cluster"},
		{reason: "an empty name", names: []string{""}, problem: "no name for a cluster"},
		{reason: "a name that is there twice", names: []string{"m1", "m1"}, problem: "named twice"},
		{reason: "options of no cluster", names: []string{"m1"}, options: map[string]cluster.Options{"m2": {}}, problem: "--clusters does not"},
		{reason: "too many", names: make([]string, cluster.MaxClusters+1), problem: "at most"},
	} {
		got, err := configure(c.names, c.options)
		switch {
		case c.problem == "" && err != nil, c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%s: %v, want %q", c.reason, err, c.problem)
		case c.problem == "" && (len(got) != len(c.names) || got[1].Number != 2 || got[1].APIPort != 1):
			t.Errorf("%s: %+v", c.reason, got)
		}
	}
}
