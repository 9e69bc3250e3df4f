package hubble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/acp-io/acp/internal/audit"
)

// needed holds the fields of a flow that are read, in a comparable form.
type needed struct {
	Time                        time.Time
	UUID, Node                  string
	Verdict                     flowpb.Verdict
	Kind, Sub                   int32
	Direction                   flowpb.TrafficDirection
	Reply                       reply
	Point                       flowpb.TraceObservationPoint
	Reason                      flowpb.TraceReason
	Source, Destination         string
	Transport                   transport
	SourcePort, DestinationPort uint32
	Ingress, Egress, Undirected uint32
	From, To                    audit.Endpoint
	L7                          flowpb.L7FlowType
	Method, URL                 string
}

// generated decodes a flow with the generated types. The scanners have to agree with it.
func generated(f *flowpb.Flow) needed {
	n := needed{
		UUID:        f.GetUuid(),
		Node:        f.GetNodeName(),
		Verdict:     f.GetVerdict(),
		Kind:        f.GetEventType().GetType(),
		Sub:         f.GetEventType().GetSubType(),
		Direction:   f.GetTrafficDirection(),
		Point:       f.GetTraceObservationPoint(),
		Reason:      f.GetTraceReason(),
		Source:      f.GetIP().GetSource(),
		Destination: f.GetIP().GetDestination(),
		Ingress: f.GetAggregate().
			GetIngressFlowCount(),
		Egress:     f.GetAggregate().GetEgressFlowCount(),
		Undirected: f.GetAggregate().GetUnknownDirectionFlowCount(),
		From:       endpointOf(f.GetSource()),
		To:         endpointOf(f.GetDestination()),
		L7:         f.GetL7().GetType(),
		Method:     f.GetL7().GetHttp().GetMethod(),
		URL:        f.GetL7().GetHttp().GetUrl(),
	}
	if f.GetTime().CheckValid() == nil {
		n.Time = f.GetTime().AsTime()
	}
	if r := f.GetIsReply(); r != nil {
		n.Reply = replyNo
		if r.GetValue() {
			n.Reply = replyYes
		}
	}
	switch l4 := f.GetL4().GetProtocol().(type) {
	case *flowpb.Layer4_TCP:
		n.Transport, n.SourcePort, n.DestinationPort = transportTCP, l4.TCP.GetSourcePort(), l4.TCP.GetDestinationPort()
	case *flowpb.Layer4_UDP:
		n.Transport, n.SourcePort, n.DestinationPort = transportUDP, l4.UDP.GetSourcePort(), l4.UDP.GetDestinationPort()
	case *flowpb.Layer4_SCTP:
		n.Transport, n.SourcePort, n.DestinationPort = transportSCTP, l4.SCTP.GetSourcePort(), l4.SCTP.GetDestinationPort()
	case *flowpb.Layer4_ICMPv4:
		n.Transport = transportICMPv4
	case *flowpb.Layer4_ICMPv6:
		n.Transport = transportICMPv6
	case *flowpb.Layer4_VRRP:
		n.Transport = 6
	case *flowpb.Layer4_IGMP:
		n.Transport = 7
	}
	return n
}

func endpointOf(e *flowpb.Endpoint) audit.Endpoint {
	p := endpointParts{namespace: e.GetNamespace(), cluster: e.GetClusterName(), labels: e.GetLabels()}
	return p.endpoint()
}

// scanned returns the needed fields of an event.
func scanned(t *testing.T, e *event) needed {
	t.Helper()
	n := needed{
		UUID: string(e.uuid), Node: string(e.node), Verdict: e.verdict, Kind: e.kind, Sub: e.subType, Direction: e.direction, Reply: e.reply, Point: e.point,
		Reason: e.reason, Source: string(e.source), Destination: string(e.destination), Transport: e.transport, SourcePort: e.sourcePort,
		DestinationPort: e.destinationPort, Ingress: e.ingress, Egress: e.egress, Undirected: e.undirected,
		L7: e.l7, Method: string(e.method), URL: string(e.url),
	}
	if e.timed {
		n.Time = e.time()
	}
	for _, end := range []struct {
		encoded []byte
		into    *audit.Endpoint
	}{{e.from, &n.From}, {e.to, &n.To}} {
		parts, err := parseEndpoint(end.encoded)
		if err != nil {
			t.Fatalf("read the endpoint %q: %v", end.encoded, err)
		}
		*end.into = parts.endpoint()
	}
	return n
}

// randomFlow returns a flow with every field that matters, with the values that make a difference, and some irrelevant fields.
func randomFlow(r *rand.Rand) *flowpb.Flow {
	one := func(in ...string) string { return in[r.IntN(len(in))] }
	endpoint := func() *flowpb.Endpoint {
		e := &flowpb.Endpoint{
			ID:          r.Uint32N(9),
			Identity:    r.Uint32(),
			Namespace:   one("", "apps", "a\"b"),
			PodName:     one("", "p-\\", "{}"),
			ClusterName: one("", "m2"),
		}
		for range r.IntN(4) {
			e.Labels = append(
				e.Labels,
				one(
					"k8s:com.trip/appid=888",
					"k8s:x=\"y\\",
					"reserved:world",
					"reserved:host",
					"cidr:10.0.0.0/8",
					"k8s:é=ü",
					"k8s:io.cilium.k8s.policy.cluster=m9",
				),
			)
		}
		return e
	}
	f := &flowpb.Flow{
		Uuid: one(
			"",
			fmt.Sprint(r.Uint64()),
		),
		NodeName:    one("", "n1", "m1/n2"),
		Verdict:     flowpb.Verdict(r.IntN(9)),
		SourceNames: []string{one("", "TCP Flags: SYN, \"x\" {")},
		EventType: &flowpb.CiliumEventType{
			Type:    []int32{0, 1, 4, 5, 129}[r.IntN(5)],
			SubType: r.Int32N(3),
		},
		TrafficDirection:      flowpb.TrafficDirection(r.IntN(3)),
		TraceObservationPoint: flowpb.TraceObservationPoint(r.IntN(5)),
		TraceReason:           flowpb.TraceReason(r.IntN(7)),
		PolicyLog:             []string{one("a", "}")},
		IP:                    &flowpb.IP{Source: one("10.0.0.1", "fd00::1", "", "nonsense"), Destination: one("10.0.0.2", "::ffff:10.0.0.9")},
		Source:                endpoint(),
		Destination:           endpoint(),
		DropReasonDesc:        flowpb.DropReason(r.IntN(200)),
		Extensions:            nil,
		IngressAllowedBy:      []*flowpb.Policy{{Name: "p", Labels: []string{"k8s:a=b"}}},
	}
	if r.IntN(9) > 0 {
		f.Time = &timestamppb.Timestamp{Seconds: 1_700_000_000 + r.Int64N(1e8), Nanos: r.Int32N(1e9)}
	}
	if n := r.IntN(3); n > 0 {
		f.IsReply = wrapperspb.Bool(n > 1)
	}
	if r.IntN(4) == 0 {
		f.Aggregate = &flowpb.Aggregate{IngressFlowCount: r.Uint32N(9), EgressFlowCount: r.Uint32N(9), UnknownDirectionFlowCount: r.Uint32N(3)}
	}
	switch r.IntN(6) {
	case 0:
		f.L7 = &flowpb.Layer7{Type: flowpb.L7FlowType(r.IntN(4)), LatencyNs: r.Uint64(), Record: &flowpb.Layer7_Http{Http: &flowpb.HTTP{
			Code: r.Uint32N(600),
			Method: one(
				"",
				"GET",
				"PO\"ST",
			),
			Url:     one("", "http://a/b?c=d&e", "/é", "http://a/\n"),
			Headers: []*flowpb.HTTPHeader{{Key: "url", Value: one("x", "{\"")}},
		}}}
	case 1:
		f.L7 = &flowpb.Layer7{Type: flowpb.L7FlowType(r.IntN(4)), Record: &flowpb.Layer7_Dns{Dns: &flowpb.DNS{Query: "url", Ips: []string{"10.0.0.1"}}}}
	}
	a, b := r.Uint32N(70000), r.Uint32N(70000)
	switch r.IntN(8) {
	case 0:
		f.L4 = &flowpb.Layer4{Protocol: &flowpb.Layer4_UDP{UDP: &flowpb.UDP{SourcePort: a, DestinationPort: b}}}
	case 1:
		f.L4 = &flowpb.Layer4{Protocol: &flowpb.Layer4_SCTP{SCTP: &flowpb.SCTP{SourcePort: a, DestinationPort: b}}}
	case 2:
		f.L4 = &flowpb.Layer4{Protocol: &flowpb.Layer4_ICMPv4{ICMPv4: &flowpb.ICMPv4{Type: 8}}}
	case 3:
		f.L4 = &flowpb.Layer4{Protocol: &flowpb.Layer4_VRRP{VRRP: &flowpb.VRRP{Type: 1}}}
	case 4:
		f.L4, f.Source = nil, nil
	default:
		f.L4 = &flowpb.Layer4{Protocol: &flowpb.Layer4_TCP{TCP: &flowpb.TCP{SourcePort: a, DestinationPort: b, Flags: &flowpb.TCPFlags{SYN: true}}}}
	}
	return f
}

func TestScannersAgreeWithTheGeneratedTypes(t *testing.T) {
	const flows = 5000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	sure := 0
	for range flows {
		f := randomFlow(r)
		want := generated(f)
		wire, err := proto.Marshal(flowResponse(f))
		if err != nil {
			t.Fatal(err)
		}
		var e event
		if err := scanResponse(wire, &e); err != nil {
			t.Fatalf("scanResponse: %v of %v", err, f)
		}
		if diff := cmp.Diff(want, scanned(t, &e), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Fatalf("on the wire (-generated +scanned):\n%s\nof %v", diff, f)
		}
		var l event
		switch err := scanLine(exported(t, f), &l); {
		case errors.Is(err, errUnexpectedFormat): // read by the generated types instead
		case err != nil:
			t.Fatalf("scanLine: %v of %v", err, f)
		default:
			sure++
			if diff := cmp.Diff(want, scanned(t, &l), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Fatalf("as a line (-generated +scanned):\n%s\nof %s", diff, exported(t, f))
			}
		}
	}
	if sure < flows/2 {
		t.Errorf("got only %d lines of %d read by the scanner", sure, flows)
	}
}

// exported returns the flow as Hubble's exporter writes it.
func exported(t testing.TB, f *flowpb.Flow) []byte {
	t.Helper()
	b, err := protojson.MarshalOptions{
		UseProtoNames: true,
	}.Marshal(
		&observerpb.ExportEvent{ResponseTypes: &observerpb.ExportEvent_Flow{Flow: f}, NodeName: f.GetNodeName(), Time: f.GetTime()},
	)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFlowsInPieces verifies messages that are encoded in several pieces, which protobuf merges.
func TestFlowsInPieces(t *testing.T) {
	wire, err := proto.Marshal(verdict(1))
	if err != nil {
		t.Fatal(err)
	}
	rest, err := proto.Marshal(
		&flowpb.Flow{IP: &flowpb.IP{Source: "10.0.0.77"}, L4: &flowpb.Layer4{Protocol: &flowpb.Layer4_UDP{UDP: &flowpb.UDP{DestinationPort: 53}}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	piece := func(b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, responseFlow, protowire.BytesType), b)
	}
	for name, b := range map[string][]byte{"InTheFlow": piece(append(wire, rest...)), "InTheResponse": append(piece(wire), piece(rest)...)} {
		t.Run(name, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("unused", l)
			in := ingesterOf(t, &cfg, audit.Resume{})
			in.ingestResponse(b)
			want := edge()
			want.Port, want.Protocol, want.Action = 53, "UDP", ""
			wantEdges(t, l, map[audit.Edge]int64{want: 1})
		})
	}
}

func FuzzScanResponse(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		b, err := proto.Marshal(flowResponse(randomFlow(r)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(wire(verdict(1, viaHTTP("POST", "http://shop/orders?a=b", refused))))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var e event
		err := scanResponse(b, &e)
		var m observerpb.GetFlowsResponse
		if proto.Unmarshal(b, &m) == nil {
			switch {
			case err == nil:
				if diff := cmp.Diff(generated(m.GetFlow()), scanned(t, &e), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
					t.Errorf("(-generated +scanned):\n%s", diff)
				}
			case !errors.Is(err, errNotFlow) && !errors.Is(err, errRepeated):
				t.Errorf("the generated types decode the input, but the scanner does not: %v", err)
			}
		}
		counts(t, func(in *ingester) { in.ingestResponse(b) })
	})
}

func FuzzScanLine(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		f.Add(exported(f, randomFlow(r)))
	}
	f.Add(exported(f, verdict(1, viaHTTP("POST", "http://shop/orders?a=b", refused))))
	f.Add([]byte(`{"flow":{"l7":{"type":"REQUEST","http":{"method":"GET","url":"/\u0000"}},"l7":{}}}`))
	f.Add([]byte(`{"flow":{"verdict":1,"IP":null}}`))
	f.Add([]byte(`{"lost_events":{"source":"HUBBLE_RING_BUFFER","num_events_lost":"3"},"node_name":"n"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e event
		err := scanLine(b, &e)
		var m observerpb.ExportEvent
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, &m) == nil {
			switch {
			case err == nil:
				want := generated(m.GetFlow())
				if diff := cmp.Diff(want, scanned(t, &e), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
					t.Errorf("(-generated +scanned):\n%s", diff)
				}
			case !errors.Is(err, errNotFlow) && !errors.Is(err, errUnexpectedFormat):
				t.Errorf("the generated types decode the input, but the scanner does not: %v", err)
			}
		}
		counts(t, func(in *ingester) {
			s := scannedLine{line: b}
			s.err = scanLine(b, &s.event)
			in.ingestLine(&s)
		})
	})
}

// counts ingests an input twice, and verifies that it is counted at most once, for the right member.
func counts(t *testing.T, take func(*ingester)) {
	t.Helper()
	l := newMemorySink()
	cfg := config("unused", l)
	in := ingesterOf(t, &cfg, audit.Resume{})
	take(in)
	var first int64
	for _, n := range l.edges {
		first += n
	}
	take(in)
	for e, n := range l.edges {
		if n < 1 || e.Cluster != "m1" {
			t.Errorf("got %d connections of %+v", n, e)
		}
		first -= n
	}
	if first != 0 {
		t.Errorf("got repeated counts: %+v", l.edges)
	}
}

func ingesterOf(t *testing.T, cfg *Config, r audit.Resume) *ingester {
	t.Helper()
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	return newIngester(cfg, r)
}
