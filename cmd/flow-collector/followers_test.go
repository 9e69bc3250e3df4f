package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/hubble"
	"github.com/acp-io/acp/internal/audit/policyhistory"
	"github.com/acp-io/acp/internal/audit/rollup"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/federation"
)

// waitingCollector returns a collector whose followers wait for the policies, which are never read.
func waitingCollector(t *testing.T) (c *collector, reg *prometheus.Registry) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	reg = prometheus.NewRegistry()
	c = &collector{log: log, writer: store, metrics: hubble.NewMetrics(reg)}
	c.followers = newFollowers(c)
	if c.source, err = policyhistory.New(policyhistory.Config{Host: &rest.Config{Host: "http://127.0.0.1:1"}, Now: time.Now, Log: log}); err != nil {
		t.Fatal(err)
	}
	if c.rollups, err = rollup.New(rollup.Config{Store: store, Log: log}); err != nil {
		t.Fatal(err)
	}
	return c, reg
}

// TestMembersWithAProblemKeepTheirSources checks that a member whose declaration cannot be used keeps its relay, although the settings still
// name its access log.
func TestMembersWithAProblemKeepTheirSources(t *testing.T) {
	c, reg := waitingCollector(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer c.followers.running.Wait()
	defer cancel()
	both, log := member{name: "m1", address: "127.0.0.1:1", accessLog: "a.log"}, member{name: "m1", accessLog: "a.log"}
	for _, members := range [][]member{{log}, nil} {
		c.followers.set(ctx, []member{both}, nil)
		c.followers.set(ctx, members, map[string]string{"m1": "not an address"})
		r := c.followers.byMember["m1"]
		if r == nil || !r.member.sameSources(both) {
			t.Fatalf("with the settings %+v, the member is followed at %+v", members, r)
		}
	}
	c.followers.set(ctx, nil, nil)
	if n, err := testutil.GatherAndCount(reg, "acp_flow_source_connected"); err != nil || n != 0 {
		t.Errorf("%d gauges are left, %v", n, err)
	}
}

// TestCountsAreStoredBeforeARestart checks that the successor of a follower finds the position up to which its predecessor has counted.
func TestCountsAreStoredBeforeARestart(t *testing.T) {
	c, _ := waitingCollector(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer c.followers.running.Wait()
	defer cancel()
	c.followers.set(ctx, []member{{name: "m1", address: "127.0.0.1:1"}}, nil)
	at := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	c.rollups.Add(&audit.Event{SeenEvent: audit.SeenEvent{Source: "m1", Time: at, ID: 1}, Position: at})
	c.followers.set(ctx, []member{{name: "m1", address: "127.0.0.1:2"}}, nil)
	if r, err := c.writer.Resume(t.Context(), "m1"); err != nil || !r.Position.Equal(at) {
		t.Errorf("the successor continues at %s, %v; want %s", r.Position, err, at)
	}
}

func TestRegisteredMembers(t *testing.T) {
	relay := &federation.Relay{Address: "relay:4245"}
	o := options{members: []member{{name: "m1", accessLog: "a.log"}, {name: "m2", address: "own:4245"}, {name: "m3", accessLog: "b.log"}}}
	members, problems := o.registered([]federation.RegisteredRelay{
		{Member: "m1", Problem: context.Canceled}, {Member: "m2", Problem: context.Canceled}, {Member: "m3", Relay: relay}, {Member: "m4", Relay: relay},
	})
	want := []string{"m2 own:4245 ", "m3 relay:4245 b.log", "m4 relay:4245 "}
	var got []string
	for _, m := range members {
		got = append(got, m.name+" "+m.address+" "+m.accessLog)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"m1": context.Canceled.Error()}, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if o.members[2].address != "" || len(o.members) != 3 {
		t.Errorf("the settings were changed: %+v", o.members)
	}
}
