package hubble

import (
	"fmt"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"google.golang.org/protobuf/encoding/protojson"
)

// other steps over the value of a key that is not needed.
func (l *line) other(key []byte) error {
	switch string(key) {
	// They mean something, written as Hubble does not write them.
	case "nodeName", "nodeStatus", "lostEvents", "eventType", "trafficDirection", "isReply", "traceObservationPoint", "traceReason", "sourcePort",
		"destinationPort", "subType", "clusterName", "ingressFlowCount", "egressFlowCount", "unknownDirectionFlowCount":
		return errUnsure
	}
	return l.skip()
}

// scanLine reads what is needed of a line of Hubble's exporter, into an empty event.
func scanLine(b []byte, e *event) error {
	l := line{b: b}
	found := false
	err := l.object(func(key []byte) error {
		switch string(key) {
		case "flow":
			if found {
				return errUnsure
			}
			found = true
			return e.scanText(&l)
		case "node_status", "lost_events", "agent_event", "debug_event":
			return errNotFlow
		}
		return l.other(key)
	})
	if err != nil {
		return err
	}
	if l.space(); l.i != len(b) {
		return errUnsure
	}
	if !found {
		return errNotFlow
	}
	return nil
}

func (e *event) scanText(l *line) error {
	return l.object(func(key []byte) (err error) {
		switch string(key) {
		case "time":
			err = l.instant(e)
		case "uuid":
			e.uuid, err = l.plain()
		case "node_name":
			e.node, err = l.plain()
		case "verdict":
			var v int32
			v, err = l.name(flowpb.Verdict_value)
			e.verdict = flowpb.Verdict(v)
		case "traffic_direction":
			var v int32
			v, err = l.name(flowpb.TrafficDirection_value)
			e.direction = flowpb.TrafficDirection(v)
		case "trace_observation_point":
			var v int32
			v, err = l.name(flowpb.TraceObservationPoint_value)
			e.point = flowpb.TraceObservationPoint(v)
		case "trace_reason":
			var v int32
			v, err = l.name(flowpb.TraceReason_value)
			e.reason = flowpb.TraceReason(v)
		case "is_reply":
			e.reply, err = l.truth()
		case "source":
			e.from, err = l.raw()
		case "destination":
			e.to, err = l.raw()
		case "IP":
			err = e.textIP(l)
		case "l4":
			err = e.textL4(l)
		case "l7":
			err = e.textL7(l)
		case "event_type":
			var kind, sub uint32
			err = l.numbers("type", &kind, "sub_type", &sub, "", nil)
			e.kind, e.sub = int32(kind), int32(sub)
		case "aggregate":
			err = l.numbers("ingress_flow_count", &e.ingress, "egress_flow_count", &e.egress, "unknown_direction_flow_count", &e.undirected)
		default:
			err = l.other(key)
		}
		return err
	})
}

// numbers reads up to three numbers of an object by their keys.
func (l *line) numbers(key1 string, to1 *uint32, key2 string, to2 *uint32, key3 string, to3 *uint32) error {
	return l.object(func(key []byte) (err error) {
		switch string(key) {
		case key1:
			*to1, err = l.small()
		case key2:
			*to2, err = l.small()
		case key3:
			if to3 == nil {
				return errUnsure
			}
			*to3, err = l.small()
		default:
			err = l.other(key)
		}
		return err
	})
}

func (e *event) textIP(l *line) error {
	return l.object(func(key []byte) (err error) {
		switch string(key) {
		case "source":
			e.source, err = l.plain()
		case "destination":
			e.destination, err = l.plain()
		default:
			err = l.other(key)
		}
		return err
	})
}

// textL7 reads the method and the URL of an HTTP request, and steps over its headers.
func (e *event) textL7(l *line) error {
	if e.l7 != 0 || e.method != nil || e.url != nil {
		return errUnsure
	}
	records := 0
	return l.object(func(key []byte) (err error) {
		switch string(key) {
		case "type":
			var v int32
			v, err = l.name(flowpb.L7FlowType_value)
			e.l7 = flowpb.L7FlowType(v)
			return err
		case "dns", "http", "kafka":
			if records++; records > 1 {
				return errUnsure
			}
		}
		if string(key) != "http" {
			return l.other(key)
		}
		return l.object(func(key []byte) (err error) {
			switch string(key) {
			case "method":
				e.method, err = l.plain()
			case "url":
				e.url, err = l.plain()
			default:
				err = l.other(key)
			}
			return err
		})
	})
}

// transportOf is a member of Layer4 by its name; 0: none.
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

func (e *event) textL4(l *line) error {
	l.space()
	start := l.i
	err := l.object(func(key []byte) error {
		t := transportOf(key)
		if t == 0 {
			return l.other(key)
		}
		if e.transport != 0 {
			return errUnsure
		}
		e.transport = t
		switch t {
		case transportTCP, transportUDP, transportSCTP:
			return l.numbers("source_port", &e.sourcePort, "destination_port", &e.destinationPort, "", nil)
		}
		_, err := l.raw()
		return err
	})
	e.l4 = l.b[start:l.i]
	return err
}

// textEndpoint reads an endpoint that is a JSON object.
func textEndpoint(b []byte) (endpointParts, error) {
	p, err := scanEndpoint(b)
	if err != nil {
		var e flowpb.Endpoint
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, &e); err != nil {
			return p, fmt.Errorf("%w: an endpoint: %w", errUnreadable, err)
		}
		p = endpointParts{namespace: e.GetNamespace(), cluster: e.GetClusterName(), labels: e.GetLabels()}
	}
	return p, p.validate()
}

func scanEndpoint(b []byte) (endpointParts, error) {
	var p endpointParts
	l := line{b: b}
	err := l.object(func(key []byte) error {
		var s []byte
		var err error
		switch string(key) {
		case "namespace":
			s, err = l.plain()
			p.namespace = string(s)
		case "cluster_name":
			s, err = l.plain()
			p.cluster = string(s)
		case "labels":
			return l.strings(&p.labels)
		default:
			err = l.other(key)
		}
		return err
	})
	if err != nil {
		return endpointParts{}, err
	}
	return p, nil
}
