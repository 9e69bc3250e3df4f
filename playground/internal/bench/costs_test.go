package bench

import (
	"strings"
	"testing"
	"time"
)

const metricsBefore = `# HELP apiserver_request_duration_seconds Response latency
apiserver_request_duration_seconds_sum{group="acp.io",resource="policies",scope="resource",subresource="status",verb="PUT"} 1
apiserver_request_duration_seconds_count{group="acp.io",resource="policies",scope="resource",subresource="status",verb="PUT"} 10
apiserver_request_duration_seconds_count{group="acp.io",resource="policies",scope="cluster",subresource="",verb="WATCH"} 3
`

const metricsAfter = `apiserver_request_duration_seconds_sum{group="acp.io",resource="policies",scope="resource",subresource="status",verb="PUT"} 1.5
apiserver_request_duration_seconds_count{group="acp.io",resource="policies",scope="resource",subresource="status",verb="PUT"} 60
apiserver_request_duration_seconds_sum{group="acp.io",resource="policies",scope="resource",subresource="",verb="POST"} 0.2
apiserver_request_duration_seconds_count{group="acp.io",resource="policies",scope="resource",subresource="",verb="POST"} 100
apiserver_request_duration_seconds_count{group="acp.io",resource="policies",scope="cluster",subresource="",verb="WATCH"} 900
apiserver_request_duration_seconds_count{group="",resource="leases",scope="resource",subresource="",verb="GET"} 0.4
`

// TestCosts checks what is printed of the metrics of an API server and of the processor time of processes: the difference for each object,
// without watches and without what is rare.
func TestCosts(t *testing.T) {
	began := time.Unix(1000, 0)
	costs := func(at time.Time, metrics string, cpu map[process]time.Duration) Costs {
		c := Costs{at: at, cpu: cpu, requests: map[request]answers{}}
		if err := c.read("host", strings.NewReader(metrics)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := costs(began, metricsBefore, map[process]time.Duration{{"adapter", 1}: 5 * time.Second, {"etcd", 2}: time.Second})
	after := costs(began.Add(4*time.Second), metricsAfter, map[process]time.Duration{
		{"adapter", 3}: 3 * time.Second, // it was restarted
		{"etcd", 2}:    2 * time.Second,
	})
	var out strings.Builder
	after.Print(&out, "bulk", before, 100)
	want := `cost of bulk: host: POST policies: 1 for each, answered in 2.0 ms
cost of bulk: host: PUT policies/status: 0.5 for each, answered in 10.0 ms
cost of bulk: processor time of adapter: 30.00 ms for each, 75 %
cost of bulk: processor time of etcd: 10.00 ms for each, 25 %
cost of bulk: processor time of all: 40.00 ms for each, 1.00 processors of the machine
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	if err := after.read("host", strings.NewReader("apiserver_request_duration_seconds_sum{} x\n")); err == nil {
		t.Error("a line without a number is accepted")
	}
}
