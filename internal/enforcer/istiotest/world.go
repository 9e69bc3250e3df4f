package istiotest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// These are the beginnings of the names of the worlds.
const (
	AppHead   = "trnv1:rsc:trip-com:iam:sa:app/"
	SvcHead   = "trnv1:rsc:trip-com:mesh:svc:"
	RedisHead = "trnv1:rsc:trip-com:redis:clusters:"
	SiteHead  = "trnv1:rsc:trip-com:web:sites:"
	CIDRHead  = "trnv1:rsc:trip-com:net:cidr:"
)

// Noon is the time of every world.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Generator generates random worlds, and connections in them. The same seed gives the same ones.
type Generator struct {
	*rand.Rand
	// Suffix ends the names of the world's resources, so that the objects of several worlds can be in one member.
	Suffix string
}

// NewGenerator returns the generator of a seed. Streams are independent sequences of one seed.
func NewGenerator(seed, stream uint64) Generator {
	return Generator{Rand: rand.New(rand.NewPCG(seed, stream))}
}

// Pick returns one of the values.
func Pick[T any](d Generator, from ...T) T { return from[d.IntN(len(from))] }

// Several returns one to most different values.
func Several[T comparable](d Generator, most int, from ...T) []T {
	var out []T
	for range 1 + d.IntN(most) {
		if v := Pick(d, from...); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (d Generator) time() *metav1.Time {
	if d.IntN(4) > 0 {
		return nil
	}
	t := metav1.NewTime(Noon.Add(time.Duration(d.IntN(3)-1) * time.Hour))
	return &t
}

func port(n int32) v1alpha1.Port { return v1alpha1.Port{Port: n} }

// World returns the objects of a random world. In a plain one, Istio has to refuse nothing.
func (d Generator) World(plain bool) policy.Input {
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
		svcTemplate = Pick(d, svcTemplate, "")
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
			subject("application", AppHead+"*", "com.trip/appid", appTemplate),
			subject("service", SvcHead+"*", "com.trip/service", svcTemplate),
		},
		ResourceClasses: []*v1alpha1.ResourceClass{resource("redis", RedisHead+"*", "com.trip/redis-cluster", v1alpha1.OtherPortsDeny, redisActions)},
	}
	in.KnownNames = []string{AppHead + "888", AppHead + "889", AppHead + "8889", SvcHead + "cart", SvcHead + "888"}
	if d.IntN(4) == 0 { // alone, so that its other ports can be open
		in.ResourceClasses = nil
	}
	other := v1alpha1.OtherPortsDeny
	if !plain || in.ResourceClasses == nil {
		other = Pick(d, v1alpha1.OtherPortsDeny, v1alpha1.OtherPortsAllow)
	}
	in.ResourceClasses = append(in.ResourceClasses, resource("web", SiteHead+"*", "com.trip/site", other, webActions))
	for i, name := range []string{RedisHead + "bobs-cluster" + d.Suffix, RedisHead + "orders-cache" + d.Suffix, SiteHead + "shop" + d.Suffix} {
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
			Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(Pick(d, AppHead+"888", AppHead+"889", SvcHead+"cart")),
				Addresses: Several(d, 2, "10.5.0.0/24", "10.5.0.0/16", "10.5.0.9", "2001:db8::/32", "2001:db8::/48")}})
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

func (d Generator) mode() v1alpha1.Mode {
	return Pick(d, v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce)
}

func (d Generator) statement(sid string, plain bool) v1alpha1.Statement {
	st := v1alpha1.Statement{SID: sid, Effect: Pick(d, policy.Allow, policy.Allow, policy.Deny), NotBefore: d.time(), NotAfter: d.time()}
	subjects := []v1alpha1.Subject{
		AppHead + "888",
		AppHead + "888",
		AppHead + "889",
		SvcHead + "cart",
		SvcHead + "888",
		"*",
		CIDRHead + "10.5.0.0/24",
		CIDRHead + "10.5.0.0/16",
		CIDRHead + "2001:db8::/32",
	}
	actions := []v1alpha1.Action{"redis:connect", "redis:admin"}
	if d.IntN(2) == 0 {
		actions = []v1alpha1.Action{"web:connect", "web:read", "web:orders", "web:*"}
	}
	if st.Effect == policy.Allow {
		subjects = append(subjects, AppHead+"88*")
	}
	suffix := v1alpha1.ResourceName(d.Suffix)
	resources := []v1alpha1.ResourceName{RedisHead + "bobs-cluster" + suffix, RedisHead + "orders-cache" + suffix, RedisHead + "*", RedisHead + "bobs-*"}
	if strings.HasPrefix(string(actions[0]), "web:") {
		resources = []v1alpha1.ResourceName{SiteHead + "shop" + suffix, SiteHead + "shop" + suffix, SiteHead + "*", SiteHead + "sh*"}
	}
	if !plain && d.IntN(3) == 0 {
		subjects = append(
			subjects,
			AppHead+"*",
			AppHead+"88*",
			AppHead+"Not_An_Account",
			CIDRHead+"10.0.0.0/8",
			CIDRHead+"0.0.0.0/0",
			"trnv1:rsc:trip-com:no:class:x",
		)
		if strings.HasPrefix(string(actions[0]), "redis:") {
			actions = append(actions, "redis:range", "redis:udp", "redis:*", "redis:none")
		} else {
			actions = append(actions, "web:odd")
		}
	}
	st.Subjects, st.Actions, st.Resources = Several(d, 2, subjects...), Several(d, 2, actions...), Several(d, 2, resources...)
	return st
}
