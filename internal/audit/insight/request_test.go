package insight

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// requests makes an edge one of requests of an action, or of no requests if the action is empty.
func requests(action string) func(*audit.Edge) {
	return func(e *audit.Edge) { e.Protocol, e.Action = audit.ProtocolHTTP, action }
}

// TestEvidenceIncludesRequests: a client whose connections are let in for some requests is not covered when others are refused.
func TestEvidenceIncludesRequests(t *testing.T) {
	connections := flows(edge(app+"1", shop, 8443, policy.Allowed), 100, every(14)...)
	for name, tc := range map[string]struct {
		reason  string
		flows   []*audit.Batch
		clients string // with a name, not covered
		score   string // newcomers, long-lived
	}{
		"Connections": {"requests that nobody saw", []*audit.Batch{connections}, "1 0", "10 10"},
		"Allowed": {
			"requests that the grant is about",
			[]*audit.Batch{connections, flows(edge(app+"1", shop, 8443, policy.Allowed, requests("web:manage")), 0, 1)}, "1 0", "10 10",
		},
		"Refused": {
			"requests that it is not about",
			[]*audit.Batch{connections, flows(edge(app+"1", shop, 8443, policy.DefaultDenied, requests("")), 7, 1)}, "1 1", "10 10",
		},
		"Newcomer": {"refused, and new", []*audit.Batch{connections, flows(edge(app+"2", shop, 8443, policy.DefaultDenied, requests("")), 7, 1)}, "2 1", "0 5"},
		"OnlyRequests": {"the opening of its connection was not seen, so others like it may be silent",
			[]*audit.Batch{flows(edge(app+"1", shop, 8443, policy.Allowed, requests("web:manage")), 0, 1)}, "1 0", "10 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := must[Score](
				t,
			)(
				Evidence(t.Context(), store(append(tc.flows, watched(14, "m1"))...), EvidenceInput{Resource: shop, Now: now, Fleet: onlyIn("m1"),
					Snapshot: with(world(), protect(shop, v1alpha1.ModeEnforce), allow("a", app+"1", "web:manage", shop))}),
			)
			if got := fmt.Sprint(s.Clients, s.Uncovered); got != tc.clients {
				t.Errorf("%s: clients and those that are not covered are %s, want %s", tc.reason, got, tc.clients)
			}
			if got := fmt.Sprint(s.Parts[3].Points, s.Parts[5].Points); got != tc.score {
				t.Errorf("%s: points for newcomers and long-lived connections are %s, want %s", tc.reason, got, tc.score)
			}
		})
	}
}

func TestProposalsIncludeRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		edge   audit.Edge
		want   []string // action, state, and whether a person has to choose
		ports  []string
	}{
		"Connection": {"its requests are not known", edge(app+"1", shop, 8443, policy.Audited), []string{"web:manage audited true"}, nil},
		"Request":    {"its requests are known", edge(app+"1", shop, 8443, policy.Audited, requests("web:manage")), []string{"web:manage audited false"}, nil},
		"Narrow": {
			"of several actions of the port, the one that was requested",
			edge(app+"1", shop, 80, policy.Audited, requests("web:buy")), []string{"web:buy audited false"}, nil,
		},
		"NoAction": {"no statement can allow it", edge(app+"1", shop, 8443, policy.DefaultDenied, requests("")), nil, []string{"HTTP 8443"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := must[Proposal](
				t,
			)(
				Propose(
					t.Context(),
					store(watched(14, "m1"), flows(tc.edge, 0, 1)),
					ProposeInput{Resource: shop, Snapshot: with(world(), protect(shop, v1alpha1.ModeAudit)),
						Since: ago(14), Until: now, Now: now},
				),
			)
			var got, ports []string
			for _, l := range p.Lines {
				got = append(got, fmt.Sprint(l.Action, " ", l.State, " ", l.Requests))
			}
			for _, u := range p.UnknownPorts {
				ports = append(ports, fmt.Sprint(u.Protocol, " ", u.Port))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.ports, ports); diff != "" {
				t.Errorf("%s: ports (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReplayIncludesRequests: a grant of some requests lets in those, and leaves others refused on the same port.
func TestReplayIncludesRequests(t *testing.T) {
	enforced := protect(shop, v1alpha1.ModeEnforce)
	im := must[Impact](t)(Replay(
		t.Context(),
		store(watched(14, "m1"), flows(edge(app+"1", shop, 80, policy.DefaultDenied, requests("web:buy")), 3, 1),
			flows(edge(app+"1", shop, 80, policy.DefaultDenied, requests("web:visit")), 5, 1), flows(edge(app+"1", shop, 80, policy.DefaultDenied), 1, 1)),
		ReplayInput{
			Before: with(world(), enforced),
			After:  with(world(), enforced, allow("a", app+"1", "web:buy", shop)),
			Since:  ago(14),
			Until:  now,
			Fleet:  onlyIn("m1"),
		},
	))
	var got []string
	for _, l := range im.NewlyAllowed {
		got = append(got, fmt.Sprint(l.Protocol, " ", l.Action, " ", l.Count))
	}
	if diff := cmp.Diff([]string{"HTTP web:buy 3", "TCP web:visit 1"}, got); diff != "" || im.Unchanged != 5 {
		t.Errorf("%d unchanged, newly allowed (-want +got):\n%s", im.Unchanged, diff)
	}
}

// TestRequestsUseGrants: a request that passed shows that its grant is used, although it counts for nothing.
func TestRequestsUseGrants(t *testing.T) {
	s := with(world(), protect(shop, v1alpha1.ModeEnforce), allow("a", app+"1", "web:buy", shop), allow("b", app+"1", "web:manage", shop))
	unused := must[[]UnusedStatement](
		t,
	)(
		Unused(t.Context(), store(watched(40, "m1"), flows(edge(app+"1", shop, 80, policy.Allowed, requests("web:buy")), 0, 1)),
			UnusedInput{Snapshot: s, Now: now, Since: ago(40), Fleet: onlyIn("m1")}),
	)
	if len(unused) != 1 || unused[0].Ref.SID != "b" {
		t.Errorf("unused: %+v, want only b", unused)
	}
}
