package cilium_test

import (
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/policy"
)

func TestEffectOf(t *testing.T) {
	redis, metrics := v1alpha1.Port{Port: 6379, Protocol: v1alpha1.ProtocolTCP}, v1alpha1.Port{Port: 9121, Protocol: v1alpha1.ProtocolTCP}
	rule := func(effect policy.Effect, apps []string, ports ...v1alpha1.Port) policy.Rule {
		return policy.Rule{Effect: effect, Subjects: []policy.SubjectSelector{{LabelKey: "com.trip/appid", Values: apps}}, Ports: ports}
	}
	spec := func(mode v1alpha1.Mode, rules ...policy.Rule) map[string]any {
		u := policy.Unit{
			ID:         "redis-x",
			Resource:   "trnv1:rsc:trip-com:redis:clusters:bobs",
			LabelKey:   "com.trip/redis-cluster",
			LabelValue: "bobs",
			Mode:       mode,
			Rules:      rules,
		}
		r, err := cilium.Enforcer{}.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		return r.Objects[0].Object.Spec
	}
	elsewhere := spec(v1alpha1.ModeEnforce, rule(policy.Allow, []string{"1"}, redis))
	elsewhere["endpointSelector"] = map[string]any{"matchLabels": map[string]any{"k8s:com.trip/redis-cluster": "alices"}}
	one, both := []string{"1"}, []string{"1", "2"}
	enforce, audit := v1alpha1.ModeEnforce, v1alpha1.ModeAudit
	httpRule := rule(policy.Allow, one, redis)
	httpRule.HTTP = []v1alpha1.HTTPMatch{{Method: "GET", Path: "/"}}
	for _, c := range []struct {
		reason        string
		before, after map[string]any
		want          enforcer.Effect
	}{
		{"a new policy is for nobody's loss", nil, spec(enforce, rule(policy.Allow, one, redis)), enforcer.Grants},
		{"the same", spec(enforce, rule(policy.Allow, both, redis)), spec(enforce, rule(policy.Allow, both, redis)), enforcer.Grants},
		{
			"another client beside the first is let in, in the same selector",
			spec(enforce, rule(policy.Allow, one, redis)), spec(enforce, rule(policy.Allow, both, redis)), enforcer.Grants,
		},
		{"one of two clients is refused", spec(enforce, rule(policy.Allow, both, redis)), spec(enforce, rule(policy.Allow, one, redis)), enforcer.Revokes},
		{"the last client is refused", spec(enforce, rule(policy.Allow, one, redis)), spec(enforce), enforcer.Revokes},
		{"the first client is let in", spec(enforce), spec(enforce, rule(policy.Allow, one, redis)), enforcer.Grants},
		{
			"a class with another port gives each client more", spec(enforce, rule(policy.Allow, both, redis)),
			spec(enforce, rule(policy.Allow, both, metrics, redis)), enforcer.Grants,
		},
		{
			"a class with a port less takes it from each client", spec(enforce, rule(policy.Allow, both, metrics, redis)),
			spec(enforce, rule(policy.Allow, both, redis)), enforcer.Revokes,
		},
		{"the same ports in two rules instead of one", spec(enforce, rule(policy.Allow, one, metrics, redis)),
			spec(enforce, rule(policy.Allow, one, metrics), rule(policy.Allow, one, redis)), enforcer.Grants},
		{"each of two clients loses what the other gets", spec(enforce, rule(policy.Allow, one, redis), rule(policy.Allow, []string{"2"}, metrics)),
			spec(enforce, rule(policy.Allow, one, metrics), rule(policy.Allow, []string{"2"}, redis)), enforcer.Revokes},
		{"only some requests are left", spec(enforce, rule(policy.Allow, one, redis)), spec(enforce, httpRule), enforcer.Revokes},
		{
			"a deny comes", spec(enforce, rule(policy.Allow, both, redis)),
			spec(enforce, rule(policy.Allow, both, redis), rule(policy.Deny, one, redis)), enforcer.Revokes,
		},
		{
			"a deny goes", spec(enforce, rule(policy.Allow, both, redis), rule(policy.Deny, one, redis)),
			spec(enforce, rule(policy.Allow, both, redis)), enforcer.Grants,
		},
		{"what closed does not any more", spec(enforce, rule(policy.Allow, both, redis)), spec(audit, rule(policy.Allow, one, redis)), enforcer.Opens},
		{"the policy that closed goes", spec(enforce), nil, enforcer.Opens},
		{"a workload is closed", spec(audit, rule(policy.Allow, both, redis)), spec(enforce, rule(policy.Allow, both, redis)), enforcer.Grants},
		{"a policy that only allowed goes", spec(audit, rule(policy.Allow, both, redis)), nil, enforcer.Revokes},
		{"an empty policy goes", spec(audit), nil, enforcer.Grants},
		{"it is about other pods", spec(enforce, rule(policy.Allow, one, redis)), elsewhere, enforcer.Revokes},
		{"somebody wrote a rule for everyone into it", map[string]any{"ingress": []any{map[string]any{"toPorts": []any{}}}}, spec(audit), enforcer.Revokes},
		{"what nobody can read is a loss", map[string]any{"ingress": []any{map[string]any{"fromEndpoints": []any{3}}}}, spec(audit), enforcer.Revokes},
	} {
		if got := cilium.EffectOf(c.before, c.after); got != c.want {
			t.Errorf("%s: got %d, want %d", c.reason, got, c.want)
		}
	}
}

func TestGroupEffectOf(t *testing.T) {
	group := func(addresses ...any) map[string]any { return map[string]any{"externalCIDRs": addresses} }
	for _, c := range []struct {
		reason        string
		before, after map[string]any
		want          enforcer.Effect
	}{
		{"a new group", nil, group("10.0.0.1/32"), enforcer.Grants},
		{"another address", group("10.0.0.1/32"), group("10.0.0.1/32", "10.0.0.2/32"), enforcer.Grants},
		{"an address is another's now", group("10.0.0.1/32", "10.0.0.2/32"), group("10.0.0.2/32"), enforcer.Revokes},
		{"the group goes", group("10.0.0.1/32"), nil, enforcer.Revokes},
		{"what is no address counts as lost", group(3), group(3), enforcer.Revokes},
	} {
		if got := cilium.GroupEffectOf(c.before, c.after); got != c.want {
			t.Errorf("%s: got %d, want %d", c.reason, got, c.want)
		}
	}
}
