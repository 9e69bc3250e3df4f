package hubble

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func client(t *testing.T, ring *Ring) observerpb.ObserverClient {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	srv := grpc.NewServer()
	observerpb.RegisterObserverServer(srv, NewServer(Config{
		Ring: ring, Version: "v", Address: "127.0.0.1:1",
		Nodes: func() []string { return []string{"m1/n1", "m1/n2"} },
		Now:   func() time.Time { return epoch },
	}))
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(srv.Stop)
	conn, err := grpc.NewClient("passthrough:///ring", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return observerpb.NewObserverClient(conn)
}

// five returns a ring with five flows, one per second: 0, 2 and 4 are verdicts, 1 and 3 are drops, and 4 is a reply.
func five() *Ring {
	r := NewRing(10)
	for n := range 5 {
		f := numbered(n)
		f.Time = timestamppb.New(epoch.Add(time.Duration(n) * time.Second))
		f.EventType = &flowpb.CiliumEventType{Type: 5}
		f.Verdict = flowpb.Verdict_FORWARDED
		if n%2 == 1 {
			f.EventType.Type, f.Verdict = 1, flowpb.Verdict_DROPPED
		}
		f.IsReply = wrapperspb.Bool(n == 4)
		r.Add(f)
	}
	return r
}

func TestGetFlows(t *testing.T) {
	drops := []*flowpb.FlowFilter{{Verdict: []flowpb.Verdict{flowpb.Verdict_DROPPED}}}
	verdicts := []*flowpb.FlowFilter{{EventType: []*flowpb.EventTypeFilter{{Type: 5}}}}
	cases := map[string]struct {
		reason string
		req    *observerpb.GetFlowsRequest
		want   []string
	}{
		"All":       {"without limits, the whole ring", &observerpb.GetFlowsRequest{}, []string{"0", "1", "2", "3", "4"}},
		"Last":      {"number counts from the newest", &observerpb.GetFlowsRequest{Number: 2}, []string{"3", "4"}},
		"First":     {"first counts from the oldest", &observerpb.GetFlowsRequest{Number: 2, First: true}, []string{"0", "1"}},
		"Since":     {"since is inclusive", &observerpb.GetFlowsRequest{Since: timestamppb.New(epoch.Add(3 * time.Second))}, []string{"3", "4"}},
		"Until":     {"until is inclusive", &observerpb.GetFlowsRequest{Until: timestamppb.New(epoch.Add(time.Second))}, []string{"0", "1"}},
		"Whitelist": {"only what the whitelist names", &observerpb.GetFlowsRequest{Whitelist: drops}, []string{"1", "3"}},
		"Blacklist": {"all but what the blacklist names", &observerpb.GetFlowsRequest{Blacklist: drops}, []string{"0", "2", "4"}},
		"NoReplies": {
			"what is a reply can be left out",
			&observerpb.GetFlowsRequest{Whitelist: []*flowpb.FlowFilter{{Reply: []bool{false}}}},
			[]string{"0", "1", "2", "3"},
		},
		"LastOfKind": {
			"number counts only what passes the filters", &observerpb.GetFlowsRequest{Number: 2, Whitelist: verdicts}, []string{"2", "4"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stream, err := client(t, five()).GetFlows(t.Context(), tc.req)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for {
				res, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				got = append(got, res.GetFlow().GetUuid())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGetFlowsRefusals(t *testing.T) {
	cases := map[string]struct {
		reason string
		req    *observerpb.GetFlowsRequest
		want   codes.Code
	}{
		"Filter": {
			"a filter that is not understood would show what the caller excluded",
			&observerpb.GetFlowsRequest{Blacklist: []*flowpb.FlowFilter{{SourcePod: []string{"x"}}}}, codes.Unimplemented,
		},
		"FirstAndFollow": {
			"the oldest flows never end", &observerpb.GetFlowsRequest{First: true, Follow: true}, codes.InvalidArgument,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stream, err := client(t, five()).GetFlows(t.Context(), tc.req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); status.Code(err) != tc.want {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	ring := five()
	stream, err := client(t, ring).GetFlows(t.Context(), &observerpb.GetFlowsRequest{Follow: true, Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4", "5"} {
		res, err := stream.Recv()
		if err != nil || res.GetFlow().GetUuid() != want {
			t.Fatalf("got %v, %v, want flow %s", res, err, want)
		}
		ring.Add(numbered(5))
	}
}

func TestServerStatusAndNodes(t *testing.T) {
	c := client(t, five())
	st, err := c.ServerStatus(t.Context(), &observerpb.ServerStatusRequest{})
	if err != nil || st.GetNumFlows() != 5 || st.GetMaxFlows() != 10 || st.GetSeenFlows() != 5 || st.GetNumConnectedNodes().GetValue() != 2 {
		t.Errorf("ServerStatus: %v, %v", st, err)
	}
	nodes, err := c.GetNodes(t.Context(), &observerpb.GetNodesRequest{})
	if err != nil || len(nodes.GetNodes()) != 2 || nodes.GetNodes()[0].GetName() != "m1/n1" {
		t.Errorf("GetNodes: %v, %v", nodes, err)
	}
}
