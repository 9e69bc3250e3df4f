package ciliumtest

import "slices"

func asMap(v any) map[string]any { m, _ := v.(map[string]any); return m }

func rules(spec map[string]any, section string) []map[string]any {
	list, _ := spec[section].([]any)
	var out []map[string]any
	for _, r := range list {
		out = append(out, asMap(r))
	}
	return out
}

// eachRule calls its argument for each allow.
func eachRule(spec map[string]any, visit func(map[string]any)) {
	for _, r := range rules(spec, "ingress") {
		visit(r)
	}
}

func eachPorts(rule map[string]any, visit func(map[string]any)) {
	list, _ := rule["toPorts"].([]any)
	for _, p := range list {
		visit(asMap(p))
	}
}

func eachPort(visit func(map[string]any)) func(map[string]any) {
	return func(spec map[string]any) {
		eachRule(spec, func(r map[string]any) {
			eachPorts(r, func(p map[string]any) {
				list, _ := p["ports"].([]any)
				for _, one := range list {
					visit(asMap(one))
				}
			})
		})
	}
}

// eachSelector removes the peer selectors for which keep returns false.
func eachSelector(spec map[string]any, keep func(selector map[string]any) bool) {
	for _, section := range []string{"ingress", "ingressDeny"} {
		for _, r := range rules(spec, section) {
			if list, ok := r["fromEndpoints"].([]any); ok {
				r["fromEndpoints"] = slices.DeleteFunc(list, func(s any) bool { return !keep(asMap(s)) })
			}
		}
	}
}

// isExpression reports whether an expression has the key and the operator; "" matches any.
func isExpression(e any, key, operator string) bool {
	m := asMap(e)
	return (key == "" || m["key"] == key) && (operator == "" || m["operator"] == operator)
}

func dropFrom(selector map[string]any, drop func(expression any) bool) {
	if list, ok := selector["matchExpressions"].([]any); ok {
		selector["matchExpressions"] = slices.DeleteFunc(list, drop)
	}
}

func dropExpressions(key, operator string) func(map[string]any) {
	return func(spec map[string]any) {
		eachSelector(spec, func(s map[string]any) bool {
			dropFrom(s, func(e any) bool { return isExpression(e, key, operator) })
			return true
		})
	}
}

func dropSelectors(key, operator string) func(map[string]any) {
	return func(spec map[string]any) {
		eachSelector(spec, func(s map[string]any) bool {
			list, _ := s["matchExpressions"].([]any)
			return !slices.ContainsFunc(list, func(e any) bool { return isExpression(e, key, operator) })
		})
	}
}

// dropRules removes the rules with a kind of peers from a section. An empty section would be rejected.
func dropRules(spec map[string]any, section, kind string) {
	list, ok := spec[section].([]any)
	if !ok {
		return
	}
	list = slices.DeleteFunc(list, func(r any) bool { _, has := asMap(r)[kind]; return has })
	if len(list) == 0 {
		list = []any{map[string]any{}}
	}
	spec[section] = list
}

// denyAll writes a deny of every source in another form.
func denyAll(peers map[string]any) func(map[string]any) {
	return func(spec map[string]any) {
		for _, r := range rules(spec, "ingressDeny") {
			if _, ok := r["fromEntities"]; ok {
				delete(r, "fromEntities")
				for k, v := range peers {
					r[k] = v
				}
			}
		}
	}
}

// SetDefaultDeny sets whether a policy closes what its rules do not allow.
func SetDefaultDeny(spec map[string]any, closed bool) {
	asMap(spec["enableDefaultDeny"])["ingress"] = closed
}

// dropHTTP removes a field of the requests, but leaves no match without fields.
func dropHTTP(field string) func(map[string]any) {
	return func(spec map[string]any) {
		eachRule(spec, func(r map[string]any) {
			eachPorts(r, func(p map[string]any) {
				list, _ := asMap(p["rules"])["http"].([]any)
				for _, match := range list {
					if m := asMap(match); len(m) > 1 {
						delete(m, field)
					}
				}
			})
		})
	}
}
