package protectedresource

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const (
	waypointResource = "trnv1:rsc:trip-com:web:sites:shop"
	ambientDeclared  = `{"dataplane": "ambient", "version": "1.31", "strictMTLS": true}`
	waypointDeclared = `{"dataplane": "ambient", "version": "1.31", "strictMTLS": true, "waypoints": [{"resource": "` + waypointResource +
		`", "gateway": "shop-waypoint", "port": 8080}]}`
	waypointMark = `"*/ns/istio-system/sa/shop-waypoint"`
	podsKey      = "istio-system/acp-x"
	atWaypoint   = "istio-system/acp-x-waypoint.shop-waypoint"
)

// waypointScene is a resource with a waypoint, whose objects are written to one member.
type waypointScene struct {
	t        *testing.T
	existing []*federation.Object
	seen     map[string]*federation.Observed
	declared string
	app      string
	bound    bool
	problem  string
	gone     bool
}

// facts returns the facts about the resource as they are now.
func (s *waypointScene) facts() *facts {
	s.t.Helper()
	e, err := istio.New(istio.Declared(map[string]istio.Declaration{"m1": {Text: s.declared}}))
	if err != nil {
		s.t.Fatal(err)
	}
	in := policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.ResourceClassSpec{
			Pattern: "trnv1:rsc:trip-com:web:sites:*", LabelKey: "k",
			Actions: []v1alpha1.ClassAction{{Name: "web:read", Ports: []v1alpha1.Port{{Port: 8080}}}}}}},
		Resources: []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: waypointResource, Mode: v1alpha1.ModeEnforce}}},
	}
	f := &facts{
		Resource: waypointResource, Wanted: true, Placement: []string{"m1"}, Clusters: []federation.Cluster{{Name: "m1", Istio: s.declared}},
		View:         &policycache.View{Snapshot: policy.NewSnapshot(in)},
		NotEnforcing: map[v1alpha1.EnforcerName]map[string]message.Message{}, RenderedIn: map[string][]string{}, Observed: observations{}, Existing: s.existing,
		Unit: policy.Unit{ID: "x", Resource: waypointResource, LabelKey: "k", LabelValue: "v", Mode: v1alpha1.ModeEnforce,
			Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio},
			Statements: []policy.UnitStatement{{Ref: policy.Ref{Policy: "p", SID: "s"}, Effect: policy.Allow,
				Subjects: []policy.UnitSubject{{Name: "n", ServiceAccount: s.app}},
				Actions: []policy.UnitAction{{Name: "web:read", Ports: []v1alpha1.Port{{Port: 8080, Protocol: v1alpha1.ProtocolTCP}},
					HTTP: []v1alpha1.HTTPMatch{{Method: "GET"}}}}}}},
		Enforcement: map[string]enforcement{"m1": {GatewayProblem: s.problem, GatewayRead: true,
			Foreign: map[v1alpha1.EnforcerName]foreignPolicies{v1alpha1.EnforcerIstio: {}}}},
	}
	out, err := e.Render(f.Unit)
	if err != nil {
		s.t.Fatal(err)
	}
	f.Rendered = out.Objects
	for i := range out.Objects {
		if o := &out.Objects[i]; o.Only != nil {
			f.RenderedIn[renderedKey(o)] = o.Only
		}
	}
	for _, key := range []string{podsKey, podsKey + "-deny", atWaypoint} {
		o := federation.Observation{Registered: true, Reachable: !s.gone}
		if seen := s.seen[key]; seen != nil && !s.gone {
			copied := *seen
			copied.Waypoint.Bound = s.bound && key == atWaypoint
			o.Object = &copied
		}
		f.Observed[key] = map[string]federation.Observation{"m1": o}
	}
	f.holdBack()
	return f
}

// step carries out one plan, and returns what it wrote to the member, by key. The member has it afterwards.
func (s *waypointScene) step() map[string]string {
	s.t.Helper()
	f := s.facts()
	p, err := newPlan(f)
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]string{}
	for _, w := range p.Writes {
		spec := w.SpecIn("m1")
		out[w.Key()] = fmt.Sprint(spec)
		s.existing = slices.DeleteFunc(slices.Clone(s.existing), func(o *federation.Object) bool { return o.Key() == w.Key() })
		w.Meta.ResourceVersion = "1"
		s.existing = append(s.existing, w)
		if spec == nil {
			delete(s.seen, w.Key())
			continue
		}
		revision := w.RevisionIn("m1")
		s.seen[w.Key()] = &federation.Observed{Name: w.Meta.Name, Revision: revision, Label: revision, Ztunnel: istio.ZtunnelStatus{Reported: true}}
	}
	return out
}

// accepts reports whether pods of the member accept the waypoint.
func (s *waypointScene) accepts() bool {
	for _, o := range s.existing {
		if o.Key() == podsKey {
			return contains(o.SpecIn("m1"), strings.Trim(waypointMark, `"`))
		}
	}
	return false
}

// has reports whether the member has the policy of the waypoint.
func (s *waypointScene) has() bool { return s.seen[atWaypoint] != nil }

// TestOrderOfWaypointPolicies checks that pods accept a waypoint only while its policy is in force: after it was read back and istiod has reported
// about it, no longer when this is in doubt, and not after it goes.
func TestOrderOfWaypointPolicies(t *testing.T) {
	s := &waypointScene{t: t, seen: map[string]*federation.Observed{}, declared: waypointDeclared, app: "app-1"}
	state := func() (v1alpha1.MemberState, string) {
		state, why := s.facts().enforcementState("m1")
		return state, why.Text
	}
	s.step()
	if s.accepts() || !s.has() {
		t.Fatalf("the first plan: pods accept the waypoint: %t, its policy is there: %t", s.accepts(), s.has())
	}
	s.step()
	if got, why := state(); s.accepts() || got != v1alpha1.MemberPending || !strings.Contains(why, "shop-waypoint") {
		t.Fatalf("istiod has not reported: pods accept the waypoint: %t, %s %s", s.accepts(), got, why)
	}
	s.bound = true
	s.step()
	if !s.accepts() {
		t.Fatal("istiod has reported, and pods refuse the waypoint")
	}
	if got, why := state(); got != v1alpha1.MemberRealized {
		t.Errorf("everything is in force: %s %s", got, why)
	}
	for _, c := range []struct {
		reason       string
		change, back func()
		accepts      bool
		state        v1alpha1.MemberState
	}{
		{"another version of the statements", func() { s.app = "app-2" }, func() {}, true, v1alpha1.MemberRealized},
		{"the Gateway is gone", func() { s.bound = false }, func() { s.bound = true }, false, v1alpha1.MemberPending},
		{"the Gateway is not suited", func() { s.problem = "another class" }, func() { s.problem = "" }, false, v1alpha1.MemberPending},
		{"the policy was changed in the member", func() { s.seen[atWaypoint].Revision = "other" },
			func() { s.seen[atWaypoint].Revision = s.seen[atWaypoint].Label }, false, v1alpha1.MemberPending},
		{"the policy is not enforced", func() { s.seen[atWaypoint].Invalid = "dry run" }, func() { s.seen[atWaypoint].Invalid = "" }, false,
			v1alpha1.MemberPending},
		{"the member cannot be read", func() { s.gone = true }, func() { s.gone = false }, true, v1alpha1.MemberRealized},
	} {
		c.change()
		s.step()
		got, _ := state()
		if s.accepts() != c.accepts || got != c.state {
			t.Errorf("%s: pods accept the waypoint: %t, state %s", c.reason, s.accepts(), got)
		}
		c.back()
		s.step()
		if !s.accepts() {
			t.Errorf("after the end of %q, pods still refuse the waypoint", c.reason)
		}
	}

	// When the dedication ends, the pods refuse the waypoint first. The waypoint's policies are removed when ztunnel has the pods' policy.
	s.declared = ambientDeclared
	written := s.step()
	if s.accepts() || !s.has() {
		t.Fatalf("the dedication ends: pods accept the waypoint: %t, its policy is there: %t; written was %v", s.accepts(), s.has(), written)
	}
	s.seen[podsKey].Ztunnel = istio.ZtunnelStatus{}
	s.step()
	if !s.has() {
		t.Fatal("ztunnel may still accept the waypoint, and its policy is gone")
	}
	s.seen[podsKey].Ztunnel = istio.ZtunnelStatus{Reported: true}
	s.step()
	if s.has() || s.accepts() {
		t.Errorf("the policy of the waypoint stays: %t", s.has())
	}
}
