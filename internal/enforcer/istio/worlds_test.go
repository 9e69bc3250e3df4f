package istio

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

const (
	apps  = "trnv1:rsc:trip-com:iam:sa:app/"
	svcs  = "trnv1:rsc:trip-com:mesh:svc:"
	redis = "trnv1:rsc:trip-com:redis:clusters:"
	sites = "trnv1:rsc:trip-com:web:sites:"
	cidr  = "trnv1:rsc:trip-com:net:cidr:"
)

// goldenTime is the instant of every test.
var goldenTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// The members of the tests: m1 sees requests, m2 connections only, m3 nothing; m1 requires mutual TLS.
func testConfig() Config {
	return Config{
		Default: Capabilities{Dataplane: Sidecar, Version: "1.31.0", Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/14")}},
		Members: map[string]Capabilities{
			"m1": {Dataplane: Sidecar, Version: "1.30.1", StrictMTLS: true, Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}},
			"m2": {Dataplane: Ambient, Version: "1.29", Ranges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/16")}},
			"m3": {Dataplane: Sidecar, Version: "1.28.9", Ranges: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")}},
		},
	}
}

type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func several[T comparable](d dice, most int, from ...T) []T {
	var out []T
	for range 1 + d.IntN(most) {
		if v := pick(d, from...); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (d dice) time() *metav1.Time {
	if d.IntN(4) > 0 {
		return nil
	}
	t := metav1.NewTime(goldenTime.Add(time.Duration(d.IntN(3)-1) * time.Hour))
	return &t
}

func port(n int32) v1alpha1.Port { return v1alpha1.Port{Port: n} }

// world is random objects. plain ones have nothing that Istio has to refuse.
func (d dice) world(plain bool) policy.Input {
	last := int32(16381)
	redisActions := []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{port(6379)}},
		{Name: "redis:admin", Ports: []v1alpha1.Port{port(6380), port(80)}}}
	webActions := []v1alpha1.ClassAction{
		{Name: "web:connect", Ports: []v1alpha1.Port{port(80)}},
		{Name: "web:read", Ports: []v1alpha1.Port{port(8080)}, HTTP: []v1alpha1.HTTPMatch{{Method: "GET|HEAD"}}},
		{
			Name:  "web:orders",
			Ports: []v1alpha1.Port{port(8080), port(80)},
			HTTP:  []v1alpha1.HTTPMatch{{Method: "POST", Path: "/orders(/.*)?"}, {Path: ".*\\.css"}},
		},
	}
	appTemplate, svcTemplate := "app-{id}", "svc-{id}"
	if !plain && d.IntN(2) == 0 {
		redisActions = append(redisActions,
			v1alpha1.ClassAction{Name: "redis:range", Ports: []v1alpha1.Port{port(6379), {Port: 16380, EndPort: &last}}},
			v1alpha1.ClassAction{Name: "redis:udp", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolUDP}, port(6380)}})
		webActions = append(webActions, v1alpha1.ClassAction{Name: "web:odd", Ports: []v1alpha1.Port{port(8080)}, HTTP: []v1alpha1.HTTPMatch{{Path: "/a.+b"}}})
		svcTemplate = pick(d, svcTemplate, "")
	}
	resource := func(name, pattern, key string, other v1alpha1.OtherPorts, actions []v1alpha1.ClassAction) *v1alpha1.ResourceClass {
		return &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ResourceClassSpec{
			Pattern: v1alpha1.NamePattern(pattern), LabelKey: v1alpha1.LabelKey(key), OtherPorts: other, Actions: actions,
			Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}}}
	}
	subject := func(name, pattern, key, template string) *v1alpha1.SubjectClass {
		return &v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubjectClassSpec{
			Pattern: v1alpha1.NamePattern(pattern), LabelKey: v1alpha1.LabelKey(key), ServiceAccountTemplate: template}}
	}
	in := policy.Input{
		SubjectClasses: []*v1alpha1.SubjectClass{
			subject("application", apps+"*", "com.trip/appid", appTemplate),
			subject("service", svcs+"*", "com.trip/service", svcTemplate),
		},
		ResourceClasses: []*v1alpha1.ResourceClass{resource("redis", redis+"*", "com.trip/redis-cluster", v1alpha1.OtherPortsDeny, redisActions)},
	}
	in.KnownNames = []string{apps + "888", apps + "889", apps + "8889", svcs + "cart", svcs + "888"}
	if d.IntN(4) == 0 { // alone, so that its other ports can be open
		in.ResourceClasses = nil
	}
	other := v1alpha1.OtherPortsDeny
	if !plain || in.ResourceClasses == nil {
		other = pick(d, v1alpha1.OtherPortsDeny, v1alpha1.OtherPortsAllow)
	}
	in.ResourceClasses = append(in.ResourceClasses, resource("web", sites+"*", "com.trip/site", other, webActions))
	for i, name := range []string{redis + "bobs-cluster", redis + "orders-cache", sites + "shop"} {
		r := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", i)},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(name), Mode: d.mode()}}
		for _, c := range []string{"m1", "m2"} {
			if d.IntN(4) == 0 {
				r.Spec.ClusterModes = append(r.Spec.ClusterModes, v1alpha1.ClusterMode{Cluster: v1alpha1.ClusterName(c), Mode: d.mode()})
			}
		}
		if t := d.time(); t != nil {
			r.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: *t}
		}
		in.Resources = append(in.Resources, r)
	}
	for i := range d.IntN(4) {
		in.Workloads = append(in.Workloads, &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("w", i)},
			Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(pick(d, apps+"888", apps+"889", svcs+"cart")),
				Addresses: several(d, 2, "10.5.0.0/24", "10.5.0.0/16", "10.5.0.9", "2001:db8::/32", "2001:db8::/48")}})
	}
	for i := range 1 + d.IntN(3) {
		p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}}
		for j := range 1 + d.IntN(4) {
			p.Spec.Statements = append(p.Spec.Statements, d.statement(fmt.Sprint("s", j), plain))
		}
		in.Policies = append(in.Policies, p)
	}
	return in
}

func (d dice) mode() v1alpha1.Mode {
	return pick(d, v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce)
}

func (d dice) statement(sid string, plain bool) v1alpha1.Statement {
	st := v1alpha1.Statement{SID: sid, Effect: pick(d, policy.Allow, policy.Allow, policy.Deny), NotBefore: d.time(), NotAfter: d.time()}
	subjects := []v1alpha1.Subject{
		apps + "888",
		apps + "888",
		apps + "889",
		svcs + "cart",
		svcs + "888",
		"*",
		cidr + "10.5.0.0/24",
		cidr + "10.5.0.0/16",
		cidr + "2001:db8::/32",
	}
	actions := []v1alpha1.Action{"redis:connect", "redis:admin"}
	if d.IntN(2) == 0 {
		actions = []v1alpha1.Action{"web:connect", "web:read", "web:orders", "web:*"}
	}
	if st.Effect == policy.Allow {
		subjects = append(subjects, apps+"88*")
	}
	resources := []v1alpha1.ResourceName{redis + "bobs-cluster", redis + "orders-cache", redis + "*", redis + "bobs-*"}
	if strings.HasPrefix(string(actions[0]), "web:") {
		resources = []v1alpha1.ResourceName{sites + "shop", sites + "shop", sites + "*"}
	}
	if !plain && d.IntN(3) == 0 {
		subjects = append(subjects, apps+"*", apps+"88*", apps+"Not_An_Account", cidr+"10.0.0.0/8", cidr+"0.0.0.0/0", "trnv1:rsc:trip-com:no:class:x")
		if strings.HasPrefix(string(actions[0]), "redis:") {
			actions = append(actions, "redis:range", "redis:udp", "redis:*", "redis:none")
		} else {
			actions = append(actions, "web:odd")
		}
	}
	st.Subjects, st.Actions, st.Resources = several(d, 2, subjects...), several(d, 2, actions...), several(d, 2, resources...)
	return st
}
