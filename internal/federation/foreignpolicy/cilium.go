package foreignpolicy

import "slices"

// addCilium adds one rule of a CiliumNetworkPolicy or a CiliumClusterwideNetworkPolicy.
func (p *Policy) addCilium(value any) {
	spec, ok := value.(map[string]any)
	if !ok {
		if value != nil {
			p.addUnread(unknownSelector())
		}
		return
	}
	if spec["nodeSelector"] != nil && spec["endpointSelector"] == nil {
		return // the policy selects nodes
	}
	subject := parseSelector(spec["endpointSelector"], anySource)
	if p.Namespace != "" {
		subject = subject.with(requirement{k8sSource, namespaceKey, opIn, []string{p.Namespace}})
	}
	allows, readable := objects(spec["ingress"])
	denies, alsoReadable := objects(spec["ingressDeny"])
	if !readable || !alsoReadable {
		p.addUnread(subject)
		return
	}
	initial := subject.names("init", reservedSource)
	closes := true
	if d, ok := spec["enableDefaultDeny"].(map[string]any); ok && d["ingress"] == false {
		closes = false
	}
	for _, r := range allows {
		p.add(p.ciliumRule(r, allow, subject, closes, initial))
	}
	for _, r := range denies {
		p.add(p.ciliumRule(r, deny, subject, closes, initial))
	}
}

// ciliumRule parses one ingress rule. A rule with authentication, TLS, server names or listeners can make Cilium fail
// to compute the workload's policy if two rules conflict. The previous policy, which is not known, then stays in force.
func (p *Policy) ciliumRule(m map[string]any, v verdict, subject selector, closes, initial bool) rule {
	r := rule{tier: normalTier, verdict: v, closes: closes, subject: subject}
	if !hasOnly(m, "fromEndpoints", "fromCIDR", "fromCIDRSet", "fromEntities", "fromGroups", "fromNodes", "toPorts", "icmps") {
		r.peers, r.grants = []selector{unknownSelector()}, all()
		return r
	}
	r.peers = p.ciliumPeers(m, initial)
	r.grants = ciliumPorts(m, v)
	if _, limited := m["toPorts"]; !limited && m["icmps"] == nil && len(r.peers) == 1 && r.peers[0].text == everySource().text && !anyPeers(m) {
		r.peers = nil // a rule without content matches no source
	}
	return r
}

var peerFields = []string{"fromEndpoints", "fromCIDR", "fromCIDRSet", "fromEntities", "fromGroups", "fromNodes"}

func anyPeers(m map[string]any) bool {
	return slices.ContainsFunc(peerFields, func(f string) bool { return m[f] != nil })
}

func (p *Policy) ciliumPeers(m map[string]any, initial bool) []selector {
	var out []selector
	given := false
	for _, field := range peerFields {
		value := m[field]
		if value == nil {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			return []selector{unknownSelector()}
		}
		if len(list) == 0 {
			return nil // an empty list matches no source, whatever other fields exist
		}
		given = true
		for _, peer := range list {
			switch field {
			case "fromEndpoints":
				out = append(out, p.ciliumEndpoints(peer, initial))
			case "fromCIDR":
				out = append(out, rangeOf(peer, nil))
			case "fromCIDRSet":
				out = append(out, ciliumRange(peer))
			case "fromEntities":
				out = append(out, entity(peer)...)
			default:
				out = append(out, unknownSelector())
			}
		}
	}
	if !given {
		return []selector{everySource()}
	}
	return out
}

// ciliumEndpoints parses a peer that selects endpoints. By default Cilium limits it to the policy's namespace, or to
// endpoints with a namespace, and to the policy's cluster.
func (p *Policy) ciliumEndpoints(value any, initial bool) selector {
	s := parseSelector(value, anySource)
	if s.kind == opaque || s.names("", reservedSource) {
		return s
	}
	if !s.names(namespaceKey, k8sSource, anySource) {
		switch {
		case p.Namespace == "" && !initial:
			s = s.with(requirement{k8sSource, namespaceKey, opExists, nil})
		case p.Namespace != "" && !s.names(namespaceLabelsKey+".", k8sSource, anySource) && !s.names(namespaceLabelsKey+"/", k8sSource, anySource):
			s = s.with(requirement{k8sSource, namespaceKey, opIn, []string{p.Namespace}})
		}
	}
	if !s.names(clusterKey, k8sSource, anySource) {
		s = s.inOwnCluster()
	}
	return s
}

func ciliumRange(value any) selector {
	m, ok := value.(map[string]any)
	if !ok || !hasOnly(m, "cidr", "except", "cidrGroupRef", "cidrGroupSelector") {
		return unknownSelector()
	}
	name, _ := m["cidrGroupRef"].(string)
	switch {
	case m["cidr"] != nil:
		return rangeOf(m["cidr"], m["except"])
	case m["except"] != nil:
		return unknownSelector()
	case name != "":
		return withText(selector{kind: byGroup, reqs: []requirement{{groupSource, groupNameKey + name, opExists, nil}}})
	}
	s := parseSelector(m["cidrGroupSelector"], groupSource)
	if s.kind == opaque {
		return s
	}
	s.kind = byGroup
	return withText(s)
}

// entity returns the selectors that one of Cilium's entities stands for.
func entity(value any) []selector {
	name, _ := value.(string)
	mesh := []selector{
		reserved("host"),
		reserved("remote-node"),
		reserved("init"),
		reserved("ingress"),
		reserved("health"),
		reserved("unmanaged"),
		reserved("kube-apiserver"),
	}
	switch name {
	case "all":
		return []selector{everySource()}
	case "world":
		return []selector{reserved("world"), reserved("world-ipv4"), reserved("world-ipv6")}
	case "cluster":
		return append(mesh, withText(selector{local: true}))
	case "cluster-mesh":
		return append(mesh, withText(selector{reqs: []requirement{{anySource, clusterKey, opExists, nil}}}))
	case "none":
		return nil
	case "host", "init", "ingress", "remote-node", "health", "unmanaged", "kube-apiserver", "world-ipv4", "world-ipv6":
		return []selector{reserved(name)}
	}
	return []selector{unknownSelector()}
}

// ciliumPorts parses the ports of a rule. A list of ports that is present and empty matches no connection.
func ciliumPorts(m map[string]any, v verdict) []connections {
	lists, readable := objects(m["toPorts"])
	icmps, alsoReadable := objects(m["icmps"])
	if !readable || !alsoReadable {
		return []connections{{ports: []ports{{}}, uncertain: true}}
	}
	if len(lists) == 0 && len(icmps) == 0 {
		return all()
	}
	var out []connections
	for _, list := range lists {
		c := ciliumPortList(list)
		if v == deny && c.requests != nil {
			c.uncertain = true
		}
		out = append(out, c)
	}
	for _, list := range icmps {
		fields, ok := objects(list["fields"])
		if !ok {
			return []connections{{ports: []ports{{}}, uncertain: true}}
		}
		for _, f := range fields {
			out = append(out, icmp(f))
		}
	}
	return out
}

// ciliumPortList parses a list of ports with its HTTP rules.
func ciliumPortList(m map[string]any) connections {
	list, ok := objects(m["ports"])
	if !ok || !hasOnly(m, "ports", "rules") {
		return connections{ports: []ports{{}}, uncertain: true}
	}
	var c connections
	for _, p := range list {
		protocol, _ := p["protocol"].(string)
		last, _ := asInteger(p["endPort"])
		one := parsePorts(protocol, p["port"], last)
		c.ports, c.uncertain = append(c.ports, one.ports...), c.uncertain || one.uncertain
	}
	rules, ok := m["rules"].(map[string]any)
	if !ok && m["rules"] != nil {
		c.uncertain = true
		return c
	}
	for kind, value := range rules {
		requests, ok := value.([]any)
		if kind != "http" || !ok {
			c.uncertain = true
			continue
		}
		for _, r := range requests {
			c.requests = append(c.requests, serialized(r))
		}
	}
	return c
}

// icmpTypes are the names that Cilium has for ICMP types.
var icmpTypes = map[string]map[string]uint16{
	"ICMP": {"EchoReply": 0, "DestinationUnreachable": 3, "Redirect": 5, "Echo": 8, "EchoRequest": 8, "RouterAdvertisement": 9, "RouterSelection": 10,
		"TimeExceeded": 11, "ParameterProblem": 12, "Timestamp": 13, "TimestampReply": 14, "Photuris": 40, "ExtendedEchoRequest": 42, "ExtendedEchoReply": 43},
	"ICMPV6": {"DestinationUnreachable": 1, "PacketTooBig": 2, "TimeExceeded": 3, "ParameterProblem": 4, "EchoRequest": 128, "EchoReply": 129,
		"MulticastListenerQuery": 130, "MulticastListenerReport": 131, "MulticastListenerDone": 132, "RouterSolicitation": 133, "RouterAdvertisement": 134,
		"NeighborSolicitation": 135, "NeighborAdvertisement": 136, "RedirectMessage": 137, "RouterRenumbering": 138, "ICMPNodeInformationQuery": 139,
		"ICMPNodeInformationResponse": 140, "InverseNeighborDiscoverySolicitation": 141, "InverseNeighborDiscoveryAdvertisement": 142,
		"HomeAgentAddressDiscoveryRequest": 144, "HomeAgentAddressDiscoveryReply": 145, "MobilePrefixSolicitation": 146, "MobilePrefixAdvertisement": 147,
		"DuplicateAddressRequestCodeSuffix": 157, "DuplicateAddressConfirmationCodeSuffix": 158, "ExtendedEchoRequest": 160, "ExtendedEchoReply": 161},
}

func icmp(field map[string]any) connections {
	protocol := "ICMP"
	if field["family"] == "IPv6" {
		protocol = "ICMPV6"
	}
	if name, ok := field["type"].(string); ok {
		if t, known := icmpTypes[protocol][name]; known {
			return connections{ports: []ports{{protocol, t, t}}}
		}
	}
	if field["type"] == nil {
		return connections{ports: []ports{wholeRange(protocol)}, uncertain: true}
	}
	return parsePorts(protocol, field["type"], 0)
}
