package policy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

const (
	appHead   = "trnv1:rsc:trip-com:iam:sa:"
	app888    = appHead + "app/888"
	app889    = appHead + "app/889"
	teamApp   = appHead + "app/team-7"
	svcHead   = "trnv1:rsc:trip-com:mesh:svc:"
	cart      = svcHead + "cart"
	redisHead = "trnv1:rsc:trip-com:redis:clusters:"
	bobs      = redisHead + "bobs-cluster"
	orders    = redisHead + "orders-cache"
	allRedis  = redisHead + "*"
	webHead   = "trnv1:rsc:trip-com:web:sites:"
	shop      = webHead + "shop"
	cidrHead  = "trnv1:rsc:trip-com:net:cidr:"
)

// noon is the instant of most tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func hours(n int) *metav1.Time {
	t := metav1.NewTime(noon.Add(time.Duration(n) * time.Hour))
	return &t
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func port(n int32) v1alpha1.Port { return v1alpha1.Port{Port: n} }

func ports(first, last int32, proto v1alpha1.Protocol) v1alpha1.Port {
	return v1alpha1.Port{Port: first, EndPort: &last, Protocol: proto}
}

func redisClass() *v1alpha1.ResourceClass {
	return &v1alpha1.ResourceClass{ObjectMeta: named("redis"), Spec: v1alpha1.ResourceClassSpec{
		Pattern: allRedis, LabelKey: "com.trip/redis-cluster",
		Actions: []v1alpha1.ClassAction{
			{Name: "redis:connect", Ports: []v1alpha1.Port{port(6379)}},
			{Name: "redis:admin", Ports: []v1alpha1.Port{port(6380), ports(16379, 16381, v1alpha1.ProtocolTCP)}},
		},
	}}
}

func webClass() *v1alpha1.ResourceClass {
	return &v1alpha1.ResourceClass{ObjectMeta: named("web"), Spec: v1alpha1.ResourceClassSpec{
		Pattern: webHead + "*", LabelKey: "com.trip/site", OtherPorts: v1alpha1.OtherPortsAllow,
		Actions: []v1alpha1.ClassAction{
			{Name: "web:read", Ports: []v1alpha1.Port{port(80)}, HTTP: []v1alpha1.HTTPMatch{{Method: "GET|HEAD"}}},
			{Name: "web:orders", Ports: []v1alpha1.Port{port(80)}, HTTP: []v1alpha1.HTTPMatch{{Method: "POST", Path: "/orders(/.*)?"}}},
			{Name: "web:connect", Ports: []v1alpha1.Port{port(80)}},
		},
	}}
}

func appClass() *v1alpha1.SubjectClass {
	return &v1alpha1.SubjectClass{ObjectMeta: named("application"), Spec: v1alpha1.SubjectClassSpec{
		Pattern: appHead + "app/*", LabelKey: "com.trip/appid"}}
}

func svcClass() *v1alpha1.SubjectClass {
	return &v1alpha1.SubjectClass{ObjectMeta: named("service"), Spec: v1alpha1.SubjectClassSpec{
		Pattern: svcHead + "*", LabelKey: "com.trip/service"}}
}

func protect(resource string, mode v1alpha1.Mode, more ...func(*v1alpha1.ProtectedResource)) *v1alpha1.ProtectedResource {
	p := &v1alpha1.ProtectedResource{ObjectMeta: named(UnitID(resource)),
		Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(resource), Mode: mode}}
	for _, f := range more {
		f(p)
	}
	return p
}

func as(name string) func(*v1alpha1.ProtectedResource) {
	return func(p *v1alpha1.ProtectedResource) { p.Name = name }
}

func in(cluster string, mode v1alpha1.Mode) func(*v1alpha1.ProtectedResource) {
	return func(p *v1alpha1.ProtectedResource) {
		p.Spec.ClusterModes = append(p.Spec.ClusterModes, v1alpha1.ClusterMode{Cluster: v1alpha1.ClusterName(cluster), Mode: mode})
	}
}

func auditUntil(until *metav1.Time) func(*v1alpha1.ProtectedResource) {
	return func(p *v1alpha1.ProtectedResource) {
		p.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: *until, Reason: "outage", By: "dave"}
	}
}

func acp(name string, statements ...v1alpha1.Statement) *v1alpha1.AccessControlPolicy {
	return &v1alpha1.AccessControlPolicy{ObjectMeta: named(name), Spec: v1alpha1.AccessControlPolicySpec{Statements: statements}}
}

func statementOf(sid string, effect Effect, subject, action, resource string, more ...func(*v1alpha1.Statement)) v1alpha1.Statement {
	s := v1alpha1.Statement{SID: sid, Effect: effect, Subjects: []v1alpha1.Subject{v1alpha1.Subject(subject)},
		Actions: []v1alpha1.Action{v1alpha1.Action(action)}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)}}
	for _, f := range more {
		f(&s)
	}
	return s
}

func from(t *metav1.Time) func(*v1alpha1.Statement) {
	return func(s *v1alpha1.Statement) { s.NotBefore = t }
}

func until(t *metav1.Time) func(*v1alpha1.Statement) {
	return func(s *v1alpha1.Statement) { s.NotAfter = t }
}

func alsoSubjects(names ...string) func(*v1alpha1.Statement) {
	return func(s *v1alpha1.Statement) {
		for _, n := range names {
			s.Subjects = append(s.Subjects, v1alpha1.Subject(n))
		}
	}
}

func alsoResources(names ...string) func(*v1alpha1.Statement) {
	return func(s *v1alpha1.Statement) {
		for _, n := range names {
			s.Resources = append(s.Resources, v1alpha1.ResourceName(n))
		}
	}
}

func alsoActions(names ...string) func(*v1alpha1.Statement) {
	return func(s *v1alpha1.Statement) {
		for _, n := range names {
			s.Actions = append(s.Actions, v1alpha1.Action(n))
		}
	}
}

func workload(name, subject string, addresses ...string) *v1alpha1.ExternalWorkload {
	return &v1alpha1.ExternalWorkload{ObjectMeta: named(name),
		Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(subject), Addresses: addresses}}
}

// world is an Input with the usual classes.
func world(parts ...any) Input {
	in := Input{ResourceClasses: []*v1alpha1.ResourceClass{redisClass(), webClass()}, SubjectClasses: []*v1alpha1.SubjectClass{appClass(), svcClass()}}
	for _, p := range parts {
		switch p := p.(type) {
		case *v1alpha1.AccessControlPolicy:
			in.Policies = append(in.Policies, p)
		case *v1alpha1.ProtectedResource:
			in.Resources = append(in.Resources, p)
		case *v1alpha1.ExternalWorkload:
			in.Workloads = append(in.Workloads, p)
		case known:
			in.KnownNames = append(in.KnownNames, p...)
		case v1alpha1.Statement:
			in.Policies = append(in.Policies, acp("p-"+p.SID, p))
		case *v1alpha1.ResourceClass:
			in.ResourceClasses = append(in.ResourceClasses, p)
		case *v1alpha1.SubjectClass:
			in.SubjectClasses = append(in.SubjectClasses, p)
		}
	}
	return in
}
