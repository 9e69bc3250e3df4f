package dataplane

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// sameMesh are a resource that Istio enforces and one that both enforce, with statements that Istio refuses in some members or in all.
func sameMesh() []client.Object {
	const sites, users = "trnv1:rsc:o:web:sites:", "trnv1:rsc:o:iam:user:"
	say := func(sid string, effect v1alpha1.Effect, action string, resource string, subjects ...v1alpha1.Subject) v1alpha1.Statement {
		return v1alpha1.Statement{
			SID:       sid,
			Effect:    effect,
			Subjects:  subjects,
			Actions:   []v1alpha1.Action{v1alpha1.Action(action)},
			Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)},
		}
	}
	class := func(name, stem string, enforcers ...v1alpha1.EnforcerName) *v1alpha1.ResourceClass {
		return &v1alpha1.ResourceClass{
			ObjectMeta: sameNamed(name),
			Spec: v1alpha1.ResourceClassSpec{
				Pattern:    v1alpha1.NamePattern(stem + "*"),
				LabelKey:   v1alpha1.LabelKey("example.com/" + name),
				Placement:  v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
				Enforcers:  enforcers,
				OtherPorts: v1alpha1.OtherPortsDeny,
				Actions: []v1alpha1.ClassAction{
					{Name: name + ":visit", Ports: []v1alpha1.Port{{Port: 80, Protocol: "TCP"}}},
					{Name: name + ":stream", Ports: []v1alpha1.Port{{Port: 443, Protocol: "UDP"}}},
					{
						Name:  name + ":admin",
						Ports: []v1alpha1.Port{{Port: 9090, Protocol: "TCP"}},
					},
					{Name: name + ":read", Ports: []v1alpha1.Port{{Port: 8080, Protocol: "TCP"}}, HTTP: []v1alpha1.HTTPMatch{{Method: "GET"}}},
				},
			},
		}
	}
	enforce := func(name, resource string) *v1alpha1.ProtectedResource {
		return &v1alpha1.ProtectedResource{
			ObjectMeta: sameNamed(name),
			Spec:       v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(resource), Mode: v1alpha1.ModeEnforce},
		}
	}
	var grants []v1alpha1.Statement
	for _, kind := range []string{"meshed", "double"} {
		shop := sites + kind + "-shop"
		grants = append(
			grants,
			say(kind+"-service", v1alpha1.EffectAllow, kind+":visit", shop, "trnv1:rsc:o:mesh:svc:cart"),
			say(kind+"-user", v1alpha1.EffectAllow, kind+":visit", shop, users+"bob"),
			say(
				kind+"-read",
				v1alpha1.EffectAllow,
				kind+":read",
				shop,
				"trnv1:rsc:o:mesh:svc:cart",
			),
			say(kind+"-stream", v1alpha1.EffectAllow, kind+":stream", shop, "trnv1:rsc:o:mesh:svc:cart"),
			say(
				kind+"-admin",
				v1alpha1.EffectAllow,
				kind+":admin",
				shop,
				"trnv1:rsc:o:mesh:svc:cart",
			),
			say(kind+"-never", v1alpha1.EffectDeny, kind+":admin", shop, "trnv1:rsc:o:mesh:svc:cart", users+"eve"),
		)
	}
	return []client.Object{
		&v1alpha1.SubjectClass{
			ObjectMeta: sameNamed("svc"),
			Spec:       v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:o:mesh:svc:*", LabelKey: "example.com/svc", ServiceAccountTemplate: "svc-{id}"},
		},
		&v1alpha1.SubjectClass{ObjectMeta: sameNamed("user"), Spec: v1alpha1.SubjectClassSpec{Pattern: users + "*", LabelKey: "example.com/user"}},
		class("meshed", sites+"meshed-", v1alpha1.EnforcerIstio),
		class("double", sites+"double-", v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio),
		enforce("meshed-shop", sites+"meshed-shop"),
		enforce("double-shop", sites+"double-shop"),
		&v1alpha1.AccessControlPolicy{ObjectMeta: sameNamed("shops"), Spec: v1alpha1.AccessControlPolicySpec{Statements: grants}},
	}
}

// sameDecisions are the decisions by what each member has, with their explanations, and what Istio's enforcer renders and refuses.
func sameDecisions(t *testing.T, s *policy.Snapshot, at time.Time, e enforcer.Enforcer) string {
	t.Helper()
	var all []any
	for _, cluster := range []string{"", "m1", "m2", "m3"} {
		for _, subject := range []string{"trnv1:rsc:o:mesh:svc:cart", "trnv1:rsc:o:iam:user:bob", "trnv1:rsc:o:iam:user:eve"} {
			for _, resources := range [][]string{
				{"trnv1:rsc:o:web:sites:meshed-shop"}, {"trnv1:rsc:o:web:sites:double-shop"},
				{"trnv1:rsc:o:web:sites:meshed-shop", sameHead + "bobs"},
			} {
				for _, p := range []v1alpha1.Port{
					{Port: 80, Protocol: "TCP"}, {Port: 443, Protocol: "UDP"}, {Port: 8080, Protocol: "TCP"}, {Port: 9090, Protocol: "TCP"},
				} {
					q := policy.Query{
						Subjects:   []string{subject},
						Resources:  resources,
						Cluster:    cluster,
						Protocol:   p.Protocol,
						Port:       uint16(p.Port),
						Identified: true,
						At:         at,
					}
					d := s.DecideEffective(&q)
					all = append(
						all,
						fmt.Sprintf(
							"%s: %s to %v on %d: %s, written %s: %s; in Enforce %s",
							cluster,
							subject,
							resources,
							p.Port,
							d.Verdict,
							d.Written.Verdict,
							d.Explain(),
							s.EffectiveEnforced(&q, nil).Verdict,
						),
					)
				}
			}
		}
	}
	units := s.Compile(at)
	for i := range units {
		if !slices.Contains(units[i].Enforcers, v1alpha1.EnforcerIstio) {
			continue
		}
		r, err := e.Render(units[i])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Objects, r.RefusedAmong(s.Targets(&units[i])), r.Unenforced)
	}
	return jsonText(t, all)
}

// TestEveryProgramDecidesTheSame: the adapter, the portal with the flow collector, and the command line decide by the same refusals of
// Istio, which are those that the adapter's enforcer renders by.
func TestEveryProgramDecidesTheSame(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	const sidecar = `{"dataplane": "sidecar", "version": "1.31.2", "strictMTLS": true}`
	const ambient = `{"dataplane": "ambient", "version": "1.30.1", "strictMTLS": true}`
	reported := []*v1alpha1.MemberDataplane{{PolicyMapEntries: 16384}, {PolicyMapEntries: 16384}, {PolicyMapEntries: 16384}}
	for name, c := range map[string]struct {
		istio, roots []string
		holds        []string
	}{
		"Sidecars": {
			istio: []string{sidecar, sidecar, sidecar},
			holds: []string{
				"svc:cart to [trnv1:rsc:o:web:sites:meshed-shop] on 80: allowed",
				"user:bob to [trnv1:rsc:o:web:sites:double-shop] on 80: default-denied, written allowed",
			},
		},
		"Mixed": {
			istio: []string{sidecar, ambient, ""},
			holds: []string{
				"m1: trnv1:rsc:o:mesh:svc:cart to [trnv1:rsc:o:web:sites:meshed-shop] on 8080: allowed",
				"m2: trnv1:rsc:o:mesh:svc:cart to [trnv1:rsc:o:web:sites:meshed-shop] on 8080: default-denied",
				"m3: trnv1:rsc:o:mesh:svc:cart to [trnv1:rsc:o:web:sites:meshed-shop] on 80: default-denied",
			},
		},
		"Nothing":    {istio: []string{"", "", ""}, holds: []string{"the member declares no Istio that enforces"}},
		"Unreadable": {istio: []string{sidecar, "{", sidecar}, holds: []string{"cannot be read"}},
		"OtherNamespace": {
			istio: []string{sidecar, sidecar, sidecar}, roots: []string{"", "mesh-root", ""},
			holds: []string{"m2: trnv1:rsc:o:mesh:svc:cart to [trnv1:rsc:o:web:sites:meshed-shop] on 80: default-denied", "root namespace is mesh-root"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := sameFleet{reported: reported, istio: c.istio, roots: c.roots, more: sameMesh()}
			x, clusters := f.cached(t)
			d := &Enforcers{
				IstioSupport: func() (bool, message.Message) { return true, message.Message{} },
				Changed:      func() {},
				NoHTTP:       func(string) message.Message { return message.Message{} },
			}
			e, why := d.Of(v1alpha1.EnforcerIstio, x.View(), clusters, at)
			if why != nil {
				t.Fatalf("%+v", why)
			}
			want := sameDecisions(t, x.View().Snapshot, at, e)
			for _, text := range c.holds {
				if !strings.Contains(want, text) {
					t.Errorf("the adapter's text has to have %q:\n%s", text, want)
				}
			}
			for who, s := range map[string]*policy.Snapshot{
				"the portal": f.hosted(t), "the command line": f.filed(t, true),
				"the command line without registrations": f.filed(t, false),
			} {
				plan, err := registry.Prepare(v1alpha1.EnforcerIstio, registry.Job{Snapshot: s, At: at})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, sameDecisions(t, s, at, plan.Enforcer)); diff != "" {
					t.Errorf("%s decides something else; -adapter +it:\n%s", who, diff)
				}
			}
		})
	}
}
