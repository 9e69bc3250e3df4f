package foreignpolicy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kinds of policies that Parse reads.
const (
	KindNetworkPolicy        = "NetworkPolicy"
	KindCiliumPolicy         = "CiliumNetworkPolicy"
	KindClusterwidePolicy    = "CiliumClusterwideNetworkPolicy"
	KindClusterNetworkPolicy = "ClusterNetworkPolicy"
)

// Parse reads a policy as Cilium does. What cannot be read may select and let in anybody: a policy that the agents refuse
// leaves in force what they had of it before, which nobody knows.
func Parse(u *unstructured.Unstructured) *Policy {
	p := newPolicy(u.GetKind(), u.GetNamespace(), u.GetName())
	switch p.Kind {
	case KindNetworkPolicy:
		p.addNetworkPolicy(u.Object["spec"])
	case KindClusterNetworkPolicy:
		p.addClusterNetworkPolicy(u.Object["spec"])
	default:
		if spec, ok := u.Object["spec"]; ok {
			p.addCilium(spec)
		}
		specs, ok := u.Object["specs"].([]any)
		if !ok && u.Object["specs"] != nil {
			p.addUnread(doubtful())
		}
		for _, spec := range specs {
			p.addCilium(spec)
		}
	}
	return p
}

// addUnread adds a rule that may let everybody in.
func (p *Policy) addUnread(subject selector) {
	p.add(rule{tier: normalTier, subject: subject, peers: []selector{doubtful()}, grants: all()})
}

// objects reads a list of objects that may be missing; false: it is something else.
func objects(value any) ([]map[string]any, bool) {
	list, ok := value.([]any)
	if !ok {
		return nil, value == nil
	}
	out := make([]map[string]any, len(list))
	for i, v := range list {
		if out[i], ok = v.(map[string]any); !ok {
			return nil, false
		}
	}
	return out, true
}

// texts reads a list of texts.
func texts(value any) ([]string, bool) {
	list, ok := value.([]any)
	if !ok {
		return nil, value == nil
	}
	out := make([]string, len(list))
	for i, v := range list {
		if out[i], ok = v.(string); !ok {
			return nil, false
		}
	}
	return out, true
}

// whole reads an integer as decoders of JSON and YAML leave it.
func whole(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

// only tells whether an object has no other fields: one that was added to an API may change what the rest means.
func only(m map[string]any, fields ...string) bool {
	for f := range m {
		if !slices.Contains(fields, f) {
			return false
		}
	}
	return true
}

// anyPorts are those of the protocols that Cilium takes for ANY.
func anyPorts() []ports { return []ports{wholeRange("TCP"), wholeRange("UDP"), wholeRange("SCTP")} }

// parsePorts reads a port, which may be a name or 0 for all, of a protocol, with the last port of a range.
func parsePorts(protocol string, port any, last int64) connections {
	protocol = strings.ToUpper(protocol)
	over := []ports{wholeRange(protocol)}
	if protocol == "" || protocol == "ANY" {
		over = anyPorts()
	}
	var n int64
	switch v := port.(type) {
	case nil:
	case string:
		parsed, err := strconv.ParseUint(v, 0, 16)
		if err != nil && v != "" {
			return connections{ports: over, doubt: true} // which port a pod gives a name is its own matter
		}
		n = int64(parsed) //nolint:gosec // 16 bits
	default:
		number, ok := whole(port)
		if !ok || number < 0 || number > 65535 {
			return connections{ports: over, doubt: true}
		}
		n = number
	}
	if last != 0 && (n == 0 || last < n || last > 65535) {
		return connections{ports: over, doubt: true}
	}
	icmp := strings.HasPrefix(protocol, "ICMP")
	if n == 0 && !icmp {
		return connections{ports: over}
	}
	if last == 0 {
		last = n
	}
	out := make([]ports, len(over))
	for i, p := range over {
		out[i] = ports{p.protocol, uint16(n), uint16(last)} //nolint:gosec // checked above
	}
	return connections{ports: out}
}

// parsePrefix reads an address or a range of addresses.
func parsePrefix(value any) (netip.Prefix, bool) {
	text, _ := value.(string)
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), true
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	return netip.Prefix{}, false
}

// rangeOf selects the addresses of a range but for exceptions.
func rangeOf(cidr, except any) selector {
	prefix, ok := parsePrefix(cidr)
	list, readable := texts(except)
	if !ok || !readable {
		return doubtful()
	}
	s := selector{kind: byPrefix, prefix: prefix}
	for _, e := range list {
		p, ok := parsePrefix(e)
		if !ok {
			return doubtful()
		}
		s.except = append(s.except, p)
	}
	return named(s)
}

// written is how a part of a policy is written, to compare it with another.
func written(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
