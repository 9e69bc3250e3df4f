package hubble

import (
	"context"
	"fmt"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// frame is a message as it came, valid until the next one is received into it.
type frame struct {
	held mem.Buffer
	own  []byte
}

// bytes of the message. They must not be changed.
func (f *frame) bytes() []byte {
	if f.held != nil {
		return f.held.ReadOnlyData()
	}
	return f.own
}

// take keeps the message without a copy where it lies in one piece.
func (f *frame) take(data mem.BufferSlice) {
	f.free()
	if len(data) == 1 {
		data[0].Ref()
		f.held = data[0]
		return
	}
	f.own = f.own[:0]
	for _, piece := range data {
		f.own = append(f.own, piece.ReadOnlyData()...)
	}
}

func (f *frame) free() {
	if f.held != nil {
		f.held.Free()
		f.held = nil
	}
}

// rawCodec hands responses over as bytes: what is needed of a flow is a small part of it.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("a request of type %T is no protobuf message", v)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("a response of type %T is no frame", v)
	}
	f.take(data)
	return nil
}

// Windows of the stream and the connection, and the size of a read: with gRPC's own of 64 KiB a fast sender waits for
// permission most of the time.
const (
	windowSize = 4 << 20
	readSize   = 128 << 10
)

// flowsSince asks for verdicts at destinations, for traces, and for what proxies report at destinations. It uses only the filters that every observer has: a smaller
// one refuses what it does not know. Servers that ignore filters send more; the intake looks again at everything.
func flowsSince(since time.Time) *observerpb.GetFlowsRequest {
	return &observerpb.GetFlowsRequest{
		Follow: true,
		Since:  timestamppb.New(since),
		Whitelist: []*flowpb.FlowFilter{
			{EventType: []*flowpb.EventTypeFilter{{Type: eventVerdict}}, TrafficDirection: []flowpb.TrafficDirection{flowpb.TrafficDirection_INGRESS}},
			{EventType: []*flowpb.EventTypeFilter{{Type: eventTrace}}},
			{EventType: []*flowpb.EventTypeFilter{{Type: eventL7}}, TrafficDirection: []flowpb.TrafficDirection{flowpb.TrafficDirection_INGRESS}},
		},
	}
}

// getFlows opens the stream of flows.
func getFlows(ctx context.Context, conn *grpc.ClientConn, request *observerpb.GetFlowsRequest) (grpc.ClientStream, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, observerpb.Observer_GetFlows_FullMethodName, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(request); err != nil {
		return nil, err
	}
	return stream, stream.CloseSend()
}
