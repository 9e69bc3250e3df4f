package hubble

import (
	"fmt"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"google.golang.org/protobuf/encoding/protojson"
)

// skipOther skips the value of a key that is not needed.
func (l *jsonReader) skipOther(key []byte) error {
	switch string(key) {
	// These keys are needed, but are spelled in a way in which Hubble does not write them.
	case "nodeName", "nodeStatus", "lostEvents", "eventType", "trafficDirection", "isReply", "traceObservationPoint", "traceReason", "sourcePort",
		"destinationPort", "subType", "clusterName", "ingressFlowCount", "egressFlowCount", "unknownDirectionFlowCount":
		return errUnexpectedFormat
	}
	return l.skipValue()
}

// scanLine reads the needed fields of a line of Hubble's exporter into an empty event.
func scanLine(b []byte, e *event) error {
	l := jsonReader{b: b}
	found := false
	err := l.object(func(key []byte) error {
		switch string(key) {
		case "flow":
			if found {
				return errUnexpectedFormat
			}
			found = true
			return e.scanJSONFlow(&l)
		case "node_status", "lost_events", "agent_event", "debug_event":
			return errNotFlow
		}
		return l.skipOther(key)
	})
	if err != nil {
		return err
	}
	if l.skipSpace(); l.i != len(b) {
		return errUnexpectedFormat
	}
	if !found {
		return errNotFlow
	}
	return nil
}

func (e *event) scanJSONFlow(l *jsonReader) error {
	return l.object(func(key []byte) (err error) {
		switch string(key) {
		case "time":
			err = l.timestamp(e)
		case "uuid":
			e.uuid, err = l.plainString()
		case "node_name":
			e.node, err = l.plainString()
		case "verdict":
			var v int32
			v, err = l.enum(flowpb.Verdict_value)
			e.verdict = flowpb.Verdict(v)
		case "traffic_direction":
			var v int32
			v, err = l.enum(flowpb.TrafficDirection_value)
			e.direction = flowpb.TrafficDirection(v)
		case "trace_observation_point":
			var v int32
			v, err = l.enum(flowpb.TraceObservationPoint_value)
			e.point = flowpb.TraceObservationPoint(v)
		case "trace_reason":
			var v int32
			v, err = l.enum(flowpb.TraceReason_value)
			e.reason = flowpb.TraceReason(v)
		case "is_reply":
			e.reply, err = l.boolean()
		case "source":
			e.from, err = l.rawObject()
		case "destination":
			e.to, err = l.rawObject()
		case "IP":
			err = e.scanJSONIP(l)
		case "l4":
			err = e.scanJSONL4(l)
		case "l7":
			err = e.scanJSONL7(l)
		case "event_type":
			var kind, sub uint32
			err = l.numbers("type", &kind, "sub_type", &sub, "", nil)
			e.kind, e.subType = int32(kind), int32(sub)
		case "aggregate":
			err = l.numbers("ingress_flow_count", &e.ingress, "egress_flow_count", &e.egress, "unknown_direction_flow_count", &e.undirected)
		default:
			err = l.skipOther(key)
		}
		return err
	})
}

// numbers reads up to three numbers of an object by their keys, and skips the other keys.
func (l *jsonReader) numbers(key1 string, to1 *uint32, key2 string, to2 *uint32, key3 string, to3 *uint32) error {
	return l.object(func(key []byte) (err error) {
		switch string(key) {
		case key1:
			*to1, err = l.uint31()
		case key2:
			*to2, err = l.uint31()
		case key3:
			if to3 == nil {
				return errUnexpectedFormat
			}
			*to3, err = l.uint31()
		default:
			err = l.skipOther(key)
		}
		return err
	})
}

func (e *event) scanJSONIP(l *jsonReader) error {
	return l.object(func(key []byte) (err error) {
		switch string(key) {
		case "source":
			e.source, err = l.plainString()
		case "destination":
			e.destination, err = l.plainString()
		default:
			err = l.skipOther(key)
		}
		return err
	})
}

// scanJSONL7 reads the method and the URL of an HTTP request and skips its headers.
func (e *event) scanJSONL7(l *jsonReader) error {
	if e.l7 != 0 || e.method != nil || e.url != nil {
		return errUnexpectedFormat
	}
	records := 0
	return l.object(func(key []byte) (err error) {
		switch string(key) {
		case "type":
			var v int32
			v, err = l.enum(flowpb.L7FlowType_value)
			e.l7 = flowpb.L7FlowType(v)
			return err
		case "dns", "http", "kafka":
			if records++; records > 1 {
				return errUnexpectedFormat
			}
		}
		if string(key) != "http" {
			return l.skipOther(key)
		}
		return l.object(func(key []byte) (err error) {
			switch string(key) {
			case "method":
				e.method, err = l.plainString()
			case "url":
				e.url, err = l.plainString()
			default:
				err = l.skipOther(key)
			}
			return err
		})
	})
}

// transportOf returns the transport with the name of a field of Layer4; 0 if there is none.
func transportOf(name []byte) transport {
	switch string(name) {
	case "TCP":
		return transportTCP
	case "UDP":
		return transportUDP
	case "ICMPv4":
		return transportICMPv4
	case "ICMPv6":
		return transportICMPv6
	case "SCTP":
		return transportSCTP
	case "VRRP":
		return transportVRRP
	case "IGMP":
		return transportIGMP
	}
	return 0
}

func (e *event) scanJSONL4(l *jsonReader) error {
	l.skipSpace()
	start := l.i
	err := l.object(func(key []byte) error {
		t := transportOf(key)
		if t == 0 {
			return l.skipOther(key)
		}
		if e.transport != 0 {
			return errUnexpectedFormat
		}
		e.transport = t
		switch t {
		case transportTCP, transportUDP, transportSCTP:
			return l.numbers("source_port", &e.sourcePort, "destination_port", &e.destinationPort, "", nil)
		}
		_, err := l.rawObject()
		return err
	})
	e.l4 = l.b[start:l.i]
	return err
}

// jsonEndpoint decodes an Endpoint from JSON.
func jsonEndpoint(b []byte) (endpointParts, error) {
	p, err := scanJSONEndpoint(b)
	if err != nil {
		var e flowpb.Endpoint
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, &e); err != nil {
			return p, fmt.Errorf("%w: an endpoint: %w", errUnreadable, err)
		}
		p = endpointParts{namespace: e.GetNamespace(), cluster: e.GetClusterName(), labels: e.GetLabels()}
	}
	return p, p.validate()
}

func scanJSONEndpoint(b []byte) (endpointParts, error) {
	var p endpointParts
	l := jsonReader{b: b}
	err := l.object(func(key []byte) error {
		var s []byte
		var err error
		switch string(key) {
		case "namespace":
			s, err = l.plainString()
			p.namespace = string(s)
		case "cluster_name":
			s, err = l.plainString()
			p.cluster = string(s)
		case "labels":
			return l.strings(&p.labels)
		default:
			err = l.skipOther(key)
		}
		return err
	})
	if err != nil {
		return endpointParts{}, err
	}
	return p, nil
}
