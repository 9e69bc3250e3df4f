package foreignpolicy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// policyOf returns a policy with a spec.
func policyOf(kind, namespace, name string, spec map[string]any) *Policy {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return Parse(u)
}

func list[T any](n int, item func(i int) T) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}

type object = map[string]any

func address(i int) string {
	return netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}).String()
}

// emptyRange returns a rule that lets in nobody: a range of two addresses, except for both.
func emptyRange(i int) object {
	a := 4 * i
	return object{"from": []any{object{"ipBlock": object{"cidr": address(a) + "/31", "except": []any{address(a) + "/32", address(a+1) + "/32"}}}}}
}

// emptyWorld returns a rule that lets in nobody: all addresses, except for both halves and one more address.
func emptyWorld(i int) object {
	return object{"from": []any{object{"ipBlock": object{"cidr": "0.0.0.0/0", "except": []any{"0.0.0.0/1", "128.0.0.0/1", address(i) + "/32"}}}}}
}

func networkPolicy(name string, ingress []any) *Policy {
	return policyOf(KindNetworkPolicy, "data", name, object{"podSelector": object{}, "ingress": ingress})
}

// inputWith returns a member with a closed workload, an allowed client and other pods, and with a policy that opens nothing before those given.
func inputWith(t *testing.T, foreign ...*Policy) Input {
	t.Helper()
	pods := [][]Handle{pod(redisKey+"=bobs", "app=redis", namespaceKey+"=data"), pod("com.trip/appid=888", "app=prometheus", namespaceKey+"=data")}
	for i := range 200 {
		pods = append(pods, pod(fmt.Sprintf("app=web-%d", i), namespaceKey+"=web"))
	}
	harmless := networkPolicy("a", []any{object{"from": []any{object{"podSelector": object{"matchLabels": object{"app": "prometheus"}}}},
		"ports": []any{object{"port": 6379}}}})
	return Input{Own: []*Policy{parse(t, closed)}, Foreign: append([]*Policy{harmless}, foreign...), Keys: map[string]bool{redisKey: true}, Each: each(pods...)}
}

// TestRulesThatMatchNobody checks that the work for very many rules that match nobody is bounded. Each of them was compared with the addresses of
// all others.
func TestRulesThatMatchNobody(t *testing.T) {
	const rules = 20_000
	for _, c := range []struct {
		reason string
		rule   func(i int) object
		opened bool
	}{
		{"different ranges are evaluated", emptyRange, false},
		{"equal ranges take too many checks, so they count as opened", emptyWorld, true},
	} {
		d := NewDetector()
		found := d.Find(inputWith(t, networkPolicy("theirs", list(rules, c.rule))))
		if d.Checks > maxChecks+1000 {
			t.Errorf("%s: %d checks", c.reason, d.Checks)
		}
		if by := found.OpenedBy(redisKey, "bobs"); (by == "NetworkPolicy data/theirs") != c.opened || by != "" && !c.opened {
			t.Errorf("%s: opened by %q", c.reason, by)
		}
		if d.Pending() {
			t.Errorf("%s: the evaluation is pending", c.reason)
		}
	}
}

// expensive are policies that let in nobody beyond ACP's and take more than 100,000 checks in different parts of the evaluation.
func expensive(t *testing.T) map[string][]*Policy {
	t.Helper()
	allowed := []any{object{"podSelector": object{"matchLabels": object{"app": "prometheus"}}}}
	redis := []any{object{"port": 6379}}
	clusterRules := func(n int, action string) []any {
		return list(n, func(int) object {
			return object{"action": action, "from": []any{object{"namespaces": object{}}},
				"protocols": []any{object{"tcp": object{"destinationPort": object{"number": 6379}}}}}
		})
	}
	return map[string][]*Policy{
		"addresses": {networkPolicy("theirs", list(300, emptyWorld))},
		"exceptions": {networkPolicy("theirs", list(10, func(i int) object {
			except := append([]any{"0.0.0.0/1", "128.0.0.0/1"}, list(500, func(j int) any { return address(j+i) + "/32" })...)
			return object{"from": []any{object{"ipBlock": object{"cidr": "0.0.0.0/0", "except": except}}}}
		}))},
		"peers": {networkPolicy("theirs", []any{object{"from": list(300, func(i int) object { return emptyWorld(i)["from"].([]any)[0].(object) })}})},
		"selectors of pods": {networkPolicy("theirs", list(500, func(i int) object {
			return object{"from": []any{object{"namespaceSelector": object{}, "podSelector": object{"matchExpressions": []any{
				object{"key": "app", "operator": "NotIn", "values": []any{"x"}}, object{"key": fmt.Sprintf("no-%d", i), "operator": "Exists"}}}}}}
		}))},
		"ports": {networkPolicy("theirs", list(100, func(int) object {
			return object{"from": allowed, "ports": slices.Concat(redis, list(10, func(int) any { return object{"port": 6379} }))}
		}))},
		"rules": {networkPolicy("theirs", list(1000, func(int) object { return object{"from": allowed, "ports": redis} }))},
		"passes": {policyOf(KindClusterNetworkPolicy, "", "theirs", object{"tier": "Admin", "subject": object{"namespaces": object{}},
			"ingress": slices.Concat(clusterRules(500, "Pass"), clusterRules(500, "Deny"))}),
			networkPolicy("also-theirs", list(300, func(int) object { return object{"from": allowed, "ports": redis} }))},
		"requests": {policyOf(KindCiliumPolicy, "data", "theirs", object{"endpointSelector": object{}, "ingress": list(300, func(i int) object {
			return object{"fromEndpoints": []any{object{"matchLabels": object{"app": "prometheus"}}}, "toPorts": []any{object{
				"ports": []any{object{"port": "6379", "protocol": "TCP"}},
				"rules": object{"http": list(20, func(j int) object { return object{"path": fmt.Sprintf("/%d/%d", i, j)} })}}}}
		})})},
		"subjects": {policyOf(KindCiliumPolicy, "data", "theirs", nil), func() *Policy {
			u := &unstructured.Unstructured{Object: object{"kind": KindCiliumPolicy, "specs": list(1000, func(i int) object {
				return object{"endpointSelector": object{"matchExpressions": []any{object{"key": "app", "operator": "NotIn", "values": []any{fmt.Sprint(i)}}}},
					"ingress": []any{object{"fromEndpoints": []any{object{"matchLabels": object{"app": "prometheus"}}},
						"toPorts": []any{object{"ports": []any{object{"port": "6379", "protocol": "TCP"}}}}}}}
			})}}
			u.SetNamespace("data")
			u.SetName("theirs")
			return Parse(u)
		}()},
	}
}

// TestExceededBudget checks that every part of the evaluation counts its work, and that a workload counts as opened if it takes more than the
// budget, by the policy that causes the most of it. The policies open nothing, which is found with a larger budget.
func TestExceededBudget(t *testing.T) {
	const budget = 100_000
	for reason, policies := range expensive(t) {
		in := inputWith(t, policies...)
		d := NewDetector()
		d.workloadChecks, d.memberChecks = budget, 3*budget
		if by := d.Find(in).OpenedBy(redisKey, "bobs"); !strings.HasSuffix(by, "theirs") {
			t.Errorf("%s: opened by %q", reason, by)
		}
		if d.Checks > 3*budget || d.Pending() {
			t.Errorf("%s: %d checks, pending: %t", reason, d.Checks, d.Pending())
		}
		before := d.Checks
		if by := d.Find(in).OpenedBy(redisKey, "bobs"); !strings.HasSuffix(by, "theirs") || d.Checks-before > 3*budget {
			t.Errorf("%s: opened in the next round by %q, with %d checks", reason, by, d.Checks-before)
		}
		d = NewDetector()
		d.workloadChecks, d.memberChecks = 1<<40, 1<<40
		if by := d.Find(in).OpenedBy(redisKey, "bobs"); by != "" || d.Checks < budget {
			t.Errorf("%s: with all checks opened by %q, %d checks", reason, by, d.Checks)
		}
	}
}

// TestPassesAreEvaluatedOnce checks that the rules of the next tier are evaluated once for all rules that may pass to them, and once because
// these may not.
func TestPassesAreEvaluatedOnce(t *testing.T) {
	passes := policyOf(KindClusterNetworkPolicy, "", "passes", object{"tier": "Admin", "subject": object{"namespaces": object{}}, "ingress": list(100,
		func(int) object {
			return object{"action": "Pass", "from": []any{object{"namespaces": object{}}}, "protocols": []any{object{"destinationNamedPort": "redis"}}}
		})})
	request := parse(t, `{kind: CiliumNetworkPolicy, metadata: {namespace: data, name: p}, spec: {endpointSelector: {}, `+
		`ingress: [{fromEntities: [all], toPorts: [{ports: [{port: "6379", protocol: TCP}], rules: {http: [{method: GET}]}}]}]}}`)
	var matching []matchingRule
	for _, r := range append(passes.rules, request.rules...) {
		matching = append(matching, matchingRule{&applicableRule{rule: r, sure: true}, yes})
	}
	if out := combinedOutcome(matching, ports{"TCP", 6379, 6379}); out.whole || len(out.requests) != 2 {
		t.Errorf("%d evaluations of the rule about requests", len(out.requests))
	}
}

// TestMemberBudget checks that the checks for a member are bounded in each round, that the workloads with little work do not depend on those with
// much, and that the evaluation continues in the next rounds.
func TestMemberBudget(t *testing.T) {
	const workloads, budget = 10, 200_000
	in, pods := fleet(t, 50)
	for i := range workloads {
		ns := fmt.Sprintf("theirs-%d", i)
		*pods = append(*pods, pod(redisKey+"="+ns, namespaceKey+"="+ns))
		in.Own = append(in.Own, parse(t, strings.ReplaceAll(closed, "bobs", ns)))
		in.Foreign = append(in.Foreign, policyOf(KindNetworkPolicy, ns, "theirs", object{"podSelector": object{}, "ingress": list(500, emptyRange)}))
	}
	d := NewDetector()
	d.memberChecks = budget
	for rounds, opened := 0, workloads; opened > 0; rounds++ {
		before := d.Checks
		found := d.Find(in)
		if checks := d.Checks - before; checks > budget {
			t.Fatalf("%d checks in a round", checks)
		}
		now := 0
		for l, by := range found.labels {
			if !strings.HasPrefix(l.Value, "theirs-") || by != "NetworkPolicy "+l.Value+"/theirs" {
				t.Fatalf("%s is opened by %s", l.Value, by)
			}
			now++
		}
		if now > opened || now == opened && rounds > 0 || d.Pending() != (now > 0) {
			t.Fatalf("%d workloads are opened after %d before, pending: %t", now, opened, d.Pending())
		}
		if opened = now; rounds == 0 && (now == 0 || now == workloads) {
			t.Fatalf("the test does not use up the checks: %d workloads are opened", now)
		}
	}
	d = NewDetector()
	d.memberChecks = 3000 // too few to compare the policies with all pods
	for range 2 {
		before := d.Checks
		found := d.Find(in)
		if d.Checks-before > 3000 {
			t.Errorf("%d checks in a round", d.Checks-before)
		}
		if found.OpenedBy(redisKey, "theirs-0") == "" {
			t.Error("what was not evaluated counts as closed")
		}
	}
}

// TestEditedPolicies checks that nothing is kept of earlier versions of a policy, which may be large, and that each version is evaluated.
func TestEditedPolicies(t *testing.T) {
	d := NewDetector()
	for version := range 5 {
		in := inputWith(t, networkPolicy("theirs", []any{object{"from": list(3000, func(i int) object {
			return emptyRange(i + version)["from"].([]any)[0].(object)
		})}}))
		if by := d.Find(in).OpenedBy(redisKey, "bobs"); by != "" {
			t.Fatalf("opened by %q", by)
		}
		if len(d.selectors) > 3100 || len(d.ids) > 10 || len(d.workloads) > 1 {
			t.Errorf("%d selectors, %d sets of rules, %d workloads", len(d.selectors), len(d.ids), len(d.workloads))
		}
	}
	in := inputWith(t, networkPolicy("theirs", []any{object{}}))
	if by := d.Find(in).OpenedBy(redisKey, "bobs"); by != "NetworkPolicy data/theirs" {
		t.Errorf("opened by %q", by)
	}
}
