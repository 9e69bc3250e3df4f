package engine

import (
	"fmt"
	"testing"

	"github.com/cilium/cilium/pkg/identity"
	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	"github.com/cilium/cilium/pkg/labels"
	"github.com/cilium/cilium/pkg/u8proto"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	redis uint32 = 1<<16 | 1000 + iota
	app888
	app889
	app777
	lonely
	remote888 = 2<<16 | 1000
)

func pod(id uint32, cluster, namespace string, more ...string) *identity.Identity {
	all := append([]string{
		"k8s:io.cilium.k8s.policy.cluster=" + cluster, "k8s:io.kubernetes.pod.namespace=" + namespace,
	}, more...)
	return identity.NewIdentityFromLabelArray(identity.NumericIdentity(id), labels.ParseLabelArray(all...))
}

func identities() map[uint32]*identity.Identity {
	return map[uint32]*identity.Identity{
		redis:     pod(redis, "m1", "redis", "k8s:com.trip/redis-cluster=bobs-cluster"),
		app888:    pod(app888, "m1", "payments", "k8s:com.trip/appid=888"),
		app889:    pod(app889, "m1", "search", "k8s:com.trip/appid=889"),
		app777:    pod(app777, "m1", "payments", "k8s:com.trip/appid=777"),
		lonely:    pod(lonely, "m1", "tools"),
		remote888: pod(remote888, "m2", "payments", "k8s:com.trip/appid=888"),
	}
}

func newEngine(t *testing.T) (*Engine, map[uint32]*identity.Identity) {
	t.Helper()
	e, ids := New("m1"), identities()
	added := identity.IdentityMap{}
	for _, id := range ids {
		added[id.ID] = id.LabelArray
	}
	e.UpdateIdentities(added, nil)
	return e, ids
}

func ccnp(t *testing.T, name, spec string) *ciliumv2.CiliumClusterwideNetworkPolicy {
	t.Helper()
	out := &ciliumv2.CiliumClusterwideNetworkPolicy{}
	if err := yaml.Unmarshal([]byte("metadata: {name: "+name+", uid: 11111111-2222-3333-4444-555555555555}\nspec:\n"+spec), out); err != nil {
		t.Fatalf("read the policy: %v", err)
	}
	return out
}

func mustSet(t *testing.T, e *Engine, p *ciliumv2.CiliumClusterwideNetworkPolicy) {
	t.Helper()
	if err := e.SetPolicy(p); err != nil {
		t.Fatalf("SetPolicy(%s): %v", p.Name, err)
	}
}

const (
	enforce888 = `
  endpointSelector: {matchLabels: {com.trip/redis-cluster: bobs-cluster}}
  enableDefaultDeny: {ingress: true, egress: false}
  log: {value: "acp:bobs"}
  ingress:
  - fromEndpoints:
    - matchExpressions:
      - {key: com.trip/appid, operator: In, values: ["888"]}
      - {key: "k8s:io.cilium.k8s.policy.cluster", operator: Exists}
    toPorts: [{ports: [{port: "6379", protocol: TCP}]}]
`
	audit888 = `
  endpointSelector: {matchLabels: {com.trip/redis-cluster: bobs-cluster}}
  enableDefaultDeny: {ingress: false, egress: false}
  log: {value: "acp:bobs"}
  ingress:
  - fromEndpoints:
    - matchExpressions:
      - {key: com.trip/appid, operator: In, values: ["888"]}
      - {key: "k8s:io.cilium.k8s.policy.cluster", operator: Exists}
    toPorts: [{ports: [{port: "6379", protocol: TCP}]}]
`
	localOnly888 = `
  endpointSelector: {matchLabels: {com.trip/redis-cluster: bobs-cluster}}
  enableDefaultDeny: {ingress: true, egress: false}
  ingress:
  - fromEndpoints: [{matchLabels: {com.trip/appid: "888"}}]
`
	deny889 = `
  endpointSelector: {matchLabels: {com.trip/redis-cluster: bobs-cluster}}
  enableDefaultDeny: {ingress: false, egress: false}
  log: {value: "acp:deny"}
  ingressDeny:
  - fromEndpoints: [{matchLabels: {com.trip/appid: "889"}}]
    toPorts: [{ports: [{port: "6379", protocol: TCP}]}]
`
	denyAll = `
  endpointSelector: {matchLabels: {com.trip/redis-cluster: bobs-cluster}}
  enableDefaultDeny: {ingress: true, egress: false}
  ingress: [{}]
`
	emptyList = `
  endpointSelector: {matchLabels: {com.trip/redis-cluster: bobs-cluster}}
  enableDefaultDeny: {ingress: true, egress: false}
  ingress: []
`
)

// seen contains the fields of a decision that a flow reports.
type seen struct {
	Outcome  Outcome
	Match    MatchType
	Policies []string
	Log      []string
}

func look(t *testing.T, e *Engine, c Connection) seen {
	t.Helper()
	d, err := e.Decide(c)
	if err != nil {
		t.Fatalf("Decide: %v", err)
	}
	out := seen{Outcome: d.Outcome, Match: d.Match}
	for _, p := range d.Policies {
		out.Policies = append(out.Policies, p.GetKind()+"/"+p.GetName())
	}
	if len(d.Log) > 0 {
		out.Log = d.Log
	}
	return out
}

func TestDecide(t *testing.T) {
	named := []string{"CiliumClusterwideNetworkPolicy/p"}
	cases := map[string]struct {
		reason string
		policy map[string]string
		from   uint32
		port   uint16
		want   seen
	}{
		"NoPolicy": {
			reason: "an endpoint that no policy selects lets everything through, without a verdict",
			from:   app889, port: 6379, want: seen{Outcome: NoPolicy},
		},
		"Allowed": {
			reason: "the listed application connects, and the verdict names the policy and its log value",
			policy: map[string]string{"p": enforce888}, from: app888, port: 6379,
			want: seen{Allowed, MatchL3L4, named, []string{"acp:bobs"}},
		},
		"AllowedFromTheOtherMember": {
			reason: "the cluster clause makes the application of another member match too",
			policy: map[string]string{"p": enforce888}, from: remote888, port: 6379,
			want: seen{Allowed, MatchL3L4, named, []string{"acp:bobs"}},
		},
		"DefaultDenied": {
			reason: "another application is refused, and nothing says by which policy",
			policy: map[string]string{"p": enforce888}, from: app889, port: 6379, want: seen{Outcome: DefaultDenied},
		},
		"OtherPort": {
			reason: "the listed application is refused on another port",
			policy: map[string]string{"p": enforce888}, from: app888, port: 9121, want: seen{Outcome: DefaultDenied},
		},
		"Unlabelled": {
			reason: "a pod without the label is refused",
			policy: map[string]string{"p": enforce888}, from: lonely, port: 6379, want: seen{Outcome: DefaultDenied},
		},
		"AuditListed": {
			reason: "in audit, the listed keep their policy's name",
			policy: map[string]string{"p": audit888}, from: app888, port: 6379,
			want: seen{Allowed, MatchL3L4, named, []string{"acp:bobs"}},
		},
		"AuditUnlisted": {
			reason: "in audit, the others pass by the rule that stands for everything, which has no name",
			policy: map[string]string{"p": audit888}, from: app889, port: 6379,
			want: seen{Allowed, MatchAll, []string{"/"}, nil},
		},
		"LocalClusterOnly": {
			reason: "without a cluster clause only the local cluster matches",
			policy: map[string]string{"p": localOnly888}, from: remote888, port: 6379, want: seen{Outcome: DefaultDenied},
		},
		"LocalClusterMatches": {
			reason: "the same policy lets the local application in, on any port",
			policy: map[string]string{"p": localOnly888}, from: app888, port: 9121, want: seen{Allowed, MatchL3, named, nil},
		},
		"Denied": {
			reason: "a deny rule refuses, and the verdict names it",
			policy: map[string]string{"p": deny889}, from: app889, port: 6379, want: seen{Denied, MatchL3L4, named, []string{"acp:deny"}},
		},
		"DenyWithoutDefaultDeny": {
			reason: "a deny rule without default deny leaves the others alone",
			policy: map[string]string{"p": deny889}, from: app888, port: 6379, want: seen{Allowed, MatchAll, []string{"/"}, nil},
		},
		"DenyAll": {
			reason: "an empty rule closes the endpoint",
			policy: map[string]string{"p": denyAll}, from: app888, port: 6379, want: seen{Outcome: DefaultDenied},
		},
		"OneEnforcesOneAudits": {
			reason: "of two policies, the one with default deny counts",
			policy: map[string]string{"p": enforce888, "q": deny889}, from: app777, port: 6379, want: seen{Outcome: DefaultDenied},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, ids := newEngine(t)
			for policyName, spec := range tc.policy {
				mustSet(t, e, ccnp(t, policyName, spec))
			}
			got := look(t, e, Connection{From: ids[tc.from], To: ids[redis], Protocol: u8proto.TCP, Port: tc.port})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPolicyChanges(t *testing.T) {
	e, ids := newEngine(t)
	from888 := Connection{From: ids[app888], To: ids[redis], Protocol: u8proto.TCP, Port: 6379}
	from889 := Connection{From: ids[app889], To: ids[redis], Protocol: u8proto.TCP, Port: 6379}
	check := func(reason string, c Connection, want Outcome) {
		t.Helper()
		if got := look(t, e, c).Outcome; got != want {
			t.Errorf("%s: outcome %d, want %d", reason, got, want)
		}
	}
	if err := e.SetPolicy(ccnp(t, "p", emptyList)); err == nil {
		t.Fatal("a policy with an empty list must be refused, as a real agent does")
	}
	check("a refused new policy enforces nothing", from889, NoPolicy)
	mustSet(t, e, ccnp(t, "p", enforce888))
	check("a created policy is in force at once", from889, DefaultDenied)
	if err := e.SetPolicy(ccnp(t, "p", emptyList)); err == nil {
		t.Fatal("a policy with an empty list must be refused, as a real agent does")
	}
	check("after a refused update the old policy allows what it allowed", from888, Allowed)
	check("after a refused update the old policy refuses what it refused", from889, DefaultDenied)
	mustSet(t, e, ccnp(t, "p", denyAll))
	check("an update is in force at once", from888, DefaultDenied)
	e.DeletePolicy("p")
	check("a deleted policy enforces nothing", from888, NoPolicy)
}

func TestNewIdentityIsSelected(t *testing.T) {
	e, ids := newEngine(t)
	mustSet(t, e, ccnp(t, "p", enforce888))
	if got := look(t, e, Connection{From: ids[app889], To: ids[redis], Protocol: u8proto.TCP, Port: 6379}).Outcome; got != DefaultDenied {
		t.Fatalf("outcome %d before, want default deny", got)
	}
	late := pod(1<<16|5000, "m1", "other", "k8s:com.trip/appid=888")
	e.UpdateIdentities(identity.IdentityMap{late.ID: late.LabelArray}, nil)
	got := look(t, e, Connection{From: late, To: ids[redis], Protocol: u8proto.TCP, Port: 6379}).Outcome
	if got != Allowed {
		t.Errorf("a pod of the listed application that comes later: outcome %d, want allowed", got)
	}
}

func TestExternalSources(t *testing.T) {
	const policy = `
  endpointSelector: {matchLabels: {com.trip/redis-cluster: bobs-cluster}}
  enableDefaultDeny: {ingress: true, egress: false}
  ingress:
  - fromCIDRSet: [{cidrGroupRef: machines}]
`
	e, ids := newEngine(t)
	mustSet(t, e, ccnp(t, "p", policy))
	outcome := func(addr string) Outcome {
		t.Helper()
		id, err := e.External(addr)
		if err != nil {
			t.Fatalf("External(%s): %v", addr, err)
		}
		return look(t, e, Connection{From: id, To: ids[redis], Protocol: u8proto.TCP, Port: 6379}).Outcome
	}
	if got := outcome("10.5.0.7"); got != DefaultDenied {
		t.Errorf("a missing group must match nothing: outcome %d", got)
	}
	group := &ciliumv2.CiliumCIDRGroup{}
	if err := yaml.Unmarshal([]byte("metadata: {name: machines}\nspec: {externalCIDRs: [10.5.0.0/24]}"), group); err != nil {
		t.Fatal(err)
	}
	e.SetGroup(group)
	if got := outcome("10.5.0.7"); got != Allowed {
		t.Errorf("an address of the group: outcome %d, want allowed", got)
	}
	if got := outcome("10.6.0.7"); got != DefaultDenied {
		t.Errorf("an address outside the group: outcome %d, want default deny", got)
	}
	e.DeleteGroup("machines")
	if got := outcome("10.5.0.7"); got != DefaultDenied {
		t.Errorf("after the group is gone: outcome %d, want default deny", got)
	}
	if _, err := e.External("not an address"); err == nil {
		t.Error("a text that is no address must be refused")
	}
}

// TestNestedGroups checks that an address has the labels of all groups whose prefixes contain it, as an agent merges them.
func TestNestedGroups(t *testing.T) {
	e, ids := newEngine(t)
	for name, cidr := range map[string]string{"outer": "10.5.0.0/24", "inner": "10.5.0.7/32", "other": "10.5.1.0/24"} {
		group := &ciliumv2.CiliumCIDRGroup{}
		text := fmt.Sprintf("metadata: {name: %s, labels: {class: %s}}\nspec: {externalCIDRs: [%s]}", name, name, cidr)
		if err := yaml.Unmarshal([]byte(text), group); err != nil {
			t.Fatal(err)
		}
		e.SetGroup(group)
	}
	for source, want := range map[string]Outcome{
		"cidrGroupRef: outer":                              Allowed,
		"cidrGroupRef: inner":                              Allowed,
		"cidrGroupRef: other":                              DefaultDenied,
		"cidrGroupSelector: {matchLabels: {class: inner}}": Allowed,
		// Labels of groups contain their value in the key as well, so both values of a key are selected.
		"cidrGroupSelector: {matchLabels: {class: outer}}": Allowed,
	} {
		mustSet(t, e, ccnp(t, "p", `
  endpointSelector: {matchLabels: {com.trip/redis-cluster: bobs-cluster}}
  enableDefaultDeny: {ingress: true, egress: false}
  ingress:
  - fromCIDRSet: [{`+source+`}]
`))
		id, err := e.External("10.5.0.7")
		if err != nil {
			t.Fatal(err)
		}
		if got := look(t, e, Connection{From: id, To: ids[redis], Protocol: u8proto.TCP, Port: 6379}).Outcome; got != want {
			t.Errorf("%s: outcome %d, want %d", source, got, want)
		}
	}
}
