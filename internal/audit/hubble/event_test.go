package hubble

import (
	"net/netip"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
)

func TestEndpointOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		in     *flowpb.Endpoint
		want   audit.Endpoint
	}{
		"Pod": {
			"plain keys, and the cluster and namespace of its labels",
			&flowpb.Endpoint{
				Labels: []string{"k8s:app=x", "k8s:com.trip/appid=888", "k8s:io.cilium.k8s.policy.cluster=m2", "k8s:io.kubernetes.pod.namespace=apps"},
			},
			audit.Endpoint{Kind: audit.KindWorkload, Cluster: "m2", Namespace: "apps", Labels: map[string]string{
				"app": "x", "com.trip/appid": "888", "io.cilium.k8s.policy.cluster": "m2", "io.kubernetes.pod.namespace": "apps"}},
		},
		"LabelWinsOverField": {
			"the identity's label is what policies match",
			&flowpb.Endpoint{ClusterName: "default", Namespace: "ns", Labels: []string{"k8s:io.cilium.k8s.policy.cluster=m2"}},
			audit.Endpoint{Kind: audit.KindWorkload, Cluster: "m2", Namespace: "ns", Labels: map[string]string{"io.cilium.k8s.policy.cluster": "m2"}},
		},
		"OtherSources": {
			"a label of another source is not a pod's label: anyone could forge the key",
			&flowpb.Endpoint{Labels: []string{"container:com.trip/appid=888", "com.trip/appid=888"}},
			audit.Endpoint{Kind: audit.KindReserved, Identity: "unknown"},
		},
		"World": {
			"an address outside the fleet has no cluster",
			&flowpb.Endpoint{ClusterName: "m1", Labels: []string{"reserved:world"}}, audit.Endpoint{Kind: audit.KindOutside},
		},
		"World4": {"the name in dual-stack clusters", &flowpb.Endpoint{Labels: []string{"reserved:world-ipv4"}}, audit.Endpoint{Kind: audit.KindOutside}},
		"CIDR": {
			"the identity of an address range", &flowpb.Endpoint{Labels: []string{"cidr:10.0.0.0/8", "reserved:world"}},
			audit.Endpoint{Kind: audit.KindOutside},
		},
		"APIServer": {
			"outside the fleet, with a further reserved name",
			&flowpb.Endpoint{Labels: []string{"cidr:10.0.0.1/32", "reserved:kube-apiserver", "reserved:world"}},
			audit.Endpoint{Kind: audit.KindOutside},
		},
		"Host": {
			"the own node, also where the API server runs on it",
			&flowpb.Endpoint{Labels: []string{"reserved:kube-apiserver", "reserved:host"}},
			audit.Endpoint{Kind: audit.KindLocalHost, Identity: "host"},
		},
		"RemoteNode": {
			"another node is not outside, whatever else its labels say",
			&flowpb.Endpoint{Labels: []string{"reserved:remote-node", "cidr:10.0.0.1/32"}},
			audit.Endpoint{Kind: audit.KindReserved, Identity: "remote-node"},
		},
		"PodInInit": {
			"a pod without an identity yet is reserved", &flowpb.Endpoint{Labels: []string{"reserved:init", "k8s:com.trip/appid=888"}},
			audit.Endpoint{Kind: audit.KindReserved, Identity: "init"},
		},
		"WorldPod": {
			"a pod never counts as an address", &flowpb.Endpoint{Labels: []string{"reserved:world", "k8s:a=b"}},
			audit.Endpoint{Kind: audit.KindReserved, Identity: "world"},
		},
		"Nothing": {"there is no endpoint", nil, audit.Endpoint{Kind: audit.KindReserved, Identity: "unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, endpointOf(tc.in), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEqualEndpointsShareOneValue(t *testing.T) {
	dropped := 0
	known := newEndpoints(6, func() { dropped++ })
	of := func(e *flowpb.Endpoint) *audit.Endpoint {
		b, err := proto.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := known.get(b)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	pod := func(name string, change ...func(*flowpb.Endpoint)) *flowpb.Endpoint {
		e := &flowpb.Endpoint{ID: uint32(len(name)), PodName: name, Namespace: "apps", ClusterName: "m1", Labels: []string{"k8s:a=1", "k8s:b=2"}}
		for _, c := range change {
			c(e)
		}
		return e
	}
	first := of(pod("web-1"))
	if of(pod("web-22")) != first {
		t.Error("two pods of one workload have different pointers, want the same")
	}
	for name, change := range map[string]func(*flowpb.Endpoint){
		"Label":     func(e *flowpb.Endpoint) { e.Labels[1] = "k8s:b=3" },
		"Quotes":    func(e *flowpb.Endpoint) { e.Labels = []string{`k8s:a=1""b""2`} },
		"Namespace": func(e *flowpb.Endpoint) { e.Namespace = "other" },
		"Cluster":   func(e *flowpb.Endpoint) { e.ClusterName = "m2" },
	} {
		if of(pod("web-1", change)) == first {
			t.Errorf("an endpoint that differs in its %s has the same pointer", name)
		}
	}
	if dropped != 0 {
		t.Fatal("the cache was cleared before it was full")
	}
	of(pod("web-333"))
	if again := of(pod("web-1")); dropped != 1 || again == first {
		t.Errorf("got %d resets, want 1 and new pointers after it", dropped)
	}
}

func TestProtocols(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		l4     *flowpb.Layer4
		want   string
		port   uint16
	}{
		"UDP":    {"ports of their own", &flowpb.Layer4{Protocol: &flowpb.Layer4_UDP{UDP: &flowpb.UDP{SourcePort: 1, DestinationPort: 53}}}, "UDP", 53},
		"SCTP":   {"ports of their own", &flowpb.Layer4{Protocol: &flowpb.Layer4_SCTP{SCTP: &flowpb.SCTP{DestinationPort: 7}}}, "SCTP", 7},
		"ICMP":   {"no port", &flowpb.Layer4{Protocol: &flowpb.Layer4_ICMPv4{ICMPv4: &flowpb.ICMPv4{Type: 8}}}, "ICMP", 0},
		"ICMPv6": {"no port", &flowpb.Layer4{Protocol: &flowpb.Layer4_ICMPv6{ICMPv6: &flowpb.ICMPv6{Type: 128}}}, "ICMPv6", 0},
		"Large": {
			"a number above 65535 must not become another port",
			&flowpb.Layer4{Protocol: &flowpb.Layer4_TCP{TCP: &flowpb.TCP{DestinationPort: 65536 + 6379}}}, "TCP", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("unused", l)
			take(ingesterOf(t, &cfg, audit.Resume{}), verdict(0, func(f *flowpb.Flow) { f.L4 = tc.l4 }))
			want := edge()
			want.Protocol, want.Port, want.Action = v1alpha1.Protocol(tc.want), tc.port, ""
			wantEdges(t, l, map[audit.Edge]int64{want: 1})
		})
	}
}

func TestVerdicts(t *testing.T) {
	for in, want := range map[flowpb.Verdict]audit.Verdict{
		flowpb.Verdict_FORWARDED: audit.VerdictForwarded, flowpb.Verdict_REDIRECTED: audit.VerdictForwarded, flowpb.Verdict_DROPPED: audit.VerdictDropped,
		flowpb.Verdict_AUDIT: audit.VerdictAudit, flowpb.Verdict_VERDICT_UNKNOWN: audit.VerdictUnknown, flowpb.Verdict_ERROR: audit.VerdictUnknown,
	} {
		if got := verdictOf(in); got != want {
			t.Errorf("verdictOf(%v) = %q, want %q", in, got, want)
		}
	}
}

func TestIdentify(t *testing.T) {
	noUUID := func(change ...func(*flowpb.Flow)) *flowpb.Flow {
		return verdict(1, append(change, func(f *flowpb.Flow) { f.Uuid = "" })...)
	}
	identify := func(f *flowpb.Flow) uint64 {
		var e event
		if err := scanResponse(wire(f), &e); err != nil {
			t.Fatal(err)
		}
		return e.identity()
	}
	base := noUUID()
	if identify(base) != identify(proto.Clone(base).(*flowpb.Flow)) {
		t.Error("the same flow has a different identity when it is delivered again")
	}
	for name, other := range map[string]*flowpb.Flow{
		"Port": noUUID(func(f *flowpb.Flow) { f.L4.GetTCP().SourcePort = 1 }),
		"Time": noUUID(func(f *flowpb.Flow) { f.Time.Nanos++ }),
		"Node": noUUID(func(f *flowpb.Flow) { f.NodeName = "n2" }),
		"Type": noUUID(func(f *flowpb.Flow) { f.EventType.Type = eventTrace }),
		"UUID": verdict(1),
	} {
		if identify(base) == identify(other) {
			t.Errorf("a flow that differs in its %s has the same identity", name)
		}
	}
}

// observeAt calls observe and returns only why the event does not count.
func (c *connections) observeAt(cl class, id uint64, at time.Time) skip {
	why, _, _ := c.observe(cl, id, flowpb.Verdict_FORWARDED, at)
	return why
}

func TestConnectionsAreBounded(t *testing.T) {
	c := newConnections(time.Time{}, 100)
	for i := range 1000 {
		c.observeAt(classVerdict, uint64(i), at(i))
	}
	if n := len(c.young) + len(c.old); n > c.limit {
		t.Errorf("got %d connections, want at most %d", n, c.limit)
	}
	if why := c.observeAt(classTraffic, 999, at(999)); why != skipKnown {
		t.Errorf("got skip reason %q for the newest connection", skipNames[why])
	}
	if why := c.observeAt(classTraffic, 0, at(1000)); why != skipForgotten {
		t.Errorf("got skip reason %q for a connection that was dropped early", skipNames[why])
	}
}

func TestIdleConnectionsAreDropped(t *testing.T) {
	c := newConnections(time.Time{}, 100)
	c.observeAt(classVerdict, 1, t0)
	c.observeAt(classTraffic, 2, t0.Add(idleTimeout))
	if why := c.observeAt(classTraffic, 1, t0.Add(2*idleTimeout-time.Second)); why != skipKnown {
		t.Errorf("got skip reason %q: the connection was dropped too early", skipNames[why])
	}
	c.observeAt(classTraffic, 2, t0.Add(3*idleTimeout))
	c.observeAt(classTraffic, 2, t0.Add(5*idleTimeout))
	if why := c.observeAt(classTraffic, 1, t0.Add(5*idleTimeout)); why != skipNone {
		t.Errorf("got skip reason %q: an idle connection is still remembered", skipNames[why])
	}
}
