package conformance

func (d generator) ciliumPort(allows bool) obj {
	switch d.IntN(9) {
	case 0:
		return obj{"ports": anys(obj{"port": "6379", "endPort": int64(6400), "protocol": "TCP"})}
	case 1:
		return obj{"ports": anys(obj{"port": pick(d, "53", "80"), "protocol": "ANY"})}
	case 2:
		return obj{"ports": anys(obj{"port": "0", "protocol": pick(d, "TCP", "ANY")})}
	case 3, 4:
		if allows {
			return obj{
				"ports": anys(obj{"port": "8080", "protocol": "TCP"}),
				"rules": obj{"http": anys(pick(d, obj{"method": "GET|HEAD"}, obj{"method": "POST", "path": "/orders(/.*)?"}, obj{}))},
			}
		}
		fallthrough
	case 5:
		return obj{"ports": anys(obj{"port": "8080", "protocol": "TCP"}, obj{"port": "80"})}
	case 6:
		return obj{}
	default:
		return obj{"ports": anys(obj{"port": pick(d, "6379", "80", "9121"), "protocol": "TCP"})}
	}
}

// ciliumPolicy generates a policy with one or two rules, in spec or in specs.
func (d generator) ciliumPolicy(kind, name string) obj {
	u := obj{"kind": kind, "metadata": obj{"name": name}}
	if kind == "CiliumNetworkPolicy" {
		d.namespaced(u, name)
	}
	if d.IntN(4) == 0 {
		u["specs"] = anys(d.ciliumSpec(), d.ciliumSpec())
	} else {
		u["spec"] = d.ciliumSpec()
	}
	return u
}

func (d generator) ciliumSpec() obj {
	spec := obj{"endpointSelector": d.subject(pick(d, "", "k8s:", "any:"))}
	if d.IntN(3) == 0 {
		spec["enableDefaultDeny"] = obj{"ingress": d.IntN(2) == 0}
	}
	rules := func(allows bool) []any {
		var out []any
		for range 1 + d.IntN(2) {
			out = append(out, d.ciliumRule(allows))
		}
		return out
	}
	if d.IntN(5) > 0 {
		spec["ingress"] = rules(true)
	}
	if spec["ingress"] == nil || d.IntN(5) == 0 {
		spec["ingressDeny"] = rules(false)
	}
	return spec
}

func (d generator) ciliumRule(allows bool) obj {
	r := obj{}
	switch d.IntN(10) {
	case 0:
		r["fromEntities"] = anys(
			pick(d, "all", "world", "cluster", "cluster-mesh", "host", "health", "remote-node", "kube-apiserver", "world-ipv4", "init", "none"),
		)
	case 1:
		cidr, _ := d.cidr()
		r["fromCIDR"] = anys(cidr)
	case 2:
		cidr, except := d.cidr()
		set := obj{"cidr": cidr}
		if except != nil {
			set["except"] = except
		}
		r["fromCIDRSet"] = anys(set)
	case 3:
		if d.IntN(2) == 0 {
			r["fromEndpoints"] = []any{}
		}
	case 4:
		s := d.pods("k8s:")
		labels, _ := s["matchLabels"].(obj)
		if labels == nil {
			labels = obj{}
		}
		labels["k8s:io.cilium.k8s.policy.cluster"] = pick(d, Here, "m9")
		s["matchLabels"] = labels
		r["fromEndpoints"] = anys(s)
	case 5:
		r["fromEndpoints"] = anys(obj{"matchLabels": obj{"reserved:" + pick(d, "host", "remote-node", "world-ipv4", "health"): ""}})
	case 6:
		s := d.pods("any:")
		labels, _ := s["matchLabels"].(obj)
		if labels == nil {
			labels = obj{}
		}
		labels["k8s:"+podNamespace] = pick(d, "default", "monitoring")
		s["matchLabels"] = labels
		r["fromEndpoints"] = anys(s)
	default:
		r["fromEndpoints"] = anys(d.pods(pick(d, "", "k8s:")))
	}
	switch d.IntN(8) {
	case 0:
	case 1:
		r["icmps"] = anys(obj{"fields": anys(obj{"type": pick[any](d, int64(8), "EchoRequest", int64(0))}, obj{"family": "IPv6", "type": int64(128)})})
	default:
		r["toPorts"] = anys(d.ciliumPort(allows))
	}
	return r
}
