package ciliumtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Noon is the time of every random world.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Generator generates random worlds. The same seed gives the same world.
type Generator struct{ *rand.Rand }

// NewGenerator returns the generator of the world of a seed.
func NewGenerator(seed uint64) Generator { return Generator{rand.New(rand.NewPCG(seed, 2026))} }

// Pick returns one of the values.
func Pick[T any](d Generator, from ...T) T { return from[d.IntN(len(from))] }

func several[T comparable](d Generator, most int, from ...T) []T {
	var out []T
	for range 1 + d.IntN(most) {
		if v := Pick(d, from...); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func prefixed(head string, values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = head + v
	}
	return out
}

func exactResources() []string {
	return slices.Concat(prefixed(RedisHead, Redis), prefixed(WebHead, Sites), prefixed(DNSHead, Zones))
}

func exactSubjects() []string { return slices.Concat(prefixed(AppHead, Apps), prefixed(SvcHead, Svcs)) }

// Input generates the objects of a world. One in ten worlds has statements that are refused.
func (d Generator) Input() policy.Input {
	in := policy.Input{ResourceClasses: resourceClasses(), SubjectClasses: subjectClasses(), Members: 3,
		KnownNames: slices.Concat(exactResources(), exactSubjects())}
	for i := range 3 + d.IntN(7) {
		in.Resources = append(in.Resources, d.protected(fmt.Sprint("r", i)))
	}
	for i := range d.IntN(5) {
		subjects := exactSubjects()
		if d.IntN(4) == 0 {
			subjects = []string{unclassedSubject}
		}
		in.Workloads = append(in.Workloads, &v1alpha1.ExternalWorkload{ObjectMeta: named(fmt.Sprint("w", i)),
			Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(Pick(d, subjects...)), Addresses: several(d, 3,
				"10.5.0.0/16", "10.5.0.0/24", "10.5.0.7", "10.6.0.0/15", "2001:db8::/32", "2001:db8:5::/48", "2001:db8:5::7", "0.0.0.0/0", "::/0")}})
	}
	refusals := d.IntN(10) == 0
	for i := range 1 + d.IntN(3) {
		p := &v1alpha1.AccessControlPolicy{ObjectMeta: named(fmt.Sprint("p", i))}
		for j := range 1 + d.IntN(7) {
			p.Spec.Statements = append(p.Spec.Statements, d.statement(fmt.Sprint("s", j), refusals))
		}
		in.Policies = append(in.Policies, p)
	}
	in.Clusters = addMeshes(&in)
	return in
}

// addMeshes sets the cluster meshes in some of the worlds: Here and m2 in one mesh, and another member in a mesh of its own, whose
// pods are those of some applications, or are unknown. It does not use the random Generator of the world, so that the other objects
// stay the same.
func addMeshes(in *policy.Input) []policy.Cluster {
	n := uint64(len(in.Resources)*7 + len(in.Workloads)) //nolint:gosec // a few
	for _, p := range in.Policies {
		n = n*11 + uint64(len(p.Spec.Statements))
	}
	d := NewGenerator(n)
	if d.IntN(3) > 0 {
		return nil
	}
	in1 := &v1alpha1.MemberDataplane{PolicyMapEntries: policy.MapEntries, Mesh: "one", ValuesKnown: true}
	other := &v1alpha1.MemberDataplane{PolicyMapEntries: policy.MapEntries, Mesh: "two"}
	if d.IntN(4) > 0 {
		other.ValuesKnown = true
		other.Labels = []v1alpha1.MemberLabel{{Key: AppKey, Identities: 3, Most: 1, Values: several(d, 2, Apps...)}}
	}
	return []policy.Cluster{
		{Name: Here, Labels: map[string]string{}, Dataplane: in1},
		{Name: "m2", Labels: map[string]string{}, Dataplane: in1},
		{Name: "x1", Labels: map[string]string{}, Dataplane: other},
	}
}

func (d Generator) mode() v1alpha1.Mode {
	return Pick(d, v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce)
}

func (d Generator) instant() *metav1.Time {
	t := metav1.NewTime(Noon.Add(time.Duration(d.IntN(5)-2) * time.Hour))
	return &t
}

func (d Generator) protected(name string) *v1alpha1.ProtectedResource {
	p := &v1alpha1.ProtectedResource{ObjectMeta: named(name), Spec: v1alpha1.ProtectedResourceSpec{
		Resource: v1alpha1.ResourceName(Pick(d, exactResources()...)), Mode: d.mode()}}
	if d.IntN(3) == 0 {
		for _, c := range several(d, 2, Here, "m2") {
			p.Spec.ClusterModes = append(p.Spec.ClusterModes, v1alpha1.ClusterMode{Cluster: v1alpha1.ClusterName(c), Mode: d.mode()})
		}
	}
	if d.IntN(4) == 0 {
		p.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: *d.instant(), Reason: "outage", By: "dave"}
	}
	return p
}

// statement generates a statement, which is refused only if refusals are wanted.
func (d Generator) statement(sid string, refusals bool) v1alpha1.Statement {
	st := v1alpha1.Statement{SID: sid, Effect: Pick(d, policy.Allow, policy.Allow, policy.Deny)}
	if d.IntN(4) == 0 {
		st.NotBefore = d.instant()
	}
	if d.IntN(4) == 0 {
		st.NotAfter = d.instant()
	}
	wild := d.IntN(3) == 0
	var resources, actions []string
	switch d.IntN(5) {
	case 0, 1:
		resources = several(d, 2, prefixed(RedisHead, Redis)...)
		if wild {
			resources = []string{Pick(d, RedisHead+"*", RedisHead+"bobs-*")}
		}
		actions = several(d, 2, "redis:connect", "redis:admin", "redis:bus", "redis:*")
	case 2, 3:
		resources = several(d, 2, prefixed(WebHead, Sites)...)
		actions = several(d, 2, "web:connect", "web:debug", "web:read", "web:orders", "web:all", "web:*")
		if wild {
			resources = []string{Pick(d, WebHead+"*", WebHead+"s*")}
		}
		if !refusals && (wild || st.Effect == policy.Deny) {
			actions = several(d, 2, "web:connect", "web:debug", "web:all") // requests in these are refused
		}
	default:
		resources, actions = []string{DNSHead + "corp"}, []string{Pick(d, "dns:query", "dns:low", "dns:*", "dns:*")}
		if wild {
			resources = []string{DNSHead + "*"}
		}
	}
	subjects := slices.Concat(exactSubjects(), exactSubjects(), []string{AppHead + "*", SvcHead + "*", "*", CIDRHead + "10.5.0.0/24", CIDRHead + "10.5.0.7/32",
		CIDRHead + "0.0.0.0/0", CIDRHead + "2001:db8:5::/48", CIDRHead + "::/0"})
	if st.Effect == policy.Allow || refusals {
		subjects = append(subjects, AppHead+"team-*", AppHead+"88*")
	}
	if refusals {
		subjects = append(subjects, unclassedSubject)
		actions = append(actions, Pick(d, "redis:nothing", actions[0]))
	}
	for _, s := range several(d, 3, subjects...) {
		st.Subjects = append(st.Subjects, v1alpha1.Subject(s))
	}
	for _, a := range slices.Compact(actions) {
		st.Actions = append(st.Actions, v1alpha1.Action(a))
	}
	for _, r := range resources {
		st.Resources = append(st.Resources, v1alpha1.ResourceName(r))
	}
	return st
}

// Destinations returns some pods of Here.
func (d Generator) Destinations(n int) []map[string]string {
	var out []map[string]string
	for range n {
		l := map[string]string{"app": "server"}
		switch d.IntN(8) {
		case 0, 1, 2:
			l[RedisKey] = Pick(d, append(Redis, "unknown")...)
		case 3, 4, 5:
			l[WebKey] = Pick(d, Sites...)
		case 6:
			l[DNSKey] = Pick(d, Zones...)
		}
		if d.IntN(3) == 0 {
			l[RedisKey] = Pick(d, Redis...)
		}
		if d.IntN(4) == 0 {
			l[DNSKey] = Pick(d, Zones...)
		}
		out = append(out, l)
	}
	return out
}

// Sources returns sources of every kind.
func (d Generator) Sources() []Source {
	var out []Source
	for _, name := range []string{"host", "remote-node", "kube-apiserver", "health", "ingress", "init", "unmanaged", "world-ipv4", "world-ipv6"} {
		out = append(out, Source{Reserved: name})
	}
	for _, a := range []string{"10.5.0.7", "10.5.0.8", "10.5.1.1", "10.6.0.1", "10.9.9.9", "2001:db8::1", "2001:db8:5::7", "2001:db8:5::8", "2001:db9::1"} {
		out = append(out, Source{Address: a})
	}
	for _, cluster := range []string{Here, "m2"} {
		for _, app := range append(Apps, "1") {
			out = append(out, Source{Cluster: cluster, Labels: map[string]string{AppKey: app}})
		}
		out = append(out,
			Source{Cluster: cluster, Labels: map[string]string{AppKey: Pick(d, Apps...), SvcKey: Pick(d, Svcs...)}},
			Source{Cluster: cluster, Labels: map[string]string{SvcKey: Pick(d, Svcs...)}},
			Source{Cluster: cluster, Labels: map[string]string{AppKey: "", SvcKey: ""}},
			Source{Cluster: cluster, Labels: map[string]string{"app": "other"}},
			Source{Cluster: cluster, NoNamespace: true, Labels: map[string]string{AppKey: Pick(d, Apps...)}})
	}
	return out
}

// Port is a port of a protocol, or the type of an ICMP message.
type Port struct {
	Protocol v1alpha1.Protocol
	Number   uint16
}

// Ports contains ports of actions, at the ends of ranges, of several classes, and of no class.
var Ports = []Port{
	{"TCP", 6379},
	{"TCP", 6380},
	{"TCP", 6400},
	{"TCP", 6401},
	{"TCP", 16379},
	{"TCP", 16381},
	{"TCP", 16382},
	{"TCP", 80},
	{"TCP", 8080},
	{
		"TCP",
		53,
	},
	{"TCP", 7000},
	{"TCP", 7001},
	{"TCP", 7118},
	{"TCP", 1},
	{"TCP", 65535},
	{"UDP", 6379},
	{"UDP", 53},
	{"UDP", 80},
	{"SCTP", 5000},
	{"SCTP", 5010},
	{"SCTP", 80},
	{ICMP, 8},
	{ICMPv6, 128},
}
