package flow

import (
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/labels"
	"github.com/cilium/cilium/pkg/u8proto"
	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/playground/dataplane/internal/engine"
	"github.com/acp-io/acp/playground/dataplane/internal/mesh"
)

func endpointOf(cluster, name, ip string, id uint32, lbl string) mesh.Endpoint {
	return mesh.Endpoint{
		Pod:      mesh.Pod{Cluster: cluster, Namespace: "ns", Name: name, IP: ip, Node: cluster + "-node-1", Labels: map[string]string{labelWorkload: "w"}},
		Identity: identity.NewIdentityFromLabelArray(identity.NumericIdentity(id), labels.ParseLabelArray(lbl)),
	}
}

// short contains the fields of a flow that consumers evaluate.
type short struct {
	Type, SubType int32
	Verdict       string
	Direction     string
	Drop          string
	Match         uint32
	AllowedBy     []string
	DeniedBy      []string
	Log           []string
}

func names(in []*flowpb.Policy) (out []string) {
	for _, p := range in {
		out = append(out, p.GetName())
	}
	return out
}

// A connection pool that was opened before the observation shows packets only, so no verdict reports that it was allowed.
func TestEventsOfAnEstablishedConnection(t *testing.T) {
	client := endpointOf("m2", "client", "10.2.0.1", 131073, "k8s:app=888")
	c := Connection{
		At: time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC), From: Source{Pod: &client, Identity: client.Identity, IP: client.IP},
		To: endpointOf("m1", "server", "10.1.0.1", 65537, "k8s:redis=bobs"), Protocol: u8proto.TCP, SourcePort: 40000, Port: 6379, Established: true,
	}
	for outcome, traceOnly := range map[engine.Outcome]bool{engine.NoPolicy: true, engine.Allowed: true, engine.DefaultDenied: false, engine.Denied: false} {
		events := Events(c, engine.Decision{Outcome: outcome})
		got := len(events) == 1 && events[0].GetEventType().GetType() == eventTrace && events[0].GetTraceReason() == flowpb.TraceReason_ESTABLISHED &&
			!events[0].GetL4().GetTCP().GetFlags().GetSYN()
		if got != traceOnly {
			t.Errorf("outcome %d: only a trace: %v, want %v: %v", outcome, got, traceOnly, events)
		}
	}
}

func TestEvents(t *testing.T) {
	by := []*flowpb.Policy{{Name: "p"}}
	cases := map[string]struct {
		reason   string
		decision engine.Decision
		want     []short
	}{
		"NoPolicy": {
			"without policy there is no verdict, only a trace, whose direction a live agent reports as EGRESS",
			engine.Decision{Outcome: engine.NoPolicy},
			[]short{{Type: 4, Verdict: "FORWARDED", Direction: "EGRESS", Drop: "DROP_REASON_UNKNOWN"}},
		},
		"Allowed": {
			"an allowed connection is one verdict that names the policy",
			engine.Decision{Outcome: engine.Allowed, Match: engine.MatchL3L4, Policies: by, Log: []string{"l"}},
			[]short{{5, 0, "FORWARDED", "INGRESS", "DROP_REASON_UNKNOWN", 2, []string{"p"}, nil, []string{"l"}}},
		},
		"Redirected": {
			"a connection that a proxy takes is redirected",
			engine.Decision{Outcome: engine.Allowed, Redirected: true, Match: engine.MatchL3L4, Policies: by},
			[]short{{5, 0, "REDIRECTED", "INGRESS", "DROP_REASON_UNKNOWN", 2, []string{"p"}, nil, nil}},
		},
		"DefaultDenied": {
			"default deny is a verdict and a drop that name no policy",
			engine.Decision{Outcome: engine.DefaultDenied},
			[]short{
				{Type: 5, Verdict: "DROPPED", Direction: "INGRESS", Drop: "POLICY_DENIED"},
				{Type: 1, SubType: 133, Verdict: "DROPPED", Direction: "INGRESS", Drop: "POLICY_DENIED"},
			},
		},
		"Denied": {
			"a deny rule is a verdict that names it, and a drop",
			engine.Decision{Outcome: engine.Denied, Match: engine.MatchL3L4, Policies: by, Log: []string{"l"}},
			[]short{
				{5, 0, "DROPPED", "INGRESS", "POLICY_DENY", 2, nil, []string{"p"}, []string{"l"}},
				{Type: 1, SubType: 181, Verdict: "DROPPED", Direction: "INGRESS", Drop: "POLICY_DENY"},
			},
		},
	}
	from := endpointOf("m2", "client", "10.2.0.1", 2<<16|300, "k8s:com.trip/appid=888")
	c := Connection{
		At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), From: Source{Pod: &from, Identity: from.Identity, IP: from.IP},
		To:       endpointOf("m1", "server", "10.1.0.1", 1<<16|300, "k8s:com.trip/redis-cluster=bobs-cluster"),
		Protocol: u8proto.TCP, SourcePort: 40000, Port: 6379,
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []short
			uuids := map[string]bool{}
			for _, f := range Events(c, tc.decision) {
				uuids[f.GetUuid()] = true
				got = append(got, short{
					f.GetEventType().GetType(), f.GetEventType().GetSubType(), f.GetVerdict().String(), f.GetTrafficDirection().String(),
					f.GetDropReasonDesc().String(), f.GetPolicyMatchType(), names(f.GetIngressAllowedBy()), names(f.GetIngressDeniedBy()), f.GetPolicyLog(),
				})
				if f.GetIsReply().GetValue() || f.GetIsReply() == nil {
					t.Error("a new connection is known not to be a reply")
				}
				if f.GetSource().GetClusterName() != "m2" || f.GetDestination().GetPodName() != "server" || f.GetNodeName() != "m1/m1-node-1" {
					t.Errorf("ends: %v -> %v at %s", f.GetSource(), f.GetDestination(), f.GetNodeName())
				}
				if f.GetL4().GetTCP().GetDestinationPort() != 6379 || f.GetIP().GetSource() != "10.2.0.1" {
					t.Errorf("wire: %v %v", f.GetIP(), f.GetL4())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			if len(uuids) != len(tc.want) {
				t.Errorf("%d different ids for %d events", len(uuids), len(tc.want))
			}
		})
	}
}

func TestExternalSource(t *testing.T) {
	id := identity.NewIdentityFromLabelArray(identity.IdentityScopeLocal+1, labels.ParseLabelArray("reserved:world-ipv4", "cidr:10.5.0.7/32"))
	f := Events(Connection{
		From: Source{Identity: id, IP: "10.5.0.7"}, To: endpointOf("m1", "server", "10.1.0.1", 1<<16|300, "k8s:a=b"),
		Protocol: u8proto.UDP, SourcePort: 40000, Port: 53,
	}, engine.Decision{Outcome: engine.NoPolicy})[0]
	if f.GetSource().GetPodName() != "" || f.GetSource().GetClusterName() != "" {
		t.Errorf("an address outside the fleet is no pod: %v", f.GetSource())
	}
	if diff := cmp.Diff([]string{"cidr:10.5.0.7/32", "reserved:world-ipv4"}, f.GetSource().GetLabels()); diff != "" {
		t.Errorf("labels: -want +got\n%s", diff)
	}
	if f.GetL4().GetUDP().GetDestinationPort() != 53 {
		t.Errorf("layer 4: %v", f.GetL4())
	}
}
