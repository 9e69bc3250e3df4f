package insight

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// nobodys is a subject in no class, so a statement that names it is refused as a whole.
const nobodys = "trnv1:rsc:trip-com:iam:user:bob"

// also adds a subject to the policy's first statement.
func also(subject string) func(*v1alpha1.AccessControlPolicy) {
	return func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements[0].Subjects = append(p.Spec.Statements[0].Subjects, v1alpha1.Subject(subject))
	}
}

// refusals are policies of which the members do not have the allow of application 1.
var refusals = map[string]struct {
	reason string
	world  []func(*policy.Input)
}{
	"Allow": {"a statement goes as a whole", []func(*policy.Input){addStatement("a", v1alpha1.EffectAllow, app+"1", "redis:connect", bobs, also(nobodys))}},
	"Deny": {
		"a refused deny takes the allow with it",
		[]func(*policy.Input){allow("a", app+"1", "redis:connect", bobs), addStatement("d", v1alpha1.EffectDeny, nobodys, "redis:connect", bobs)},
	},
	"Mesh": {"its pods are in another cluster mesh, so m1 does not know them", []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs), meshes}},
	"Istio": {
		"Istio does not know applications whose class has no template",
		[]func(*policy.Input){allow("a", app+"1", "redis:connect", bobs), byIstio(`{"dataplane": "sidecar", "version": "1.31.0"}`, v1alpha1.EnforcerIstio)},
	},
	"Both": {
		"Cilium would let it in, and it has to get through both",
		[]func(*policy.Input){
			allow("a", app+"1", "redis:connect", bobs),
			byIstio(`{"dataplane": "sidecar", "version": "1.31.0"}`, v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio),
		},
	},
	"NoIstio": {
		"the member declares no Istio",
		[]func(*policy.Input){allow("a", app+"1", "redis:connect", bobs), byIstio("", v1alpha1.EnforcerIstio), func(in *policy.Input) {
			template := *in.SubjectClasses[0]
			template.Spec.ServiceAccountTemplate, in.SubjectClasses[0] = "app-{id}", &template
		}},
	},
	"Prefix": {
		"a prefix stands for the names that members have",
		[]func(*policy.Input){addStatement("a", v1alpha1.EffectAllow, app+"*", "redis:connect", redis+"*", also(nobodys))},
	},
}

// byIstio makes enforcers those of the first class, in a fleet of one member with a declaration about its Istio.
func byIstio(declared string, enforcers ...v1alpha1.EnforcerName) func(*policy.Input) {
	return func(in *policy.Input) {
		class := *in.ResourceClasses[0]
		class.Spec.Enforcers, class.Spec.Placement = enforcers, v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}
		in.ResourceClasses[0] = &class
		f := registry.FleetOf(
			[]*v1alpha1.MemberCluster{{ObjectMeta: named("m1"), Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Istio: declared}}},
		)
		in.Clusters, in.Translators = f.Clusters, f.Translators
	}
}

// meshes are two members in no mesh together. The pods of application 1 are in m2.
func meshes(in *policy.Input) {
	member := func(name string, values ...string) policy.Cluster {
		return policy.Cluster{
			Name:   name,
			Labels: map[string]string{},
			Dataplane: &v1alpha1.MemberDataplane{PolicyMapEntries: policy.MapEntries, Mesh: v1alpha1.NoMesh, ValuesKnown: true,
				Labels: []v1alpha1.MemberLabel{{Key: "com.trip/appid", Identities: 1, Most: 1, Values: values}}},
		}
	}
	in.Clusters = []policy.Cluster{member("m1"), member("m2", "1")}
}

// TestDeniedAddressesCount checks that evidence and replay count the addresses that a member denies because of a subject in another mesh.
func TestDeniedAddressesCount(t *testing.T) {
	grant, deny := allow("a", "*", "redis:connect", bobs), addStatement("d", v1alpha1.EffectDeny, app+"1", "redis:connect", bobs)
	before, after := with(
		world(),
		grant,
		deny,
		meshes,
		protect(bobs, v1alpha1.ModeAudit),
	), with(
		world(),
		grant,
		deny,
		meshes,
		protect(bobs, v1alpha1.ModeEnforce),
	)
	outside := edge("", bobs, 6379, policy.Allowed, from("203.0.113.0/24"))
	im := must[Impact](
		t,
	)(
		Replay(
			t.Context(),
			store(watched(14, "m1"), flows(outside, 10, every(14)...)),
			ReplayInput{Before: before, After: after, Resources: []string{bobs}, Fleet: onlyIn("m1"), Since: ago(14), Until: now},
		),
	)
	if im.Denied.Connections != 140 || len(im.NewlyDenied) != 1 || im.NewlyDenied[0].After != policy.Denied {
		t.Errorf("%+v, want 140 connections that Enforce denies", im)
	}
	p := must[Proposal](
		t,
	)(
		Propose(t.Context(), store(watched(40, "m1"), flows(outside, 10, every(40)...)), ProposeInput{Snapshot: before, Resource: bobs, Now: now}),
	)
	if len(p.Unattributed) != 1 || p.Unattributed[0].State == StateCovered {
		t.Errorf("the proposal says %+v, want the addresses, which are not let in", p.Unattributed)
	}
}

// TestProtocolThatNoEnforcerRefuses checks that connections which stay open in Enforce are not clients that Enforce would cut off.
func TestProtocolThatNoEnforcerRefuses(t *testing.T) {
	gossip := func(in *policy.Input) {
		class := *in.ResourceClasses[0]
		class.Spec.Actions = append(
			slices.Clone(class.Spec.Actions),
			v1alpha1.ClassAction{Name: "redis:gossip", Ports: []v1alpha1.Port{{Port: 7946, Protocol: v1alpha1.ProtocolUDP}}},
		)
		in.ResourceClasses[0] = &class
	}
	udp := func(port uint16) func(*audit.Edge) {
		return func(e *audit.Edge) { e.Protocol, e.Port = v1alpha1.ProtocolUDP, port }
	}
	sidecar := `{"dataplane": "sidecar", "version": "1.31.0"}`
	for name, tc := range map[string]struct {
		reason    string
		enforcers []v1alpha1.EnforcerName
		state     State
		open      bool
		uncovered int
	}{
		"Istio":  {"Istio refuses no UDP", []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}, StateCovered, true, 0},
		"Both":   {"Cilium does", []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio}, StateAudited, false, 2},
		"Cilium": {"Cilium does", []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}, StateAudited, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := with(world(), gossip, byIstio(sidecar, tc.enforcers...), protect(bobs, v1alpha1.ModeAudit))
			seen := store(
				watched(40, "m1"),
				flows(edge(app+"1", bobs, 7946, policy.Audited, udp(7946)), 10, every(40)...),
				flows(edge(app+"2", bobs, 9000, policy.Audited, udp(9000)), 10, every(40)...),
			)
			score := must[Score](t)(Evidence(t.Context(), seen, EvidenceInput{Snapshot: s, Resource: bobs, Now: now, Fleet: onlyIn("m1")}))
			if score.Clients != 2 || score.Uncovered != tc.uncovered {
				t.Errorf("%s: %d of %d clients are uncovered, want %d of 2", tc.reason, score.Uncovered, score.Clients, tc.uncovered)
			}
			p := must[Proposal](t)(Propose(t.Context(), seen, ProposeInput{Snapshot: s, Resource: bobs, Now: now}))
			if len(p.Lines) != 1 || p.Lines[0].State != tc.state || len(p.UnknownPorts) != 1 || p.UnknownPorts[0].Open != tc.open {
				t.Errorf("%s: the proposal says %+v and %+v, want %s, and other ports open: %t", tc.reason, p.Lines, p.UnknownPorts, tc.state, tc.open)
			}
		})
	}
}

func TestRefusedAllowsDoNotCount(t *testing.T) {
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []v1alpha1.Mode{v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce} {
				s := with(world(), append(tc.world, protect(bobs, mode))...)
				seen := []*audit.Batch{watched(40, "m1"), flows(edge(app+"1", bobs, 6379, policy.Audited), 10, every(40)...)}
				score := must[Score](t)(Evidence(t.Context(), store(seen...), EvidenceInput{Snapshot: s, Resource: bobs, Now: now, Fleet: onlyIn("m1")}))
				if score.Uncovered != 1 {
					t.Errorf("%s: in %s %d clients are uncovered, want the one that Enforce would refuse", tc.reason, mode, score.Uncovered)
				}
				p := must[Proposal](t)(Propose(t.Context(), store(seen...), ProposeInput{Snapshot: s, Resource: bobs, Now: now}))
				want := map[v1alpha1.Mode]State{v1alpha1.ModeObserve: StateNew, v1alpha1.ModeAudit: StateAudited, v1alpha1.ModeEnforce: StateDenied}[mode]
				if len(p.Lines) != 1 || p.Lines[0].State != want {
					t.Errorf("%s: in %s the proposal says %+v, want %s", tc.reason, mode, p.Lines, want)
				}
				unused := must[[]UnusedStatement](
					t,
				)(
					Unused(t.Context(), store(seen...), UnusedInput{Snapshot: s, Fleet: Fleet{Everywhere: []string{"m1"}, Known: true}, Now: now}),
				)
				if len(unused) != 1 || unused[0].Ref.SID != "a" || unused[0].Reason != message.UnusedRefused() || unused[0].LastUsed != nil {
					t.Errorf("%s: in %s the unused grants are %+v, want the one that is in no member", tc.reason, mode, unused)
				}
			}
		})
	}
}

func TestReplayShowsWhatARefusalDrops(t *testing.T) {
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			before, after := with(
				world(),
				append(tc.world, protect(bobs, v1alpha1.ModeAudit))...), with(
				world(),
				append(tc.world, protect(bobs, v1alpha1.ModeEnforce))...)
			for what, e := range map[string]audit.Edge{
				"of one name":     edge(app+"1", bobs, 6379, policy.Audited),
				"of two services": edge(app+"1", bobs, 6379, policy.Audited, func(e *audit.Edge) { e.OtherSubjects = svc + "cart" }),
			} {
				im := must[Impact](
					t,
				)(
					Replay(
						t.Context(),
						store(watched(14, "m1"), flows(e, 10, every(14)...)),
						ReplayInput{Before: before, After: after, Resources: []string{bobs}, Fleet: onlyIn("m1"), Since: ago(14), Until: now},
					),
				)
				if im.Denied.Connections != 140 || len(im.NewlyDenied) != 1 || im.NewlyDenied[0].After != policy.DefaultDenied || im.Unchanged != 0 {
					t.Errorf("%s: %s: %+v, want 140 connections that Enforce drops", tc.reason, what, im)
				}
			}
		})
	}
}

// A grant that is refused allows no connection, so its replay must not report that it does.
func TestReplayOfARefusedGrant(t *testing.T) {
	dropped := flows(edge(app+"1", bobs, 6379, policy.DefaultDenied), 10, every(14)...)
	closed := protect(bobs, v1alpha1.ModeEnforce)
	for name, tc := range map[string]struct {
		grant func(*policy.Input)
		want  int64
	}{
		"Refused": {addStatement("a", v1alpha1.EffectAllow, app+"1", "redis:connect", bobs, also(nobodys)), 0},
		"Pushed":  {allow("a", app+"1", "redis:connect", bobs), 140},
	} {
		im := must[Impact](
			t,
		)(
			Replay(
				t.Context(),
				store(watched(14, "m1"), dropped),
				ReplayInput{
					Before:    with(world(), closed),
					After:     with(world(), closed, tc.grant),
					Resources: []string{bobs},
					Fleet:     onlyIn("m1"),
					Since:     ago(14),
					Until:     now,
				},
			),
		)
		if im.Allowed.Connections != tc.want {
			t.Errorf("%s: %d connections would newly pass, want %d", name, im.Allowed.Connections, tc.want)
		}
	}
}

// A member whose proxy does not work does not get rules about requests, and the others do.
func TestRequestsAreJudgedMemberByMember(t *testing.T) {
	clusters := func(in *policy.Input) {
		in.Clusters = []policy.Cluster{{Name: "m1"}, {Name: "m2", NoRequests: message.Verbatim("no proxy")}}
	}
	grant := allow("a", app+"1", "web:buy", shop)
	before, after := with(world(), clusters, grant, protect(shop, v1alpha1.ModeAudit)), with(world(), clusters, grant, protect(shop, v1alpha1.ModeEnforce))
	seen := func(member string) *audit.Batch {
		return flows(edge(app+"1", shop, 80, policy.Allowed, in(member)), 10, every(14)...)
	}
	im := must[Impact](
		t,
	)(
		Replay(
			t.Context(),
			store(watched(14, "m1", "m2"), seen("m1"), seen("m2")),
			ReplayInput{Before: before, After: after, Resources: []string{shop}, Fleet: onlyIn("m1", "m2"), Since: ago(14), Until: now},
		),
	)
	var where []string
	for _, l := range im.NewlyDenied {
		where = append(where, l.Cluster)
	}
	if diff := cmp.Diff([]string{"m2"}, where); diff != "" || im.Unchanged != 140 {
		t.Errorf("the change cuts off clients in %v, want m2 alone: %+v", where, im)
	}
	for member, want := range map[string]int{"m1": 0, "m2": 1} {
		score := must[Score](
			t,
		)(
			Evidence(t.Context(), store(watched(14, member), seen(member)), EvidenceInput{Snapshot: before, Resource: shop, Now: now, Fleet: onlyIn(member)}),
		)
		if score.Uncovered != want {
			t.Errorf("%d clients of %s are uncovered, want %d", score.Uncovered, member, want)
		}
	}
}
