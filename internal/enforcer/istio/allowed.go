package istio

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Allowed represents what the rules of an AuthorizationPolicy with the action ALLOW let in, whoever wrote it. It is
// used to check whether such a policy lets in more than others do.
type Allowed struct {
	rules []allowedRule
	// unread reports whether a part of the policy is not understood, so that it may let in anything.
	unread bool
}

// allowedRule is one rule: a connection must match one of the sources and one of the operations. A nil list matches
// anything.
type allowedRule struct {
	sources    []fields
	operations []fields
}

// fields are the lists of a source or an operation, by the API's field names. All of them must match.
type fields map[string][]string

// These are the fields of Istio 1.31. Each of them restricts what matches, so fields that are not compared can be
// ignored.
var (
	sourceFields = []string{"principals", "notPrincipals", "requestPrincipals", "notRequestPrincipals", "namespaces", "notNamespaces",
		"ipBlocks", "notIpBlocks", "remoteIpBlocks", "notRemoteIpBlocks", "serviceAccounts", "notServiceAccounts"}
	operationFields = []string{"hosts", "notHosts", "ports", "notPorts", "methods", "notMethods", "paths", "notPaths"}
	ruleFields      = []string{"from", "to", "when"}
	conditionFields = []string{"key", "values", "notValues"}
	specFields      = []string{"selector", "targetRef", "targetRefs", "action", "rules"}
)

// ParseAllowed parses the spec of a policy in a namespace. A policy with unknown parts counts as letting in anything.
func ParseAllowed(spec map[string]any, namespace string) *Allowed {
	out := &Allowed{unread: !hasOnly(spec, specFields)}
	rules, ok := objects(spec["rules"])
	out.unread = out.unread || !ok
	for _, r := range rules {
		var rule allowedRule
		var readable [3]bool
		rule.sources, readable[0] = entriesOf(r["from"], "source", sourceFields)
		rule.operations, readable[1] = entriesOf(r["to"], "operation", operationFields)
		conditions, ok := objects(r["when"])
		readable[2] = ok && !slices.ContainsFunc(conditions, func(c map[string]any) bool { return !hasOnly(c, conditionFields) })
		if !hasOnly(r, ruleFields) || readable != [3]bool{true, true, true} {
			out.unread = true
			continue
		}
		for _, s := range rule.sources {
			s.addAccounts(namespace)
		}
		out.rules = append(out.rules, rule)
	}
	return out
}

// entriesOf reads the entries of `from` or `to`. A nil result means that there are none, which matches anything.
func entriesOf(value any, kind string, known []string) (out []fields, readable bool) {
	list, ok := objects(value)
	if !ok {
		return nil, false
	}
	for _, entry := range list {
		of, ok := entry[kind].(map[string]any)
		if !ok || len(entry) != 1 || !hasOnly(of, known) {
			return nil, false
		}
		f := fields{}
		for name, v := range of {
			texts, ok := v.([]any)
			if !ok {
				return nil, false
			}
			for _, t := range texts {
				text, ok := t.(string)
				if !ok {
					return nil, false
				}
				f[name] = append(f[name], text)
			}
		}
		out = append(out, f)
	}
	return out, true
}

// addAccounts adds service accounts as the principals that they mean: `namespace/name`, or a name in the policy's own
// namespace.
func (f fields) addAccounts(namespace string) {
	if len(f["principals"]) > 0 {
		return // Istio accepts only one of the two fields
	}
	for _, account := range f["serviceAccounts"] {
		of, name, ok := strings.Cut(account, "/")
		if !ok {
			of, name = namespace, account
		}
		f["principals"] = append(f["principals"], "*/ns/"+of+"/sa/"+name)
	}
}

func hasOnly(m map[string]any, known []string) bool {
	for k := range m {
		if !slices.Contains(known, k) {
			return false
		}
	}
	return true
}

// objects reads a list of objects. A missing list is empty.
func objects(v any) (out []map[string]any, ok bool) {
	if v == nil {
		return nil, true
	}
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		if !ok {
			return nil, false
		}
		out = append(out, m)
	}
	return out, true
}

// Within reports whether others certainly let in everything that the policy lets in. Each client with each port, method
// and path of a rule must be let in by a single rule of the others; what several rules let in only together counts as
// more. tried counts comparisons and may end them, with the result false.
func (a *Allowed) Within(others []*Allowed, tried func() bool) bool {
	if a.unread {
		return false
	}
	for _, r := range a.rules {
		for _, from := range combinations(r.sources, "principals", "ipBlocks") {
			for _, to := range combinations(r.operations, "ports", "methods", "paths") {
				if !slices.ContainsFunc(others, func(o *Allowed) bool {
					return slices.ContainsFunc(o.rules, func(x allowedRule) bool { return x.allows(from, to, tried) })
				}) {
					return false
				}
			}
		}
	}
	return true
}

// entry is one entry of `from` or `to`, with one value of each of some of its lists. Its zero value matches anything.
type entry struct {
	values map[string]string
	fields fields
}

// combinations returns the entries with each combination of values of the given lists.
func combinations(entries []fields, lists ...string) []entry {
	if len(entries) == 0 {
		return []entry{{}}
	}
	var out []entry
	for _, f := range entries {
		all := []map[string]string{{}}
		for _, name := range lists {
			if len(f[name]) == 0 {
				continue
			}
			var next []map[string]string
			for _, had := range all {
				for _, v := range f[name] {
					with := maps.Clone(had)
					with[name] = v
					next = append(next, with)
				}
			}
			if len(next) > maxCombinations {
				return []entry{{}} // too many to compare, so it counts as anything
			}
			all = next
		}
		for _, combination := range all {
			out = append(out, entry{combination, f})
		}
	}
	if len(out) > maxCombinations {
		return []entry{{}}
	}
	return out
}

// maxCombinations bounds the combinations of values of the entries of one rule.
const maxCombinations = 10_000

// allows reports whether the rule certainly lets in a client with an operation.
func (r *allowedRule) allows(from, to entry, tried func() bool) bool {
	if !tried() {
		return false
	}
	operates := len(r.operations) == 0 || slices.ContainsFunc(r.operations, func(o fields) bool { return tried() && o.covers(to) })
	return operates && (len(r.sources) == 0 || slices.ContainsFunc(r.sources, func(s fields) bool { return tried() && s.coversSource(from) }))
}

// covers reports whether everything that an operation matches certainly matches this one. A field that ACP does not
// write covers nothing.
func (f fields) covers(to entry) bool {
	for name, values := range f {
		ok := false
		switch name {
		case "ports":
			ok = slices.Contains(values, to.values[name])
		case "notPorts":
			port, given := to.values["ports"]
			ok = given && !slices.Contains(values, port) || !slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(to.fields[name], v) })
		case "methods":
			ok = includedBy(values, to.values[name])
		case "paths":
			ok = !strings.ContainsAny(to.values[name], "{}") && includedBy(values, to.values[name]) // braces are templates
		}
		if !ok {
			return false
		}
	}
	return true
}

// coversSource is covers for sources.
func (f fields) coversSource(from entry) bool {
	for name, values := range f {
		ok := false
		switch name {
		case "principals":
			ok = includedBy(values, from.values[name])
		case "notPrincipals":
			ok = !slices.ContainsFunc(values, func(v string) bool { return !includedBy(from.fields[name], v) })
		case "ipBlocks":
			ok = containsRange(values, from.values[name])
		case "notIpBlocks":
			ok = !slices.ContainsFunc(values, func(v string) bool {
				return !disjoint(v, from.values["ipBlocks"]) && !containsRange(from.fields[name], v)
			})
		}
		if !ok {
			return false
		}
	}
	return true
}

// includedBy reports whether one of the patterns matches every text that another pattern matches. A pattern is an exact
// text, a prefix before a star, a suffix after one, or a star alone, which matches any text that is not empty.
func includedBy(patterns []string, pattern string) bool {
	return pattern != "" && slices.ContainsFunc(patterns, func(p string) bool {
		switch {
		case p == "*":
			return true
		case pattern == "*":
			return false
		case strings.HasPrefix(p, "*"):
			rest, suffix := strings.CutPrefix(pattern, "*")
			return strings.HasSuffix(rest, p[1:]) && (suffix || !strings.HasSuffix(pattern, "*"))
		case strings.HasSuffix(p, "*"):
			return strings.HasPrefix(strings.TrimSuffix(pattern, "*"), p[:len(p)-1]) && !strings.HasPrefix(pattern, "*")
		}
		return p == pattern
	})
}

// containsRange reports whether one of some address ranges contains another one completely.
func containsRange(ranges []string, other string) bool {
	a, ok := parseRange(other)
	return ok && slices.ContainsFunc(ranges, func(r string) bool {
		b, ok := parseRange(r)
		return ok && b.Bits() <= a.Bits() && b.Contains(a.Addr())
	})
}

// disjoint reports whether two ranges certainly have no address in common.
func disjoint(a, b string) bool {
	x, ok := parseRange(a)
	y, also := parseRange(b)
	return ok && also && !x.Overlaps(y)
}

// parseRange parses a range, or one address.
func parseRange(text string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err == nil
}
