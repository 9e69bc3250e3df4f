package ciliumtest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// The heads of the names in all random worlds, and the keys of labels. There are only a few, so that matches, overlaps and conflicts are common.
const (
	AppHead   = "trnv1:rsc:trip-com:iam:sa:app/"
	SvcHead   = "trnv1:rsc:trip-com:mesh:svc:"
	CIDRHead  = "trnv1:rsc:trip-com:net:cidr:"
	RedisHead = "trnv1:rsc:trip-com:redis:clusters:"
	WebHead   = "trnv1:rsc:trip-com:web:sites:"
	DNSHead   = "trnv1:rsc:trip-com:dns:zones:"

	// unclassedSubject is in no SubjectClass: statements that name it are refused, and its addresses have no owner.
	unclassedSubject = "trnv1:rsc:trip-com:nobody:x:y"

	AppKey   = "com.trip/appid"
	SvcKey   = "com.trip/service"
	RedisKey = "com.trip/redis-cluster"
	WebKey   = "com.trip/site"
	DNSKey   = "com.trip/zone"
)

// The values of the names in statements and labels.
var (
	Apps  = []string{"888", "889", "team-7"}
	Svcs  = []string{"cart", "pay"}
	Redis = []string{"bobs-cluster", "bobs-2", "orders"}
	Sites = []string{"shop", "blog"}
	Zones = []string{"corp"}
)

func port(n int32, proto v1alpha1.Protocol) v1alpha1.Port {
	return v1alpha1.Port{Port: n, Protocol: proto}
}

func ports(first, last int32, proto v1alpha1.Protocol) v1alpha1.Port {
	return v1alpha1.Port{Port: first, EndPort: &last, Protocol: proto}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func resourceClass(name, head, key string, other v1alpha1.OtherPorts, actions ...v1alpha1.ClassAction) *v1alpha1.ResourceClass {
	return &v1alpha1.ResourceClass{ObjectMeta: named(name), Spec: v1alpha1.ResourceClassSpec{
		Pattern: v1alpha1.NamePattern(head + "*"), LabelKey: v1alpha1.LabelKey(key), OtherPorts: other, Actions: actions}}
}

// resourceClasses returns classes with common ports, because a pod may be of several classes. One has HTTP actions.
func resourceClasses() []*v1alpha1.ResourceClass {
	return []*v1alpha1.ResourceClass{
		resourceClass("redis", RedisHead, RedisKey, v1alpha1.OtherPortsDeny,
			v1alpha1.ClassAction{Name: "redis:connect", Ports: []v1alpha1.Port{port(6379, "")}},
			v1alpha1.ClassAction{Name: "redis:admin", Ports: []v1alpha1.Port{port(6380, "TCP"), ports(16379, 16381, "TCP"), port(6379, "UDP")}},
			v1alpha1.ClassAction{Name: "redis:bus", Ports: []v1alpha1.Port{ports(5000, 5010, "SCTP")}}),
		resourceClass(
			"web",
			WebHead,
			WebKey,
			v1alpha1.OtherPortsAllow,
			v1alpha1.ClassAction{Name: "web:connect", Ports: []v1alpha1.Port{port(80, "")}},
			v1alpha1.ClassAction{Name: "web:debug", Ports: []v1alpha1.Port{ports(6379, 6400, "TCP")}},
			v1alpha1.ClassAction{Name: "web:read", Ports: []v1alpha1.Port{port(8080, "")}, HTTP: []v1alpha1.HTTPMatch{{Method: "GET|HEAD"}}},
			v1alpha1.ClassAction{
				Name:  "web:orders",
				Ports: []v1alpha1.Port{port(8080, "")},
				HTTP:  []v1alpha1.HTTPMatch{{Method: "POST", Path: "/orders(/.*)?"}},
			},
			v1alpha1.ClassAction{Name: "web:all", Ports: []v1alpha1.Port{port(8080, "")}},
		),
		resourceClass("dns", DNSHead, DNSKey, v1alpha1.OtherPortsAllow,
			v1alpha1.ClassAction{Name: "dns:query", Ports: []v1alpha1.Port{port(53, "UDP"), port(53, "TCP")}},
			v1alpha1.ClassAction{Name: "dns:low", Ports: everyOther(7000, 30)},
			v1alpha1.ClassAction{Name: "dns:high", Ports: everyOther(7060, 30)}),
	}
}

// everyOther returns ports that cannot be joined to ranges, so that two actions are more than one list of Cilium holds.
func everyOther(first int32, n int) []v1alpha1.Port {
	out := make([]v1alpha1.Port, n)
	for i := range out {
		out[i] = port(first+2*int32(i), "TCP") //nolint:gosec // a few dozen
	}
	return out
}

func subjectClasses() []*v1alpha1.SubjectClass {
	class := func(name, head, key string) *v1alpha1.SubjectClass {
		return &v1alpha1.SubjectClass{ObjectMeta: named(name), Spec: v1alpha1.SubjectClassSpec{
			Pattern: v1alpha1.NamePattern(head + "*"), LabelKey: v1alpha1.LabelKey(key)}}
	}
	return []*v1alpha1.SubjectClass{class("application", AppHead, AppKey), class("service", SvcHead, SvcKey)}
}
