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

// Event types of Cilium's monitor, see pkg/monitor/api/types.go there.
const (
	eventDrop    = 1
	eventTrace   = 4
	eventVerdict = 5
	eventL7      = 129
)

// event is what is needed of one flow, whatever it came as. Its bytes lie in the buffer that it was read from.
type event struct {
	// seconds and nanos since 1970; timed tells that they are there and in range.
	seconds int64
	nanos   int32
	timed   bool

	uuid, node []byte
	verdict    flowpb.Verdict
	kind, sub  int32
	direction  flowpb.TrafficDirection
	reply      reply
	point      flowpb.TraceObservationPoint
	reason     flowpb.TraceReason

	// source and destination are addresses as text; from and to are endpoints in the encoding of the event.
	source, destination []byte
	from, to            []byte
	// l4 is the transport layer as encoded, for an identity where there is no uuid.
	l4                          []byte
	transport                   transport
	sourcePort, destinationPort uint32
	// l7 is what a proxy reports; method and url are those of an HTTP request.
	l7          flowpb.L7FlowType
	method, url []byte
	// ingress, egress and undirected are how many flows an aggregate stands for.
	ingress, egress, undirected uint32
}

// reply is a boolean that may be missing.
type reply uint8

const (
	replyUnknown reply = iota
	replyNo
	replyYes
)

// transport is a protocol as Hubble's Layer4 numbers it; 0: none.
type transport uint8

const (
	transportTCP    transport = 1
	transportUDP    transport = 2
	transportICMPv4 transport = 3
	transportICMPv6 transport = 4
	transportSCTP   transport = 5
	// The policy model does not know them, and they have no name in it.
	transportVRRP transport = 6
	transportIGMP transport = 7
)

// protocols are the words of the policy model; what it does not know (ICMP) keeps its own name.
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

// skip says why an event counts for nothing.
type skip uint8

const (
	skipNone         skip = iota
	skipDrop              // its verdict event says the same
	skipL7                // its connection was counted, or it is no request that a resource's actions are about
	skipEvent             // sockets, debugging, captures
	skipEgress            // the destination's side counts
	skipReply             // not the direction of the connection
	skipReplyUnknown      // a trace that may be a reply
	skipPassing           // a trace that is not at the destination
	skipKnown             // its connection was counted
	skipForgotten         // its connection may have been counted, before a restart or before it was forgotten
	skips
)

var skipNames = [skips]string{skipDrop: "drop", skipL7: "l7", skipEvent: "event", skipEgress: "egress", skipReply: "reply",
	skipReplyUnknown: "unsure", skipPassing: "passing", skipKnown: "known",
	skipForgotten: "forgotten"}

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
	// classRequest: a request in a connection that counts by itself.
	classRequest
)

// classify tells what the event is. The direction is trusted on verdicts only: a trace of a client's first packet says EGRESS.
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
	case e.point == flowpb.TraceObservationPoint_UNKNOWN_POINT && e.sub == 0: // older agents: 0 is "to endpoint"
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

// Bounds of a timestamp: the years 1 to 9999, as protobuf has them.
const (
	minSeconds = -62135596800
	maxSeconds = 253402300799
)

func validTime(seconds int64, nanos int32) bool {
	return seconds >= minSeconds && seconds <= maxSeconds && nanos >= 0 && nanos < 1e9
}

var errUnreadable = errors.New("unreadable flow")

// addresses reads both ends. The error, errUnreadable, says which part of the event is missing.
func (e *event) addresses() (source, destination netip.Addr, err error) {
	if !e.timed {
		return source, destination, fmt.Errorf("%w: it has no valid time", errUnreadable)
	}
	if source, err = netip.ParseAddr(view(e.source)); err != nil {
		return source, destination, fmt.Errorf("%w: its source address is %q", errUnreadable, e.source)
	}
	if destination, err = netip.ParseAddr(view(e.destination)); err != nil {
		return source, destination, fmt.Errorf("%w: its destination address is %q", errUnreadable, e.destination)
	}
	if e.transport.protocol() == "" {
		return source, destination, fmt.Errorf("%w: its transport protocol %d is not known", errUnreadable, e.transport)
	}
	return source, destination, nil
}

// view is the bytes as a string that must not outlive them.
func view(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // two copies less for every flow; the callers parse it and keep nothing
}

// text keeps bytes that the buffer will lose.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "�") }

// port keeps what fits: a larger number is no port.
func port(n uint32) uint16 {
	if n > 65535 {
		return 0
	}
	return uint16(n)
}

// verdictOf is the dataplane's verdict in the words of the audit.
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

// count is how many connections the event stands for. The directions are added, because a trace's is not to be trusted.
func (e *event) count() int64 {
	n := int64(e.ingress)
	if e.kind == eventTrace {
		n += int64(e.egress) + int64(e.undirected)
	}
	return max(n, 1)
}

// identity is a number that is the same whenever the event is delivered. Flows have a UUID; without one, what describes
// them must do.
func (e *event) identity() uint64 {
	if len(e.uuid) > 0 {
		return xxhash.Sum64(e.uuid)
	}
	var room [256]byte
	b := binary.BigEndian.AppendUint64(room[:0], uint64(e.seconds))
	b = binary.BigEndian.AppendUint32(b, uint32(e.nanos))
	b = binary.BigEndian.AppendUint32(b, uint32(e.verdict))
	b = binary.BigEndian.AppendUint32(b, uint32(e.kind))
	b = binary.BigEndian.AppendUint32(b, uint32(e.sub))
	for _, part := range [][]byte{e.node, e.source, e.destination, e.l4} {
		b = append(append(b, part...), 0)
	}
	if e.kind == eventL7 {
		b = append(append(append(b, e.method...), 0), e.url...)
	}
	return xxhash.Sum64(b)
}

// connection is a number for the connection that the event belongs to.
func (e *event) connection() uint64 {
	var room [128]byte
	b := append(append(room[:0], e.source...), 0)
	b = append(append(b, e.destination...), 0, byte(e.transport))
	b = binary.BigEndian.AppendUint16(b, port(e.sourcePort))
	b = binary.BigEndian.AppendUint16(b, port(e.destinationPort))
	return xxhash.Sum64(b)
}
