package hubble

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	flowpb "github.com/cilium/cilium/api/v1/flow"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
)

// Event types of Cilium's monitor, see pkg/monitor/api/types.go there.
const (
	eventDrop    = 1
	eventTrace   = 4
	eventVerdict = 5
	eventL7      = 129
)

// skip says why an event counts for nothing; empty: it may count.
type skip string

const (
	skipDrop         skip = "drop"    // its verdict event says the same
	skipL7           skip = "l7"      // its connection was counted
	skipEvent        skip = "event"   // sockets, debugging, captures
	skipEgress       skip = "egress"  // the destination's side counts
	skipReply        skip = "reply"   // not the direction of the connection
	skipReplyUnknown skip = "unsure"  // a trace that may be a reply
	skipPassing      skip = "passing" // a trace that is not at the destination
	skipKnown        skip = "known"   // its connection was counted
)

// class is what an event can count as.
type class int

const (
	classNone class = iota
	// classVerdict: the opening of a connection, decided.
	classVerdict
	// classOpened: the opening of a connection that no policy looked at, if no verdict came before.
	classOpened
	// classTraffic: a packet of a connection that may have been opened long ago.
	classTraffic
)

// classify tells what the event is. The direction is trusted on verdicts only: a trace of a client's first packet says EGRESS.
func classify(f *flowpb.Flow) (class, skip) {
	switch f.GetEventType().GetType() {
	case eventVerdict:
		switch {
		case f.GetTrafficDirection() != flowpb.TrafficDirection_INGRESS:
			return classNone, skipEgress
		case f.GetIsReply().GetValue():
			return classNone, skipReply
		}
		return classVerdict, ""
	case eventTrace:
		return classifyTrace(f)
	case eventDrop:
		return classNone, skipDrop
	case eventL7:
		return classNone, skipL7
	}
	return classNone, skipEvent
}

func classifyTrace(f *flowpb.Flow) (class, skip) {
	switch point := f.GetTraceObservationPoint(); {
	case point == flowpb.TraceObservationPoint_TO_ENDPOINT:
	case point == flowpb.TraceObservationPoint_UNKNOWN_POINT && f.GetEventType().GetSubType() == 0: // older agents: 0 is "to endpoint"
	default:
		return classNone, skipPassing
	}
	switch {
	case f.GetIsReply() == nil:
		return classNone, skipReplyUnknown
	case f.GetIsReply().GetValue():
		return classNone, skipReply
	}
	switch f.GetTraceReason() {
	case flowpb.TraceReason_NEW:
		return classOpened, ""
	case flowpb.TraceReason_REPLY, flowpb.TraceReason_RELATED:
		return classNone, skipReply
	}
	return classTraffic, ""
}

var errUnreadable = errors.New("unreadable flow")

// observe converts a flow. The error, errUnreadable, says which part is missing.
func observe(member string, f *flowpb.Flow) (audit.Observation, error) {
	if err := f.GetTime().CheckValid(); err != nil {
		return audit.Observation{}, fmt.Errorf("%w: its time: %w", errUnreadable, err)
	}
	o := audit.Observation{Time: f.GetTime().AsTime(), Cluster: member, Node: f.GetNodeName(), Verdict: verdictOf(f), Count: countOf(f)}
	src, err := netip.ParseAddr(f.GetIP().GetSource())
	if err != nil {
		return o, fmt.Errorf("%w: its source address: %w", errUnreadable, err)
	}
	dst, err := netip.ParseAddr(f.GetIP().GetDestination())
	if err != nil {
		return o, fmt.Errorf("%w: its destination address: %w", errUnreadable, err)
	}
	o.Source, o.Destination = endpointOf(f.GetSource(), src), endpointOf(f.GetDestination(), dst)
	o.Destination.Cluster = member
	switch l4 := f.GetL4().GetProtocol().(type) {
	case *flowpb.Layer4_TCP:
		o.Protocol, o.Source.Port, o.Destination.Port = v1alpha1.ProtocolTCP, port(l4.TCP.GetSourcePort()), port(l4.TCP.GetDestinationPort())
	case *flowpb.Layer4_UDP:
		o.Protocol, o.Source.Port, o.Destination.Port = v1alpha1.ProtocolUDP, port(l4.UDP.GetSourcePort()), port(l4.UDP.GetDestinationPort())
	case *flowpb.Layer4_SCTP:
		o.Protocol, o.Source.Port, o.Destination.Port = v1alpha1.ProtocolSCTP, port(l4.SCTP.GetSourcePort()), port(l4.SCTP.GetDestinationPort())
	case *flowpb.Layer4_ICMPv4:
		o.Protocol = "ICMP"
	case *flowpb.Layer4_ICMPv6:
		o.Protocol = "ICMPv6"
	default:
		return o, fmt.Errorf("%w: its transport protocol %T", errUnreadable, l4)
	}
	return o, nil
}

// port keeps what fits: a larger number is no port.
func port(n uint32) uint16 {
	if n > 65535 {
		return 0
	}
	return uint16(n)
}

func verdictOf(f *flowpb.Flow) audit.Verdict {
	switch f.GetVerdict() {
	case flowpb.Verdict_FORWARDED, flowpb.Verdict_REDIRECTED, flowpb.Verdict_TRANSLATED:
		return audit.VerdictForwarded
	case flowpb.Verdict_DROPPED:
		return audit.VerdictDropped
	case flowpb.Verdict_AUDIT:
		return audit.VerdictAudit
	}
	return audit.VerdictUnknown
}

// countOf is how many connections the event stands for. The directions are added, because a trace's is not to be trusted.
func countOf(f *flowpb.Flow) int64 {
	a := f.GetAggregate()
	n := int64(a.GetIngressFlowCount())
	if f.GetEventType().GetType() == eventTrace {
		n += int64(a.GetEgressFlowCount()) + int64(a.GetUnknownDirectionFlowCount())
	}
	return max(n, 1)
}

const (
	prefixK8s      = "k8s:"
	prefixReserved = "reserved:"
	prefixCIDR     = "cidr:"
	labelCluster   = "io.cilium.k8s.policy.cluster"
	labelNamespace = "io.kubernetes.pod.namespace"
)

// endpointOf reads the labels of an identity. An endpoint whose identity is not known is nobody: only "*" matches it.
func endpointOf(e *flowpb.Endpoint, address netip.Addr) audit.Endpoint {
	out := audit.Endpoint{Kind: audit.KindReserved, Identity: "unknown", Namespace: e.GetNamespace(), Cluster: e.GetClusterName(), Address: address}
	labels := map[string]string{}
	reserved := map[string]bool{}
	for _, l := range e.GetLabels() {
		switch {
		case strings.HasPrefix(l, prefixK8s):
			k, v, _ := strings.Cut(l[len(prefixK8s):], "=")
			labels[k] = v
		case strings.HasPrefix(l, prefixReserved):
			// Hubble writes "reserved:host"; some versions add "=".
			reserved[strings.TrimSuffix(l[len(prefixReserved):], "=")] = true
		case strings.HasPrefix(l, prefixCIDR):
			reserved["world"] = true
		}
	}
	outside := reserved["world"] || reserved["world-ipv4"] || reserved["world-ipv6"]
	switch {
	case reserved["host"]:
		out.Kind, out.Identity = audit.KindLocalHost, "host"
	case outside && len(labels) == 0 && !reserved["remote-node"]:
		out.Kind, out.Identity, out.Cluster = audit.KindOutside, "", ""
	case len(reserved) > 0:
		out.Identity = firstReserved(reserved)
	case len(labels) > 0:
		out.Kind, out.Identity, out.Labels = audit.KindWorkload, "", labels
		if c := labels[labelCluster]; c != "" {
			out.Cluster = c
		}
		if out.Namespace == "" {
			out.Namespace = labels[labelNamespace]
		}
	}
	return out
}

// firstReserved names an identity by one label, always the same of several.
func firstReserved(reserved map[string]bool) string {
	best := ""
	for name := range reserved {
		if best == "" || name < best {
			best = name
		}
	}
	return best
}
