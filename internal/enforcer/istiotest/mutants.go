package istiotest

import (
	"fmt"
	"maps"
	"strings"
)

// Mutants returns changes of the specs of AuthorizationPolicies by their names. Each is a plausible mistake of the translation, which a
// comparison must detect. A change returns a changed copy of the spec, or nil for no object.
func Mutants() map[string]func(spec map[string]any) map[string]any {
	rule := func(change func(rule map[string]any) map[string]any) func(map[string]any) map[string]any {
		return func(spec map[string]any) map[string]any {
			spec = maps.Clone(spec)
			var rules []any
			for _, r := range anyList(spec["rules"]) {
				if r := change(maps.Clone(r.(map[string]any))); r != nil {
					rules = append(rules, r)
				}
			}
			spec["rules"] = rules
			return spec
		}
	}
	from := func(change func(source map[string]any)) func(map[string]any) map[string]any {
		return rule(func(r map[string]any) map[string]any {
			var out []any
			for _, f := range anyList(r["from"]) {
				source := maps.Clone(f.(map[string]any)["source"].(map[string]any))
				change(source)
				out = append(out, map[string]any{"source": source})
			}
			if out != nil {
				r["from"] = out
			}
			return r
		})
	}
	to := func(change func(operation map[string]any)) func(map[string]any) map[string]any {
		return rule(func(r map[string]any) map[string]any {
			var out []any
			for _, o := range anyList(r["to"]) {
				operation := maps.Clone(o.(map[string]any)["operation"].(map[string]any))
				change(operation)
				out = append(out, map[string]any{"operation": operation})
			}
			if out != nil {
				r["to"] = out
			}
			return r
		})
	}
	action := func(is, becomes string) func(map[string]any) map[string]any {
		return func(spec map[string]any) map[string]any {
			if spec = maps.Clone(spec); spec["action"] == is {
				spec["action"] = becomes
			}
			return spec
		}
	}
	return map[string]func(map[string]any) map[string]any{
		"AuditAllows": action("AUDIT", "ALLOW"),
		"AuditDenies": action("AUDIT", "DENY"),
		"NoDenies": func(spec map[string]any) map[string]any {
			if spec["action"] == "DENY" {
				return nil
			}
			return spec
		},
		"NoPolicyForNobody": func(spec map[string]any) map[string]any {
			if strings.Contains(fmt.Sprint(spec["rules"]), "notPrincipals:[*] principals:[*]") {
				return nil
			}
			return spec
		},
		"NobodyIsEverybody": from(func(s map[string]any) {
			if s["principals"] != nil {
				delete(s, "notPrincipals")
			}
		}),
		"RangesMatchPods":    from(func(s map[string]any) { delete(s, "notPrincipals") }),
		"LongerRangesCount":  from(func(s map[string]any) { delete(s, "notIpBlocks") }),
		"NoFrom":             rule(func(r map[string]any) map[string]any { delete(r, "from"); return r }),
		"NoTo":               rule(func(r map[string]any) map[string]any { delete(r, "to"); return r }),
		"NoRuleForAnyone":    rule(func(r map[string]any) map[string]any { return map[bool]map[string]any{true: r}[r["from"] != nil] }),
		"AnyPort":            to(func(o map[string]any) { delete(o, "ports") }),
		"AnyMethod":          to(func(o map[string]any) { delete(o, "methods") }),
		"AnyPath":            to(func(o map[string]any) { delete(o, "paths") }),
		"EveryPortIsOpen":    to(func(o map[string]any) { delete(o, "notPorts") }),
		"OneNamespace":       from(principals(func(p string) string { return "cluster.local/ns/a" + p[1:] })),
		"AccountsByTheirEnd": from(principals(func(p string) string { return "*" + p[len(p)-1:] })),
		"OneAccount": from(func(s map[string]any) {
			if p := anyList(s["principals"]); len(p) > 1 {
				s["principals"] = p[:1]
			}
		}),
		"SelectsByClassOnly": func(spec map[string]any) map[string]any {
			spec = maps.Clone(spec)
			labels := maps.Clone(spec["selector"].(map[string]any)["matchLabels"].(map[string]any))
			if v, ok := labels[RedisLabel].(string); ok {
				labels[RedisLabel] = strings.Replace(v, "orders-cache", "bobs-cluster", 1)
			}
			spec["selector"] = map[string]any{"matchLabels": labels}
			return spec
		},
	}
}

func principals(change func(string) string) func(map[string]any) {
	return func(source map[string]any) {
		var out []any
		for _, p := range anyList(source["principals"]) {
			out = append(out, change(p.(string)))
		}
		if out != nil {
			source["principals"] = out
		}
	}
}

func anyList(v any) []any { l, _ := v.([]any); return l }
