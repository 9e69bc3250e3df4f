package hubble

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

var t0 = time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)

func clock() time.Time { return t0 }

// at returns the time of the i-th flow: ten flows a second, over long enough for the first ones to leave the overlap.
func at(i int) time.Time { return t0.Add(-time.Hour + time.Duration(i)*100*time.Millisecond) }

// verdict returns the verdict event of one connection, from a source port of its own.
func verdict(i int, change ...func(*flowpb.Flow)) *flowpb.Flow {
	f := &flowpb.Flow{
		Uuid: fmt.Sprintf("flow-%d", i), Time: timestamppb.New(at(i)), NodeName: "n1", Verdict: flowpb.Verdict_FORWARDED,
		EventType: &flowpb.CiliumEventType{Type: eventVerdict}, TrafficDirection: flowpb.TrafficDirection_INGRESS, IsReply: wrapperspb.Bool(false),
		IP: &flowpb.IP{Source: "10.0.0.1", Destination: "10.0.0.2"},
		L4: &flowpb.Layer4{Protocol: &flowpb.Layer4_TCP{TCP: &flowpb.TCP{SourcePort: uint32(10000 + i%50000), DestinationPort: 6379}}},
		Source: &flowpb.Endpoint{ClusterName: "m2", Namespace: "apps", Labels: []string{
			"k8s:com.trip/appid=888", "k8s:io.cilium.k8s.policy.cluster=m2", "k8s:io.kubernetes.pod.namespace=apps"}},
		Destination: &flowpb.Endpoint{ClusterName: "m1", Labels: []string{"k8s:com.trip/redis-cluster=a"}},
	}
	for _, c := range change {
		c(f)
	}
	return f
}

func trace(reason flowpb.TraceReason) func(*flowpb.Flow) {
	return func(f *flowpb.Flow) {
		f.Uuid += "-trace"
		f.EventType = &flowpb.CiliumEventType{Type: eventTrace}
		f.TrafficDirection = flowpb.TrafficDirection_EGRESS // like a live agent for a client's first packet
		f.TraceObservationPoint = flowpb.TraceObservationPoint_TO_ENDPOINT
		f.TraceReason = reason
	}
}

func flowResponse(f *flowpb.Flow) *observerpb.GetFlowsResponse {
	return &observerpb.GetFlowsResponse{ResponseTypes: &observerpb.GetFlowsResponse_Flow{Flow: f}, NodeName: f.GetNodeName(), Time: f.GetTime()}
}

// wire returns the flow in the encoding of the gRPC API.
func wire(f *flowpb.Flow) []byte {
	b, err := proto.Marshal(flowResponse(f))
	if err != nil {
		panic(err) // cannot happen: the message was made here
	}
	return b
}

func take(in *ingester, f *flowpb.Flow) { in.ingestResponse(wire(f)) }

func lostResponse(when time.Time, source flowpb.LostEventSource, n uint64) *observerpb.GetFlowsResponse {
	return &observerpb.GetFlowsResponse{ResponseTypes: &observerpb.GetFlowsResponse_LostEvents{LostEvents: &flowpb.LostEvent{Source: source, NumEventsLost: n}},
		NodeName: "n1", Time: timestamppb.New(when)}
}

// observer is a Hubble server with a ring. It follows, resumes by time, and can be broken.
type observer struct {
	observerpb.UnimplementedObserverServer

	mu       sync.Mutex
	ring     []*observerpb.GetFlowsResponse
	base     int           // number of events that have left the ring
	grown    chan struct{} // closed and replaced when the ring or the break changes
	breakAt  int           // streams end before the event with this number; 0 means never
	sessions []time.Time   // the since parameter of each stream
}

func newObserver() *observer { return &observer{grown: make(chan struct{})} }

func (o *observer) change(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	close(o.grown)
	o.grown = make(chan struct{})
}

func (o *observer) emit(rs ...*observerpb.GetFlowsResponse) {
	o.change(func() { o.ring = append(o.ring, rs...) })
}

// forget drops the n oldest events of the ring.
func (o *observer) forget(n int) {
	o.change(func() { o.ring, o.base = slices.Clone(o.ring[n:]), o.base+n })
}

func (o *observer) breakBefore(n int) { o.change(func() { o.breakAt = n }) }

func (o *observer) ServerStatus(context.Context, *observerpb.ServerStatusRequest) (*observerpb.ServerStatusResponse, error) {
	return &observerpb.ServerStatusResponse{}, nil
}

func (o *observer) GetFlows(req *observerpb.GetFlowsRequest, stream grpc.ServerStreamingServer[observerpb.GetFlowsResponse]) error {
	o.change(func() { o.sessions = append(o.sessions, req.GetSince().AsTime()) })
	for next := 0; ; {
		o.mu.Lock()
		next = max(next, o.base)
		var r *observerpb.GetFlowsResponse
		if i := next - o.base; i < len(o.ring) {
			r = o.ring[i]
		}
		broken, grown := o.breakAt > 0 && next >= o.breakAt, o.grown
		o.mu.Unlock()
		if broken {
			return fmt.Errorf("the relay restarts")
		}
		if r == nil {
			select {
			case <-grown:
			case <-stream.Context().Done():
				return stream.Context().Err()
			}
			continue
		}
		next++
		if r.GetTime().AsTime().Before(req.GetSince().AsTime()) {
			continue
		}
		if err := stream.Send(r); err != nil {
			return err
		}
	}
}

// serve starts a server on a free local port and returns its address.
func serve(t *testing.T, o observerpb.ObserverServer, creds credentials.TransportCredentials) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(creds))
	observerpb.RegisterObserverServer(s, o)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return l.Addr().String()
}

// memorySink is a Sink and Resumer that keeps in memory what a store would keep.
type memorySink struct {
	mu      sync.Mutex
	grown   chan struct{}
	edges   map[audit.Edge]int64
	resume  audit.Resume
	losses  []audit.Loss
	flows   []audit.Flow
	watched []audit.WatchedSpan
	takenIn int
}

func newMemorySink() *memorySink {
	return &memorySink{grown: make(chan struct{}), edges: map[audit.Edge]int64{}}
}

func (l *memorySink) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.grown)
	l.grown = make(chan struct{})
}

func (l *memorySink) Add(t *audit.Event) {
	l.change(func() {
		if t.EdgeGroup != nil {
			for _, e := range t.EdgeGroup.Edges {
				l.edges[e] += t.Count
			}
		}
		if t.Loss != nil {
			l.losses = append(l.losses, *t.Loss)
		}
		if t.Flow != nil {
			l.flows = append(l.flows, *t.Flow)
		}
		l.takenIn++
		l.resume.Position = t.Position
		l.resume.Seen = append(slices.DeleteFunc(l.resume.Seen, func(s audit.SeenEvent) bool { return s.Time.Before(t.ForgetBefore) }), t.SeenEvent)
	})
}

func (l *memorySink) Progress(p audit.Progress) {
	l.change(func() { l.watched = append(l.watched, p.WatchedSpan) })
}

func (l *memorySink) AddLoss(x audit.Loss) { l.change(func() { l.losses = append(l.losses, x) }) }

func (l *memorySink) Resume(context.Context, string) (audit.Resume, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return audit.Resume{Position: l.resume.Position, Seen: slices.Clone(l.resume.Seen)}, nil
}

func (l *memorySink) total() int64 {
	var n int64
	for _, c := range l.edges {
		n += c
	}
	return n
}

// until waits for a state of the sink, at most until the test's deadline.
func (l *memorySink) until(t *testing.T, what string, ok func(l *memorySink) bool) {
	t.Helper()
	for {
		l.mu.Lock()
		done, grown := ok(l), l.grown
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-grown:
		case <-t.Context().Done():
			t.Fatalf("ended while waiting for %s", what)
		case <-time.After(time.Minute):
			l.mu.Lock()
			defer l.mu.Unlock()
			t.Fatalf("timed out waiting for %s: got %d events, %d connections, losses %+v", what, l.takenIn, l.total(), l.losses)
		}
	}
}

// fixed implements PolicyHistory with policies that never change.
type fixed struct{ epochs []audit.Epoch }

func always(e audit.Evaluator) fixed { return fixed{[]audit.Epoch{{Evaluator: e}}} }

func (f fixed) Wait(context.Context) error             { return nil }
func (f fixed) Epochs() []audit.Epoch                  { return f.epochs }
func plain() (credentials.TransportCredentials, error) { return insecure.NewCredentials(), nil }

func classes() policy.Input {
	sc := &v1alpha1.SubjectClass{Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"}}
	sc.Name = "application"
	rc := &v1alpha1.ResourceClass{Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:redis:clusters:*", LabelKey: "com.trip/redis-cluster",
		Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}}}
	rc.Name = "redis"
	return policy.Input{SubjectClasses: []*v1alpha1.SubjectClass{sc}, ResourceClasses: []*v1alpha1.ResourceClass{rc}}
}

func snapshot() *policy.Snapshot { return policy.NewSnapshot(classes()) }

// edge returns the edge for which verdict() counts without any policy.
func edge() audit.Edge {
	return audit.Edge{Cluster: "m1", SourceCluster: "m2", Subject: "trnv1:rsc:trip-com:iam:sa:app/888", Resource: "trnv1:rsc:trip-com:redis:clusters:a",
		Action: "redis:connect", Port: 6379, Protocol: "TCP", Decision: policy.Unmanaged, Verdict: audit.VerdictForwarded}
}

func config(address string, l *memorySink) Config {
	return Config{
		Member:      "m1",
		Address:     address,
		Credentials: plain,
		Resume:      l,
		Policies:    always(snapshot()),
		Sink:        l,
		Metrics: NewMetrics(
			prometheus.NewRegistry(),
		),
		Log:        slog.New(slog.DiscardHandler),
		MinBackoff: time.Millisecond,
		MaxBackoff: 5 * time.Millisecond,
		Now:        clock,
	}
}

// start runs a follower that started before every flow of the test, and returns a function that stops it.
func start(t *testing.T, cfg Config) (f *Follower, stop func()) {
	t.Helper()
	f, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	f.started = at(-1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return f, stop
}
