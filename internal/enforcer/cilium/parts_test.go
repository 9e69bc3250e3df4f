package cilium

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// A unit that no object can hold is split. The parts together say what the unit says, each closes, and each fits.
func TestPartsFitAndAreEquivalent(t *testing.T) {
	var names []string
	for i := range 60_000 {
		names = append(names, fmt.Sprintf("application-with-a-long-name-%06d", i))
	}
	var ranges []netip.Prefix
	for i := range 9000 {
		ranges = append(ranges, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24))
	}
	tcp := []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}
	u := policy.Unit{ID: "x", LabelKey: "k", LabelValue: "v", Mode: v1alpha1.ModeEnforce, ClusterModes: map[string]v1alpha1.Mode{"m1": v1alpha1.ModeAudit},
		Rules: []policy.Rule{
			{
				Effect:   policy.Allow,
				Subjects: []policy.SubjectSelector{{LabelKey: "a", Values: names}, {LabelKey: "b", Values: names[:3]}},
				Prefixes: ranges,
				Ports:    tcp,
			},
			{Effect: policy.Deny, Subjects: []policy.SubjectSelector{{LabelKey: "a", Values: names[:9000]}}, Ports: tcp},
		}}
	rendering, err := Enforcer{}.Render(u)
	if err != nil {
		t.Fatal(err)
	}
	if len(rendering.Objects) < 3 || rendering.Objects[0].Object.Name != "acp-x" || rendering.Objects[1].Object.Name != "acp-x-part-2" {
		t.Fatalf("%d objects, the first %s, want several, numbered from the second on", len(rendering.Objects), rendering.Objects[0].Object.Name)
	}
	allowed, denied, cidrs := map[string]int{}, map[string]int{}, 0
	for _, o := range rendering.Objects {
		text, err := json.Marshal([]any{o.Object.Spec, o.Overrides})
		if err != nil || len(text) > 1_500_000 {
			t.Errorf("%s has %d bytes (%v), more than an API server takes", o.Object.Name, len(text), err)
		}
		checkSpec(t, o.Object.Name, o.Object.Spec)
		if closed := o.Object.Spec["enableDefaultDeny"].(map[string]any)["ingress"]; closed != true {
			t.Errorf("%s: default deny is %v, want every part to close", o.Object.Name, closed)
		}
		for section, into := range map[string]map[string]int{"ingress": allowed, "ingressDeny": denied} {
			for _, rule := range anyList(o.Object.Spec[section]) {
				cidrs += len(anyList(rule.(map[string]any)[fromCIDRSet]))
				for _, peer := range anyList(rule.(map[string]any)[fromEndpoints]) {
					in := peer.(map[string]any)["matchExpressions"].([]any)[0].(map[string]any)
					for _, v := range in["values"].([]any) {
						into[in["key"].(string)+"="+v.(string)]++
					}
				}
			}
		}
	}
	count := func(n, times int) map[string]int {
		want := map[string]int{}
		for _, name := range names[:n] {
			want["k8s:a="+name] = times
		}
		return want
	}
	want := count(60_000, 1)
	for _, name := range names[:3] {
		want["k8s:b="+name] = 1
	}
	if diff := cmp.Diff(want, allowed); diff != "" {
		t.Errorf("allowed -want +got:\n%s", diff[:min(len(diff), 2000)])
	}
	if diff := cmp.Diff(count(9000, 2*len(rendering.Objects)), denied); diff != "" {
		t.Errorf("denied in every part, with a namespace and without; -want +got:\n%s", diff[:min(len(diff), 2000)])
	}
	if cidrs != len(ranges) {
		t.Errorf("%d ranges, want %d", cidrs, len(ranges))
	}
}

func TestRuleBytesIsAnUpperBound(t *testing.T) {
	end := int32(65535)
	ports := slices.Repeat([]v1alpha1.Port{{Port: 10000, EndPort: &end, Protocol: v1alpha1.ProtocolSCTP}}, 45)
	for name, r := range map[string]policy.Rule{
		"Anyone": {Effect: policy.Deny, Anyone: true, Ports: ports},
		"Label":  {Effect: policy.Deny, Subjects: []policy.SubjectSelector{{LabelKey: "example.com/a", Values: []string{"v"}}}, Ports: ports[:1]},
		"Class": {
			Effect: policy.Deny, Subjects: []policy.SubjectSelector{{LabelKey: "example.com/a", Any: true}},
			ExternalClasses: []string{"iam-app-0123456789-aaaaaaaa"}, Ports: ports[:1],
		},
		"Range": {Effect: policy.Allow, Prefixes: []netip.Prefix{netip.MustParsePrefix("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff/128")}, Ports: ports[:1]},
		"Group": {Effect: policy.Deny, External: []string{"iam-app-0123456789-aaaaaaaa"}, Ports: ports},
		"HTTP": {Effect: policy.Allow, Subjects: []policy.SubjectSelector{{LabelKey: "a", Values: []string{"v"}}}, Ports: ports[:1],
			HTTP: []v1alpha1.HTTPMatch{{Method: "GET|HEAD", Path: `/orders/[^/]+\.json`}, {Path: "/healthz"}}},
	} {
		peers := allowPeers(&r)
		if r.Effect == policy.Deny {
			peers = denyPeers(&r)
		}
		text, err := json.Marshal(appendRules(nil, peers, toPorts(&r)))
		if got := ruleBytes(&r); err != nil || got < len(text) {
			t.Errorf("%s: estimated %d bytes, and it has %d (%v)", name, got, len(text), err)
		}
	}
}

// The estimate of policy-map entries counts the types of ICMP that are opened.
func TestICMPTypesAreCounted(t *testing.T) {
	n := 0
	for _, f := range icmpTypes {
		n += len(f.types)
	}
	if n != policy.ICMPTypes {
		t.Errorf("%d types are rendered and %d are counted", n, policy.ICMPTypes)
	}
}
