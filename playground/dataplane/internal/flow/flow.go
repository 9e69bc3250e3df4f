// Package flow returns the events that Hubble reports for a decided connection, as a live agent does.
//
// The package has no side effects and does not read the clock; the time is an argument.
package flow

import (
	"hash/fnv"
	"net/netip"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/u8proto"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/acp-io/acp/playground/dataplane/internal/engine"
	"github.com/acp-io/acp/playground/dataplane/internal/mesh"
)

// These are the event types of Cilium's monitor.
const (
	eventDrop          = 1
	eventTrace         = 4
	eventPolicyVerdict = 5
)

// dropNoMatch and dropDeny are Cilium's drop reasons for default deny and for a deny rule.
const (
	dropNoMatch = 133
	dropDeny    = 181
)

// labelWorkload is the label key with the name of a pod's workload in the demo.
const labelWorkload = "app.kubernetes.io/name"

// Source is the source of a connection: a pod, or an address outside the fleet.
type Source struct {
	Pod      *mesh.Endpoint
	Identity *identity.Identity
	IP       string
}

// Connection is a decided connection.
type Connection struct {
	At         time.Time
	From       Source
	To         mesh.Endpoint
	Protocol   u8proto.U8proto
	SourcePort uint16
	Port       uint16
	// Established reports whether the connection was opened long ago, so that only a packet of it is observed.
	Established bool
}

// Events returns the events of a decided connection, in the order of a live agent: without a policy a trace; otherwise one verdict,
// followed by a drop when it is refused. An established connection that passes has only a trace, with or without a policy.
func Events(c Connection, d engine.Decision) []*flowpb.Flow {
	passes := d.Outcome == engine.NoPolicy || d.Outcome == engine.Allowed
	switch {
	case c.Established && passes:
		return []*flowpb.Flow{trace(c, flowpb.TraceReason_ESTABLISHED)}
	case d.Outcome == engine.NoPolicy:
		f := trace(c, flowpb.TraceReason_NEW)
		// A live agent reports EGRESS in the trace of the client's first packet.
		f.TrafficDirection = flowpb.TrafficDirection_EGRESS
		return []*flowpb.Flow{f}
	case passes:
		f := base(c, eventPolicyVerdict, 0)
		f.Verdict = flowpb.Verdict_FORWARDED
		if d.Redirected {
			f.Verdict = flowpb.Verdict_REDIRECTED
		}
		f.PolicyMatchType, f.IngressAllowedBy, f.PolicyLog = uint32(d.Match), d.Policies, d.Log
		return []*flowpb.Flow{f}
	default:
		reason := int32(dropNoMatch)
		if d.Outcome == engine.Denied {
			reason = dropDeny
		}
		verdict, drop := base(c, eventPolicyVerdict, 0), base(c, eventDrop, reason)
		for _, f := range []*flowpb.Flow{verdict, drop} {
			f.Verdict = flowpb.Verdict_DROPPED
			f.DropReasonDesc = flowpb.DropReason(reason)
			f.DropReason = uint32(reason) //nolint:staticcheck // agents still fill the old field, and clients read it
		}
		if d.Outcome == engine.Denied {
			verdict.PolicyMatchType, verdict.IngressDeniedBy, verdict.PolicyLog = uint32(d.Match), d.Policies, d.Log
		}
		return []*flowpb.Flow{verdict, drop}
	}
}

func trace(c Connection, reason flowpb.TraceReason) *flowpb.Flow {
	f := base(c, eventTrace, 0)
	f.Verdict = flowpb.Verdict_FORWARDED
	f.TraceObservationPoint, f.TraceReason = flowpb.TraceObservationPoint_TO_ENDPOINT, reason
	return f
}

func base(c Connection, event, sub int32) *flowpb.Flow {
	f := &flowpb.Flow{
		Time:             timestamppb.New(c.At),
		Uuid:             uuid.NewString(),
		IP:               &flowpb.IP{Source: c.From.IP, Destination: c.To.IP, IpVersion: version(c.To.IP)},
		L4:               layer4(c),
		Source:           source(c.From),
		Destination:      endpoint(c.To),
		Type:             flowpb.FlowType_L3_L4,
		NodeName:         c.To.Cluster + "/" + c.To.Node,
		IsReply:          wrapperspb.Bool(false),
		EventType:        &flowpb.CiliumEventType{Type: event, SubType: sub},
		TrafficDirection: flowpb.TrafficDirection_INGRESS,
	}
	return f
}

func source(s Source) *flowpb.Endpoint {
	if s.Pod != nil {
		return endpoint(*s.Pod)
	}
	return &flowpb.Endpoint{Identity: uint32(s.Identity.ID), Labels: engine.LabelsOf(s.Identity)}
}

func endpoint(ep mesh.Endpoint) *flowpb.Endpoint {
	out := &flowpb.Endpoint{
		ID: endpointID(ep), Identity: uint32(ep.Identity.ID), ClusterName: ep.Cluster,
		Namespace: ep.Namespace, PodName: ep.Name, Labels: engine.LabelsOf(ep.Identity),
	}
	if name := ep.Labels[labelWorkload]; name != "" {
		out.Workloads = []*flowpb.Workload{{Name: name, Kind: "Deployment"}}
	}
	return out
}

// endpointID returns a number that is constant for a pod.
func endpointID(ep mesh.Endpoint) uint32 {
	h := fnv.New32a()
	h.Write([]byte(ep.Cluster + "/" + ep.Namespace + "/" + ep.Name))
	return h.Sum32()%0xfffe + 1
}

func version(ip string) flowpb.IPVersion {
	if addr, err := netip.ParseAddr(ip); err == nil && addr.Is6() {
		return flowpb.IPVersion_IPv6
	}
	return flowpb.IPVersion_IPv4
}

func layer4(c Connection) *flowpb.Layer4 {
	source, destination := uint32(c.SourcePort), uint32(c.Port)
	switch c.Protocol {
	case u8proto.UDP:
		return &flowpb.Layer4{Protocol: &flowpb.Layer4_UDP{UDP: &flowpb.UDP{SourcePort: source, DestinationPort: destination}}}
	case u8proto.SCTP:
		return &flowpb.Layer4{Protocol: &flowpb.Layer4_SCTP{SCTP: &flowpb.SCTP{SourcePort: source, DestinationPort: destination}}}
	default:
		return &flowpb.Layer4{Protocol: &flowpb.Layer4_TCP{TCP: &flowpb.TCP{
			SourcePort: source, DestinationPort: destination, Flags: &flowpb.TCPFlags{SYN: !c.Established, ACK: c.Established},
		}}}
	}
}
