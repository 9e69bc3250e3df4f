package hubble

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	relaypb "github.com/cilium/cilium/api/v1/relay"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/rollup"
)

// TestLongNamesAreCut verifies that the names that a source chooses take a bounded amount of memory.
func TestLongNamesAreCut(t *testing.T) {
	l := newMemorySink()
	cfg := config("unused", l)
	cfg.RawFlows = RawFlowsAll
	in := ingesterOf(t, &cfg, audit.Resume{})
	long := strings.Repeat("é", 1<<19)
	honest := strings.Repeat("c", 63) + "/" + strings.Repeat("n", 253)
	take(in, verdict(0, func(f *flowpb.Flow) { f.NodeName = honest }))
	take(in, verdict(1, func(f *flowpb.Flow) { f.NodeName = long }))
	if got := l.flows[0].Node; got != honest {
		t.Errorf("got the node %q, want the whole name", got)
	}
	take(in, verdict(2, func(f *flowpb.Flow) { f.NodeName, f.IP = long, nil }))
	lost := lostResponse(at(3), flowpb.LostEventSource_HUBBLE_RING_BUFFER, 1)
	lost.NodeName = long
	in.ingestOther(lost)
	in.ingestOther(nodeStatus(long))
	if len(l.flows) != 2 || len(l.losses) != 3 {
		t.Fatalf("got %d flows and %d losses, want 2 and 3", len(l.flows), len(l.losses))
	}
	nodes := []string{l.flows[1].Node}
	for _, x := range l.losses {
		nodes = append(nodes, x.Node)
	}
	for _, node := range nodes {
		if len(node) > maxNode+len("�") || !strings.HasPrefix(node, "éé") {
			t.Errorf("got a node whose name has %d bytes, want about the first %d", len(node), maxNode)
		}
	}
	in.ingestOther(nodeStatus(slices.Repeat([]string{"n"}, 3*maxStatusNodes)...))
	if n := len(l.losses) - 3; n != maxStatusNodes+1 {
		t.Errorf("got %d losses of a report with %d nodes, want %d", n, 3*maxStatusNodes, maxStatusNodes+1)
	}
}

func nodeStatus(names ...string) *observerpb.GetFlowsResponse {
	return &observerpb.GetFlowsResponse{ResponseTypes: &observerpb.GetFlowsResponse_NodeStatus{
		NodeStatus: &relaypb.NodeStatusEvent{StateChange: relaypb.NodeState_NODE_GONE, NodeNames: names}}}
}

// TestLongEndpointsAreUnreadable verifies that a flow with an endpoint that no Kubernetes object can have is recorded as lost, and
// that the largest honest ones are not.
func TestLongEndpointsAreUnreadable(t *testing.T) {
	name := strings.Repeat("n", maxName)
	many := func(n int) (labels []string) {
		for i := range n {
			labels = append(labels, fmt.Sprintf("k8s:io.cilium.k8s.namespace.labels.%s/%063d=%063d", name, i, i))
		}
		return labels
	}
	for test, tc := range map[string]struct {
		change func(*flowpb.Flow)
		lost   bool
	}{
		"LongestNames": {change: func(f *flowpb.Flow) {
			f.Source.Namespace, f.Source.ClusterName = name, name
			f.Source.Labels = append(many(50), "k8s:io.cilium.k8s.policy.serviceaccount="+name)
		}},
		"Cluster":     {change: func(f *flowpb.Flow) { f.Source.ClusterName = name + "x" }, lost: true},
		"Namespace":   {change: func(f *flowpb.Flow) { f.Source.Namespace = name + "x" }, lost: true},
		"Label":       {change: func(f *flowpb.Flow) { f.Source.Labels = []string{"k8s:com.trip/appid=" + strings.Repeat("8", 1<<10)} }, lost: true},
		"Labels":      {change: func(f *flowpb.Flow) { f.Destination.Labels = many(200) }, lost: true},
		"Zone":        {change: func(f *flowpb.Flow) { f.IP.Source = "fe80::1%" + strings.Repeat("z", 1<<20) }, lost: true},
		"Destination": {change: func(f *flowpb.Flow) { f.IP.Destination = strings.Repeat("1", 1<<20) }, lost: true},
	} {
		t.Run(test, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("unused", l)
			in := ingesterOf(t, &cfg, audit.Resume{})
			take(in, verdict(1, tc.change))
			if want := int64(1); !tc.lost && (l.total() != want || len(l.losses) != 0) {
				t.Errorf("got %d connections and losses %+v, want one connection", l.total(), l.losses)
			}
			if tc.lost {
				wantLosses(t, l, audit.Loss{Cluster: "m1", Node: "n1", Reason: audit.LossUnreadable, Count: 1, From: at(1), To: at(1)})
			}
		})
	}
}

// TestFloodOfLargeLabels sends events whose labels are all different, and as long or as many as they can be. Memory stays bounded.
func TestFloodOfLargeLabels(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for name, tc := range map[string]struct {
		events int
		labels func(i int) []string
		lost   bool
	}{
		"Long": {200, func(i int) []string { return []string{fmt.Sprintf("k8s:pod-%d=%s", i, large)} }, true},
		"Many": {1000, func(i int) []string {
			labels := make([]string, 2000)
			for n := range labels {
				labels[n] = fmt.Sprintf("k8s:pod-%d-%d=x", i, n)
			}
			return labels
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			totals, err := rollup.New(rollup.Config{Store: newUnusedStore(), Log: slog.New(slog.DiscardHandler), Now: clock})
			if err != nil {
				t.Fatal(err)
			}
			in := ingesterOfLeastLimits(t, totals)
			before, most := liveHeap(), int64(0)
			for i := range tc.events {
				take(in, verdict(i, func(f *flowpb.Flow) { f.Source.Labels = tc.labels(i) }))
				if i%50 == 49 {
					most = max(most, liveHeap()-before)
				}
			}
			if limit := int64(64 << 20); most > limit {
				t.Errorf("got a heap that grew by %d MiB, want at most %d", most>>20, limit>>20)
			}
			if cached := len(in.endpoints.byEncoding); tc.lost == (cached > 1) {
				t.Errorf("got %d cached endpoints", cached)
			}
			runtime.KeepAlive(in)
		})
	}
}

// TestOversizedMessagesArePassed verifies that a message that is too long to be received ends neither the reading of later events
// nor the record of what is missing.
func TestOversizedMessagesArePassed(t *testing.T) {
	o, l := newObserver(), newMemorySink()
	start(t, config(serve(t, o, insecure.NewCredentials()), l))
	o.emit(verdicts(0, 3)...)
	l.until(t, "the events before", func(l *memorySink) bool { return l.total() == 3 })
	o.emit(flowResponse(verdict(3, func(f *flowpb.Flow) { f.PolicyLog = []string{strings.Repeat("x", maxMessage)} })))
	l.until(t, "the loss", func(l *memorySink) bool { return len(l.losses) > 0 })
	wantLosses(t, l, audit.Loss{Cluster: "m1", Reason: audit.LossGap, From: at(2), To: t0})
	o.emit(flowResponse(verdict(4, func(f *flowpb.Flow) { f.Time = timestamppb.New(t0.Add(-time.Second)) })))
	l.until(t, "the event after", func(l *memorySink) bool { return l.total() == 4 })
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.losses) != 1 {
		t.Errorf("got losses %+v, want the one", l.losses)
	}
}

// TestLargeMessagesAreReceived verifies that the longest messages of a large member are received: that of a relay with the names of
// all nodes.
func TestLargeMessagesAreReceived(t *testing.T) {
	o, l := newObserver(), newMemorySink()
	start(t, config(serve(t, o, insecure.NewCredentials()), l))
	names := make([]string, maxStatusNodes)
	for i := range names {
		names[i] = fmt.Sprintf("%0200d", i)
	}
	r := nodeStatus(names...)
	r.Time = timestamppb.New(t0)
	o.emit(r)
	l.until(t, "the losses", func(l *memorySink) bool { return len(l.losses) == maxStatusNodes })
	if diff := cmp.Diff(names[7], l.losses[7].Node); diff != "" {
		t.Error(diff)
	}
}

// newUnusedStore returns a store that a test does not write to.
func newUnusedStore() audit.Writer { return struct{ audit.Writer }{} }
