package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/playground/dataplane/internal/engine"
	"github.com/acp-io/acp/playground/dataplane/internal/mesh"
)

func TestReply(t *testing.T) {
	m, err := mesh.New([]string{"m1", "m2"})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New("m1")
	for _, p := range []mesh.Pod{
		{Cluster: "m2", Namespace: "a", Name: "client", IP: "10.2.0.1"}, {Cluster: "m1", Namespace: "b", Name: "server", IP: "10.1.0.1"},
	} {
		update, err := m.Upsert(p)
		if err != nil {
			t.Fatal(err)
		}
		e.UpdateIdentities(update.Added, update.Deleted)
	}
	for _, c := range []struct {
		reason string
		ask    []connection
		want   answer
	}{
		{
			"no policy selects the server", []connection{{"m2/a/client", "b/server", 80}, {"172.30.0.1", "b/server", 80}},
			answer{Outcomes: []string{"no-policy", "no-policy"}},
		},
		{"a client that is not there", []connection{{"m1/a/client", "b/server", 80}}, answer{Error: "from m1/a/client to b/server: no such pod"}},
		{"a server of another member", []connection{{"m2/a/client", "a/client", 80}}, answer{Error: "from m2/a/client to a/client: no such pod"}},
	} {
		if diff := cmp.Diff(c.want, reply(e, m, "m1", question{Connections: c.ask})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}
