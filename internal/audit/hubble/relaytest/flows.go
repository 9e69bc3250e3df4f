package relaytest

import (
	"fmt"
	"math/rand/v2"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Label is a label of pods, without the prefix for its source.
type Label struct{ Key, Value string }

// Flows generates the connections of a member, from random clients to random servers. The clients of a server are Width clients, from the one
// with the index of the server times Stride on; the last ones continue with the first.
type Flows struct {
	// Member is the name of the member, as its Cilium has it.
	Member           string
	Stride, Width    int
	number           int
	rand             *rand.Rand
	clients, servers []*flowpb.Endpoint
}

// NewFlows returns the flows of the member with this number, which makes its random numbers and its flows' ids differ from those of others.
// clients and servers are the labels of pods.
func NewFlows(member string, number int, clients, servers []Label) *Flows {
	f := &Flows{Member: member, number: number, Stride: 1, Width: 1, rand: rand.New(rand.NewPCG(uint64(number), 1))} //nolint:gosec // not a secret
	for i, l := range servers {
		f.servers = append(f.servers, endpoint(member, l, "redis", i))
	}
	for i, l := range clients {
		f.clients = append(f.clients, endpoint(member, l, "apps", i))
	}
	return f
}

// endpoint returns the pod with the index i of a namespace.
func endpoint(member string, l Label, namespace string, i int) *flowpb.Endpoint {
	return &flowpb.Endpoint{
		ID:          uint32(1000 + i),  //nolint:gosec // thousands at most
		Identity:    uint32(20000 + i), //nolint:gosec // thousands at most
		ClusterName: member,
		Namespace:   namespace,
		PodName:     fmt.Sprintf("%s-%d-7c9f8", namespace, i),
		Labels: []string{
			"k8s:" + l.Key + "=" + l.Value, "k8s:io.cilium.k8s.policy.cluster=" + member,
			"k8s:io.cilium.k8s.policy.serviceaccount=" + namespace, "k8s:io.kubernetes.pod.namespace=" + namespace,
		},
		Workloads: []*flowpb.Workload{{Name: fmt.Sprint(namespace, "-", i), Kind: "Deployment"}},
	}
}

// next returns the flow with the index i: a new connection that was forwarded.
func (f *Flows) next(i int, at time.Time) *observerpb.GetFlowsResponse {
	server := f.rand.IntN(len(f.servers))
	client := (server*f.Stride + f.rand.IntN(f.Width)) % len(f.clients)
	return &observerpb.GetFlowsResponse{NodeName: f.Member + "/n1", Time: timestamppb.New(at),
		ResponseTypes: &observerpb.GetFlowsResponse_Flow{Flow: &flowpb.Flow{
			Uuid:             fmt.Sprintf("%08x-0000-4000-8000-%012x", i, f.number),
			Time:             timestamppb.New(at),
			NodeName:         f.Member + "/n1",
			Verdict:          flowpb.Verdict_FORWARDED,
			Type:             flowpb.FlowType_L3_L4,
			EventType:        &flowpb.CiliumEventType{Type: 5},
			TrafficDirection: flowpb.TrafficDirection_INGRESS,
			IsReply:          wrapperspb.Bool(false),
			Ethernet:         &flowpb.Ethernet{Source: "0a:58:0a:01:00:01", Destination: "0a:58:0a:02:00:02"},
			IP: &flowpb.IP{Source: fmt.Sprintf("10.1.%d.%d", client/200, client%200), Destination: fmt.Sprintf("10.2.%d.%d", server/200, server%200),
				IpVersion: flowpb.IPVersion_IPv4},
			L4: &flowpb.Layer4{Protocol: &flowpb.Layer4_TCP{TCP: &flowpb.TCP{
				SourcePort: uint32(32768 + i%28000), DestinationPort: 6379, Flags: &flowpb.TCPFlags{SYN: true}, //nolint:gosec // below 65,536
			}}},
			Source:      f.clients[client],
			Destination: f.servers[server],
		}}}
}
