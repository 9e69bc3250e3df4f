package cilium

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/acp-io/acp/internal/enforcer"
)

// EffectOf compares a policy's spec (nil if there is none) with the spec that replaces it. It compares the values in
// the specs and does not use units. A difference that it cannot classify counts as a revocation.
func EffectOf(before, after map[string]any) enforcer.Effect {
	was, is := closes(before), closes(after)
	switch {
	case was && !is:
		return enforcer.Opens
	case !was && is:
		// No source was refused until now. Closing a workload is a decision about the workload, not about one client's
		// access.
		return enforcer.Grants
	case len(before) == 0:
		return enforcer.Grants
	case !sameJSON(before["endpointSelector"], after["endpointSelector"]) && len(after) > 0:
		return enforcer.Revokes
	case covered(before["ingress"], after["ingress"]) && covered(after["ingressDeny"], before["ingressDeny"]):
		return enforcer.Grants
	default:
		return enforcer.Revokes
	}
}

// GroupEffectOf is EffectOf for the addresses of external workloads. Its cost is linear, because a group may have tens of thousands of addresses.
func GroupEffectOf(before, after map[string]any) enforcer.Effect {
	addresses := list(after["externalCIDRs"])
	has := make(map[string]struct{}, len(addresses))
	for _, address := range addresses {
		if text, ok := address.(string); ok {
			has[text] = struct{}{}
		}
	}
	for _, address := range list(before["externalCIDRs"]) {
		text, ok := address.(string)
		if _, kept := has[text]; !ok || !kept {
			return enforcer.Revokes
		}
	}
	return enforcer.Grants
}

// Closes reports whether the new spec refuses what it does not allow, and the previous one did not.
func Closes(before, after map[string]any) bool { return !closes(before) && closes(after) }

func closes(spec map[string]any) bool {
	deny, _ := spec["enableDefaultDeny"].(map[string]any)
	closed, _ := deny["ingress"].(bool)
	return closed
}

// covered reports whether every peer of the rules has each of its ports in others, too.
func covered(rules, others any) bool {
	for range uncovered(rules, others) {
		return false
	}
	return true
}

// uncovered returns the peers of the rules that do not have each of their ports in others, too.
func uncovered(rules, others any) iter.Seq[peer] {
	return func(yield func(peer) bool) {
		var there []ports
		byPeer := map[string][]int{} // indexes into others
		for i, r := range list(others) {
			there = append(there, portsOf(r))
			for _, p := range peersOf(r) {
				key := p.key()
				byPeer[key] = append(byPeer[key], i)
			}
		}
		for _, r := range list(rules) {
			wanted := portsOf(r)
			known := map[string]bool{} // most peers of a rule match the same rules of others
			for _, p := range peersOf(r) {
				in := byPeer[p.key()]
				key := fmt.Sprint(in)
				has, cached := known[key]
				if !cached {
					has = wanted.in(there, in)
					known[key] = has
				}
				if !has && !yield(p) {
					return
				}
			}
		}
	}
}

// peer is one peer of a rule. An empty kind stands for every source.
type peer struct {
	kind  string
	value any
}

// key identifies the peer among those of all rules.
func (p peer) key() string {
	if p.kind == "" {
		return ""
	}
	return p.kind + canonical(p.value)
}

// peersOf returns the peers of one rule, with each value of a selector as a separate peer.
func peersOf(rule any) []peer {
	r, _ := rule.(map[string]any)
	var out []peer
	peers := false
	for kind, value := range r {
		if kind == "toPorts" || kind == "icmps" {
			continue
		}
		peers = true
		for _, p := range list(value) {
			for _, part := range splitSelector(p) {
				out = append(out, peer{kind, part})
			}
		}
	}
	if !peers && len(r) > 0 {
		out = append(out, peer{}) // ports without peers are for every source; an empty rule is for none
	}
	return out
}

// splitSelector splits a selector by the values of its first list of values.
func splitSelector(peer any) []any {
	selector, _ := peer.(map[string]any)
	expressions := list(selector["matchExpressions"])
	for i, e := range expressions {
		expression, _ := e.(map[string]any)
		values := list(expression["values"])
		if expression["operator"] != "In" || len(values) == 0 {
			continue
		}
		out := make([]any, len(values))
		for j, v := range values {
			part := slices.Clone(expressions)
			part[i] = map[string]any{"key": expression["key"], "operator": "In", "values": []any{v}}
			out[j] = map[string]any{"matchExpressions": part, "matchLabels": selector["matchLabels"]}
		}
		return out
	}
	return []any{peer}
}

// ports are the ports of one rule with their HTTP requirements, one by one; nil means every port.
type ports map[string]struct{}

func portsOf(rule any) ports {
	r, _ := rule.(map[string]any)
	var out ports
	add := func(of ...any) {
		if out == nil {
			out = ports{}
		}
		out[canonical(of)] = struct{}{}
	}
	for _, entry := range list(r["toPorts"]) {
		e, _ := entry.(map[string]any)
		requests, _ := e["rules"].(map[string]any)
		matches := list(requests["http"])
		if len(matches) == 0 {
			matches = []any{e["rules"]}
		}
		for _, port := range list(e["ports"]) {
			for _, match := range matches {
				add(port, match)
			}
		}
	}
	for _, entry := range list(r["icmps"]) {
		e, _ := entry.(map[string]any)
		for _, field := range list(e["fields"]) {
			add(field)
		}
	}
	return out
}

// in reports whether each of the ports is in at least one of the indexed others.
func (p ports) in(all []ports, indexes []int) bool {
	for _, i := range indexes {
		if all[i] == nil {
			return true
		}
	}
	if p == nil {
		return false
	}
	for port := range p {
		if !slices.ContainsFunc(indexes, func(i int) bool { _, ok := all[i][port]; return ok }) {
			return false
		}
	}
	return true
}

func sameJSON(a, b any) bool { return canonical(a) == canonical(b) }

// canonical returns JSON with sorted keys, in which numbers are equal regardless of their Go types.
func canonical(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // no spec is like that; a value that is not JSON equals only itself
	}
	return string(text)
}
