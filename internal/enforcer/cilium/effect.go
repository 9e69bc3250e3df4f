package cilium

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/acp-io/acp/internal/enforcer"
)

// EffectOf compares a policy's spec with the one that it is to be replaced by; nil is none. It looks at what is written
// there, value by value, and knows nothing of units: what it cannot tell from a loss is one.
func EffectOf(before, after map[string]any) enforcer.Effect {
	was, is := closes(before), closes(after)
	switch {
	case was && !is:
		return enforcer.Opens
	case !was && is:
		// Nobody was refused until now. That is a decision about the workload, not about somebody's access.
		return enforcer.Gives
	case len(before) == 0:
		return enforcer.Gives
	case !sameJSON(before["endpointSelector"], after["endpointSelector"]) && len(after) > 0:
		return enforcer.Takes
	case covered(before["ingress"], after["ingress"]) && covered(after["ingressDeny"], before["ingressDeny"]):
		return enforcer.Gives
	default:
		return enforcer.Takes
	}
}

// GroupEffectOf does the same for the addresses of external workloads.
func GroupEffectOf(before, after map[string]any) enforcer.Effect {
	for _, address := range list(before["externalCIDRs"]) {
		if !slices.Contains(list(after["externalCIDRs"]), address) {
			return enforcer.Takes
		}
	}
	return enforcer.Gives
}

// Closes tells that a policy refuses what it is not asked to let in, and the one before it did not.
func Closes(before, after map[string]any) bool { return !closes(before) && closes(after) }

func closes(spec map[string]any) bool {
	deny, _ := spec["enableDefaultDeny"].(map[string]any)
	closed, _ := deny["ingress"].(bool)
	return closed
}

// covered tells whether every peer of the rules has every port that it has there in others, too.
func covered(rules, others any) bool {
	var there []ports
	byPeer := map[string][]int{} // indexes of there
	for i, r := range list(others) {
		there = append(there, portsOf(r))
		for _, peer := range peersOf(r) {
			byPeer[peer] = append(byPeer[peer], i)
		}
	}
	for _, r := range list(rules) {
		wanted := portsOf(r)
		known := map[string]bool{} // most peers of a rule meet the same rules on the other side
		for _, peer := range peersOf(r) {
			in := byPeer[peer]
			key := fmt.Sprint(in)
			has, asked := known[key]
			if !asked {
				has = wanted.in(there, in)
				known[key] = has
			}
			if !has {
				return false
			}
		}
	}
	return true
}

// peersOf are the peers of one rule, each value of a selector by itself.
func peersOf(rule any) []string {
	r, _ := rule.(map[string]any)
	var out []string
	peers := false
	for kind, value := range r {
		if kind == "toPorts" || kind == "icmps" {
			continue
		}
		peers = true
		for _, peer := range list(value) {
			for _, one := range single(peer) {
				out = append(out, kind+canonical(one))
			}
		}
	}
	if !peers && len(r) > 0 {
		out = append(out, "") // ports alone are for everyone; a rule without anything is for nobody
	}
	return out
}

// single splits a selector by the values of its first list of them.
func single(peer any) []any {
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
			one := slices.Clone(expressions)
			one[i] = map[string]any{"key": expression["key"], "operator": "In", "values": []any{v}}
			out[j] = map[string]any{"matchExpressions": one, "matchLabels": selector["matchLabels"]}
		}
		return out
	}
	return []any{peer}
}

// ports are those of one rule with what they require, one by one; nil is every port.
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

// in tells whether all of the ports are in one of the others or another.
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

// canonical is JSON with sorted keys, in which numbers are equal whatever Go type they came back in.
func canonical(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // no spec is like that; what is not JSON equals only itself
	}
	return string(text)
}
