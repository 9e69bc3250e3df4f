package foreignpolicy

import (
	"slices"
	"strings"
)

// addNetworkPolicy adds a NetworkPolicy. Cilium compiles its ingress rules regardless of its policyTypes: a policy
// about egress alone that has ingress rules lets their clients in, and closes the pods to others.
func (p *Policy) addNetworkPolicy(value any) {
	spec, ok := value.(map[string]any)
	if !ok {
		if value != nil {
			p.addUnread(p.inNamespace(everySource()))
		}
		return
	}
	subject := everySource()
	if pods := spec["podSelector"]; pods != nil {
		subject = parseSelector(pods, k8sSource)
	}
	subject = p.inNamespace(subject)
	rules, readable := objects(spec["ingress"])
	types, alsoReadable := asTexts(spec["policyTypes"])
	if !readable || !alsoReadable {
		p.addUnread(subject)
		return
	}
	for _, r := range rules {
		p.add(rule{tier: normalTier, closes: true, subject: subject, peers: p.networkPeers(r), grants: networkPorts(r["ports"])})
	}
	if len(rules) == 0 && (slices.Contains(types, "Ingress") || !slices.Contains(types, "Egress")) {
		p.add(rule{tier: normalTier, closes: true, subject: subject})
	}
}

// inNamespace limits a selector to the policy's namespace, which replaces a namespace in the selector itself.
func (p *Policy) inNamespace(s selector) selector {
	if s.kind == opaque {
		return s
	}
	namespace := p.Namespace
	if namespace == "" {
		namespace = "default"
	}
	s.reqs = slices.DeleteFunc(slices.Clone(s.reqs), func(r requirement) bool {
		return r.source == k8sSource && r.key == namespaceKey && r.op == opIn && len(r.values) == 1
	})
	return s.with(requirement{k8sSource, namespaceKey, opIn, []string{namespace}})
}

func (p *Policy) networkPeers(r map[string]any) []selector {
	if !hasOnly(r, "from", "ports") {
		return []selector{unknownSelector()}
	}
	list, ok := objects(r["from"])
	if !ok {
		return []selector{unknownSelector()}
	}
	if len(list) == 0 {
		return []selector{everySource()}
	}
	out := make([]selector, len(list))
	for i, peer := range list {
		out[i] = p.networkPeer(peer)
	}
	return out
}

func (p *Policy) networkPeer(peer map[string]any) selector {
	if !hasOnly(peer, "podSelector", "namespaceSelector", "ipBlock") {
		return unknownSelector()
	}
	if block, ok := peer["ipBlock"].(map[string]any); ok {
		return rangeOf(block["cidr"], block["except"])
	}
	if peer["ipBlock"] != nil {
		return unknownSelector()
	}
	s := everySource()
	if pods := peer["podSelector"]; pods != nil {
		s = parseSelector(pods, k8sSource)
	}
	if !s.names(clusterKey, k8sSource) {
		s = s.inOwnCluster()
	}
	if namespaces := peer["namespaceSelector"]; namespaces != nil {
		return intersect(s, namespaceSelector(namespaces))
	}
	return p.inNamespace(s)
}

// namespaceSelector returns a selector of the pods of namespaces by the labels of the namespaces; an empty one selects
// those of every namespace.
func namespaceSelector(value any) selector {
	s := parseSelector(value, k8sSource)
	if s.kind == opaque {
		return s
	}
	if len(s.reqs) == 0 {
		return s.with(requirement{k8sSource, namespaceKey, opExists, nil})
	}
	s.reqs = slices.Clone(s.reqs)
	for i := range s.reqs {
		s.reqs[i].key = namespaceLabelsKey + "." + s.reqs[i].key
	}
	return withText(s)
}

// intersect returns a selector of what both label selectors select.
func intersect(a, b selector) selector {
	if a.kind == opaque || b.kind == opaque {
		return unknownSelector()
	}
	return withText(selector{reqs: slices.Concat(a.reqs, b.reqs), local: a.local || b.local})
}

func networkPorts(value any) []connections {
	list, ok := objects(value)
	if !ok {
		return []connections{{ports: []ports{{}}, uncertain: true}}
	}
	if len(list) == 0 {
		return all()
	}
	out := make([]connections, len(list))
	for i, m := range list {
		protocol, given := m["protocol"].(string)
		if !given {
			protocol = "TCP"
		}
		last, _ := asInteger(m["endPort"])
		out[i] = parsePorts(protocol, m["port"], last)
	}
	return out
}

// addClusterNetworkPolicy adds a ClusterNetworkPolicy. The Admin tier is evaluated before every other policy, the
// Baseline tier after them; neither closes a workload. Cilium orders the rules of one policy by hundredths of its
// priority.
func (p *Policy) addClusterNetworkPolicy(value any) {
	spec, ok := value.(map[string]any)
	if !ok {
		if value != nil {
			p.addUnread(unknownSelector())
		}
		return
	}
	t := adminTier
	if spec["tier"] == "Baseline" {
		t = baselineTier
	}
	subject := unknownSelector()
	if m, ok := spec["subject"].(map[string]any); ok {
		subject = podsOf(m, false)
	}
	priority, numeric := asInteger(spec["priority"])
	rules, readable := objects(spec["ingress"])
	if !readable || !numeric && spec["priority"] != nil {
		p.add(rule{tier: t, subject: subject, peers: []selector{unknownSelector()}, grants: all()})
		return
	}
	for i, m := range rules {
		r := rule{tier: t, order: float64(priority) + float64(i)/100, subject: subject, grants: clusterPorts(m["protocols"])}
		switch m["action"] {
		case "Deny":
			r.verdict = deny
		case "Pass":
			r.verdict = pass
		}
		from, ok := objects(m["from"])
		switch {
		case !ok || !hasOnly(m, "name", "action", "from", "protocols"):
			r.peers = []selector{unknownSelector()}
		case len(from) == 0:
			r.peers = []selector{everySource()}
		default:
			for _, peer := range from {
				p.addClusterPeer(&r, peer)
			}
		}
		if len(r.peers) > 0 {
			p.add(r)
		}
	}
}

// addClusterPeer adds a peer of a rule. Cilium ignores an unknown peer in an allow, and lets it deny every source
// otherwise. Here an allow with an unknown peer may match any source, because a later version may support it.
func (p *Policy) addClusterPeer(r *rule, peer map[string]any) {
	if peer["pods"] == nil && peer["namespaces"] == nil {
		if r.verdict == allow {
			if len(peer) > 0 {
				r.peers = append(r.peers, unknownSelector())
			}
			return
		}
		closing := *r
		closing.verdict, closing.peers = deny, []selector{everySource()}
		if len(peer) > 0 {
			closing.peers = []selector{unknownSelector()}
		}
		p.add(closing)
		return
	}
	r.peers = append(r.peers, podsOf(peer, true))
}

// podsOf parses a selection of pods by namespaces, or by namespaces and pod labels. Peers of the latter kind are
// limited to the own cluster unless they name another one.
func podsOf(m map[string]any, peer bool) selector {
	if pods, ok := m["pods"].(map[string]any); ok {
		namespaces, own := everyoneWith(pods["namespaceSelector"]), everySource()
		if pods["podSelector"] != nil {
			own = parseSelector(pods["podSelector"], k8sSource)
		}
		s := intersect(namespaces, own)
		if peer && !own.names(clusterKey, k8sSource) {
			s = s.inOwnCluster()
		}
		return s
	}
	if m["pods"] != nil || m["namespaces"] == nil {
		return unknownSelector()
	}
	return namespaceSelector(m["namespaces"])
}

// everyoneWith returns a selector of optional namespaces.
func everyoneWith(namespaces any) selector {
	if namespaces == nil {
		namespaces = map[string]any{}
	}
	return namespaceSelector(namespaces)
}

func clusterPorts(value any) []connections {
	list, ok := objects(value)
	if !ok {
		return []connections{{ports: []ports{{}}, uncertain: true}}
	}
	if len(list) == 0 {
		return all()
	}
	out := make([]connections, len(list))
	for i, m := range list {
		out[i] = clusterPort(m)
	}
	return out
}

func clusterPort(m map[string]any) connections {
	unread := connections{ports: []ports{{}}, uncertain: true}
	if len(m) != 1 {
		return unread
	}
	for kind, value := range m {
		switch kind {
		case "destinationNamedPort":
			return connections{ports: anyPorts(), uncertain: true}
		case "tcp", "udp", "sctp":
			of, ok := value.(map[string]any)
			if !ok || !hasOnly(of, "destinationPort") {
				return unread
			}
			if of["destinationPort"] == nil {
				return connections{ports: []ports{wholeRange(strings.ToUpper(kind))}}
			}
			port, ok := of["destinationPort"].(map[string]any)
			if !ok || !hasOnly(port, "number", "range") {
				return unread
			}
			if span, ok := port["range"].(map[string]any); ok {
				last, _ := asInteger(span["end"])
				return parsePorts(strings.ToUpper(kind), span["start"], last)
			}
			return parsePorts(strings.ToUpper(kind), port["number"], 0)
		}
	}
	return unread
}
