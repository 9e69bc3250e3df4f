package istio

import (
	"encoding/json"
	"maps"
	"slices"
)

const (
	// maxRules and maxFrom are Istio's limits of rules in a policy, and of sources in a rule.
	maxRules = 512
	maxFrom  = 512
	// maxPrincipals bounds an entry of a rule's `from`, so that maxBytes can be kept by moving entries.
	maxPrincipals = 256
	// maxBytes bounds the rules of an object. The wrapper for federation repeats them for members that differ, and a
	// host accepts 1.5 MB.
	maxBytes = 256 << 10
)

// rules joins statements with the same operations, in a fixed order.
func rules(statements []expressed) []any {
	type group struct {
		operations []any
		peers      peers
	}
	groups := map[string]*group{}
	var keys []string
	for _, x := range statements {
		key := text(x.operations)
		g := groups[key]
		if g == nil {
			g = &group{operations: x.operations}
			groups[key] = g
			keys = append(keys, key)
		}
		g.peers.anyone = g.peers.anyone || x.peers.anyone
		g.peers.accounts = append(g.peers.accounts, x.peers.accounts...)
		g.peers.ranges = append(g.peers.ranges, x.peers.ranges...)
	}
	slices.Sort(keys)
	var out []any
	for _, key := range keys {
		g := groups[key]
		if g.peers.anyone {
			out = append(out, rule(nil, g.operations))
			continue
		}
		// An empty list of entries must not become a rule: a rule without `from` would match every source.
		for from := range slices.Chunk(distinct(g.peers.sources()), maxFrom) {
			out = append(out, halved(from, g.operations)...)
		}
	}
	return out
}

// halved splits a rule into rules that are small enough to be moved between objects.
func halved(from, operations []any) []any {
	if n := len(from); n > 1 && len(text(from)) > maxBytes/2 {
		return append(halved(from[:n/2], operations), halved(from[n/2:], operations)...)
	}
	return []any{rule(from, operations)}
}

// rule returns a rule. Without sources it matches every source, and without operations every connection.
func rule(from, operations []any) map[string]any {
	out := map[string]any{}
	if len(from) > 0 {
		out["from"] = from
	}
	if len(operations) > 0 {
		out["to"] = operations
	}
	return out
}

// parts distributes rules over objects; policies with the same action are additive. It returns none for no rules.
func parts(rules []any) [][]any {
	var out [][]any
	size := 0
	for _, r := range rules {
		n := len(text(r))
		if len(out) == 0 || len(out[len(out)-1]) == maxRules || size+n > maxBytes {
			out, size = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], r)
		size += n
	}
	return out
}

// nobody returns a rule that no source matches, because it requires an identity and refuses every identity. An ALLOW policy
// without rules also closes a workload with a proxy, but istiod sends nothing for it to a gRPC server without a proxy, which
// would then serve everyone.
func nobody() any {
	return map[string]any{"from": []any{source(map[string]any{"principals": []any{"*"}, "notPrincipals": []any{"*"}})}}
}

// distinct returns the values sorted by their JSON, without duplicates.
func distinct(values []any) []any {
	byText := make(map[string]any, len(values))
	for _, v := range values {
		byText[text(v)] = v
	}
	out := make([]any, 0, len(byText))
	for _, key := range slices.Sorted(maps.Keys(byText)) {
		out = append(out, byText[key])
	}
	return out
}

// text returns the JSON of a value made here, which is always valid.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}
