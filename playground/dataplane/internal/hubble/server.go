package hubble

import (
	"context"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	relaypb "github.com/cilium/cilium/api/v1/relay"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Server implements the part of Hubble's observer API that collectors use.
type Server struct {
	observerpb.UnimplementedObserverServer
	ring    *Ring
	nodes   func() []string
	address string
	version string
	now     func() time.Time
	started time.Time
}

// Config configures a Server. Nodes returns the names of the member's nodes.
type Config struct {
	Ring             *Ring
	Nodes            func() []string
	Address, Version string
	Now              func() time.Time
}

// NewServer returns a server.
func NewServer(c Config) *Server {
	return &Server{ring: c.Ring, nodes: c.Nodes, address: c.Address, version: c.Version, now: c.Now, started: c.Now()}
}

// GetFlows streams flows: the last `number` of them, all since a time, or (first) the oldest ones; with follow also future ones. A
// reader that is slower than the ring receives the number of lost flows.
func (s *Server) GetFlows(req *observerpb.GetFlowsRequest, stream observerpb.Observer_GetFlowsServer) error {
	if err := checkFilters(append(req.GetWhitelist(), req.GetBlacklist()...)); err != nil {
		return err
	}
	if req.GetFirst() && req.GetFollow() {
		return status.Error(codes.InvalidArgument, "first and follow cannot be combined")
	}
	from, limit := s.start(req)
	var sent uint64
	done := status.Error(codes.OK, "")
	yield := func(f *flowpb.Flow) error {
		if since := req.GetSince(); since != nil && f.GetTime().AsTime().Before(since.AsTime()) {
			return nil
		}
		if until := req.GetUntil(); until != nil && f.GetTime().AsTime().After(until.AsTime()) {
			return errEnd
		}
		if !passes(f, req.GetWhitelist(), req.GetBlacklist()) {
			return nil
		}
		if err := stream.Send(&observerpb.GetFlowsResponse{
			ResponseTypes: &observerpb.GetFlowsResponse_Flow{Flow: f}, NodeName: f.GetNodeName(), Time: f.GetTime(),
		}); err != nil {
			return err
		}
		if sent++; limit > 0 && sent == limit {
			return errEnd
		}
		return nil
	}
	lose := func(n uint64) error {
		return stream.Send(&observerpb.GetFlowsResponse{
			ResponseTypes: &observerpb.GetFlowsResponse_LostEvents{LostEvents: &flowpb.LostEvent{
				Source: flowpb.LostEventSource_HUBBLE_RING_BUFFER, NumEventsLost: n,
			}},
			NodeName: s.nodeName(), Time: timestamppb.New(s.now()),
		})
	}
	err := s.ring.follow(stream.Context(), from, req.GetFollow(), yield, lose)
	if err == errEnd { //nolint:errorlint // it is never wrapped
		return done
	}
	return err
}

// errEnd ends a stream that has sent all requested flows.
var errEnd = status.Error(codes.OutOfRange, "end of the requested flows")

// start returns the number of the first flow to read, and the maximum number of flows to send, where 0 means no limit.
func (s *Server) start(req *observerpb.GetFlowsRequest) (from, limit uint64) {
	oldest, next := s.ring.Bounds()
	switch {
	case req.GetFirst():
		return oldest, req.GetNumber()
	case req.GetSince() != nil:
		return oldest, 0
	case req.GetNumber() > 0:
		return s.back(next, oldest, req), 0
	case req.GetFollow():
		return next, 0
	default:
		return oldest, 0
	}
}

// back returns the number of the flow from which on `number` flows pass the filters.
func (s *Server) back(next, oldest uint64, req *observerpb.GetFlowsRequest) uint64 {
	found := uint64(0)
	for n := next; n > oldest; n-- {
		f, _, _ := s.ring.Read(n - 1)
		if f == nil { // overwritten meanwhile
			return n
		}
		if passes(f, req.GetWhitelist(), req.GetBlacklist()) {
			if found++; found == req.GetNumber() {
				return n - 1
			}
		}
	}
	return oldest
}

func (s *Server) nodeName() string {
	if nodes := s.nodes(); len(nodes) > 0 {
		return nodes[0]
	}
	return ""
}

// ServerStatus returns the size and fill level of the ring.
func (s *Server) ServerStatus(context.Context, *observerpb.ServerStatusRequest) (*observerpb.ServerStatusResponse, error) {
	oldest, next := s.ring.Bounds()
	uptime := s.now().Sub(s.started)
	out := &observerpb.ServerStatusResponse{
		NumFlows: next - oldest, MaxFlows: uint64(len(s.ring.flows)), SeenFlows: next, UptimeNs: uint64(uptime),
		NumConnectedNodes:   wrapperspb.UInt32(uint32(len(s.nodes()))),
		NumUnavailableNodes: wrapperspb.UInt32(0),
		Version:             s.version,
	}
	if uptime > 0 {
		out.FlowsRate = float64(next) / uptime.Seconds()
	}
	return out, nil
}

// GetNodes returns the nodes of the member.
func (s *Server) GetNodes(context.Context, *observerpb.GetNodesRequest) (*observerpb.GetNodesResponse, error) {
	out := &observerpb.GetNodesResponse{}
	for _, name := range s.nodes() {
		out.Nodes = append(out.Nodes, &observerpb.Node{
			Name: name, Version: s.version, Address: s.address, State: relaypb.NodeState_NODE_CONNECTED,
			Tls: &observerpb.TLS{Enabled: true}, UptimeNs: uint64(s.now().Sub(s.started)),
		})
	}
	return out, nil
}
