package conformance

import "fmt"

// foreign generates one to four foreign policies, of all kinds. In every other world they select the same clients.
func (d generator) foreign() []map[string]any {
	if d.IntN(2) == 0 {
		return d.about()
	}
	var out []map[string]any
	for i := range 1 + d.IntN(4) {
		name := fmt.Sprint("theirs-", i)
		switch d.IntN(4) {
		case 0:
			out = append(out, d.networkPolicy(name))
		case 1:
			out = append(out, d.ciliumPolicy("CiliumNetworkPolicy", name))
		case 2:
			out = append(out, d.ciliumPolicy("CiliumClusterwideNetworkPolicy", name))
		default:
			out = append(out, d.clusterNetworkPolicy(name))
		}
	}
	return out
}

// about generates a policy that allows some clients a port, and perhaps others that deny or pass it: what one opens
// another may close.
func (d generator) about() []map[string]any {
	pods, ports := d.pods(""), []int64{80, 6379, 8080, 53, 6380}
	from, to := pick(d, ports...), int64(0)
	if d.IntN(4) == 0 {
		from, to = 6379, 6400
	}
	tcp := obj{"tcp": obj{"destinationPort": obj{"number": from}}}
	if to != 0 {
		tcp = obj{"tcp": obj{"destinationPort": obj{"range": obj{"start": from, "end": to}}}}
	}
	cilium := obj{"port": fmt.Sprint(from), "protocol": "TCP", "endPort": to}
	cluster := func(name, tier, action string) obj {
		return obj{
			"kind":     "ClusterNetworkPolicy",
			"metadata": obj{"name": name},
			"spec": obj{
				"tier":     tier,
				"priority": int64(d.IntN(3)),
				"subject":  obj{"namespaces": obj{}},
				"ingress": anys(
					obj{"action": action, "from": anys(obj{"pods": obj{"namespaceSelector": obj{}, "podSelector": pods}}), "protocols": anys(tcp)},
				),
			},
		}
	}
	wide := func(name, list string) obj {
		return obj{
			"kind":     "CiliumClusterwideNetworkPolicy",
			"metadata": obj{"name": name},
			"spec": obj{"endpointSelector": obj{}, "enableDefaultDeny": obj{"ingress": false},
				list: anys(obj{"fromEndpoints": anys(pods), "toPorts": anys(obj{"ports": anys(cilium)})})},
		}
	}
	var out []map[string]any
	switch d.IntN(6) {
	case 0, 1:
		out = append(out, cluster("theirs-allow", pick(d, "Admin", "Baseline"), "Accept"))
	case 2:
		out = append(out, wide("theirs-allow", "ingress"))
	case 3, 4:
		peer, port := obj{"podSelector": pods, "namespaceSelector": obj{}}, obj{"port": from, "protocol": "TCP"}
		if to != 0 {
			port["endPort"] = to
		}
		if d.IntN(2) == 0 {
			cidr, except := d.cidr()
			if d.IntN(2) == 0 { // what external workloads have
				cidr, except = pick(d, "10.5.0.7/32", "10.6.0.0/15", "2001:db8:5::7/128"), nil
			}
			peer = obj{"ipBlock": obj{"cidr": cidr}}
			if except != nil {
				peer = obj{"ipBlock": obj{"cidr": cidr, "except": except}}
			}
		}
		out = append(out, obj{"kind": "NetworkPolicy", "metadata": obj{"name": "theirs-allow", "namespace": "default"}, "spec": obj{"podSelector": obj{},
			"ingress": anys(obj{"from": anys(peer), "ports": anys(port)})}})
	default:
		out = append(out, obj{"kind": "CiliumClusterwideNetworkPolicy", "metadata": obj{"name": "theirs-allow"}, "spec": obj{"endpointSelector": obj{},
			"ingress": anys(obj{"fromEntities": anys(pick(d, "health", "remote-node", "world")), "toPorts": anys(obj{"ports": anys(cilium)})})}})
	}
	if d.IntN(2) == 0 {
		out = append(out, pick(d, wide("theirs-deny", "ingressDeny"), cluster("theirs-deny", "Admin", "Deny"), cluster("theirs-deny", "Baseline", "Deny")))
		if d.IntN(2) == 0 {
			out = append(out, cluster("theirs-pass", "Admin", "Pass"))
		}
	}
	return out
}

type obj = map[string]any

func anys[T any](list ...T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// subject returns a selector of workloads.
func (d generator) subject(prefix string) obj {
	switch d.IntN(7) {
	case 0, 1:
		return obj{}
	case 2:
		return obj{"matchLabels": obj{prefix + "app": "server"}}
	case 3:
		return obj{"matchLabels": obj{prefix + redisKey: pick(d, redis...)}}
	case 4:
		return obj{"matchExpressions": anys(obj{"key": prefix + webKey, "operator": "In", "values": anys(sites...)})}
	case 5:
		return obj{"matchExpressions": anys(obj{"key": prefix + dnsKey, "operator": pick(d, "Exists", "DoesNotExist")})}
	default:
		return obj{"matchExpressions": anys(obj{"key": prefix + redisKey, "operator": "NotIn", "values": anys("bobs-2")})}
	}
}

// pods returns a selector of clients.
func (d generator) pods(prefix string) obj {
	switch d.IntN(10) {
	case 0, 1, 2:
		return obj{"matchLabels": obj{prefix + appKey: pick(d, "888", "889")}}
	case 3:
		return obj{"matchExpressions": anys(obj{"key": prefix + appKey, "operator": "In", "values": anys("888", "889")})}
	case 4:
		return obj{"matchExpressions": anys(obj{"key": prefix + appKey, "operator": pick(d, "Exists", "DoesNotExist")})}
	case 5:
		return obj{"matchLabels": obj{prefix + "app": pick(d, "other", "prometheus", "prometheus", "server")}}
	case 6:
		return obj{"matchLabels": obj{prefix + svcKey: "cart"}}
	case 7:
		return obj{"matchLabels": obj{prefix + "app": "nowhere"}}
	case 8:
		return obj{
			"matchLabels":      obj{prefix + appKey: "888"},
			"matchExpressions": anys(obj{"key": prefix + "app", "operator": "NotIn", "values": anys("other")}),
		}
	default:
		return obj{}
	}
}

func (d generator) namespaces() obj {
	if d.IntN(3) == 0 {
		return obj{}
	}
	return obj{"matchLabels": obj{"kubernetes.io/metadata.name": pick(d, "default", "monitoring")}}
}

func (d generator) namespaced(u obj, name string) obj {
	u["metadata"] = obj{"name": name, "namespace": pick(d, "default", "default", "monitoring")}
	return u
}

func (d generator) cidr() (string, []any) {
	switch d.IntN(10) {
	case 8:
		return "10.5.0.0/24", anys("10.5.0.0/25", "10.5.0.128/25")
	case 9:
		return "10.6.0.0/15", nil
	case 0:
		return "10.5.0.0/16", anys("10.5.0.0/24")
	case 1:
		return "10.5.0.0/16", nil
	case 2:
		return "10.5.0.0/24", nil
	case 3:
		return "10.5.0.7/32", nil
	case 4:
		return "0.0.0.0/0", nil
	case 5:
		return "192.0.2.0/24", nil
	case 6:
		return "2001:db8:5::/48", nil
	default:
		return "10.5.0.0/24", anys("10.5.0.7/32")
	}
}

// networkPolicy generates a policy that may be about egress alone and have ingress rules.
func (d generator) networkPolicy(name string) obj {
	spec := obj{"podSelector": d.subject("")}
	switch d.IntN(5) {
	case 0:
		spec["policyTypes"] = anys("Egress")
	case 1:
		spec["policyTypes"] = anys("Ingress", "Egress")
	case 2:
		spec["policyTypes"] = anys("Ingress")
	}
	var rules []any
	for range d.IntN(3) {
		r := obj{}
		var from []any
		for range d.IntN(3) {
			switch d.IntN(4) {
			case 0:
				from = append(from, obj{"podSelector": d.pods("")})
			case 1:
				from = append(from, obj{"podSelector": d.pods(""), "namespaceSelector": d.namespaces()})
			case 2:
				from = append(from, obj{"namespaceSelector": d.namespaces()})
			default:
				cidr, except := d.cidr()
				block := obj{"cidr": cidr}
				if except != nil {
					block["except"] = except
				}
				from = append(from, obj{"ipBlock": block})
			}
		}
		if from != nil {
			r["from"] = from
		}
		if d.IntN(5) > 0 {
			var list []any
			for range 1 + d.IntN(2) {
				list = append(list, d.networkPort())
			}
			r["ports"] = list
		}
		rules = append(rules, r)
	}
	if rules != nil {
		spec["ingress"] = rules
	}
	return d.namespaced(obj{"kind": "NetworkPolicy", "spec": spec}, name)
}

func (d generator) networkPort() obj {
	switch d.IntN(6) {
	case 0:
		return obj{"port": int64(6379), "endPort": int64(6400)}
	case 1:
		return obj{"port": int64(53), "protocol": "UDP"}
	case 2:
		return obj{"protocol": pick(d, "TCP", "SCTP")}
	default:
		return obj{"port": int64(pick(d, 80, 6379, 8080, 9121, 53)), "protocol": "TCP"}
	}
}

// clusterNetworkPolicy generates a policy of either tier, with few priorities, so that some are equal.
func (d generator) clusterNetworkPolicy(name string) obj {
	spec := obj{"tier": pick(d, "Admin", "Admin", "Baseline"), "priority": int64(d.IntN(3))}
	if d.IntN(2) == 0 {
		spec["subject"] = obj{"namespaces": d.namespaces()}
	} else {
		spec["subject"] = obj{"pods": obj{"namespaceSelector": d.namespaces(), "podSelector": d.subject("")}}
	}
	var rules []any
	for range 1 + d.IntN(3) {
		r := obj{"action": pick(d, "Accept", "Accept", "Deny", "Pass")}
		var from []any
		for range 1 + d.IntN(2) {
			if d.IntN(2) == 0 {
				from = append(from, obj{"namespaces": d.namespaces()})
			} else {
				from = append(from, obj{"pods": obj{"namespaceSelector": d.namespaces(), "podSelector": d.pods("")}})
			}
		}
		if d.IntN(10) == 0 {
			from = nil
		}
		r["from"] = from
		if d.IntN(4) > 0 {
			switch d.IntN(4) {
			case 0:
				r["protocols"] = anys(obj{"tcp": obj{"destinationPort": obj{"range": obj{"start": int64(6379), "end": int64(6400)}}}})
			case 1:
				r["protocols"] = anys(
					obj{"udp": obj{"destinationPort": obj{"number": int64(53)}}},
					obj{"tcp": obj{"destinationPort": obj{"number": int64(53)}}},
				)
			default:
				r["protocols"] = anys(obj{"tcp": obj{"destinationPort": obj{"number": pick(d, int64(80), 6379, 8080, 9121)}}})
			}
		}
		rules = append(rules, r)
	}
	spec["ingress"] = rules
	return obj{"kind": "ClusterNetworkPolicy", "metadata": obj{"name": name}, "spec": spec}
}
