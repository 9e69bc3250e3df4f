package main

import (
	"fmt"
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
		{reason: "too many", names: numbered(cluster.MaxNodes + 1), problem: "at most"},
		{reason: "too many nodes", names: []string{"m1"}, options: map[string]cluster.Options{"m1": {Nodes: 1 << 40}}, problem: "at most"},
		{reason: "a node with the name of a cluster", names: []string{"m1", "m1-2"}, options: map[string]cluster.Options{"m1": {Nodes: 2}}, problem: "has the name of"},
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

func numbered(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("c%d", i))
	}
	return out
}

func TestFurtherNodes(t *testing.T) {
	got, err := configure([]string{"host", "m1"}, map[string]cluster.Options{"host": {Nodes: 3, APIPort: 1}})
	if err != nil || len(got) != 4 {
		t.Fatalf("%d nodes, want 4: %v", len(got), err)
	}
	for i, want := range []string{"host-2", "host-3"} {
		c := got[2+i]
		if c.Name != want || c.Number != 3+i || c.Join == nil || c.Join.Name != "host" || c.APIPort != 0 {
			t.Errorf("%+v, want %s, which joins host", c, want)
		}
		if c.Pods() != got[0].Pods() || c.Services() != got[0].Services() || c.ServerIP() != got[0].NodeIP() || c.NodeIP() == got[0].NodeIP() {
			t.Errorf("%s: pods %s, Services %s, API server %s, node %s", c.Name, c.Pods(), c.Services(), c.ServerIP(), c.NodeIP())
		}
	}
}
