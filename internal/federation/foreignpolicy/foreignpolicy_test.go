package foreignpolicy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const redisKey = "com.trip/redis"

func parse(tb testing.TB, text string) *Policy {
	tb.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		tb.Fatal(err)
	}
	return Parse(u)
}

func pod(labels ...string) []Handle {
	var out []Handle
	for _, l := range append(labels, clusterKey+"=m1") {
		k, v, _ := strings.Cut(l, "=")
		out = append(out, unique.Make(Label{k, v}))
	}
	return out
}

func each(pods ...[]Handle) func(func([]Handle)) {
	return func(do func([]Handle)) {
		for _, p := range pods {
			do(p)
		}
	}
}

// closed is what ACP renders for a resource in Enforce that one application may reach.
const closed = `
kind: CiliumClusterwideNetworkPolicy
metadata: {name: acp-bobs}
spec:
  enableDefaultDeny: {ingress: true, egress: false}
  endpointSelector: {matchLabels: {"k8s:com.trip/redis": bobs}}
  ingress:
  - fromEndpoints: [{matchExpressions: [{key: "k8s:com.trip/appid", operator: In, values: ["888"]},
      {key: "k8s:io.cilium.k8s.policy.cluster", operator: Exists}]}]
    toPorts: [{ports: [{port: "6379", protocol: TCP}]}]
  - fromCIDRSet: [{cidrGroupRef: acp-888}]
    toPorts: [{ports: [{port: "6379", protocol: TCP}]}]
  ingressDeny:
  - fromEndpoints: [{matchExpressions: [{key: "k8s:com.trip/appid", operator: In, values: ["666"]},
      {key: "k8s:io.cilium.k8s.policy.cluster", operator: Exists}]}]
`

func TestFind(t *testing.T) {
	redis := pod(redisKey+"=bobs", "app=redis", namespaceKey+"=data")
	prometheus := pod("com.trip/appid=888", "app=prometheus", namespaceKey+"=monitoring", namespaceLabelsKey+".kubernetes.io/metadata.name=monitoring")
	web := pod("app=web", namespaceKey+"=data")
	bad := pod("com.trip/appid=666", namespaceKey+"=data", "app=bad")
	all := [][]Handle{redis, prometheus, web, bad}
	for _, c := range []struct {
		reason, policy string
		opened         bool
	}{
		{
			"a NetworkPolicy that lets in who is let in anyway",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, ` +
				`ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}, ` +
				`podSelector: {matchLabels: {app: prometheus}}}], ports: [{port: 6379}]}]}}`,
			false,
		},
		{
			"the same on a port that is closed to them",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, ` +
				`ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}, ` +
				`podSelector: {matchLabels: {app: prometheus}}}], ports: [{port: 9121}]}]}}`,
			true,
		},
		{
			"the same on every port",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, ingress: [{from: [{namespaceSelector: {}, ` +
				`podSelector: {matchLabels: {app: prometheus}}}]}]}}`,
			true,
		},
		{
			"a port of a name may be any",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, ingress: [{from: [{namespaceSelector: {}, ` +
				`podSelector: {matchLabels: {app: prometheus}}}], ports: [{port: metrics}]}]}}`,
			true,
		},
		{
			"for pods that are not closed",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {matchLabels: {app: web}}, ingress: [{}]}}`,
			false,
		},
		{"in another namespace", `{kind: NetworkPolicy, metadata: {namespace: web, name: p}, spec: {podSelector: {}, ingress: [{}]}}`, false},
		{
			"one about egress alone that has ingress rules",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, policyTypes: [Egress], ingress: [{}]}}`,
			true,
		},
		{
			"one about egress alone",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, policyTypes: [Egress], egress: [{}]}}`,
			false,
		},
		{"one that only closes", `{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, policyTypes: [Ingress]}}`, false},
		{
			"an address of a group that ACP allows",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, ` +
				`ingress: [{from: [{ipBlock: {cidr: 10.5.0.7/32}}], ports: [{port: 6379}]}]}}`,
			false,
		},
		{
			"a range with another address",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, ` +
				`ingress: [{from: [{ipBlock: {cidr: 10.5.0.6/31}}], ports: [{port: 6379}]}]}}`,
			true,
		},
		{
			"but for that address",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.5.0.6/31, ` +
				`except: [10.5.0.6/32]}}], ports: [{port: 6379}]}]}}`,
			false,
		},
		{
			"whom ACP denies, by a policy that its denies go before",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, ` +
				`ingress: [{from: [{podSelector: {matchLabels: {app: bad}}}]}]}}`,
			false,
		},
		{
			"whom ACP denies, by the Admin tier",
			`{kind: ClusterNetworkPolicy, metadata: {name: p}, spec: {tier: Admin, priority: 1, subject: {namespaces: {}}, ` +
				`ingress: [{action: Accept, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: bad}}}}]}]}}`,
			true,
		},
		{
			"whom ACP denies, by the Baseline tier",
			`{kind: ClusterNetworkPolicy, metadata: {name: p}, spec: {tier: Baseline, priority: 1, subject: {namespaces: {}}, ` +
				`ingress: [{action: Accept, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: bad}}}}]}]}}`,
			false,
		},
		{
			"whom only default deny refuses, by the Baseline tier",
			`{kind: ClusterNetworkPolicy, metadata: {name: p}, spec: {tier: Baseline, priority: 1, subject: {namespaces: {}}, ` +
				`ingress: [{action: Accept, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}}]}]}}`,
			true,
		},
		{
			"passing on lets nobody in",
			`{kind: ClusterNetworkPolicy, metadata: {name: p}, spec: {tier: Admin, priority: 1, subject: {namespaces: {}}, ` +
				`ingress: [{action: Pass, from: [{namespaces: {}}]}]}}`,
			false,
		},
		{
			"the application in any cluster",
			`{kind: CiliumClusterwideNetworkPolicy, metadata: {name: p}, spec: {endpointSelector: {}, ` +
				`ingress: [{fromEndpoints: [{matchLabels: {com.trip/appid: "888"}, matchExpressions: [{key: io.cilium.k8s.policy.cluster, ` +
				`operator: Exists}]}], toPorts: [{ports: [{port: "6379", protocol: TCP}]}]}]}}`,
			false,
		},
		{
			"pods of another cluster that nobody reads",
			`{kind: CiliumClusterwideNetworkPolicy, metadata: {name: p}, spec: {endpointSelector: {}, ` +
				`ingress: [{fromEndpoints: [{matchLabels: {app: prometheus, io.cilium.k8s.policy.cluster: m2}}], toPorts: [{ports: [{port: "6379", ` +
				`protocol: TCP}]}]}]}}`,
			true,
		},
		{
			"the own node, which is let in anyway",
			`{kind: CiliumClusterwideNetworkPolicy, metadata: {name: p}, spec: {endpointSelector: {}, ingress: [{fromEntities: [host]}]}}`,
			false,
		},
		{
			"the health endpoint, which is not",
			`{kind: CiliumClusterwideNetworkPolicy, metadata: {name: p}, spec: {endpointSelector: {}, ingress: [{fromEntities: [health]}]}}`,
			true,
		},
		{"a rule that says nothing", `{kind: CiliumClusterwideNetworkPolicy, metadata: {name: p}, spec: {endpointSelector: {}, ingress: [{}]}}`, false},
		{
			"nodes are not pods",
			`{kind: CiliumClusterwideNetworkPolicy, metadata: {name: p}, spec: {nodeSelector: {}, ingress: [{fromEntities: [all]}]}}`,
			false,
		},
		{
			"rules in specs",
			`{kind: CiliumNetworkPolicy, metadata: {namespace: data, name: p}, specs: [{endpointSelector: {}, ingress: [{fromEndpoints: [{}]}]}]}`,
			true,
		},
		{
			"requests beside the whole connection",
			`{kind: CiliumNetworkPolicy, metadata: {namespace: data, name: p}, spec: {endpointSelector: {}, ` +
				`ingress: [{fromEndpoints: [{matchLabels: {app: prometheus, io.kubernetes.pod.namespace: monitoring}}], ` +
				`toPorts: [{ports: [{port: "6379", protocol: TCP}], rules: {http: [{method: GET}]}}]}]}}`,
			false,
		},
		{
			"an authentication, over which Cilium may fail",
			`{kind: CiliumNetworkPolicy, metadata: {namespace: data, name: p}, spec: {endpointSelector: {}, ` +
				`ingress: [{fromEndpoints: [{matchLabels: {app: nobody}}], authentication: {mode: required}}]}}`,
			true,
		},
		{
			"a field that nobody knows",
			`{kind: CiliumNetworkPolicy, metadata: {namespace: data, name: p}, spec: {endpointSelector: {}, ingress: [{fromMoon: [x]}]}}`,
			true,
		},
		{
			"a selector that nobody can read",
			`{kind: CiliumClusterwideNetworkPolicy, metadata: {name: p}, spec: {endpointSelector: {matchExpressions: [{key: a, operator: Like}]}, ` +
				`ingress: [{fromEntities: [all]}]}}`,
			true,
		},
		{"a spec that nobody can read", `{kind: CiliumClusterwideNetworkPolicy, metadata: {name: p}, spec: [1]}`, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			in := Input{Own: []*Policy{parse(t, closed)}, Foreign: []*Policy{parse(t, c.policy)}, Keys: map[string]bool{redisKey: true}, Each: each(all...)}
			in.Groups = []Group{{Name: "acp-888", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.5.0.7/32")}}}
			found := NewDetector().Find(in)
			if by := found.OpenedBy(redisKey, "bobs"); (by != "") != c.opened {
				t.Errorf("opened by %q", by)
			}
			if by := found.OpenedBy(redisKey, "anns"); by != "" {
				t.Errorf("what is not there is opened by %q", by)
			}
		})
	}
}

// Without identities it is unknown which pods there are, so whatever may select a pod with the label counts.
func TestFindWithoutIdentities(t *testing.T) {
	for _, c := range []struct {
		reason, policy string
		opened         bool
	}{
		{
			"any pod",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {}, ` +
				`ingress: [{from: [{podSelector: {matchLabels: {com.trip/appid: "888"}}}]}]}}`,
			true,
		},
		{
			"by the label",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {matchLabels: {com.trip/redis: bobs}}, ingress: [{}]}}`,
			true,
		},
		{
			"of another resource",
			`{kind: NetworkPolicy, metadata: {namespace: data, name: p}, spec: {podSelector: {matchLabels: {com.trip/redis: anns}}, ingress: [{}]}}`,
			false,
		},
		{
			"without the label",
			`{kind: CiliumClusterwideNetworkPolicy, metadata: {name: p}, spec: {endpointSelector: {matchExpressions: [{key: "any:com.trip/redis", ` +
				`operator: DoesNotExist}]}, ingress: [{fromEntities: [all]}]}}`,
			false,
		},
		{
			"of all but this one",
			`{kind: CiliumClusterwideNetworkPolicy, metadata: {name: p}, spec: {endpointSelector: {matchExpressions: [{key: com.trip/redis, ` +
				`operator: NotIn, values: [bobs]}]}, ingress: [{fromEntities: [all]}]}}`,
			false,
		},
	} {
		in := Input{Own: []*Policy{parse(t, closed)}, Foreign: []*Policy{parse(t, c.policy)}, Keys: map[string]bool{redisKey: true}, Each: each()}
		if by := NewDetector().Find(in).OpenedBy(redisKey, "bobs"); (by != "") != c.opened {
			t.Errorf("%s: opened by %q", c.reason, by)
		}
		d, earlier := NewDetector(), in
		earlier.Each = each(pod("app=web", namespaceKey+"=data"))
		d.Find(earlier)
		if by := d.Find(in).OpenedBy(redisKey, "bobs"); (by != "") != c.opened {
			t.Errorf("%s, after all pods are gone: opened by %q", c.reason, by)
		}
	}
}

// fleet is a member with many namespaces, each with a closed workload, clients of it, and policies of its own that open nothing.
func fleet(tb testing.TB, namespaces int) (Input, *[][]Handle) {
	in := Input{Keys: map[string]bool{redisKey: true}}
	var pods [][]Handle
	for n := range namespaces {
		ns := fmt.Sprint("ns-", n)
		pods = append(pods, pod(redisKey+"="+ns, namespaceKey+"="+ns, "app=redis"), pod("com.trip/appid=888", namespaceKey+"="+ns, "app=prometheus"))
		for i := range 4 {
			pods = append(pods, pod(fmt.Sprint("app=web-", i), namespaceKey+"="+ns))
		}
		in.Own = append(in.Own, parse(tb, strings.ReplaceAll(closed, "bobs", ns)))
		for i := range 3 {
			in.Foreign = append(
				in.Foreign,
				parse(
					tb,
					fmt.Sprintf(
						`{kind: NetworkPolicy, metadata: {namespace: %s, name: p%d}, spec: {podSelector: {}, `+
							`ingress: [{from: [{podSelector: {matchLabels: {app: prometheus}}}], ports: [{port: 6379}]}]}}`,
						ns,
						i,
					),
				),
			)
		}
	}
	in.Each = func(do func([]Handle)) {
		for _, p := range pods {
			do(p)
		}
	}
	return in, &pods
}

// The work grows with the fleet and not with its square, and a change costs what it touches.
func TestWorkIsBounded(t *testing.T) {
	work := func(namespaces int) int {
		in, _ := fleet(t, namespaces)
		d := NewDetector()
		if found := d.Find(in); len(found.labels) > 0 {
			t.Fatalf("opened: %v", found.labels)
		}
		return d.Checks
	}
	small, large := work(50), work(500)
	if large > 15*small {
		t.Errorf("ten times the fleet takes %d checks, and a tenth of it %d", large, small)
	}
	in, pods := fleet(t, 500)
	d := NewDetector()
	d.Find(in)
	first := d.Checks
	d.Find(in)
	again := d.Checks - first
	*pods = append(*pods, pod("app=web-9", namespaceKey+"=ns-1"))
	d.Find(in)
	one := d.Checks - first - 2*again
	if again*5 > first || one > 100 {
		t.Errorf("%d checks at first, %d when nothing changed, %d more for one new client", first, again, one)
	}
	*pods = append(*pods, pod("app=prometheus", namespaceKey+"=ns-1"))
	if by := d.Find(in).OpenedBy(redisKey, "ns-1"); by == "" {
		t.Error("a new client that is not allowed is let in, and not reported")
	}
	*pods = (*pods)[:len(*pods)-1]
	if by := d.Find(in).OpenedBy(redisKey, "ns-1"); by != "" {
		t.Errorf("the client is gone, and it is opened by %q", by)
	}
}

// BenchmarkFind is a look at a member with 12,000 identities and 6,000 policies of others of which nothing changed.
func BenchmarkFind(b *testing.B) {
	in, _ := fleet(b, 2000)
	d := NewDetector()
	d.Find(in)
	before := d.Checks
	for b.Loop() {
		d.Find(in)
	}
	b.ReportMetric(float64(d.Checks-before)/float64(b.N), "checks/op")
}
