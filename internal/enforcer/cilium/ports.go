package cilium

import (
	"slices"
	"strconv"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// maxPorts is the number of ports, or of ICMP types, that Cilium accepts in one list.
const maxPorts = 40

// toPorts returns the rule's ports, with its HTTP matches if it has any.
func toPorts(r *policy.Rule) []any {
	if len(r.HTTP) == 0 {
		return portLists(r.Ports, nil)
	}
	var matches []any
	for _, h := range r.HTTP {
		m := map[string]any{}
		if h.Method != "" {
			m["method"] = h.Method
		}
		if h.Path != "" {
			m["path"] = h.Path
		}
		matches = append(matches, m)
	}
	return portLists(r.Ports, map[string]any{"http": matches})
}

// portLists splits the ports into lists of the size that Cilium accepts. Several lists in one rule are additive.
func portLists(ports []v1alpha1.Port, rules map[string]any) []any {
	var out []any
	for part := range slices.Chunk(ports, maxPorts) {
		list := make([]any, 0, len(part))
		for _, p := range part {
			port := map[string]any{"port": strconv.Itoa(int(p.Port)), "protocol": string(p.Protocol)}
			if p.EndPort != nil {
				port["endPort"] = int64(*p.EndPort)
			}
			list = append(list, port)
		}
		entry := map[string]any{"ports": list}
		if rules != nil {
			entry["rules"] = rules
		}
		out = append(out, entry)
	}
	return out
}

// icmpTypes lists the types for which Cilium has names: the types that the protocols' registries list as in use.
var icmpTypes = []struct {
	family string
	types  []int64
}{
	{"IPv4", []int64{0, 3, 5, 8, 9, 10, 11, 12, 13, 14, 40, 42, 43}},
	{"IPv6", []int64{1, 2, 3, 4, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 144, 145, 146, 147, 157, 158, 160, 161}},
}

func icmps() []any {
	var fields []any
	for _, f := range icmpTypes {
		for _, t := range f.types {
			// The family is always written, because an API server would add it and thereby change the revision.
			fields = append(fields, map[string]any{"family": f.family, "type": t})
		}
	}
	var out []any
	for part := range slices.Chunk(fields, maxPorts) {
		out = append(out, map[string]any{"fields": part})
	}
	return out
}
