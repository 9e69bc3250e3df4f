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

// Kinds of policies that Parse supports.
const (
	// KindNetworkPolicy is the kind of Kubernetes' own policies.
	KindNetworkPolicy = "NetworkPolicy"
	// KindCiliumPolicy is the kind of Cilium's policies with a namespace.
	KindCiliumPolicy = "CiliumNetworkPolicy"
	// KindClusterwidePolicy is the kind of Cilium's policies without a namespace.
	KindClusterwidePolicy = "CiliumClusterwideNetworkPolicy"
	// KindClusterNetworkPolicy is the kind of the policies of sig-network's policy API.
	KindClusterNetworkPolicy = "ClusterNetworkPolicy"
)

// Parse parses a policy as Cilium does. Content that cannot be parsed may select and let in anything: when agents
// reject a policy, its previous version, which is not known, stays in force.
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
			p.addUnread(unknownSelector())
		}
		for _, spec := range specs {
			p.addCilium(spec)
		}
	}
	return p
}

// addUnread adds a rule that may let in every source.
func (p *Policy) addUnread(subject selector) {
	p.add(rule{tier: normalTier, subject: subject, peers: []selector{unknownSelector()}, grants: all()})
}

// objects returns an optional list of objects, and false if the value is something else.
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

// asTexts returns a list of texts.
func asTexts(value any) ([]string, bool) {
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

// asInteger converts an integer as JSON and YAML decoders return it.
func asInteger(value any) (int64, bool) {
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

// hasOnly reports whether an object has no other fields. A field that was added to the API may change the meaning of
// the rest.
func hasOnly(m map[string]any, fields ...string) bool {
	for f := range m {
		if !slices.Contains(fields, f) {
			return false
		}
	}
	return true
}

// anyPorts are the ports of the protocols that Cilium includes in ANY.
func anyPorts() []ports { return []ports{wholeRange("TCP"), wholeRange("UDP"), wholeRange("SCTP")} }

// parsePorts parses a port, which may be a name or 0 for all, of a protocol, with the last port of a range.
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
			return connections{ports: over, uncertain: true} // each pod defines the number of a named port
		}
		n = int64(parsed) //nolint:gosec // 16 bits
	default:
		number, ok := asInteger(port)
		if !ok || number < 0 || number > 65535 {
			return connections{ports: over, uncertain: true}
		}
		n = number
	}
	if last != 0 && (n == 0 || last < n || last > 65535) {
		return connections{ports: over, uncertain: true}
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

// parsePrefix parses an address or a range of addresses.
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

// rangeOf returns a selector of the addresses of a range without exceptions.
func rangeOf(cidr, except any) selector {
	prefix, ok := parsePrefix(cidr)
	list, readable := asTexts(except)
	if !ok || !readable {
		return unknownSelector()
	}
	s := selector{kind: byPrefix, prefix: prefix}
	for _, e := range list {
		p, ok := parsePrefix(e)
		if !ok {
			return unknownSelector()
		}
		s.except = append(s.except, p)
	}
	return withText(s)
}

// serialized returns the text of a part of a policy for comparison.
func serialized(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
