package policy

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestAttribution(t *testing.T) {
	s := NewSnapshot(world(workload("net", app888, "10.5.0.0/16", "2001:db8::/32"), workload("vm", app889, "10.5.0.9"),
		workload("one", app888, "10.6.0.1"), workload("two", app889, "10.6.0.1")))
	labels := map[string]string{"com.trip/appid": "888", "com.trip/service": "cart", "com.trip/redis-cluster": "bobs-cluster", "com.trip/site": "", "app": "x"}
	if diff := cmp.Diff([]string{app888, cart}, s.SubjectsOf(labels)); diff != "" {
		t.Errorf("SubjectsOf -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{bobs}, s.ResourcesOf(labels)); diff != "" {
		t.Errorf("ResourcesOf leaves empty labels out; -want +got:\n%s", diff)
	}
	if got := s.SubjectsOf(nil); got != nil {
		t.Errorf("SubjectsOf(nil) = %v, want none", got)
	}
	for _, tc := range []struct{ reason, addr, want string }{
		{"the only prefix", "10.5.7.7", app888},
		{"the longer of two", "10.5.0.9", app889},
		{"IPv4 written as IPv6", "::ffff:10.5.0.9", app889},
		{"IPv6", "2001:db8::7", app888},
		{"a zone is no part of the address", "2001:db8::7%eth0", app888},
		{"contested", "10.6.0.1", ""},
		{"unknown", "10.7.0.1", ""},
	} {
		if got, ok := s.SubjectOfAddress(netip.MustParseAddr(tc.addr)); got != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: SubjectOfAddress(%s) = %q, %v, want %q", tc.reason, tc.addr, got, ok, tc.want)
		}
	}
	if got, ok := s.SubjectOfAddress(netip.Addr{}); ok {
		t.Errorf("SubjectOfAddress of no address = %q", got)
	}
	if diff := cmp.Diff([]string{"redis:admin"}, s.ActionsOn(bobs, v1alpha1.ProtocolTCP, 16380)); diff != "" {
		t.Errorf("ActionsOn a port of a range -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"web:connect", "web:orders", "web:read"}, s.ActionsOn(shop, v1alpha1.ProtocolTCP, 80)); diff != "" {
		t.Errorf("ActionsOn a port of several actions -want +got:\n%s", diff)
	}
	for _, tc := range []struct {
		resource     string
		port         uint16
		method, path string
		want         []string
		judged       bool
	}{
		{shop, 80, "POST", "/orders/7", []string{"web:orders", "web:connect"}, true},
		{shop, 80, "DELETE", "/", []string{"web:connect"}, true},
		{bobs, 6379, "GET", "/", []string{"redis:connect"}, false},
		{bobs, 1, "GET", "/", nil, false},
		{"trnv1:rsc:trip-com:redis:users:x", 80, "GET", "/", nil, false},
	} {
		got, judged := s.RequestsOn(tc.resource, v1alpha1.ProtocolTCP, tc.port, tc.method, tc.path)
		if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || judged != tc.judged {
			t.Errorf("RequestsOn(%s, %d, %s %s): judged is %v, -want +got:\n%s", tc.resource, tc.port, tc.method, tc.path, judged, diff)
		}
	}
	if got := s.ActionsOn(bobs, v1alpha1.ProtocolUDP, 6379); got != nil {
		t.Errorf("ActionsOn another protocol = %v, want none", got)
	}
	for name, want := range map[string]string{bobs: "redis", allRedis: "redis", redisHead + "bobs-*": "redis", "trnv1:rsc:trip-com:redis:users:x": "", "": ""} {
		c, ok := s.ResourceClassOf(name)
		if ok != (want != "") || ok && c.Name != want {
			t.Errorf("ResourceClassOf(%q) = %v, %v, want %q", name, c, ok, want)
		}
	}
	if c, ok := s.SubjectClassOf(app888); !ok || c.Name != "application" {
		t.Errorf("SubjectClassOf(%q) = %v, %v, want application", app888, c, ok)
	}
	if _, ok := s.SubjectClassOf(bobs); ok {
		t.Error("a resource must have no subject class")
	}
}

func TestProblems(t *testing.T) {
	aged := func(name string, pattern v1alpha1.NamePattern, age time.Duration) *v1alpha1.ResourceClass {
		c := redisClass()
		c.Name, c.Spec.Pattern, c.CreationTimestamp = name, pattern, metav1.NewTime(noon.Add(-age))
		return c
	}
	const kafka = "trnv1:rsc:trip-com:kafka:topics:"
	cases := map[string]struct {
		reason  string
		objects []any
		want    []Problem
	}{
		"None": {reason: "a sound world", objects: []any{protect(bobs, v1alpha1.ModeEnforce)}},
		"Overlap": {
			reason:  "of two overlapping classes the older stays",
			objects: []any{aged("a-late", kafka+"*", time.Hour), aged("b-early", kafka+"x*", 2*time.Hour), protect(kafka+"y", v1alpha1.ModeEnforce)},
			want: []Problem{
				{Kind: "ProtectedResource", Name: UnitID(kafka + "y"), Reason: v1alpha1.ReasonNoClass, LeftOut: true},
				{Kind: "ResourceClass", Name: "a-late", Reason: v1alpha1.ReasonOverlap, LeftOut: true},
			},
		},
		"Pattern": {
			reason: "a pattern without wildcard, and one about ranges",
			objects: []any{
				aged("exact", kafka+"x", 0),
				&v1alpha1.SubjectClass{ObjectMeta: named("cidr"), Spec: v1alpha1.SubjectClassSpec{Pattern: cidrHead + "*"}},
			},
			want: []Problem{
				{Kind: "ResourceClass", Name: "exact", Reason: v1alpha1.ReasonInvalid, LeftOut: true},
				{Kind: "SubjectClass", Name: "cidr", Reason: v1alpha1.ReasonInvalid, LeftOut: true},
			},
		},
		"Actions": {
			reason: "unusable actions are left out, the class is not",
			objects: []any{
				&v1alpha1.ResourceClass{
					ObjectMeta: named("k"),
					Spec: v1alpha1.ResourceClassSpec{Pattern: kafka + "*", LabelKey: "k", Actions: []v1alpha1.ClassAction{
						{Name: "k:none"},
						{Name: "k:zero", Ports: []v1alpha1.Port{port(0)}},
						{Name: "k:back", Ports: []v1alpha1.Port{ports(9, 8, "TCP")}},
						{
							Name:  "k:expr",
							Ports: []v1alpha1.Port{port(80)},
							HTTP:  []v1alpha1.HTTPMatch{{Path: "a)|(b"}},
						},
						{Name: "k:udp", Ports: []v1alpha1.Port{{Port: 80, Protocol: "UDP"}}, HTTP: []v1alpha1.HTTPMatch{{Path: "/"}}},
						{
							Name:  "k:proto",
							Ports: []v1alpha1.Port{{Port: 80, Protocol: "ICMP"}},
						},
						{Name: "k:empty", Ports: []v1alpha1.Port{port(80)}, HTTP: []v1alpha1.HTTPMatch{{}}},
						{Name: "k:good", Ports: []v1alpha1.Port{port(80)}},
					}},
				},
			},
			want: []Problem{
				{Kind: "ResourceClass", Name: "k", Reason: v1alpha1.ReasonInvalid},
				{Kind: "ResourceClass", Name: "k", Reason: v1alpha1.ReasonInvalid},
				{Kind: "ResourceClass", Name: "k", Reason: v1alpha1.ReasonInvalid},
				{
					Kind:   "ResourceClass",
					Name:   "k",
					Reason: v1alpha1.ReasonInvalid,
				},
				{Kind: "ResourceClass", Name: "k", Reason: v1alpha1.ReasonInvalid},
				{Kind: "ResourceClass", Name: "k", Reason: v1alpha1.ReasonInvalid},
				{Kind: "ResourceClass", Name: "k", Reason: v1alpha1.ReasonInvalid},
			},
		},
		"Resources": {
			reason: "names and modes that cannot be protected",
			objects: []any{
				protect("x", "Enforce", as("a")),
				protect(allRedis, "Enforce", as("b")),
				protect(bobs, "Maybe", as("c")),
				protect(bobs, "Audit", in("m1", "Maybe"), as("d")),
				protect(redisHead+"a/b", "Enforce", as("e")),
			},
			want: []Problem{
				{Kind: "ProtectedResource", Name: "a", Reason: v1alpha1.ReasonInvalid, LeftOut: true},
				{Kind: "ProtectedResource", Name: "b", Reason: v1alpha1.ReasonInvalid, LeftOut: true},
				{Kind: "ProtectedResource", Name: "c", Reason: v1alpha1.ReasonInvalid, LeftOut: true},
				{Kind: "ProtectedResource", Name: "d", Reason: v1alpha1.ReasonInvalid, LeftOut: true},
				{Kind: "ProtectedResource", Name: "e", Reason: v1alpha1.ReasonInvalid, LeftOut: true},
			},
		},
		"Duplicates": {
			reason:  "both say so, and both count",
			objects: []any{protect(bobs, "Audit", as("a")), protect(bobs, "Enforce", as("b"))},
			want: []Problem{
				{Kind: "ProtectedResource", Name: "a", Reason: v1alpha1.ReasonDuplicate},
				{Kind: "ProtectedResource", Name: "b", Reason: v1alpha1.ReasonDuplicate},
			},
		},
		"Workloads": {
			reason:  "subjects that are none, and addresses that are none",
			objects: []any{workload("a", appHead+"app/*"), workload("b", bobs), workload("c", app888, "10.5.0.7/24", "10.5.0.0/24")},
			want: []Problem{
				{Kind: "ExternalWorkload", Name: "a", Reason: v1alpha1.ReasonInvalid, LeftOut: true},
				{Kind: "ExternalWorkload", Name: "b", Reason: v1alpha1.ReasonNoClass, LeftOut: true},
				{Kind: "ExternalWorkload", Name: "c", Reason: v1alpha1.ReasonInvalid},
			},
		},
		"Contested": {
			reason:  "one address for two subjects",
			objects: []any{workload("a", app888, "10.5.0.7"), workload("b", app889, "10.5.0.7/32")},
			want: []Problem{
				{Kind: "ExternalWorkload", Name: "a", Reason: v1alpha1.ReasonDuplicate},
				{Kind: "ExternalWorkload", Name: "b", Reason: v1alpha1.ReasonDuplicate},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := NewSnapshot(world(tc.objects...)).Problems()
			for _, p := range got {
				if p.Message.IsZero() {
					t.Errorf("%s: %+v says nothing", tc.reason, p)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Problem{}, "Message"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGrants(t *testing.T) {
	s := NewSnapshot(world(protect(bobs, v1alpha1.ModeEnforce), protect(shop, v1alpha1.ModeAudit),
		acp("p",
			statementOf("exact", Allow, app888, "redis:*", bobs, until(hours(9))),
			statementOf("later", Allow, app889, "redis:connect", bobs, from(hours(1))),
			statementOf("over", Allow, app889, "redis:connect", bobs, until(hours(0))),
			statementOf("wild", Allow, app889, "redis:connect", allRedis, alsoActions("web:connect")),
			statementOf("team", Allow, appHead+"app/*", "redis:admin", orders),
			statementOf("deny", Deny, "*", "web:connect", shop),
			statementOf("wilddeny", Deny, cidrHead+"10.5.0.0/24", "redis:connect", redisHead+"bobs-*"),
		)))
	grant := func(sid string, effect Effect, subject, resource string, counting, wild bool, actions ...string) Grant {
		return Grant{Ref: Ref{"p", sid}, Effect: effect, Subject: subject, Resource: resource, Actions: actions, Counting: counting, Wildcard: wild}
	}
	exact := grant("exact", Allow, app888, bobs, true, false, "redis:admin", "redis:connect")
	exact.NotAfter = hours(9).Time
	later := grant("later", Allow, app889, bobs, false, false, "redis:connect")
	later.NotBefore = hours(1).Time
	wild := grant("wild", Allow, app889, allRedis, true, true, "redis:connect")
	team := grant("team", Allow, appHead+"app/*", orders, false, false, "redis:admin")
	deny := grant("deny", Deny, "*", shop, false, false, "web:connect")
	wilddeny := grant("wilddeny", Deny, cidrHead+"10.5.0.0/24", redisHead+"bobs-*", true, true, "redis:connect")

	for _, tc := range []struct {
		reason    string
		got, want []Grant
	}{
		{"who can reach an enforced resource", s.WhoCanReach(bobs, noon), []Grant{exact, wild, later, wilddeny}},
		{"who can reach one that is not onboarded: exact allows do not count, wildcard allows do", s.WhoCanReach(orders, noon), []Grant{team, wild}},
		{"who can reach an audited one: a deny does not count", s.WhoCanReach(shop, noon), []Grant{deny}},
		{"what a subject can reach", s.WhatCanReach(app889, noon), []Grant{deny, team, wild, later}},
		{"what a range can reach", s.WhatCanReach(cidrHead+"10.5.0.0/24", noon), []Grant{deny, wilddeny}},
		{"nothing", s.WhoCanReach("trnv1:rsc:trip-com:x:y:z", noon), nil},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

func TestEffectiveMode(t *testing.T) {
	s := NewSnapshot(world(protect(bobs, v1alpha1.ModeEnforce, in("m1", v1alpha1.ModeObserve), auditUntil(hours(1))), protect(orders, v1alpha1.ModeAudit)))
	for _, tc := range []struct {
		reason, resource, cluster string
		at                        time.Time
		want                      v1alpha1.Mode
	}{
		{"base, in its temporary audit", bobs, "", noon, v1alpha1.ModeAudit},
		{"base, after it", bobs, "", hours(1).Time, v1alpha1.ModeEnforce},
		{"a member's own", bobs, "m1", hours(1).Time, v1alpha1.ModeObserve},
		{"a member without its own", bobs, "m2", hours(1).Time, v1alpha1.ModeEnforce},
		{"audit", orders, "m1", noon, v1alpha1.ModeAudit},
		{"not onboarded", shop, "m1", noon, v1alpha1.ModeObserve},
	} {
		if got := s.EffectiveMode(tc.resource, tc.cluster, tc.at); got != tc.want {
			t.Errorf("%s: EffectiveMode = %s, want %s", tc.reason, got, tc.want)
		}
	}
}
