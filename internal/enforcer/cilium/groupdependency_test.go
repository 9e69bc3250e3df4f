package cilium_test

import (
	"net/netip"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/policy"
)

// TestNeedsGroups checks which changes of a policy have to wait for outdated groups: those that would let in or refuse a client by what is in a group,
// and not those that only refuse more, or let in pods.
func TestNeedsGroups(t *testing.T) {
	type rules = []policy.Rule
	ports := []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}
	pods := func(effect policy.Effect, apps ...string) policy.Rule {
		return policy.Rule{Effect: effect, Subjects: []policy.SubjectSelector{{LabelKey: "com.trip/appid", Values: apps}}, Ports: ports}
	}
	group := func(effect policy.Effect, ids ...string) policy.Rule {
		return policy.Rule{Effect: effect, External: ids, Ports: ports}
	}
	class := func(effect policy.Effect) policy.Rule {
		return policy.Rule{Effect: effect, ExternalClasses: []string{"app"}, Ports: ports}
	}
	network := func(effect policy.Effect) policy.Rule {
		return policy.Rule{Effect: effect, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Ports: ports}
	}
	anyone := func(effect policy.Effect) policy.Rule { return policy.Rule{Effect: effect, Anyone: true, Ports: ports} }
	render := func(mode v1alpha1.Mode, of rules) map[string]any {
		if of == nil {
			return nil
		}
		u := policy.Unit{ID: "redis-x", Resource: "trnv1:rsc:o:redis:clusters:x", LabelKey: "com.trip/redis", LabelValue: "x", Mode: mode, Rules: of}
		r, err := cilium.Enforcer{}.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		return r.Objects[0].Object.Spec
	}
	const allow, deny, enforce, audit = policy.Allow, policy.Deny, v1alpha1.ModeEnforce, v1alpha1.ModeAudit
	for name, tc := range map[string]struct {
		reason      string
		was, is     v1alpha1.Mode
		before, now rules
		// harmless is whether the groups contain only addresses that they have to have.
		harmless bool
		want     bool
	}{
		"Revoked": {"a pod is refused", enforce, enforce, rules{pods(allow, "1", "2"), group(allow, "s")},
			rules{pods(allow, "2"), group(allow, "s")}, false, false},
		"PodForPod": {"a pod is refused, and another one let in", enforce, enforce, rules{pods(allow, "1"), group(deny, "s")},
			rules{pods(allow, "2"), group(deny, "s")}, false, false},
		"GroupRevoked":   {"a group is refused", enforce, enforce, rules{group(allow, "s", "t")}, rules{group(allow, "t")}, false, false},
		"GroupDenied":    {"a group is denied", enforce, enforce, rules{anyone(allow)}, rules{anyone(allow), group(deny, "s")}, false, false},
		"MissingAllowed": {"a missing group lets nobody in", enforce, enforce, rules{pods(allow, "1")}, rules{group(allow, "s")}, true, false},
		"StaleAllowed": {"a group with an address that is to be removed", enforce, enforce, rules{pods(allow, "1")}, rules{group(allow, "s")},
			false, true},
		"AllowedAndDenied": {"the denied group may lack an address that the allowed one has", enforce, enforce, rules{pods(allow, "1"), group(deny, "t")},
			rules{group(allow, "s"), group(deny, "t")}, true, true},
		"ClassAllowed": {"some group of the class may be stale", enforce, enforce, rules{pods(allow, "1")}, rules{class(allow)}, true, true},
		"RangeAllowed": {"no deny names a group", enforce, enforce, rules{pods(allow, "1"), group(allow, "s")},
			rules{network(allow), group(allow, "s")}, false, false},
		"RangeWithDeny": {"the denied group may lack addresses of the range", enforce, enforce, rules{pods(allow, "1"), group(deny, "s")},
			rules{network(allow), group(deny, "s")}, true, true},
		"AnyoneWithDeny": {"the denied group may lack an address", enforce, enforce, rules{pods(allow, "1")}, rules{anyone(allow), class(deny)}, true, true},
		"RangeDenied":    {"less is let in", enforce, enforce, rules{group(allow, "s")}, rules{group(allow, "s"), network(deny)}, false, false},
		"RangeUndenied": {"the deny kept out what the group must not have", enforce, enforce, rules{pods(allow, "1"), group(allow, "s"), network(deny)},
			rules{group(allow, "s")}, false, true},
		"GroupUndenied": {"the deny kept out what the group must not have", enforce, enforce, rules{group(allow, "s"), group(deny, "s")},
			rules{group(allow, "s")}, true, true},
		"PodUndenied": {"no address is a pod's", enforce, enforce, rules{group(allow, "s"), pods(deny, "1")}, rules{group(allow, "s")}, false, false},
		"Closed":      {"it would refuse the clients in the group", audit, enforce, rules{group(allow, "s")}, rules{group(allow, "s")}, true, true},
		"New":         {"it would refuse the clients in the group", "", enforce, nil, rules{group(allow, "s")}, true, true},
		"Opened": {"everybody is let in, whatever the groups are", enforce, audit, rules{group(allow, "s"), group(deny, "t")},
			rules{group(allow, "s")}, false, false},
		"OpenedFurther": {"another resource of the pod may be closed", enforce, audit, rules{pods(allow, "1")}, rules{group(allow, "s")}, false, true},
		"Removed":       {"nothing is left that refers to groups", audit, "", rules{group(allow, "s")}, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := cilium.NeedsGroups(render(tc.was, tc.before), render(tc.is, tc.now), func(string) bool { return tc.harmless })
			if got != tc.want {
				t.Errorf("%s: needs groups: %t", tc.reason, got)
			}
		})
	}
	other := render(enforce, rules{pods(allow, "1")})
	other["endpointSelector"] = map[string]any{"matchLabels": map[string]any{"k8s:com.trip/redis": "y"}}
	if !cilium.NeedsGroups(render(enforce, rules{pods(allow, "1")}), other, func(string) bool { return true }) {
		t.Error("other pods are closed now")
	}
}
