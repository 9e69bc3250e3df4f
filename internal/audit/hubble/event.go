package hubble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	flowpb "github.com/cilium/cilium/api/v1/flow"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
)

// These are the event types of Cilium's monitor, see pkg/monitor/api/types.go in Cilium.
const (
	eventDrop    = 1
	eventTrace   = 4
	eventVerdict = 5
	eventL7      = 129
)

// event holds the needed fields of one flow, from either encoding. Its byte slices point into the buffer from which it was read.
type event struct {
	// seconds and nanos are the time since 1970; timed reports whether they are present and in range.
	seconds int64
	nanos   int32
	timed   bool

	uuid, node    []byte
	verdict       flowpb.Verdict
	kind, subType int32
	direction     flowpb.TrafficDirection
	reply         reply
	point         flowpb.TraceObservationPoint
	reason        flowpb.TraceReason

	// source and destination are addresses as text; from and to are encoded endpoints.
	source, destination []byte
	from, to            []byte
	// l4 is the encoded transport layer. It is part of the identity of an event without a UUID.
	l4                          []byte
	transport                   transport
	sourcePort, destinationPort uint32
	// l7 is the type of a proxy's report; method and url describe an HTTP request.
	l7          flowpb.L7FlowType
	method, url []byte
	// ingress, egress and undirected are the numbers of flows that an aggregated event stands for.
	ingress, egress, undirected uint32
	// opened is when the connection or the request of an access log's entry began. audit is what the entry contains about Istio's policies
	// with the action AUDIT; nil if none applies, or if the connection was refused.
	opened time.Time
	audit  *accessAudit
}

// reply is an optional boolean.
type reply uint8

const (
	replyUnknown reply = iota
	replyNo
	replyYes
)

// transport is a protocol with the number that it has in Hubble's Layer4; 0 means none.
type transport uint8

const (
	transportTCP    transport = 1
	transportUDP    transport = 2
	transportICMPv4 transport = 3
	transportICMPv6 transport = 4
	transportSCTP   transport = 5
	// The policy model has no names for VRRP and IGMP.
	transportVRRP transport = 6
	transportIGMP transport = 7
)

// protocols maps transports to the protocols of the policy model. ICMP, which the model does not have, keeps its own name.
var protocols = [...]v1alpha1.Protocol{
	transportTCP: v1alpha1.ProtocolTCP, transportUDP: v1alpha1.ProtocolUDP, transportSCTP: v1alpha1.ProtocolSCTP,
	transportICMPv4: "ICMP", transportICMPv6: "ICMPv6",
}

func (t transport) protocol() v1alpha1.Protocol {
	if int(t) < len(protocols) {
		return protocols[t]
	}
	return ""
}

// skip is the reason why an event is not counted.
type skip uint8

const (
	skipNone         skip = iota
	skipDrop              // the verdict event of the same packet is counted instead
	skipL7                // its connection was counted, or it is no request that a resource's actions match
	skipEvent             // an event of a socket, of debugging or of a packet capture
	skipEgress            // the event at the destination is counted instead
	skipReply             // a packet against the direction of the connection
	skipReplyUnknown      // a trace that may be a reply
	skipPassing           // a trace that was not taken at the destination
	skipKnown             // its connection was counted
	skipElsewhere         // the member's other source counts it
	skipForgotten         // its connection may have been counted before a restart, or before its entry was dropped
	skipCount
)

var skipNames = [skipCount]string{skipDrop: "drop", skipL7: "l7", skipEvent: "event", skipEgress: "egress", skipReply: "reply",
	skipReplyUnknown: "unsure", skipPassing: "passing", skipKnown: "known",
	skipElsewhere: "elsewhere", skipForgotten: "forgotten"}

// class is the kind of occurrence that an event represents.
type class int

const (
	classNone class = iota
	// classVerdict is the opening of a connection with a policy verdict.
	classVerdict
	// classOpened is the opening of a connection without a policy verdict; it counts if no verdict came before.
	classOpened
	// classTraffic is a packet of a connection that may have been opened long ago.
	classTraffic
	// classRequest is a request in a connection, which is counted separately.
	classRequest
	// classAccess is an entry of Istio's access log.
	classAccess
)

// classify returns the event's class, or why it is skipped. It uses the direction of verdicts only: the trace of a client's first
// packet has the direction EGRESS.
func (e *event) classify() (class, skip) {
	switch e.kind {
	case eventVerdict:
		switch {
		case e.direction != flowpb.TrafficDirection_INGRESS:
			return classNone, skipEgress
		case e.reply == replyYes:
			return classNone, skipReply
		}
		return classVerdict, skipNone
	case eventTrace:
		return e.classifyTrace()
	case eventDrop:
		return classNone, skipDrop
	case eventL7:
		return e.classifyL7()
	case eventAccess:
		return classAccess, skipNone
	}
	return classNone, skipEvent
}

func (e *event) classifyL7() (class, skip) {
	switch {
	case e.l7 != flowpb.L7FlowType_REQUEST || len(e.method) == 0 || len(e.url) == 0 || e.transport != transportTCP:
		return classNone, skipL7
	case e.direction != flowpb.TrafficDirection_INGRESS:
		return classNone, skipEgress
	case e.reply == replyYes:
		return classNone, skipReply
	}
	return classRequest, skipNone
}

func (e *event) classifyTrace() (class, skip) {
	switch {
	case e.point == flowpb.TraceObservationPoint_TO_ENDPOINT:
	case e.point == flowpb.TraceObservationPoint_UNKNOWN_POINT && e.subType == 0: // older agents: 0 means "to endpoint"
	default:
		return classNone, skipPassing
	}
	switch e.reply {
	case replyUnknown:
		return classNone, skipReplyUnknown
	case replyYes:
		return classNone, skipReply
	}
	switch e.reason {
	case flowpb.TraceReason_NEW:
		return classOpened, skipNone
	case flowpb.TraceReason_REPLY, flowpb.TraceReason_RELATED:
		return classNone, skipReply
	}
	return classTraffic, skipNone
}

func (e *event) time() time.Time { return time.Unix(e.seconds, int64(e.nanos)).UTC() }

// minSeconds and maxSeconds bound a protobuf timestamp: the years 1 to 9999.
const (
	minSeconds = -62135596800
	maxSeconds = 253402300799
)

func validTime(seconds int64, nanos int32) bool {
	return seconds >= minSeconds && seconds <= maxSeconds && nanos >= 0 && nanos < 1e9
}

var errUnreadable = errors.New("unreadable flow")

// addresses parses the addresses of both ends. It returns an error that wraps errUnreadable if the event lacks a valid time, an
// address or a known protocol.
func (e *event) addresses() (source, destination netip.Addr, err error) {
	if !e.timed {
		return source, destination, fmt.Errorf("%w: it has no valid time", errUnreadable)
	}
	if source, err = parseAddress(e.source); err != nil {
		return source, destination, fmt.Errorf("%w: its source address is %w", errUnreadable, err)
	}
	if destination, err = parseAddress(e.destination); err != nil {
		return source, destination, fmt.Errorf("%w: its destination address is %w", errUnreadable, err)
	}
	if e.transport.protocol() == "" {
		return source, destination, fmt.Errorf("%w: its transport protocol %d is not known", errUnreadable, e.transport)
	}
	return source, destination, nil
}

// maxAddress is the length of the longest address as text, in bytes. A longer one has a zone, which has no limit and is kept with
// the address.
const maxAddress = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")

func parseAddress(text []byte) (netip.Addr, error) {
	if len(text) <= maxAddress {
		if a, err := netip.ParseAddr(unsafeString(text)); err == nil {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%q", text[:min(len(text), maxAddress)])
}

// unsafeString returns the bytes as a string without a copy. The string must not outlive the bytes.
func unsafeString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // two copies less for every flow; the callers parse it and keep nothing
}

// copyString returns a copy of the bytes as valid UTF-8, for use after the buffer is reused.
func copyString(b []byte) string { return strings.ToValidUTF8(string(b), "�") }

// maxNode is the length of the longest name of a node with the name of its cluster and a slash before it, in bytes.
const maxNode = 63 + 1 + 253

// nodeName returns a copy of a node's name, cut to maxNode. The number of names in memory has limits; their lengths are the source's
// choice.
func nodeName(b []byte) string { return copyString(b[:min(len(b), maxNode)]) }

// port returns the number as a port; 0 if it exceeds 65535.
func port(n uint32) uint16 {
	if n > 65535 {
		return 0
	}
	return uint16(n)
}

// verdictOf converts the dataplane's verdict to an audit.Verdict.
func verdictOf(v flowpb.Verdict) audit.Verdict {
	switch v {
	case flowpb.Verdict_FORWARDED, flowpb.Verdict_REDIRECTED, flowpb.Verdict_TRANSLATED:
		return audit.VerdictForwarded
	case flowpb.Verdict_DROPPED:
		return audit.VerdictDropped
	case flowpb.Verdict_AUDIT:
		return audit.VerdictAudit
	}
	return audit.VerdictUnknown
}

// count returns the number of connections that the event stands for. The directions of traces are added up, because the direction
// of a trace is not reliable.
func (e *event) count() int64 {
	n := int64(e.ingress)
	if e.kind == eventTrace {
		n += int64(e.egress) + int64(e.undirected)
	}
	return max(n, 1)
}

// identity returns a hash that is the same each time the event is delivered: of its UUID, or, without one, of its content.
func (e *event) identity() uint64 {
	if len(e.uuid) > 0 {
		return xxhash.Sum64(e.uuid)
	}
	var room [256]byte
	b := binary.BigEndian.AppendUint64(room[:0], uint64(e.seconds))
	b = binary.BigEndian.AppendUint32(b, uint32(e.nanos))
	b = binary.BigEndian.AppendUint32(b, uint32(e.verdict))
	b = binary.BigEndian.AppendUint32(b, uint32(e.kind))
	b = binary.BigEndian.AppendUint32(b, uint32(e.subType))
	for _, part := range [][]byte{e.node, e.source, e.destination, e.l4} {
		b = append(append(b, part...), 0)
	}
	if e.kind == eventL7 {
		b = append(append(append(b, e.method...), 0), e.url...)
	}
	return xxhash.Sum64(b)
}

// connection returns a hash that identifies the connection of the event by its addresses, ports and protocol.
func (e *event) connection() uint64 {
	var room [128]byte
	b := append(append(room[:0], e.source...), 0)
	b = append(append(b, e.destination...), 0, byte(e.transport))
	b = binary.BigEndian.AppendUint16(b, port(e.sourcePort))
	b = binary.BigEndian.AppendUint16(b, port(e.destinationPort))
	return xxhash.Sum64(b)
}
