package audit

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
)

const (
	app    = "trnv1:rsc:trip-com:iam:sa:app/"
	redis  = "trnv1:rsc:trip-com:redis:clusters:"
	bobs   = redis + "bobs-cluster"
	orders = redis + "orders-cache"
	cidr   = "trnv1:rsc:trip-com:net:cidr:10.5.0.0/24"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

func fleet() *policy.Snapshot {
	sc := &v1alpha1.SubjectClass{Spec: v1alpha1.SubjectClassSpec{Pattern: app + "*", LabelKey: "com.trip/appid"}}
	sc.Name = "application"
	rc := &v1alpha1.ResourceClass{Spec: v1alpha1.ResourceClassSpec{Pattern: redis + "*", LabelKey: "com.trip/redis-cluster",
		Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}}}
	rc.Name = "redis"
	resource := func(name string, m v1alpha1.Mode) *v1alpha1.ProtectedResource {
		r := &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(name), Mode: m}}
		r.Name = strings.ReplaceAll(name, ":", "-")
		return r
	}
	p := &v1alpha1.AccessControlPolicy{Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
		{
			SID:       "app888",
			Effect:    v1alpha1.EffectAllow,
			Subjects:  []v1alpha1.Subject{app + "888"},
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{bobs},
		},
		{
			SID:       "vms",
			Effect:    v1alpha1.EffectAllow,
			Subjects:  []v1alpha1.Subject{cidr, app + "vm"},
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{bobs},
		},
		{
			SID:       "no777",
			Effect:    v1alpha1.EffectDeny,
			Subjects:  []v1alpha1.Subject{app + "777"},
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{bobs},
		},
	}}}
	p.Name = "p"
	w := &v1alpha1.ExternalWorkload{Spec: v1alpha1.ExternalWorkloadSpec{Subject: app + "vm", Addresses: []string{"10.6.0.0/24"}}}
	w.Name = "vm"
	return policy.NewSnapshot(policy.Input{
		SubjectClasses: []*v1alpha1.SubjectClass{sc}, ResourceClasses: []*v1alpha1.ResourceClass{rc}, Policies: []*v1alpha1.AccessControlPolicy{p},
		Resources: []*v1alpha1.ProtectedResource{resource(bobs, v1alpha1.ModeEnforce), resource(orders, v1alpha1.ModeAudit)},
		Workloads: []*v1alpha1.ExternalWorkload{w},
	})
}

func pod(labels ...string) Endpoint {
	e := Endpoint{Kind: KindWorkload, Namespace: "apps", Cluster: "m2", Address: netip.MustParseAddr("10.5.0.7"), Labels: map[string]string{
		"io.cilium.k8s.policy.cluster": "m2", "io.kubernetes.pod.namespace": "apps"}}
	for i := 0; i+1 < len(labels); i += 2 {
		e.Labels[labels[i]] = labels[i+1]
	}
	return e
}

func outside(address string) Endpoint {
	return Endpoint{Kind: KindOutside, Address: netip.MustParseAddr(address)}
}

func server(name string, port uint16) Endpoint {
	e := pod("com.trip/redis-cluster", name)
	e.Port, e.Cluster = port, "m1"
	return e
}

func TestAttribute(t *testing.T) {
	s := fleet()
	edge := func(subject, resource string, w policy.Verdict, v Verdict, sid string, change ...func(*Edge)) Edge {
		e := Edge{
			Cluster:       "m1",
			SourceCluster: "m2",
			Subject:       subject,
			Resource:      resource,
			Action:        "redis:connect",
			Port:          6379,
			Protocol:      "TCP",
			Decision:      w,
			Verdict:       v,
		}
		if sid != "" {
			e.Statement = policy.Ref{Policy: "p", SID: sid}
		}
		for _, c := range change {
			c(&e)
		}
		return e
	}
	from := func(source string) func(*Edge) { return func(e *Edge) { e.Source = source } }
	nowhere := func(e *Edge) { e.SourceCluster = "" }
	for name, tc := range map[string]struct {
		reason      string
		source, dst Endpoint
		protocol    v1alpha1.Protocol
		verdict     Verdict
		want        []Edge
		disagrees   bool
	}{
		"Allowed": {
			reason: "the statement that decided is kept",
			source: pod("com.trip/appid", "888"), dst: server("bobs-cluster", 6379), verdict: VerdictForwarded,
			want: []Edge{edge(app+"888", bobs, policy.Allowed, VerdictForwarded, "app888")},
		},
		"DefaultDenied": {
			reason: "nobody's statement, so none is named",
			source: pod("com.trip/appid", "889"), dst: server("bobs-cluster", 6379), verdict: VerdictDropped,
			want: []Edge{edge(app+"889", bobs, policy.DefaultDenied, VerdictDropped, "")},
		},
		"Denied": {
			reason: "a deny decides by its statement",
			source: pod("com.trip/appid", "777"), dst: server("bobs-cluster", 6379), verdict: VerdictDropped,
			want: []Edge{edge(app+"777", bobs, policy.Denied, VerdictDropped, "no777")},
		},
		"OtherPort": {
			reason: "the port is in no action, and the enforced workload is closed there too",
			source: pod("com.trip/appid", "888"), dst: server("bobs-cluster", 9121), verdict: VerdictDropped,
			want: []Edge{edge(app+"888", bobs, policy.DefaultDenied, VerdictDropped, "", func(e *Edge) { e.Port, e.Action = 9121, "" })},
		},
		"OtherProtocol": {
			reason: "an action is of one protocol",
			source: pod("com.trip/appid", "888"), dst: server("bobs-cluster", 6379), protocol: "UDP", verdict: VerdictDropped,
			want: []Edge{edge(app+"888", bobs, policy.DefaultDenied, VerdictDropped, "", func(e *Edge) { e.Protocol, e.Action = "UDP", "" })},
		},
		"Audited": {
			reason: "let through, though it will not be",
			source: pod("com.trip/appid", "889"), dst: server("orders-cache", 6379), verdict: VerdictForwarded,
			want: []Edge{edge(app+"889", orders, policy.Audited, VerdictForwarded, "")},
		},
		"Unmanaged": {
			reason: "a server that is not onboarded",
			source: pod("com.trip/appid", "889"), dst: server("other", 6379), verdict: VerdictForwarded,
			want: []Edge{edge(app+"889", redis+"other", policy.Unmanaged, VerdictForwarded, "")},
		},
		"DataplaneLetsThrough": {
			reason: "the two verdicts stay beside each other",
			source: pod("com.trip/appid", "889"), dst: server("bobs-cluster", 6379), verdict: VerdictForwarded, disagrees: true,
			want: []Edge{edge(app+"889", bobs, policy.DefaultDenied, VerdictForwarded, "")},
		},
		"DataplaneDrops": {
			reason: "something that is not ours refuses",
			source: pod("com.trip/appid", "888"), dst: server("bobs-cluster", 6379), verdict: VerdictDropped, disagrees: true,
			want: []Edge{edge(app+"888", bobs, policy.Allowed, VerdictDropped, "app888")},
		},
		"UnknownPod": {
			reason: "what cannot be attributed keeps its labels, without those of the platform",
			source: pod("app", "x", "tier", "web"), dst: server("bobs-cluster", 6379), verdict: VerdictDropped,
			want: []Edge{edge("", bobs, policy.DefaultDenied, VerdictDropped, "", from("namespace=apps,app=x,tier=web"))},
		},
		"PodInACIDR": {
			reason: "a range of addresses never matches a pod, though its address lies in it",
			source: pod("app", "x"), dst: server("bobs-cluster", 6379), verdict: VerdictDropped,
			want: []Edge{edge("", bobs, policy.DefaultDenied, VerdictDropped, "", from("namespace=apps,app=x"))},
		},
		"OutsideInACIDR": {
			reason: "a range of addresses matches outside the fleet",
			source: outside("10.5.0.7"), dst: server("bobs-cluster", 6379), verdict: VerdictForwarded,
			want: []Edge{edge("", bobs, policy.Allowed, VerdictForwarded, "vms", from("10.5.0.0/24"), nowhere)},
		},
		"ExternalWorkload": {
			reason: "a registered machine has the name of its subject",
			source: outside("10.6.0.9"), dst: server("bobs-cluster", 6379), verdict: VerdictForwarded,
			want: []Edge{edge(app+"vm", bobs, policy.Allowed, VerdictForwarded, "vms", nowhere)},
		},
		"World": {
			reason: "unknown addresses are counted by prefix",
			source: outside("2001:db8:1:2:3::4"), dst: server("bobs-cluster", 6379), verdict: VerdictDropped,
			want: []Edge{edge("", bobs, policy.DefaultDenied, VerdictDropped, "", from("2001:db8:1:2::/64"), nowhere)},
		},
		"MappedAddress": {
			reason: "IPv4 in IPv6 is IPv4",
			source: outside("::ffff:203.0.113.9"), dst: server("bobs-cluster", 6379), verdict: VerdictDropped,
			want: []Edge{edge("", bobs, policy.DefaultDenied, VerdictDropped, "", from("203.0.113.0/24"), nowhere)},
		},
		"OwnNode": {
			reason: "the kubelet's probes are always let in",
			source: Endpoint{Kind: KindLocalHost, Identity: "host", Cluster: "m1"}, dst: server("bobs-cluster", 6379), verdict: VerdictForwarded,
			want: []Edge{edge("", bobs, policy.Allowed, VerdictForwarded, "", from("reserved:host"), func(e *Edge) { e.SourceCluster = "m1" })},
		},
		"OtherNode": {
			reason: "other nodes match only the subject *",
			source: Endpoint{Kind: KindReserved, Identity: "remote-node", Address: netip.MustParseAddr("10.5.0.9")},
			dst:    server("bobs-cluster", 6379), verdict: VerdictDropped,
			want: []Edge{edge("", bobs, policy.DefaultDenied, VerdictDropped, "", from("reserved:remote-node"), nowhere)},
		},
		"NoResource": {
			reason: "a destination without a name keeps its labels",
			source: pod("com.trip/appid", "888"), dst: func() Endpoint { e := pod("app", "web"); e.Port = 80; return e }(), verdict: VerdictForwarded,
			want: []Edge{
				edge(app+"888", "", policy.Unmanaged, VerdictForwarded, "", func(e *Edge) {
					e.Destination, e.Port, e.Action = "namespace=apps,app=web", 80, ""
				}),
			},
		},
		"UnknownVerdict": {
			reason: "no verdict is no disagreement",
			source: pod("com.trip/appid", "889"), dst: server("bobs-cluster", 6379), verdict: VerdictUnknown,
			want: []Edge{edge(app+"889", bobs, policy.DefaultDenied, VerdictUnknown, "")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observation{Time: noon, Cluster: "m1", Source: tc.source, Destination: tc.dst, Protocol: tc.protocol, Verdict: tc.verdict, Count: 1}
			if o.Protocol == "" {
				o.Protocol = v1alpha1.ProtocolTCP
			}
			r := Attribute(s, o)
			if diff := cmp.Diff(tc.want, r.Edges(s)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := r.Disagrees(); got != tc.disagrees {
				t.Errorf("%s: got Disagrees() = %v", tc.reason, got)
			}
		})
	}
}

// several is an Evaluator that gives each pod two names, as classes with different label keys do.
type several struct{ *policy.Snapshot }

func (several) SubjectsOf(map[string]string) []string  { return []string{"s1", "s2"} }
func (several) ResourcesOf(map[string]string) []string { return []string{"r1", "r2"} }

func TestEdgesOfSeveralNames(t *testing.T) {
	s := several{fleet()}
	var got []string
	for _, e := range Attribute(s, Observation{Time: noon, Cluster: "m1", Source: pod(), Destination: server("a", 1), Protocol: "TCP"}).Edges(s) {
		got = append(got, strings.Join([]string{e.Subject, e.OtherSubjects, e.Resource, e.OtherResources}, " "))
	}
	want := []string{"s1 s2 r1 r2", "s2 s1 r1 r2", "s1 s2 r2 r1", "s2 s1 r2 r1"}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
}

func TestDescribeIsBounded(t *testing.T) {
	e := pod()
	for i := range 100 {
		e.Labels[strings.Repeat("ключ", 5)+string(rune('a'+i))] = strings.Repeat("é", 40)
	}
	got := e.describe()
	if len(got) > maxDescription || !strings.HasSuffix(got, "…") || strings.ToValidUTF8(got, "?") != got {
		t.Errorf("got %d bytes from describe(): %q", len(got), got)
	}
}

// TestAttributeExplainsRefusals verifies that a flow is decided as the members decide it, and that the reason mentions the
// refused statement that causes it.
func TestAttributeExplainsRefusals(t *testing.T) {
	sc := &v1alpha1.SubjectClass{Spec: v1alpha1.SubjectClassSpec{Pattern: app + "*", LabelKey: "com.trip/appid"}}
	rc := &v1alpha1.ResourceClass{Spec: v1alpha1.ResourceClassSpec{Pattern: redis + "*", LabelKey: "com.trip/redis-cluster",
		Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}}}
	p := &v1alpha1.AccessControlPolicy{Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
		{
			SID:       "allow",
			Effect:    v1alpha1.EffectAllow,
			Subjects:  []v1alpha1.Subject{app + "888"},
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{bobs},
		},
		{
			SID:       "deny",
			Effect:    v1alpha1.EffectDeny,
			Subjects:  []v1alpha1.Subject{"trnv1:rsc:trip-com:iam:team:blue"},
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{bobs},
		},
	}}}
	p.Name = "p"
	r := &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: bobs, Mode: v1alpha1.ModeEnforce}}
	s := policy.NewSnapshot(policy.Input{SubjectClasses: []*v1alpha1.SubjectClass{sc}, ResourceClasses: []*v1alpha1.ResourceClass{rc},
		Policies: []*v1alpha1.AccessControlPolicy{p}, Resources: []*v1alpha1.ProtectedResource{r}, NamesUnknown: true})
	got := Attribute(s, Observation{Cluster: "m1", Time: noon, Protocol: v1alpha1.ProtocolTCP, Source: pod("com.trip/appid", "888"),
		Destination: func() Endpoint { e := pod("com.trip/redis-cluster", "bobs-cluster"); e.Port = 6379; return e }()})
	if got.Decision != policy.DefaultDenied || len(got.Statements) > 0 || !strings.Contains(got.Reason, "p/allow") ||
		!strings.Contains(got.Reason, "the statements mean allowed") {
		t.Errorf("got decision %s by %v with reason %q", got.Decision, got.Statements, got.Reason)
	}
}

// TestVerdictsOfOneOfSeveralEnforcers checks that a connection which Cilium forwards and Istio refuses is no disagreement:
// Cilium does not see what the proxy does with it.
func TestVerdictsOfOneOfSeveralEnforcers(t *testing.T) {
	cilium, istio := v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio
	for name, tc := range map[string]struct {
		reason    string
		enforcers []v1alpha1.EnforcerName
		subject   string
		seen      Verdict
		decision  policy.Verdict
		want      Verdict
		disagrees bool
	}{
		"Istio": {"Istio alone refuses it", []v1alpha1.EnforcerName{istio}, "889", VerdictForwarded, policy.DefaultDenied, VerdictUnknown, false},
		"IstioDropped": {
			"no policy of ACP's makes Cilium drop it, and Istio refuses it, too",
			[]v1alpha1.EnforcerName{istio}, "889", VerdictDropped, policy.DefaultDenied, VerdictDropped, false,
		},
		"IstioAllows": {"both let it through", []v1alpha1.EnforcerName{istio}, "888", VerdictForwarded, policy.Allowed, VerdictForwarded, false},
		"CiliumDrops": {"Istio's allow says nothing about Cilium", []v1alpha1.EnforcerName{istio}, "888", VerdictDropped, policy.Allowed, VerdictDropped, true},
		"Both": {
			"Cilium refuses it as well, so it must not be forwarded", []v1alpha1.EnforcerName{cilium, istio},
			"889", VerdictForwarded, policy.DefaultDenied, VerdictForwarded, true,
		},
		"BothRefused": {
			"only Istio lacks the allow", []v1alpha1.EnforcerName{cilium, istio},
			"user", VerdictForwarded, policy.DefaultDenied, VerdictUnknown, false,
		},
		"Cilium": {"Cilium alone refuses it", []v1alpha1.EnforcerName{cilium}, "889", VerdictForwarded, policy.DefaultDenied, VerdictForwarded, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := enforcedBy(tc.enforcers...)
			o := Observation{
				Cluster:     "m1",
				Time:        noon,
				Protocol:    v1alpha1.ProtocolTCP,
				Source:      pod("com.trip/appid", tc.subject),
				Destination: server("bobs-cluster", 6379),
				Verdict:     tc.seen,
			}
			if tc.subject == "user" {
				o.Source = pod("com.trip/user", "bob")
			}
			r := Attribute(s, o)
			if r.Decision != tc.decision || r.Verdict != tc.want || r.Disagrees() != tc.disagrees {
				t.Errorf("%s: %s, %s, disagrees %t, want %s, %s, %t", tc.reason, r.Decision, r.Verdict, r.Disagrees(), tc.decision, tc.want, tc.disagrees)
			}
			older := Lags{bobs: {{Kind: LagOlder, Has: s, At: noon, From: noon.Add(-time.Minute)}}}
			r, _ = AttributeRealized(s, older, o)
			if r.Decision != tc.decision || r.Verdict != tc.want || r.Disagrees() != tc.disagrees {
				t.Errorf(
					"%s: by what the member has: %s, %s, disagrees %t, want %s, %s, %t",
					tc.reason,
					r.Decision,
					r.Verdict,
					r.Disagrees(),
					tc.decision,
					tc.want,
					tc.disagrees,
				)
			}
			opened := Lags{bobs: {{Kind: LagOpen, From: noon.Add(-time.Minute)}}}
			if r, _ = AttributeRealized(s, opened, o); !r.Decision.LetsThrough() || r.Verdict != tc.seen {
				t.Errorf("%s: in a member that is open: %s, %s, want that it is let through, and %s", tc.reason, r.Decision, r.Verdict, tc.seen)
			}
		})
	}
}

// enforcedBy is a fleet of one member with sidecars, in which Istio has no name for users.
func enforcedBy(enforcers ...v1alpha1.EnforcerName) *policy.Snapshot {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	allow := func(sid, subject string) v1alpha1.Statement {
		return v1alpha1.Statement{
			SID:       sid,
			Effect:    v1alpha1.EffectAllow,
			Subjects:  []v1alpha1.Subject{v1alpha1.Subject(subject)},
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{bobs},
		}
	}
	const user = "trnv1:rsc:trip-com:iam:user:"
	fleet := registry.FleetOf([]*v1alpha1.MemberCluster{{ObjectMeta: named("m1"),
		Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Istio: `{"dataplane": "sidecar", "version": "1.31.0", "strictMTLS": true}`}}})
	return policy.NewSnapshot(policy.NewInput(policy.Objects{
		ResourceClasses: []*v1alpha1.ResourceClass{
			{ObjectMeta: named("redis"), Spec: v1alpha1.ResourceClassSpec{Pattern: redis + "*", LabelKey: "com.trip/redis-cluster",
				Enforcers: enforcers, Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
				Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}}},
		},
		SubjectClasses: []*v1alpha1.SubjectClass{
			{
				ObjectMeta: named("applications"),
				Spec:       v1alpha1.SubjectClassSpec{Pattern: app + "*", LabelKey: "com.trip/appid", ServiceAccountTemplate: "app-{id}"},
			},
			{ObjectMeta: named("users"), Spec: v1alpha1.SubjectClassSpec{Pattern: user + "*", LabelKey: "com.trip/user"}},
		},
		Resources: []*v1alpha1.ProtectedResource{{ObjectMeta: named("bobs"), Spec: v1alpha1.ProtectedResourceSpec{Resource: bobs, Mode: v1alpha1.ModeEnforce}}},
		Policies: []*v1alpha1.AccessControlPolicy{
			{
				ObjectMeta: named("p"),
				Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{allow("app", app+"888"), allow("user", user+"bob")}},
			},
		},
	}, fleet))
}
