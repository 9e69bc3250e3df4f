package traffic

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/playground/dataplane/internal/mesh"
)

const valid = `
connections:
- name: ok
  source: {selector: app=888}
  destination: {selector: redis=bobs}
  port: 6379
  interval: 1s
  jitter: 0.3
`

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason    string
		from, to  string
		wantError string
	}{
		"Valid":    {"a complete line", "", "", ""},
		"NoSource": {"a line without source does nothing", "selector: app=888", "", "exactly one of selector and address"},
		"BothSources": {
			"a source is a pod or an address",
			"selector: app=888",
			"selector: app=888, address: 10.5.0.7",
			"exactly one of selector and address",
		},
		"BadAddress":      {"an address must be one", "selector: app=888", "address: ten", "source.address"},
		"BadSelector":     {"a selector must be one", "app=888", "'app in'", "source.selector"},
		"NoDestination":   {"a line needs a destination", "redis=bobs", "''", "destination.selector"},
		"NoPort":          {"a line needs a port", "6379", "0", "port"},
		"PortTooLarge":    {"a port has 16 bits", "6379", "70000", "port"},
		"BadInterval":     {"an interval must be positive", "1s", "0s", "interval"},
		"BadJitter":       {"jitter is a part of the interval", "0.3", "2", "jitter"},
		"UnknownField":    {"a misspelt field must not be ignored", "jitter", "jiter", "jiter"},
		"Scheduled":       {"a job runs at its times", "interval: 1s\n  jitter: 0.3", "schedule: 0 2 * * 0\n  connections: 3", ""},
		"LongLived":       {"opened before anybody looked", "jitter: 0.3", "longLived: true\n  since: 48h", ""},
		"NoRhythm":        {"nobody knows when", "interval: 1s", "", "exactly one of interval and schedule"},
		"TwoRhythms":      {"nobody knows which", "interval: 1s", "interval: 1s\n  schedule: 0 2 * * 0", "exactly one of interval and schedule"},
		"BadSchedule":     {"a schedule must be one", "interval: 1s", "schedule: sundays\n  connections: 1", "schedule"},
		"NoConnections":   {"a job makes some", "interval: 1s\n  jitter: 0.3", "schedule: 0 2 * * 0", "connections must be from 1"},
		"ScheduledJitter": {"it would be ignored", "interval: 1s", "schedule: 0 2 * * 0\n  connections: 1", "jitter and longLived"},
		"CountedInterval": {"it would be ignored", "interval: 1s", "interval: 1s\n  connections: 1", "belongs to a schedule"},
		"UnknownProtocol": {"ICMP has no ports", "port: 6379", "port: 6379\n  protocol: ICMP", "protocol"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lines, err := Parse([]byte(strings.Replace(valid, tc.from, tc.to, 1)))
			if tc.wantError == "" {
				if err != nil || len(lines) != 1 {
					t.Errorf("%s: %v, %v", tc.reason, lines, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.wantError)
			}
		})
	}
}

func TestDemoFile(t *testing.T) {
	if _, err := os.Stat("../../../demo/traffic.yaml"); err != nil {
		t.Fatal(err)
	}
	lines, err := Load("../../../demo/traffic.yaml")
	if err != nil || len(lines) == 0 {
		t.Errorf("the demo's own file must be valid: %v", err)
	}
}

func TestPause(t *testing.T) {
	line := Line{Interval: time.Second, Jitter: 0.5}
	cases := map[string]struct {
		reason string
		rate   float64
		n      int
		random float64
		want   time.Duration
	}{
		"Middle":   {"no deviation in the middle", 1, 1, 0.5, time.Second},
		"Shortest": {"half the interval less", 1, 1, 0, 500 * time.Millisecond},
		"Longest":  {"half the interval more", 1, 1, 1, 1500 * time.Millisecond},
		"Shared":   {"four sources share the interval", 1, 4, 0.5, 250 * time.Millisecond},
		"Faster":   {"the rate divides", 10, 1, 0.5, 100 * time.Millisecond},
		"Bounded":  {"no rate can spin", 1e9, 1, 0.5, 100 * time.Microsecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := pause(line, tc.rate, tc.n, tc.random); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestEverySourceVisitsEveryDestination(t *testing.T) {
	destinations := []mesh.Endpoint{{Pod: mesh.Pod{Name: "a"}}, {Pod: mesh.Pod{Name: "b"}}}
	const sources = 2
	visited := map[int]map[string]bool{0: {}, 1: {}}
	for turn := range sources * len(destinations) {
		visited[turn%sources][pick(destinations, turn, sources).Name] = true
	}
	for source, names := range visited {
		if len(names) != len(destinations) {
			t.Errorf("source %d visited only %v", source, names)
		}
	}
}

func TestRun(t *testing.T) {
	m, err := mesh.New([]string{"m1", "m2"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []mesh.Pod{
		{Cluster: "m2", Namespace: "n", Name: "client", Labels: map[string]string{"app": "888"}, IP: "10.2.0.1"},
		{Cluster: "m1", Namespace: "n", Name: "server", Labels: map[string]string{"redis": "bobs"}, IP: "10.1.0.1"},
		{Cluster: "m2", Namespace: "n", Name: "elsewhere", Labels: map[string]string{"redis": "bobs"}, IP: "10.2.0.2"},
	} {
		if _, err := m.Upsert(p); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := Parse([]byte(strings.Replace(valid, "1s", "1ms", 1)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tried := make(chan Attempt)
	g := &Generator{Cluster: "m1", Mesh: m, Lines: lines, Rate: 1, Try: func(a Attempt) {
		select {
		case tried <- a:
		case <-ctx.Done():
		}
	}}
	ended := make(chan struct{})
	go func() { g.Run(ctx); close(ended) }()
	for range 3 {
		a := <-tried
		if a.Source == nil || a.Source.Name != "client" || a.Destination.Name != "server" || a.SourcePort < 32768 {
			t.Fatalf("attempt %+v: a client of any member must connect to the pods of m1 only", a)
		}
	}
	cancel()
	<-ended
}

// often is a schedule for tests; a cron expression has no parts of a second.
type often struct{}

func (often) Next(t time.Time) time.Time { return t.Add(time.Millisecond) }

func TestRunScheduled(t *testing.T) {
	m, err := mesh.New([]string{"m1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []mesh.Pod{
		{Cluster: "m1", Namespace: "n", Name: "client", Labels: map[string]string{"app": "888"}, IP: "10.1.0.1"},
		{Cluster: "m1", Namespace: "n", Name: "server", Labels: map[string]string{"redis": "bobs"}, IP: "10.1.0.2"},
	} {
		if _, err := m.Upsert(p); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := Parse([]byte(strings.Replace(valid, "interval: 1s\n  jitter: 0.3", "schedule: 0 2 * * 0\n  connections: 2", 1)))
	if err != nil {
		t.Fatal(err)
	}
	lines[0].Schedule = often{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tried := make(chan Attempt)
	g := &Generator{Cluster: "m1", Mesh: m, Lines: lines, Rate: 1, Try: func(a Attempt) {
		select {
		case tried <- a:
		case <-ctx.Done():
		}
	}}
	ended := make(chan struct{})
	go func() { g.Run(ctx); close(ended) }()
	for range 3 { // the job ran twice
		if a := <-tried; a.Source == nil || a.Source.Name != "client" || a.Destination.Name != "server" {
			t.Fatalf("attempt %+v", a)
		}
	}
	cancel()
	<-ended
}

func TestLongLivedConnectionsKeepTheirPort(t *testing.T) {
	a := Attempt{Line: Line{Name: "pool"}, Source: &mesh.Endpoint{Pod: mesh.Pod{Name: "client"}}, Destination: mesh.Endpoint{Pod: mesh.Pod{Name: "server"}}}
	b := a
	b.Destination.Name = "other"
	if first, again := a.hash(), a.hash(); first != again || first == b.hash() {
		t.Errorf("%d, %d, %d: one connection has one port, another has another", first, again, b.hash())
	}
}

func TestZeroRateGeneratesNothing(t *testing.T) {
	g := &Generator{Lines: []Line{{Interval: time.Millisecond}}, Try: func(Attempt) { t.Error("rate 0 must be silent") }}
	g.Run(t.Context()) // returns at once
}
