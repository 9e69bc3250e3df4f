package istio

import (
	"maps"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/norace"
	"github.com/acp-io/acp/internal/policy"
)

func parseYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func always() bool { return true }

// A policy of others adds nothing where each of its clients gets in by ACP's policies, on each of its ports and paths.
func TestAllowedWithin(t *testing.T) {
	const own = `{action: ALLOW, rules: [
		{from: [{source: {principals: ["*/sa/app-888", "*/sa/app-889"]}}], to: [{operation: {ports: ["9000", "9001"]}}]},
		{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["8080"], methods: [GET, HEAD], paths: ["/orders", "/orders/*"]}}]},
		{from: [{source: {ipBlocks: [10.5.0.0/16], notIpBlocks: [10.5.7.0/24], notPrincipals: ["*"]}}], to: [{operation: {ports: ["9000"]}}]}]}`
	const anyone = `{action: ALLOW, rules: [{to: [{operation: {ports: ["9000"]}}]}]}`
	const others = `{action: ALLOW, rules: [{to: [{operation: {notPorts: ["9000", "9001"]}}]}]}`
	for _, c := range []struct {
		reason, own, foreign string
		within               bool
	}{
		{"the same", own, own, true},
		{
			"one client on one port", own,
			`{rules: [{from: [{source: {principals: [cluster.local/ns/pay/sa/app-888]}}], to: [{operation: {ports: ["9000"]}}]}]}`, true,
		},
		{
			"clients of two rules", own,
			`{rules: [{from: [{source: {principals: [x/ns/a/sa/app-888, x/ns/a/sa/app-889]}}], to: [{operation: {ports: ["9001"]}}]}]}`,
			true,
		},
		{
			"one of them is another", own,
			`{rules: [{from: [{source: {principals: [x/ns/a/sa/app-888, x/ns/a/sa/app-777]}}], to: [{operation: {ports: ["9001"]}}]}]}`,
			false,
		},
		{"another port", own, `{rules: [{from: [{source: {principals: [x/ns/a/sa/app-888]}}], to: [{operation: {ports: ["9000", "9002"]}}]}]}`, false},
		{"every port", own, `{rules: [{from: [{source: {principals: [x/ns/a/sa/app-888]}}]}]}`, false},
		{"anyone", own, `{rules: [{to: [{operation: {ports: ["9000"]}}]}]}`, false},
		{"everything", own, `{rules: [{}]}`, false},
		{"nothing", own, `{rules: []}`, true},
		{"an account of a namespace", own, `{rules: [{from: [{source: {serviceAccounts: [pay/app-888]}}], to: [{operation: {ports: ["9000"]}}]}]}`, true},
		{"an account of the policy's own", own, `{rules: [{from: [{source: {serviceAccounts: [app-889]}}], to: [{operation: {ports: ["9000"]}}]}]}`, true},
		{"another account", own, `{rules: [{from: [{source: {serviceAccounts: [pay/app-8889]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false},
		{"a whole namespace", own, `{rules: [{from: [{source: {namespaces: [pay]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false},
		{
			"a client, if it is in a namespace", own,
			`{rules: [{from: [{source: {principals: ["*/sa/app-888"], namespaces: [pay]}}], to: [{operation: {ports: ["9000"]}}]}]}`, true,
		},
		{
			"a client, on a condition", own,
			`{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["9000"]}}], when: [{key: source.ip, values: [10.0.0.1]}]}]}`,
			true,
		},
		{"a longer ending", own, `{rules: [{from: [{source: {principals: ["*/ns/pay/sa/app-888"]}}], to: [{operation: {ports: ["9000"]}}]}]}`, true},
		{"a shorter ending", own, `{rules: [{from: [{source: {principals: ["*app-888"]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false},
		{"a beginning", own, `{rules: [{from: [{source: {principals: ["cluster.local/*"]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false},
		{"any certificate", own, `{rules: [{from: [{source: {principals: ["*"]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false},
		{"all but one", own, `{rules: [{from: [{source: {notPrincipals: ["*/sa/app-777"]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false},
		{
			"a request", own,
			`{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["8080"], methods: [GET], paths: [/orders/1]}}]}]}`,
			true,
		},
		{
			"requests of a longer beginning", own,
			`{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["8080"], methods: [GET], paths: ["/orders/1*"]}}]}]}`,
			true,
		},
		{
			"requests of a shorter beginning", own,
			`{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["8080"], methods: [GET], paths: ["/ord*"]}}]}]}`,
			false,
		},
		{
			"a template", own,
			`{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["8080"], methods: [GET], paths: ["/orders/{**}"]}}]}]}`,
			false,
		},
		{
			"another method", own,
			`{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["8080"], methods: [GET, POST], paths: [/orders]}}]}]}`,
			false,
		},
		{"the whole connection", own, `{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["8080"]}}]}]}`, false},
		{
			"requests where the whole connection is let in", own,
			`{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["9000"], methods: [GET], hosts: [x]}}]}]}`,
			true,
		},
		{"a range within", own, `{rules: [{from: [{source: {ipBlocks: [10.5.1.0/24], notPrincipals: ["*"]}}], to: [{operation: {ports: ["9000"]}}]}]}`, true},
		{"an address", own, `{rules: [{from: [{source: {ipBlocks: [10.5.1.1], notPrincipals: ["*"]}}], to: [{operation: {ports: ["9000"]}}]}]}`, true},
		{
			"a range of pods with certificates as well", own,
			`{rules: [{from: [{source: {ipBlocks: [10.5.1.0/24]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false,
		},
		{
			"a range that is left out", own,
			`{rules: [{from: [{source: {ipBlocks: [10.5.7.128/25], notPrincipals: ["*"]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false,
		},
		{
			"a range around it, without it", own,
			`{rules: [{from: [{source: {ipBlocks: [10.5.6.0/23], notIpBlocks: [10.5.7.0/24], notPrincipals: ["*"]}}], to: [{operation: {ports: ["9000"]}}]}]}`,
			true,
		},
		{"a wider range", own, `{rules: [{from: [{source: {ipBlocks: [10.4.0.0/15], notPrincipals: ["*"]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false},
		{"no range", own, `{rules: [{from: [{source: {ipBlocks: [everywhere], notPrincipals: ["*"]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false},
		{
			"addresses that a proxy reports", own,
			`{rules: [{from: [{source: {remoteIpBlocks: [10.5.1.0/24], notPrincipals: ["*"]}}], to: [{operation: {ports: ["9000"]}}]}]}`,
			false,
		},
		{"whoever, where anyone is let in", anyone, `{rules: [{from: [{source: {namespaces: [pay]}}], to: [{operation: {ports: ["9000"]}}]}]}`, true},
		{"on another port", anyone, `{rules: [{from: [{source: {namespaces: [pay]}}], to: [{operation: {ports: ["9001"]}}]}]}`, false},
		{"a port among the others", others, `{rules: [{to: [{operation: {ports: ["7070"]}}]}]}`, true},
		{"a port that is not", others, `{rules: [{to: [{operation: {ports: ["7070", "9001"]}}]}]}`, false},
		{"the others", others, `{rules: [{to: [{operation: {notPorts: ["9001", "9000", "1"]}}]}]}`, true},
		{"more of the others", others, `{rules: [{to: [{operation: {notPorts: ["9000"]}}]}]}`, false},
		{
			"a field of a source that is not known", own,
			`{rules: [{from: [{source: {principals: ["*/sa/app-888"], sidecars: [x]}}], to: [{operation: {ports: ["9000"]}}]}]}`, false,
		},
		{"one of an operation", own, `{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["9000"], tools: [x]}}]}]}`, false},
		{"one of a rule", own, `{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["9000"]}}], unless: []}]}`, false},
		{
			"one of a condition", own,
			`{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: ["9000"]}}], when: [{key: x, orValues: [y]}]}]}`,
			false,
		},
		{"one of the policy", anyone, `{default: ALLOW, rules: []}`, false},
		{"one even where everything is let in", `{action: ALLOW, rules: [{}]}`, `{rules: [{from: [{source: {sidecars: [x]}}]}]}`, false},
		{"rules that cannot be read", own, `{rules: all}`, false},
		{"a list that cannot be read", own, `{rules: [{from: [{source: {principals: "*/sa/app-888"}}], to: [{operation: {ports: ["9000"]}}]}]}`, false},
		{"a port that is a number", own, `{rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], to: [{operation: {ports: [9000]}}]}]}`, false},
		{"an entry without a source", own, `{rules: [{from: [{}], to: [{operation: {ports: ["9000"]}}]}]}`, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			ours, theirs := ParseAllowed(parseYAML(t, c.own), "istio-system"), ParseAllowed(parseYAML(t, c.foreign), "pay")
			if ours.unread {
				t.Fatal("ACP's own policy was not read")
			}
			if got := theirs.Within([]*Allowed{ours}, always); got != c.within {
				t.Errorf("within: %v", got)
			}
			left := 1
			if c.within && len(theirs.rules) > 1 && theirs.Within([]*Allowed{ours}, func() bool { left--; return left > 0 }) {
				t.Error("within, although it was not compared to its end")
			}
		})
	}
}

// alter changes a rule of ACP's a little, as a foreign policy may contain it.
func alter(d istiotest.Generator, rule map[string]any) map[string]any {
	change := func(entry any, kind, field string, to func(values []any) []any) any {
		of := maps.Clone(entry.(map[string]any)[kind].(map[string]any))
		if of[field] = to(anyList(of[field])); len(anyList(of[field])) == 0 {
			delete(of, field)
		}
		return map[string]any{kind: of}
	}
	one := func(values []any) []any {
		if len(values) == 0 {
			return nil
		}
		return []any{values[d.IntN(len(values))]}
	}
	out := maps.Clone(rule)
	if from := anyList(rule["from"]); len(from) > 0 {
		entry := from[d.IntN(len(from))]
		switch d.IntN(6) {
		case 0:
			entry = change(entry, "source", "principals", func([]any) []any {
				return []any{
					istiotest.Pick(d, "cluster.local/ns/a/sa/app-888", "other.domain/ns/sa/sa/svc-cart", "*/sa/app-888", "*", "cluster.local/*", "*-888"),
				}
			})
		case 1:
			entry = change(entry, "source", "notPrincipals", func([]any) []any { return nil })
		case 2:
			entry = change(entry, "source", "notIpBlocks", func([]any) []any { return nil })
		case 3:
			entry = change(entry, "source", "ipBlocks", func(had []any) []any {
				if len(had) == 0 {
					return nil
				}
				return []any{istiotest.Pick(d, "10.5.0.9/32", "10.5.0.0/24", "10.5.0.0/16", "10.4.0.0/15", "2001:db8::/32", "2001:db8:1::/48")}
			})
		default:
			entry = change(entry, "source", "principals", one)
		}
		if len(entry.(map[string]any)["source"].(map[string]any)) > 0 {
			out["from"] = []any{entry}
		}
	}
	if to := anyList(rule["to"]); len(to) > 0 {
		entry := to[d.IntN(len(to))]
		switch d.IntN(6) {
		case 0:
			entry = change(entry, "operation", "ports", func([]any) []any { return []any{istiotest.Pick(d, "6379", "6380", "80", "8080", "9121")} })
		case 1:
			entry = change(entry, "operation", "methods", func([]any) []any { return []any{istiotest.Pick(d, "GET", "POST", "*", "P*")} })
		case 2:
			entry = change(
				entry,
				"operation",
				"paths",
				func([]any) []any { return []any{istiotest.Pick(d, "/orders", "/orders/*", "/*", "*.css", "/orders/1")} },
			)
		default:
			entry = change(entry, "operation", "ports", one)
		}
		if len(entry.(map[string]any)["operation"].(map[string]any)) > 0 {
			out["to"] = []any{entry}
		}
	}
	return out
}

// TestWithinLetsInNothing checks in random worlds that a foreign policy that is judged to be within ACP's rules lets in no connection
// that the reference evaluator refuses without it.
func TestWithinLetsInNothing(t *testing.T) {
	norace.SkipUnderRace(t)
	within, opened := 0, 0
	for seed := range uint64(1500) {
		d := istiotest.NewGenerator(seed, 11)
		s := policy.NewSnapshot(d.World(true))
		e, err := New(testConfig())
		if err != nil {
			t.Fatal(err)
		}
		units := s.Compile(istiotest.Noon)
		e = e.WithUnits(units)
		cluster := istiotest.Pick(d, "m1", "m2", "unnamed")
		m := mesh{ambient: cluster == "m2"}
		labels := istiotest.Pick(d, map[string]string{"com.trip/redis-cluster": "bobs-cluster"}, map[string]string{"com.trip/site": "shop"},
			map[string]string{"com.trip/redis-cluster": "orders-cache", "com.trip/site": "shop"})
		var own []*Allowed
		var rules []any
		for _, u := range units {
			r, err := e.Render(u)
			if err != nil {
				t.Fatal(err)
			}
			if mode, ok := u.ClusterModes[cluster]; ok && mode == v1alpha1.ModeObserve || !ok && u.Mode == v1alpha1.ModeObserve {
				continue
			}
			for _, o := range r.Objects {
				spec := o.Object.Spec
				if other, ok := o.Overrides[cluster]; ok {
					spec = other
				}
				if err := m.add(spec); err != nil {
					t.Fatal(err)
				}
				if p := m.policies[len(m.policies)-1]; p.Action == "ALLOW" && p.selects(labels) {
					own = append(own, ParseAllowed(spec, "istio-system"))
					rules = append(rules, anyList(spec["rules"])...)
				}
			}
		}
		if len(own) == 0 {
			continue // nothing is closed
		}
		spec := map[string]any{"action": "ALLOW", "selector": map[string]any{"matchLabels": map[string]any{}}, "rules": []any{}}
		for k, v := range labels {
			spec["selector"].(map[string]any)["matchLabels"].(map[string]any)[k] = v
		}
		var theirs []any
		for range 1 + d.IntN(2) {
			if len(rules) == 0 || d.IntN(8) == 0 {
				theirs = append(theirs, map[string]any{})
				continue
			}
			theirs = append(theirs, alter(d, rules[d.IntN(len(rules))].(map[string]any)))
		}
		spec["rules"] = theirs
		both := mesh{ambient: m.ambient, policies: append([]authorizationPolicy(nil), m.policies...)}
		if err := both.add(spec); err != nil {
			t.Fatal(err)
		}
		inside := ParseAllowed(spec, "istio-system").Within(own, always)
		if inside {
			within++
		}
		for range 60 {
			tr := d.Connection(s, labels, cluster).Traffic
			if !both.passes(labels, tr) || m.passes(labels, tr) {
				continue
			}
			opened++
			if inside {
				t.Fatalf("seed %d: called within, and lets in %+v (%s)\n%v\n%v", seed, tr, tr.Address, spec, m.policies)
			}
		}
	}
	if within < 150 || opened < 1000 {
		t.Errorf("%d policies within, and %d connections that others let in: too few to notice a mistake", within, opened)
	}
	t.Logf("%d within, %d opened", within, opened)
}
