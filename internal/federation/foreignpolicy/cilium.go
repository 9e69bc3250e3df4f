package foreignpolicy

import "slices"

// addCilium reads one rule of a CiliumNetworkPolicy or a CiliumClusterwideNetworkPolicy.
func (p *Policy) addCilium(value any) {
	spec, ok := value.(map[string]any)
	if !ok {
		if value != nil {
			p.addUnread(doubtful())
		}
		return
	}
	if spec["nodeSelector"] != nil && spec["endpointSelector"] == nil {
		return // it is about nodes
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

// ciliumRule reads one ingress rule. An authentication, and whatever of TLS, names of servers and listeners, can make Cilium
// fail to compute the workload's policy when two rules disagree, so that it keeps what it had: nobody knows what that was.
func (p *Policy) ciliumRule(m map[string]any, v verdict, subject selector, closes, initial bool) rule {
	r := rule{tier: normalTier, verdict: v, closes: closes, subject: subject}
	if !only(m, "fromEndpoints", "fromCIDR", "fromCIDRSet", "fromEntities", "fromGroups", "fromNodes", "toPorts", "icmps") {
		r.peers, r.grants = []selector{doubtful()}, all()
		return r
	}
	r.peers = p.ciliumPeers(m, initial)
	r.grants = ciliumPorts(m, v)
	if _, limited := m["toPorts"]; !limited && m["icmps"] == nil && len(r.peers) == 1 && r.peers[0].text == everyone().text && !anyPeers(m) {
		r.peers = nil // a rule that says nothing is about nobody
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
			return []selector{doubtful()}
		}
		if len(list) == 0 {
			return nil // an empty list is about nobody, whatever stands beside it
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
				out = append(out, doubtful())
			}
		}
	}
	if !given {
		return []selector{everyone()}
	}
	return out
}

// ciliumEndpoints reads a peer that is a selector of endpoints. Cilium limits it to the policy's namespace, or to endpoints
// that have one, and to the policy's cluster, unless it says otherwise.
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
	if !ok || !only(m, "cidr", "except", "cidrGroupRef", "cidrGroupSelector") {
		return doubtful()
	}
	name, _ := m["cidrGroupRef"].(string)
	switch {
	case m["cidr"] != nil:
		return rangeOf(m["cidr"], m["except"])
	case m["except"] != nil:
		return doubtful()
	case name != "":
		return named(selector{kind: byGroup, reqs: []requirement{{groupSource, groupNameKey + name, opExists, nil}}})
	}
	s := parseSelector(m["cidrGroupSelector"], groupSource)
	if s.kind == opaque {
		return s
	}
	s.kind = byGroup
	return named(s)
}

// entity returns what an entity of Cilium stands for.
func entity(value any) []selector {
	name, _ := value.(string)
	mesh := []selector{reserved("host"), reserved("remote-node"), reserved("init"), reserved("ingress"), reserved("health"), reserved("unmanaged"), reserved("kube-apiserver")}
	switch name {
	case "all":
		return []selector{everyone()}
	case "world":
		return []selector{reserved("world"), reserved("world-ipv4"), reserved("world-ipv6")}
	case "cluster":
		return append(mesh, named(selector{local: true}))
	case "cluster-mesh":
		return append(mesh, named(selector{reqs: []requirement{{anySource, clusterKey, opExists, nil}}}))
	case "none":
		return nil
	case "host", "init", "ingress", "remote-node", "health", "unmanaged", "kube-apiserver", "world-ipv4", "world-ipv6":
		return []selector{reserved(name)}
	}
	return []selector{doubtful()}
}

// ciliumPorts reads the ports of a rule. A list of ports that is given and empty is about no connection.
func ciliumPorts(m map[string]any, v verdict) []connections {
	lists, readable := objects(m["toPorts"])
	icmps, alsoReadable := objects(m["icmps"])
	if !readable || !alsoReadable {
		return []connections{{ports: []ports{{}}, doubt: true}}
	}
	if len(lists) == 0 && len(icmps) == 0 {
		return all()
	}
	var out []connections
	for _, list := range lists {
		c := ciliumPortList(list)
		if v == deny && c.requests != nil {
			c.doubt = true
		}
		out = append(out, c)
	}
	for _, list := range icmps {
		fields, ok := objects(list["fields"])
		if !ok {
			return []connections{{ports: []ports{{}}, doubt: true}}
		}
		for _, f := range fields {
			out = append(out, icmp(f))
		}
	}
	return out
}

// ciliumPortList reads a list of ports with what is said about the requests on them.
func ciliumPortList(m map[string]any) connections {
	list, ok := objects(m["ports"])
	if !ok || !only(m, "ports", "rules") {
		return connections{ports: []ports{{}}, doubt: true}
	}
	var c connections
	for _, p := range list {
		protocol, _ := p["protocol"].(string)
		last, _ := whole(p["endPort"])
		one := parsePorts(protocol, p["port"], last)
		c.ports, c.doubt = append(c.ports, one.ports...), c.doubt || one.doubt
	}
	rules, ok := m["rules"].(map[string]any)
	if !ok && m["rules"] != nil {
		c.doubt = true
		return c
	}
	for kind, value := range rules {
		requests, ok := value.([]any)
		if kind != "http" || !ok {
			c.doubt = true
			continue
		}
		for _, r := range requests {
			c.requests = append(c.requests, written(r))
		}
	}
	return c
}

// icmpTypes are the names that Cilium has for types of messages.
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
		return connections{ports: []ports{wholeRange(protocol)}, doubt: true}
	}
	return parsePorts(protocol, field["type"], 0)
}
