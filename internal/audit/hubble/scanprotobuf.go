package hubble

import (
	"errors"
	"fmt"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"google.golang.org/protobuf/encoding/protowire"
)

// These are field numbers of Hubble's messages, see api/v1/flow/flow.proto and api/v1/observer/observer.proto in Cilium.
const (
	responseFlow       = 1
	responseNodeStatus = 2
	responseLost       = 3

	flowTime        = 1
	flowVerdict     = 2
	flowIP          = 5
	flowL4          = 6
	flowSource      = 8
	flowDestination = 9
	flowNode        = 11
	flowL7          = 15
	flowEventType   = 19
	flowDirection   = 22
	flowPoint       = 24
	flowIsReply     = 26
	flowUUID        = 34
	flowReason      = 36
	flowAggregate   = 21007
)

var (
	// errNotFlow means that the message is not a flow. Such messages are rare enough to be decoded with the generated types.
	errNotFlow = errors.New("not a flow")
	// errRepeated means that a message field occurs several times. The encoding allows that, but no known writer does it.
	errRepeated = errors.New("a message in several pieces")
)

// scanResponse reads the needed fields of a GetFlowsResponse and skips the others without decoding them.
func scanResponse(b []byte, e *event) error {
	var flow []byte
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		switch num {
		case responseFlow:
			if flow != nil {
				return errRepeated
			}
			flow = v
		case responseNodeStatus, responseLost:
			return errNotFlow
		}
	}
	if flow == nil {
		return errNotFlow
	}
	return scanFlow(flow, e)
}

// scanFlow reads a Flow into an empty event.
func scanFlow(b []byte, e *event) error {
	var pieces uint32 // a bit for each message field that occurred
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		switch typ {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
			switch num {
			case flowVerdict:
				e.verdict = flowpb.Verdict(v)
			case flowDirection:
				e.direction = flowpb.TrafficDirection(v)
			case flowPoint:
				e.point = flowpb.TraceObservationPoint(v)
			case flowReason:
				e.reason = flowpb.TraceReason(v)
			}
		case protowire.BytesType:
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
			if err := e.scanField(num, v, &pieces); err != nil {
				return err
			}
		default:
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
		}
	}
	return nil
}

// scanField reads a field that is a string or a message.
func (e *event) scanField(num protowire.Number, v []byte, pieces *uint32) error {
	var piece uint32
	var err error
	switch num {
	case flowUUID:
		e.uuid = v
		return nil
	case flowNode:
		e.node = v
		return nil
	case flowTime:
		piece = 1 << 0
		var seconds, nanos uint64
		err = scanNumbers(v, &seconds, &nanos)
		e.seconds, e.nanos = int64(seconds), int32(nanos)
		e.timed = validTime(e.seconds, e.nanos)
	case flowIP:
		piece = 1 << 1
		err = e.scanIP(v)
	case flowL4:
		piece = 1 << 2
		err = e.scanL4(v)
	case flowSource:
		piece = 1 << 3
		e.from = v
	case flowDestination:
		piece = 1 << 4
		e.to = v
	case flowL7:
		piece = 1 << 8
		err = e.scanL7(v)
	case flowEventType:
		piece = 1 << 5
		var kind, sub uint64
		err = scanNumbers(v, &kind, &sub)
		e.kind, e.subType = int32(kind), int32(sub)
	case flowIsReply:
		piece = 1 << 6
		var yes uint64
		err = scanNumbers(v, &yes)
		e.reply = replyNo
		if yes != 0 {
			e.reply = replyYes
		}
	case flowAggregate:
		piece = 1 << 7
		var ingress, egress, undirected uint64
		err = scanNumbers(v, &ingress, &egress, &undirected)
		e.ingress, e.egress, e.undirected = uint32(ingress), uint32(egress), uint32(undirected)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if *pieces&piece != 0 {
		return errRepeated
	}
	*pieces |= piece
	return nil
}

// scanNumbers reads the varint fields number 1, 2, ... of a message. If a field occurs several times, the last value is used.
func scanNumbers(b []byte, into ...*uint64) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if typ == protowire.VarintType && int(num) <= len(into) {
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			*into[num-1] = v
			b = b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
	}
	return nil
}

func (e *event) scanIP(b []byte) error {
	const source, destination = 1, 2
	return scanBytes(b, func(num protowire.Number, v []byte) error {
		switch num {
		case source:
			e.source = v
		case destination:
			e.destination = v
		}
		return nil
	})
}

func (e *event) scanL4(b []byte) error {
	e.l4 = b
	return scanBytes(b, func(num protowire.Number, v []byte) error {
		const last = 7 // IGMP
		if num > last {
			return nil
		}
		if e.transport != 0 {
			return errRepeated
		}
		e.transport = transport(num)
		switch e.transport {
		case transportTCP, transportUDP, transportSCTP:
			var source, destination uint64
			if err := scanNumbers(v, &source, &destination); err != nil {
				return err
			}
			e.sourcePort, e.destinationPort = uint32(source), uint32(destination)
		}
		return nil
	})
}

// scanL7 reads the method and the URL of an HTTP request and skips its headers.
func (e *event) scanL7(b []byte) error {
	const dns, http, kafka, method, url = 100, 101, 102, 2, 3
	var kind uint64
	if err := scanNumbers(b, &kind); err != nil {
		return err
	}
	e.l7 = flowpb.L7FlowType(kind)
	records := 0
	return scanBytes(b, func(num protowire.Number, v []byte) error {
		switch num {
		case http, dns, kafka:
			if records++; records > 1 {
				return errRepeated
			}
		}
		if num != http {
			return nil
		}
		return scanBytes(v, func(num protowire.Number, v []byte) error {
			switch num {
			case method:
				e.method = v
			case url:
				e.url = v
			}
			return nil
		})
	})
}

// scanBytes calls f for each field that is a string or a message.
func scanBytes(b []byte, f func(num protowire.Number, v []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(num, v); err != nil {
			return err
		}
	}
	return nil
}

// parseEndpoint decodes an Endpoint from protobuf or JSON. A protobuf endpoint never begins with '{', which would be the start of
// a group.
func parseEndpoint(b []byte) (endpointParts, error) {
	if len(b) > 0 && b[0] == '{' {
		return jsonEndpoint(b)
	}
	return protobufEndpoint(b)
}

// protobufEndpoint decodes an Endpoint from protobuf.
func protobufEndpoint(b []byte) (endpointParts, error) {
	const namespace, labels, cluster = 3, 4, 7
	var p endpointParts
	err := scanBytes(b, func(num protowire.Number, v []byte) error {
		switch num {
		case namespace:
			p.namespace = string(v)
		case cluster:
			p.cluster = string(v)
		case labels:
			p.labels = append(p.labels, string(v))
		}
		return nil
	})
	if err != nil {
		return p, fmt.Errorf("%w: an endpoint: %w", errUnreadable, err)
	}
	return p, p.validate()
}
