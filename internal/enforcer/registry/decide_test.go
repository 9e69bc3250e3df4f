package registry

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

const (
	decideApps  = "trnv1:rsc:o:iam:sa:app/"
	decideUsers = "trnv1:rsc:o:iam:user:"
	decideRedis = "trnv1:rsc:o:redis:clusters:"
	decideSites = "trnv1:rsc:o:web:sites:"
)

// decideFleet are m1 with sidecars, m2 in ambient, m3 without Istio.
func decideFleet() policy.Fleet {
	report := func(name, declares string) *v1alpha1.MemberCluster {
		return &v1alpha1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Istio: declares},
		}
	}
	return FleetOf([]*v1alpha1.MemberCluster{
		report("m1", `{"dataplane": "sidecar", "version": "1.31.2", "strictMTLS": true}`),
		report("m2", `{"dataplane": "ambient", "version": "1.31.2", "strictMTLS": true}`),
		report("m3", ""),
	})
}

func decideStatement(sid string, effect v1alpha1.Effect, subject, action, resource string) v1alpha1.Statement {
	return v1alpha1.Statement{
		SID:       sid,
		Effect:    effect,
		Subjects:  []v1alpha1.Subject{v1alpha1.Subject(subject)},
		Actions:   []v1alpha1.Action{v1alpha1.Action(action)},
		Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)},
	}
}

// decideWorld has a redis of Istio's class and a site of Cilium's or of both, in Enforce.
func decideWorld(redis, sites []v1alpha1.EnforcerName, statements ...v1alpha1.Statement) *policy.Snapshot {
	class := func(name, pattern, key string, enforcers []v1alpha1.EnforcerName, actions ...v1alpha1.ClassAction) *v1alpha1.ResourceClass {
		return &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ResourceClassSpec{Pattern: v1alpha1.NamePattern(pattern),
			LabelKey: v1alpha1.LabelKey(key), Enforcers: enforcers, Actions: actions, Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}}
	}
	opening := func(c *v1alpha1.ResourceClass) *v1alpha1.ResourceClass {
		c.Spec.OtherPorts = v1alpha1.OtherPortsAllow
		return c
	}
	enforce := func(name, resource string) *v1alpha1.ProtectedResource {
		return &v1alpha1.ProtectedResource{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(resource), Mode: v1alpha1.ModeEnforce},
		}
	}
	port := func(p int32, protocol v1alpha1.Protocol) []v1alpha1.Port {
		return []v1alpha1.Port{{Port: p, Protocol: protocol}}
	}
	return policy.NewSnapshot(policy.NewInput(policy.Objects{
		ResourceClasses: []*v1alpha1.ResourceClass{
			class(
				"redis",
				decideRedis+"*",
				"example.com/redis",
				redis,
				v1alpha1.ClassAction{Name: "redis:connect", Ports: port(6379, "TCP")},
				v1alpha1.ClassAction{Name: "redis:gossip", Ports: port(7946, "UDP")},
				v1alpha1.ClassAction{Name: "redis:read", Ports: port(8080, "TCP"), HTTP: []v1alpha1.HTTPMatch{{Method: "GET"}}},
			),
			opening(class("sites", decideSites+"*", "example.com/site", sites, v1alpha1.ClassAction{Name: "web:connect", Ports: port(6379, "TCP")})),
		},
		SubjectClasses: []*v1alpha1.SubjectClass{
			{
				ObjectMeta: metav1.ObjectMeta{Name: "apps"},
				Spec:       v1alpha1.SubjectClassSpec{Pattern: decideApps + "*", LabelKey: "example.com/app", ServiceAccountTemplate: "app-{id}"},
			},
			{ObjectMeta: metav1.ObjectMeta{Name: "users"}, Spec: v1alpha1.SubjectClassSpec{Pattern: decideUsers + "*", LabelKey: "example.com/user"}},
		},
		Resources: []*v1alpha1.ProtectedResource{enforce("bobs", decideRedis+"bobs"), enforce("shop", decideSites+"shop")},
		Policies:  []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: statements}}},
	}, decideFleet()))
}

// TestDecideByEnforcers checks that a decision by what the members have is that of the strictest enforcer of the resources.
func TestDecideByEnforcers(t *testing.T) {
	istioOnly, both, ciliumOnly := []v1alpha1.EnforcerName{"istio"}, []v1alpha1.EnforcerName{"cilium", "istio"}, []v1alpha1.EnforcerName{"cilium"}
	app := decideStatement("app", policy.Allow, decideApps+"1", "redis:connect", decideRedis+"bobs")
	user := decideStatement("user", policy.Allow, decideUsers+"bob", "redis:connect", decideRedis+"bobs")
	for name, tc := range map[string]struct {
		reason        string
		redis, sites  []v1alpha1.EnforcerName
		statement     []v1alpha1.Statement
		cluster       string
		subject       string
		resources     []string
		port          uint16
		protocol      v1alpha1.Protocol
		want, written policy.Verdict
		// leftOut are the reasons, and why is a part of their explanation.
		leftOut []string
		why     string
	}{
		"Rendered": {
			reason: "the sidecars know the application", redis: istioOnly,
			statement: []v1alpha1.Statement{app}, cluster: "m1", subject: decideApps + "1",
			want: policy.Allowed, written: policy.Allowed,
		},
		"NoTemplate": {
			reason: "Istio has no name for users", redis: istioOnly, statement: []v1alpha1.Statement{user}, cluster: "m1",
			subject: decideUsers + "bob",
			want:    policy.DefaultDenied, written: policy.Allowed, leftOut: []string{"Unsupported"}, why: "serviceAccountTemplate",
		},
		"NoTemplateBoth": {
			reason: "Cilium would let it in, and it has to get through both", redis: both, statement: []v1alpha1.Statement{user},
			cluster: "m1", subject: decideUsers + "bob",
			want: policy.DefaultDenied, written: policy.Allowed, leftOut: []string{"Unsupported"}, why: "serviceAccountTemplate",
		},
		"NoTemplateNone": {
			reason: "Cilium alone knows users", redis: ciliumOnly,
			statement: []v1alpha1.Statement{user}, cluster: "m1", subject: decideUsers + "bob",
			want: policy.Allowed, written: policy.Allowed,
		},
		"NoIstio": {
			reason: "the member declares nothing", redis: istioOnly, statement: []v1alpha1.Statement{app}, cluster: "m3",
			subject: decideApps + "1",
			want:    policy.DefaultDenied, written: policy.Allowed, leftOut: []string{"Unsupported"}, why: "declares no Istio",
		},
		"NoMemberNamed": {
			reason: "the members differ, and the first one can express it", redis: istioOnly,
			statement: []v1alpha1.Statement{app}, subject: decideApps + "1",
			want: policy.Allowed, written: policy.Allowed,
		},
		"Requests": {reason: "ambient sees no requests", redis: istioOnly,
			statement: []v1alpha1.Statement{decideStatement("read", policy.Allow, decideApps+"1", "redis:read", decideRedis+"bobs")},
			cluster:   "m2", subject: decideApps + "1", port: 8080,
			want: policy.DefaultDenied, written: policy.Allowed, leftOut: []string{"Unsupported"}, why: "ambient"},
		"RequestsDenied": {reason: "Istio enforces a deny of requests, which Cilium would refuse",
			redis: istioOnly, cluster: "m1", subject: decideApps + "1", port: 8080,
			statement: []v1alpha1.Statement{
				decideStatement("read", policy.Allow, decideApps+"1", "redis:read", decideRedis+"bobs"),
				decideStatement("no", policy.Deny, decideApps+"2", "redis:read", decideRedis+"bobs"),
			},
			want: policy.Allowed, written: policy.Allowed},
		"OneOfSeveral": {reason: "a statement goes as a whole", redis: istioOnly,
			statement: []v1alpha1.Statement{decideStatement("all", policy.Allow, decideApps+"1", "redis:*", decideRedis+"bobs")},
			cluster:   "m1", subject: decideApps + "1",
			want: policy.DefaultDenied, written: policy.Allowed, leftOut: []string{"Unsupported"}, why: "does not enforce UDP"},
		"UDP": {
			reason: "Istio refuses no UDP", redis: istioOnly, statement: []v1alpha1.Statement{app},
			cluster: "m1", subject: decideApps + "1", port: 7946, protocol: "UDP",
			want: policy.Unmanaged, written: policy.DefaultDenied,
		},
		"UDPAllowed": {
			reason: "and has no allow of it", redis: istioOnly,
			statement: []v1alpha1.Statement{decideStatement("gossip", policy.Allow, decideApps+"1", "redis:gossip", decideRedis+"bobs")},
			cluster:   "m1", subject: decideApps + "1", port: 7946, protocol: "UDP",
			want: policy.Unmanaged, written: policy.Allowed, leftOut: []string{"Unsupported"}, why: "stays open",
		},
		"UDPBoth": {
			reason: "Cilium does", redis: both, statement: []v1alpha1.Statement{app},
			cluster: "m1", subject: decideApps + "1", port: 7946, protocol: "UDP",
			want: policy.DefaultDenied, written: policy.DefaultDenied,
		},
		"RefusedDeny": {reason: "a deny that Istio refuses takes the allows with it", redis: istioOnly, cluster: "m1", subject: decideApps + "1",
			statement: []v1alpha1.Statement{
				decideStatement("anyone", policy.Allow, "*", "redis:connect", decideRedis+"bobs"),
				decideStatement("no", policy.Deny, decideUsers+"bob", "redis:connect", decideRedis+"bobs"),
			},
			want: policy.DefaultDenied, written: policy.Allowed, leftOut: []string{v1alpha1.RefusedShadowingDeny}, why: "p/no"},
		"RefusedDenyOfBoth": {reason: "Cilium enforces the deny that Istio refuses", redis: both, cluster: "m1", subject: decideUsers + "bob",
			statement: []v1alpha1.Statement{
				decideStatement("anyone", policy.Allow, "*", "redis:connect", decideRedis+"bobs"),
				decideStatement("no", policy.Deny, decideUsers+"bob", "redis:connect", decideRedis+"bobs"),
			},
			want: policy.Denied, written: policy.Denied},
		"TwoDataplanes": {reason: "the allow is in Cilium's policy, and Istio closes the other resource", redis: istioOnly,
			sites: ciliumOnly, cluster: "m1", subject: decideApps + "1", resources: []string{decideRedis + "bobs", decideSites + "shop"},
			statement: []v1alpha1.Statement{decideStatement("web", policy.Allow, decideApps+"1", "web:connect", decideSites+"shop")},
			want:      policy.DefaultDenied, written: policy.Allowed,
			leftOut: []string{policy.LeftOutOtherEnforcer}, why: "istio does not enforce"},
		"TwoAllows": {reason: "each dataplane lets it in", redis: istioOnly, sites: ciliumOnly, cluster: "m1",
			subject: decideApps + "1", resources: []string{decideRedis + "bobs", decideSites + "shop"},
			statement: []v1alpha1.Statement{decideStatement("web", policy.Allow, decideApps+"1", "web:connect", decideSites+"shop"), app},
			want:      policy.Allowed, written: policy.Allowed},
		"OtherPortsOfTwo": {reason: "Cilium opens other ports only of workloads of one class",
			redis: istioOnly, sites: ciliumOnly, cluster: "m1", subject: decideApps + "1",
			resources: []string{decideRedis + "bobs", decideSites + "shop"}, port: 7946, protocol: "UDP",
			want: policy.DefaultDenied, written: policy.DefaultDenied},
	} {
		t.Run(name, func(t *testing.T) {
			s := decideWorld(tc.redis, tc.sites, tc.statement...)
			q := policy.Query{
				Subjects:  []string{tc.subject},
				Resources: tc.resources,
				Cluster:   tc.cluster,
				Protocol:  tc.protocol,
				Port:      tc.port,
				At:        time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
			}
			if q.Resources == nil {
				q.Resources = []string{decideRedis + "bobs"}
			}
			if q.Port == 0 {
				q.Port = 6379
			}
			if q.Protocol == "" {
				q.Protocol = v1alpha1.ProtocolTCP
			}
			got := s.DecideEffective(&q)
			var leftOut []string
			for _, r := range got.LeftOut {
				leftOut = append(leftOut, r.Reason)
			}
			if got.Verdict != tc.want || got.Written.Verdict != tc.written || !slices.Equal(leftOut, tc.leftOut) ||
				!strings.Contains(got.Explain().Text, tc.why) {
				t.Errorf("%s: %s of %s, left out %v: %s", tc.reason, got.Verdict, got.Written.Verdict, leftOut, got.Explain())
			}
			if into, enforced := s.EffectiveInto(&q, nil), s.EffectiveEnforced(&q, nil); into.Verdict != tc.want || enforced.Verdict != tc.want {
				t.Errorf("%s: EffectiveInto says %s, EffectiveEnforced %s, want %s", tc.reason, into.Verdict, enforced.Verdict, tc.want)
			}
		})
	}
}

// TestRefusalsAreThoseOfTheEnforcers checks that what only Cilium refuses is reported only where Cilium enforces a class of
// the statement, and that it is then also decided so.
func TestRefusalsAreThoseOfTheEnforcers(t *testing.T) {
	istioOnly, both, ciliumOnly := []v1alpha1.EnforcerName{"istio"}, []v1alpha1.EnforcerName{"cilium", "istio"}, []v1alpha1.EnforcerName{"cilium"}
	allow := decideStatement("all", policy.Allow, decideApps+"*", "redis:connect", decideRedis+"bobs")
	requests := decideStatement("requests", policy.Deny, decideApps+"1", "redis:read", decideRedis+"bobs")
	prefix := decideStatement("prefix", policy.Deny, decideApps+"1*", "redis:connect", decideRedis+"bobs")
	unknown := decideStatement("unknown", policy.Deny, "trnv1:rsc:o:iam:team:blue", "redis:connect", decideRedis+"bobs")
	wildcard := decideStatement("wildcard", policy.Allow, decideApps+"1", "redis:read", decideRedis+"*")
	mixed := decideStatement("mixed", policy.Deny, decideApps+"1*", "redis:connect", decideRedis+"bobs")
	mixed.Actions, mixed.Resources = append(mixed.Actions, "web:connect"), append(mixed.Resources, decideSites+"shop")
	for name, tc := range map[string]struct {
		reason       string
		redis, sites []v1alpha1.EnforcerName
		statement    v1alpha1.Statement
		// whole are refused in all units, bobs and shop in the units of these resources, each as its sid with the reason.
		whole, bobs, shop []string
	}{
		"Requests":       {"Istio denies requests", istioOnly, ciliumOnly, requests, nil, nil, nil},
		"RequestsCilium": {"Cilium cannot", ciliumOnly, ciliumOnly, requests, []string{"requests Unsupported"}, []string{"requests Unsupported"}, nil},
		"RequestsBoth": {
			"Cilium cannot, and the class needs both", both, ciliumOnly, requests,
			[]string{"requests Unsupported"}, []string{"requests Unsupported"}, nil,
		},
		"Wildcard":       {"Istio allows requests of a wildcard", istioOnly, ciliumOnly, wildcard, nil, nil, nil},
		"WildcardCilium": {"Cilium cannot", ciliumOnly, ciliumOnly, wildcard, []string{"wildcard Unsupported"}, nil, nil},
		"WildcardBoth":   {"Cilium cannot, and the class needs both", both, ciliumOnly, wildcard, []string{"wildcard Unsupported"}, nil, nil},
		"Prefix":         {"Istio denies by prefix", istioOnly, ciliumOnly, prefix, nil, nil, nil},
		"PrefixCilium": {
			"Cilium would miss names, and the allow might be overridden", ciliumOnly, ciliumOnly, prefix,
			[]string{"prefix Unsupported"}, []string{"all " + v1alpha1.RefusedShadowingDeny, "prefix Unsupported"}, nil,
		},
		"Mixed": {"Cilium refuses it for its own class alone", istioOnly, ciliumOnly, mixed, []string{"mixed Unsupported"}, nil, []string{"mixed Unsupported"}},
		"Unknown": {
			"nobody knows whom it denies", istioOnly, ciliumOnly, unknown, []string{"unknown " + v1alpha1.RefusedUnknownSubject},
			[]string{"all " + v1alpha1.RefusedShadowingDeny, "unknown " + v1alpha1.RefusedUnknownSubject}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := decideWorld(tc.redis, tc.sites, allow, tc.statement)
			at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			list := func(refusals []policy.Refusal) (out []string) {
				for _, r := range refusals {
					out = append(out, r.Ref.SID+" "+r.Reason)
				}
				slices.Sort(out)
				return out
			}
			if got := list(s.Refusals()); !slices.Equal(got, tc.whole) {
				t.Errorf("%s: no unit has %v, want %v", tc.reason, got, tc.whole)
			}
			for resource, want := range map[string][]string{decideRedis + "bobs": tc.bobs, decideSites + "shop": tc.shop} {
				u, ok := s.CompileResource(resource, at)
				if got := list(u.Refused); !ok || !slices.Equal(got, want) {
					t.Errorf("%s: the unit of %s lacks %v, want %v", tc.reason, resource, got, want)
				}
			}
			// The member with sidecars has what is not refused there.
			q := policy.Query{
				Subjects:  []string{decideApps + "2"},
				Resources: []string{decideRedis + "bobs"},
				Cluster:   "m1",
				Protocol:  v1alpha1.ProtocolTCP,
				Port:      6379,
				At:        at,
			}
			u, _ := s.CompileResource(decideRedis+"bobs", at)
			lacks := slices.ContainsFunc(append(u.Refused, Refused(s, &u, []string{"m1"}, at)...), func(r policy.Refusal) bool { return r.Ref.SID == "all" })
			if d := s.DecideEffective(&q); (d.Verdict == policy.Allowed) == lacks {
				t.Errorf("%s: %s, although the allow is refused: %t (%v)", tc.reason, d.Verdict, lacks, d.LeftOut)
			}
		})
	}
}
