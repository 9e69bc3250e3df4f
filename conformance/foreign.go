package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/u8proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/foreignpolicy"
	"github.com/acp-io/acp/internal/policy"
)

// Judge tells which labels of classes policies of others open in Here, beside the objects of ACP, by the policy.
type Judge func(own Objects, foreign []map[string]any, pods []map[string]string) func(key, value string) string

// Detect is the product's judge.
func Detect(own Objects, foreign []map[string]any, pods []map[string]string) func(key, value string) string {
	in := foreignpolicy.Input{Keys: map[string]bool{redisKey: true, webKey: true, dnsKey: true}}
	for name, spec := range own.Policies {
		in.Own = append(in.Own, foreignpolicy.Parse(object("CiliumClusterwideNetworkPolicy", "", name, spec)))
	}
	for _, f := range foreign {
		in.Foreign = append(in.Foreign, foreignpolicy.Parse(&unstructured.Unstructured{Object: f}))
	}
	for _, name := range slices.Sorted(maps.Keys(own.Groups)) {
		g := own.Groups[name]
		in.Groups = append(in.Groups, foreignpolicy.Group{Name: name, Labels: g.Labels, Prefixes: g.Prefixes})
	}
	in.Each = func(do func([]foreignpolicy.Handle)) {
		for _, pod := range pods {
			var labels []foreignpolicy.Handle
			for _, k := range slices.Sorted(maps.Keys(pod)) {
				labels = append(labels, unique.Make(foreignpolicy.Label{Key: k, Value: pod[k]}))
			}
			do(labels)
		}
	}
	return foreignpolicy.NewDetector().Find(in).By
}

func object(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// ForeignCase is a world with policies of others.
type ForeignCase struct {
	Seed    uint64
	Foreign []map[string]any
	Key     string
	Value   string
	By      string
	Shown   string
	Missed  bool
}

func (c *ForeignCase) String() string {
	if c.Missed {
		return fmt.Sprintf("seed %d: %s=%s is opened, and not reported: %s", c.Seed, c.Key, c.Value, c.Shown)
	}
	return fmt.Sprintf("seed %d: %s=%s is not opened, and reported: by %s", c.Seed, c.Key, c.Value, c.By)
}

// ForeignTally is what was compared of policies of others.
type ForeignTally struct {
	Worlds, Connections int
	// Opened and Closed are labels of enforced workloads beside a policy of others that lets somebody in to them.
	Opened, Closed int
	// Refused are worlds in which Cilium refuses a policy, so that it is not known what the agents have of it, or fails to compute
	// what follows: there the judge must not be wrong in one direction only.
	Refused int
	// Over are labels that were reported without need.
	Over int
	// Kinds counts the opened labels by the kinds of the policies that the judge named.
	Kinds map[string]int
}

// NewForeignTally has counted nothing.
func NewForeignTally() *ForeignTally { return &ForeignTally{Kinds: map[string]int{}} }

// foreignPorts are connections to try: those of ACP's worlds, and what only policies of others are about.
var foreignPorts = append(slices.Clone(l4s), l4{"TCP", 9121}, l4{"TCP", 79}, l4{"TCP", 81}, l4{"TCP", 8081}, l4{"TCP", 6378}, l4{"UDP", 9121}, l4{ICMP, 200}, l4{ICMPv6, 200}, l4{"GRE", 0})

func foreignProtocol(p v1alpha1.Protocol) u8proto.U8proto {
	if p == "GRE" {
		return u8proto.GRE
	}
	return protocols[p]
}

// namespaceName is the key of the label with which Cilium repeats the name of a pod's namespace.
const (
	podNamespace  = "io.kubernetes.pod.namespace"
	namespaceName = "io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name"
)

// foreignSources are beside those of ACP's worlds: pods by the labels that policies of others ask for, in two namespaces and
// in a cluster that is no member, and an address of each side of every prefix.
func foreignSources() []Source {
	var out []Source
	for _, cluster := range []string{Here, "m9"} {
		for _, ns := range []string{"default", "monitoring"} {
			choices := []map[string]string{{}, {appKey: "888"}, {appKey: "889"}, {appKey: "1"}, {appKey: ""}, {"app": "other"}, {"app": "other", appKey: "888"},
				{svcKey: "cart"}, {"app": "prometheus", appKey: "889"}, {"app": "server"}}
			if cluster != Here {
				choices = append(choices, map[string]string{"app": "prometheus"}, map[string]string{"app": "nowhere"})
			}
			for _, labels := range choices {
				l := maps.Clone(labels)
				l[podNamespace], l[namespaceName] = ns, ns
				out = append(out, Source{Cluster: cluster, Labels: l})
			}
		}
	}
	for _, a := range []string{"0.0.0.1", "10.4.255.255", "10.5.0.0", "10.5.0.6", "10.5.0.127", "10.5.0.128", "10.5.0.255", "10.5.1.0", "10.5.255.255", "10.6.0.0", "10.7.255.255", "10.8.0.0", "192.0.1.255", "192.0.2.0",
		"192.0.2.128", "192.0.3.0", "2001:db8::", "2001:db7::1", "2001:db8:4::1", "2001:db8:5::", "2001:db8:5::6", "2001:db8:5:1::", "2001:db8:6::"} {
		out = append(out, Source{Address: a})
	}
	return out
}

// labelsHere are those of a pod of Here, as its identity has them.
func labelsHere(id *identity.Identity) map[string]string {
	out := map[string]string{}
	for _, l := range id.LabelArray {
		out[l.Key] = l.Value
	}
	return out
}

// RunForeign compares the judge with the engine in the world of a seed: what the engine lets in with the policies of others
// and not without them has to be reported, and nothing else.
func RunForeign(seed uint64, judge Judge, tally *ForeignTally) ([]*ForeignCase, error) {
	d := newDice(seed)
	in := d.input()
	sources, destinations := append(d.sources(), foreignSources()...), d.destinations(4)
	for i := range destinations {
		if d.IntN(4) == 0 {
			destinations[i][podNamespace], destinations[i][namespaceName] = "monitoring", "monitoring"
		} else {
			destinations[i][namespaceName] = "default"
		}
	}
	for _, to := range destinations {
		sources = append(sources, Source{Cluster: Here, Labels: to})
	}
	foreign := d.foreign()
	s := policy.NewSnapshot(in)
	objects, err := Translate(s, noon)
	if err != nil {
		return nil, fmt.Errorf("translate the world of seed %d: %w", seed, err)
	}
	alone, err := newMember(objects, sources, destinations)
	if err != nil {
		return nil, fmt.Errorf("load the world of seed %d: %w", seed, err)
	}
	beside, err := newMember(objects, sources, destinations)
	if err != nil {
		return nil, fmt.Errorf("load the world of seed %d: %w", seed, err)
	}
	refused := false
	for _, f := range foreign {
		if err := beside.engine.take(f); err != nil {
			refused = true
		}
	}
	var pods []map[string]string
	for i, src := range sources {
		if src.Cluster == Here {
			pods = append(pods, labelsHere(alone.sources[i]))
		}
	}
	for _, id := range alone.destinations {
		pods = append(pods, labelsHere(id))
	}
	opened, failed, err := compareMembers(alone, beside, sources, destinations, tally)
	if err != nil {
		return nil, fmt.Errorf("decide in the world of seed %d: %w", seed, err)
	}
	by := judge(objects, foreign, pods)
	tally.Worlds++
	if refused || failed {
		tally.Refused++
	}
	var wrong []*ForeignCase
	seen := map[foreignpolicy.Label]bool{}
	for _, to := range destinations {
		for _, key := range []string{redisKey, webKey, dnsKey} {
			l := foreignpolicy.Label{Key: key, Value: to[key]}
			if to[key] == "" || seen[l] {
				continue
			}
			seen[l] = true
			name, shown := by(l.Key, l.Value), opened[l]
			c := &ForeignCase{Seed: seed, Foreign: foreign, Key: l.Key, Value: l.Value, By: name, Shown: shown, Missed: shown != ""}
			switch {
			case shown != "":
				tally.Opened++
				if name == "" {
					wrong = append(wrong, c)
					continue
				}
				kind, _, _ := strings.Cut(name, " ")
				tally.Kinds[kind]++
			case name != "":
				if !refused && !failed {
					tally.Over++
					wrong = append(wrong, c)
				}
			default:
				tally.Closed++
			}
		}
	}
	return wrong, nil
}

// compareMembers returns the labels of classes of the workloads that the second member lets more in to, with a connection that
// shows it. When the engine fails to compute a workload's policy beside the others, the agent keeps what it had before, so
// anything may be let in.
func compareMembers(alone, beside *member, sources []Source, destinations []map[string]string, tally *ForeignTally) (map[foreignpolicy.Label]string, bool, error) {
	opened, failed := map[foreignpolicy.Label]string{}, false
	for i, to := range destinations {
		shown := ""
	connections:
		for j, from := range sources {
			if from.Reserved == "host" {
				continue // it gets in whatever policies say
			}
			for _, at := range foreignPorts {
				before, err := alone.engine.decide(alone.sources[j], alone.destinations[i], foreignProtocol(at.protocol), at.port)
				if err != nil {
					return nil, false, err
				}
				after, err := beside.engine.decide(beside.sources[j], beside.destinations[i], foreignProtocol(at.protocol), at.port)
				if err != nil {
					failed = true
					break connections
				}
				tally.Connections++
				if exceeds(after, before) {
					shown = fmt.Sprintf("%+v to %v on %s %d", from, to, at.protocol, at.port)
					break connections
				}
			}
		}
		for _, key := range []string{redisKey, webKey, dnsKey} {
			if shown != "" && to[key] != "" {
				opened[foreignpolicy.Label{Key: key, Value: to[key]}] = shown
			}
		}
	}
	return opened, failed, nil
}

// exceeds tells whether more passes than before.
func exceeds(after, before verdict) bool {
	switch {
	case !after.Pass:
		return false
	case !before.Pass:
		if !after.Proxied {
			return true
		}
		return slices.Contains(after.Requests[:], true)
	case !before.Proxied:
		return false
	case !after.Proxied:
		return true
	}
	for i, passes := range after.Requests {
		if passes && !before.Requests[i] {
			return true
		}
	}
	return false
}

// foreign makes one to four policies of others, of all kinds; in every other world they are about the same clients.
func (d dice) foreign() []map[string]any {
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

// about makes a policy that allows some clients a port, and perhaps others that deny it or pass it on: what one opens another
// may take back.
func (d dice) about() []map[string]any {
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
		return obj{"kind": "ClusterNetworkPolicy", "metadata": obj{"name": name}, "spec": obj{"tier": tier, "priority": int64(d.IntN(3)), "subject": obj{"namespaces": obj{}},
			"ingress": anys(obj{"action": action, "from": anys(obj{"pods": obj{"namespaceSelector": obj{}, "podSelector": pods}}), "protocols": anys(tcp)})}}
	}
	wide := func(name, list string) obj {
		return obj{"kind": "CiliumClusterwideNetworkPolicy", "metadata": obj{"name": name}, "spec": obj{"endpointSelector": obj{}, "enableDefaultDeny": obj{"ingress": false},
			list: anys(obj{"fromEndpoints": anys(pods), "toPorts": anys(obj{"ports": anys(cilium)})})}}
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

// subject selects workloads.
func (d dice) subject(prefix string) obj {
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

// pods selects clients.
func (d dice) pods(prefix string) obj {
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
		return obj{"matchLabels": obj{prefix + appKey: "888"}, "matchExpressions": anys(obj{"key": prefix + "app", "operator": "NotIn", "values": anys("other")})}
	default:
		return obj{}
	}
}

func (d dice) namespaces() obj {
	if d.IntN(3) == 0 {
		return obj{}
	}
	return obj{"matchLabels": obj{"kubernetes.io/metadata.name": pick(d, "default", "monitoring")}}
}

func (d dice) namespaced(u obj, name string) obj {
	u["metadata"] = obj{"name": name, "namespace": pick(d, "default", "default", "monitoring")}
	return u
}

func (d dice) cidr() (string, []any) {
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

// networkPolicy may be about egress alone and have ingress rules.
func (d dice) networkPolicy(name string) obj {
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

func (d dice) networkPort() obj {
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

func (d dice) ciliumPort(allows bool) obj {
	switch d.IntN(9) {
	case 0:
		return obj{"ports": anys(obj{"port": "6379", "endPort": int64(6400), "protocol": "TCP"})}
	case 1:
		return obj{"ports": anys(obj{"port": pick(d, "53", "80"), "protocol": "ANY"})}
	case 2:
		return obj{"ports": anys(obj{"port": "0", "protocol": pick(d, "TCP", "ANY")})}
	case 3, 4:
		if allows {
			return obj{"ports": anys(obj{"port": "8080", "protocol": "TCP"}), "rules": obj{"http": anys(pick(d, obj{"method": "GET|HEAD"}, obj{"method": "POST", "path": "/orders(/.*)?"}, obj{}))}}
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

// ciliumPolicy has one or two rules, in a spec or in specs.
func (d dice) ciliumPolicy(kind, name string) obj {
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

func (d dice) ciliumSpec() obj {
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

func (d dice) ciliumRule(allows bool) obj {
	r := obj{}
	switch d.IntN(10) {
	case 0:
		r["fromEntities"] = anys(pick(d, "all", "world", "cluster", "cluster-mesh", "host", "health", "remote-node", "kube-apiserver", "world-ipv4", "init", "none"))
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

// clusterNetworkPolicy is of either tier, with few priorities, so that some are the same.
func (d dice) clusterNetworkPolicy(name string) obj {
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
				r["protocols"] = anys(obj{"udp": obj{"destinationPort": obj{"number": int64(53)}}}, obj{"tcp": obj{"destinationPort": obj{"number": int64(53)}}})
			default:
				r["protocols"] = anys(obj{"tcp": obj{"destinationPort": obj{"number": pick(d, int64(80), 6379, 8080, 9121)}}})
			}
		}
		rules = append(rules, r)
	}
	spec["ingress"] = rules
	return obj{"kind": "ClusterNetworkPolicy", "metadata": obj{"name": name}, "spec": spec}
}
