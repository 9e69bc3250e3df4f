package hubble

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/exporter"
	"github.com/acp-io/acp/internal/audit/rollup"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/testenv"
)

// The benchmark sends the connections of clients to servers in a fleet of 600 pods, as a relay encodes them.
const (
	benchFlows   = 6_000_000
	benchRing    = 1 << 16 // pre-encoded; far more than is in flight at a time
	benchClients = 500
	benchServers = 100
	benchSize    = 880
)

// benchFlow returns a verdict of the usual size, with everything that Hubble writes.
func benchFlow(i int, r *rand.Rand) *flowpb.Flow {
	client, server := r.IntN(benchClients), r.IntN(benchServers)
	f := verdict(i, func(f *flowpb.Flow) {
		f.Uuid = fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i)
		f.NodeName = fmt.Sprintf("m1/node-%d", server%8)
		f.IP = &flowpb.IP{
			Source:      fmt.Sprintf("10.1.%d.%d", client/200, client%200),
			Destination: fmt.Sprintf("10.2.0.%d", server),
			IpVersion:   flowpb.IPVersion_IPv4,
		}
		f.L4.GetTCP().SourcePort = 32768 + r.Uint32N(28000)
		f.L4.GetTCP().Flags = &flowpb.TCPFlags{SYN: true}
		f.Ethernet = &flowpb.Ethernet{Source: "0a:58:0a:01:00:01", Destination: "0a:58:0a:02:00:02"}
		f.Source = benchEndpoint("com.trip/appid", strconv.Itoa(100000+client/2), "app", client)
		f.Destination = benchEndpoint("com.trip/redis-cluster", "orders-cache-"+strconv.Itoa(server/4), "redis", server)
		f.Type, f.PolicyMatchType = flowpb.FlowType_L3_L4, 2
		f.IngressAllowedBy = []*flowpb.Policy{
			{Name: "acp-orders-cache", Kind: "CiliumClusterwideNetworkPolicy", Labels: []string{"k8s:io.cilium.k8s.policy.name=acp-orders-cache"}},
		}
	})
	f.PolicyLog = []string{strings.Repeat("x", max(1, benchSize-proto.Size(flowResponse(f))-4))}
	return f
}

func benchEndpoint(key, value, name string, i int) *flowpb.Endpoint {
	return &flowpb.Endpoint{
		ID:          uint32(1000 + i),
		Identity:    uint32(20000 + i/2),
		ClusterName: "m1",
		Namespace:   name,
		PodName:     fmt.Sprintf("%s-%d-7c9f8", name, i),
		Labels: []string{
			"k8s:" + key + "=" + value,
			"k8s:io.cilium.k8s.policy.cluster=m1",
			"k8s:io.cilium.k8s.policy.serviceaccount=" + name,
			"k8s:io.kubernetes.pod.namespace=" + name,
		},
		Workloads: []*flowpb.Workload{{Name: fmt.Sprintf("%s-%d", name, i/2), Kind: "Deployment"}},
	}
}

// encodedFlow is a response whose identity and second can be changed in place.
type encodedFlow struct{ message, id, second []byte }

const secondBytes = 5 // length of a varint of this century

func encodeBenchFlows() []encodedFlow {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]encodedFlow, benchRing)
	for i := range out {
		f := benchFlow(i, r)
		f.Time = timestamppb.New(time.Unix(time.Now().Unix(), int64(r.IntN(1e9))))
		b := wire(f)
		at := strings.Index(string(b), f.GetUuid())
		second := strings.Index(string(b), string(protowire.AppendVarint(nil, uint64(f.GetTime().GetSeconds()))))
		out[i] = encodedFlow{b, b[at : at+8], b[second : second+secondBytes]}
	}
	return out
}

// preencoded is a server codec for encoded messages.
type preencoded struct{}

func (preencoded) Name() string { return "proto" }

func (preencoded) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	b, err := proto.Marshal(v.(proto.Message))
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

func (preencoded) Unmarshal(data mem.BufferSlice, v any) error {
	return proto.Unmarshal(data.Materialize(), v.(proto.Message))
}

// sender sends a number of flows and then waits.
type sender struct {
	observerpb.UnimplementedObserverServer
	flows []encodedFlow
	n     int
}

func (s *sender) GetFlows(_ *observerpb.GetFlowsRequest, stream grpc.ServerStreamingServer[observerpb.GetFlowsResponse]) error {
	const hex = "0123456789abcdef"
	second := time.Now().Unix() - 1 // never in the future
	varint := protowire.AppendVarint(nil, uint64(second))
	for i := range s.n {
		if i%1024 == 0 {
			second = time.Now().Unix() - 1
			varint = protowire.AppendVarint(varint[:0], uint64(second))
		}
		f := &s.flows[i%len(s.flows)]
		for k := range f.id {
			f.id[k] = hex[i>>(4*(7-k))&15]
		}
		copy(f.second, varint)
		if err := stream.SendMsg(f.message); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func (s *sender) ServerStatus(context.Context, *observerpb.ServerStatusRequest) (*observerpb.ServerStatusResponse, error) {
	return &observerpb.ServerStatusResponse{}, nil
}

// measured is the result that the child process reports.
type measured struct {
	Flows   int64
	Seconds float64
	RSS     float64 // in MB, the peak
}

const benchEnv = "ACP_BENCH_INGEST"

// BenchmarkIngest runs the parts of the collector in a separate process, so that its memory does not include that of the sender.
func BenchmarkIngest(b *testing.B) {
	if mode := os.Getenv(benchEnv); mode != "" {
		child(b, mode)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer(
		grpc.ForceServerCodecV2(preencoded{}),
		grpc.InitialWindowSize(windowSize),
		grpc.InitialConnWindowSize(windowSize),
		grpc.WriteBufferSize(readSize),
	)
	observerpb.RegisterObserverServer(server, &sender{flows: encodeBenchFlows(), n: benchFlows})
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	const runs = 3
	var received, ingested measured
	for range runs {
		if m := runChild(b, "receive "+l.Addr().String()); m.rate() > received.rate() {
			received = m
		}
		if m := runChild(b, "ingest "+l.Addr().String()); m.rate() > ingested.rate() {
			ingested = m
		}
	}
	fmt.Printf("bench ingest_receive_flows_per_s %.0f flows/s\n", received.rate())
	fmt.Printf("bench ingest_flows_per_s %.0f flows/s\n", ingested.rate())
	fmt.Printf("bench ingest_vs_receive %.2f x\n", ingested.rate()/received.rate())
	fmt.Printf("bench ingest_rss %.0f MB\n", ingested.RSS)
}

func (m measured) rate() float64 {
	if m.Seconds == 0 {
		return 0
	}
	return float64(m.Flows) / m.Seconds
}

func runChild(b *testing.B, mode string) measured {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkIngest$", "-test.benchtime=1x")
	cmd.Env = append(os.Environ(), benchEnv+"="+mode, "GOMEMLIMIT=250MiB")
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %v\n%s", mode, err, out)
	}
	var m measured
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, "measured "); ok {
			if err := json.Unmarshal([]byte(rest), &m); err != nil {
				b.Fatal(err)
			}
		}
	}
	if m.Flows != benchFlows {
		b.Fatalf("%s: %d flows arrived, %d were sent:\n%s", mode, m.Flows, benchFlows, out)
	}
	return m
}

func child(b *testing.B, mode string) {
	what, address, _ := strings.Cut(mode, " ")
	var m measured
	if what == "receive" {
		m = receive(b, address)
	} else {
		m = ingest(b, address)
	}
	m.RSS = testenv.PeakMemory(b, os.Getpid())
	out, err := json.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("\nmeasured %s\n", out)
}

// receive is the baseline: it reads the needed fields of the same stream.
func receive(b *testing.B, address string) (m measured) {
	conn, err := grpc.NewClient("passthrough:///"+address, append(dialOptions(nil), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	stream, err := getFlows(b.Context(), conn, flowsSince(time.Now()))
	if err != nil {
		b.Fatal(err)
	}
	var f rawMessage
	defer f.free()
	var start time.Time
	for m.Flows < benchFlows {
		if err := stream.RecvMsg(&f); err != nil {
			b.Fatal(err)
		}
		if m.Flows == 0 {
			start = time.Now()
		}
		var e event
		if err := scanResponse(f.bytes(), &e); err != nil {
			b.Fatal(err)
		}
		m.Flows++
	}
	m.Seconds = time.Since(start).Seconds()
	return m
}

// ingest ingests the stream as the collector does, into a file.
func ingest(b *testing.B, address string) (m measured) {
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "flows.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	totals, err := rollup.New(rollup.Config{Store: store, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	all := &until{Aggregator: totals, n: benchFlows, done: make(chan struct{})}
	follower, err := New(
		Config{Member: "m1", Address: address, Credentials: plain, Resume: store, Policies: always(snapshot()), Sink: all, RawFlows: RawFlowsRefused,
			Metrics: NewMetrics(prometheus.NewRegistry()), Log: log},
	)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	written := make(chan error, 1)
	go func() { written <- totals.Run(ctx) }()
	followed := make(chan struct{})
	go func() { defer close(followed); follower.Run(ctx) }()
	<-all.done
	if err := totals.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	m.Seconds = time.Since(all.start).Seconds()
	cancel()
	<-followed
	if err := <-written; err != nil {
		b.Fatal(err)
	}
	if err := store.Totals(b.Context(), audit.Filter{}, func(t audit.Total) error { m.Flows += t.Count; return nil }); err != nil {
		b.Fatal(err)
	}
	return m
}

// until is a Sink that signals when a number of connections was counted.
type until struct {
	*rollup.Aggregator
	n     int
	start time.Time
	done  chan struct{}
}

func (u *until) Add(t *audit.Event) {
	if u.start.IsZero() {
		u.start = time.Now()
	}
	u.Aggregator.Add(t)
	if u.n--; u.n == 0 {
		close(u.done)
	}
}

// benchLines is a stream that repeats many lines of Hubble's exporter, each time as new flows.
type benchLines struct {
	lines  []encodedFlow
	n, i   int
	rest   []byte
	second []byte
}

func encodeBenchLines(b *testing.B) []encodedFlow {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]encodedFlow, benchRing)
	for i := range out {
		f := benchFlow(i, r)
		f.PolicyLog = []string{"acp"}
		f.Time = timestamppb.New(time.Unix(time.Now().Unix(), int64(r.IntN(1e9))))
		line := append(exported(b, f), '\n')
		at, second := strings.Index(string(line), f.GetUuid()), strings.Index(string(line), f.GetTime().AsTime().Format("2006-01-02T15:04:05"))
		out[i] = encodedFlow{line, line[at : at+8], line[second : second+len("2006-01-02T15:04:05")]}
	}
	return out
}

func (l *benchLines) Read(p []byte) (n int, err error) {
	const hex = "0123456789abcdef"
	for n < len(p) {
		if len(l.rest) == 0 {
			if l.i == l.n {
				return n, io.EOF
			}
			if l.i%1024 == 0 {
				l.second = time.Now().Add(-time.Second).UTC().AppendFormat(l.second[:0], "2006-01-02T15:04:05")
			}
			f := &l.lines[l.i%len(l.lines)]
			for k := range f.id {
				f.id[k] = hex[l.i>>(4*(7-k))&15]
			}
			copy(f.second, l.second)
			l.rest = f.message
			l.i++
		}
		k := copy(p[n:], l.rest)
		n, l.rest = n+k, l.rest[k:]
	}
	return n, nil
}

// BenchmarkLines ingests lines of Hubble's exporter, from a stream to roll-ups in SQLite.
func BenchmarkLines(b *testing.B) {
	const lines = 1_000_000
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "flows.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	encoded := encodeBenchLines(b)
	best := 0.0
	const runs = 3
	for run := range runs {
		member := fmt.Sprintf("m%d", run)
		totals, err := rollup.New(rollup.Config{Store: store, Log: log})
		if err != nil {
			b.Fatal(err)
		}
		follower, err := New(
			Config{Member: member, Lines: &exporter.Stream{R: &benchLines{lines: encoded, n: lines}}, Resume: store, Policies: always(snapshot()),
				Sink: totals, RawFlows: RawFlowsRefused, Metrics: NewMetrics(prometheus.NewRegistry()), Log: log},
		)
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		written := make(chan error, 1)
		go func() { written <- totals.Run(ctx) }()
		start := time.Now()
		follower.Run(ctx)
		if err := totals.Flush(ctx); err != nil {
			b.Fatal(err)
		}
		best = max(best, lines/time.Since(start).Seconds())
		cancel()
		if err := <-written; err != nil {
			b.Fatal(err)
		}
		var counted int64
		if err := store.Totals(
			b.Context(),
			audit.Filter{Clusters: []string{member}},
			func(t audit.Total) error { counted += t.Count; return nil },
		); err != nil {
			b.Fatal(err)
		}
		if counted != lines {
			b.Fatalf("%d lines were counted, %d were read", counted, lines)
		}
	}
	fmt.Printf("bench ingest_json_lines_per_s %.0f lines/s\n", best)
}
