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

// rawMessage is an encoded message. It is valid until the next one is received into it.
type rawMessage struct {
	buffer mem.Buffer
	copied []byte
}

// bytes returns the encoded message. The caller must not change it.
func (m *rawMessage) bytes() []byte {
	if m.buffer != nil {
		return m.buffer.ReadOnlyData()
	}
	return m.copied
}

// set stores the message, without a copy if it is in one buffer.
func (m *rawMessage) set(data mem.BufferSlice) {
	m.free()
	if len(data) == 1 {
		data[0].Ref()
		m.buffer = data[0]
		return
	}
	m.copied = m.copied[:0]
	for _, piece := range data {
		m.copied = append(m.copied, piece.ReadOnlyData()...)
	}
}

func (m *rawMessage) free() {
	if m.buffer != nil {
		m.buffer.Free()
		m.buffer = nil
	}
}

// rawCodec is a gRPC codec that returns responses undecoded, because only a small part of each flow is needed.
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
	f, ok := v.(*rawMessage)
	if !ok {
		return fmt.Errorf("a response of type %T is no frame", v)
	}
	f.set(data)
	return nil
}

// windowSize is the flow-control window of the stream and the connection, and readSize the size of a read, in bytes. With gRPC's
// default of 64 KiB a fast sender is blocked most of the time.
const (
	windowSize = 4 << 20
	readSize   = 128 << 10
)

// maxMessage is the length of the longest message that is received, in bytes. A flow has a few thousand bytes, and with the headers
// of an HTTP request at most some more than the 60 KiB that Envoy accepts; the longest messages are those with the names of all nodes.
const maxMessage = 1 << 20

// flowsSince returns a request for verdicts at destinations, for traces, and for proxy reports at destinations. It uses only
// filters that every observer supports: an observer that supports fewer rejects the request. Servers that ignore filters send
// more flows, so the ingester filters again.
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

// getFlows opens the stream of flows with the request.
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
