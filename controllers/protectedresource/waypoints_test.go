package protectedresource

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
)

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
	if got, why := state(); s.accepts() || got != v1alpha1.MemberPending || !strings.Contains(why, "-waypoint-8080-deny.") {
		t.Fatalf("istiod has not reported about the denies: pods accept the waypoint: %t, %s %s", s.accepts(), got, why)
	}
	s.deniesBound, s.unread = true, true
	s.step()
	if got, why := state(); s.accepts() || got != v1alpha1.MemberPending || !strings.Contains(why, "not read") {
		t.Fatalf("the Gateway was not read: pods accept the waypoint: %t, %s %s", s.accepts(), got, why)
	}
	s.unread = false
	s.step()
	if !s.accepts() {
		t.Fatal("istiod has reported, and pods refuse the waypoint")
	}
	if got, why := state(); got != v1alpha1.MemberRealized {
		t.Errorf("everything is in force: %s %s", got, why)
	}
	var deleted *federation.Observed
	for _, c := range []struct {
		reason       string
		change, back func()
		accepts      bool
		state        v1alpha1.MemberState
	}{
		{"another version of the statements", func() { s.app = "app-2" }, func() {}, true, v1alpha1.MemberRealized},
		{"istiod has not reported about another version", func() { s.app, s.outdated = "app-3", true }, func() { s.outdated = false }, true,
			v1alpha1.MemberPending},
		{"the Gateway is gone", func() { s.bound = false }, func() { s.bound = true }, false, v1alpha1.MemberPending},
		{"the Gateways were not read", func() { s.unread = true }, func() { s.unread = false }, true, v1alpha1.MemberPending},
		{"the Gateway is not suited", func() { s.problem = "another class" }, func() { s.problem = "" }, false, v1alpha1.MemberPending},
		{"the policy was changed in the member", func() { s.seen[atWaypoint].Revision = "other" },
			func() { s.seen[atWaypoint].Revision = s.seen[atWaypoint].Label }, false, v1alpha1.MemberPending},
		{"the policy is not enforced", func() { s.seen[atWaypoint].Invalid = "dry run" }, func() { s.seen[atWaypoint].Invalid = "" }, false,
			v1alpha1.MemberPending},
		{"the denies were changed in the member", func() { s.seen[deniesAt].Revision = "other" },
			func() { s.seen[deniesAt].Revision = s.seen[deniesAt].Label }, false, v1alpha1.MemberPending},
		{"the denies are not enforced", func() { s.seen[deniesAt].Invalid = "dry run" }, func() { s.seen[deniesAt].Invalid = "" }, false,
			v1alpha1.MemberPending},
		{"the denies were deleted in the member", func() { deleted = s.seen[deniesAt]; delete(s.seen, deniesAt) },
			func() { s.seen[deniesAt] = deleted }, false, v1alpha1.MemberPending},
		{"istiod does not apply the denies", func() { s.deniesBound = false }, func() { s.deniesBound = true }, false, v1alpha1.MemberPending},
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

// TestWaypointOfAnotherResource checks that pods do not accept a waypoint, and that it gets no policy of their resource, while another resource has
// one, or may still have it: the allows of both would count for the pods of both.
func TestWaypointOfAnotherResource(t *testing.T) {
	other := func(placement ...string) *federation.Object {
		return &federation.Object{Kind: federation.IstioPolicy, Placement: placement, Propagation: federation.Propagation{Seen: true},
			TemplateSpec: map[string]any{"action": "ALLOW", "targetRefs": []any{map[string]any{"kind": "Gateway", "name": "shop-waypoint"}}},
			Meta: metav1.ObjectMeta{Name: "acp-y-waypoint-80.shop-waypoint", Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
				Annotations: map[string]string{federation.AnnotationResource: "other-resource", federation.AnnotationEverPlaced: "m1"}}}
	}
	s := &waypointScene{t: t, seen: map[string]*federation.Observed{}, declared: waypointDeclared, app: "app-1", bound: true, deniesBound: true}
	settle := func() {
		for range 5 {
			s.step()
		}
	}
	for _, c := range []struct {
		reason  string
		others  []*federation.Object
		seen    bool
		accepts bool
	}{
		{"it is dedicated to another resource until now", []*federation.Object{other("m1")}, true, false},
		{"its object is not placed any more, and the member has it", []*federation.Object{other()}, true, false},
		{"the member was read without it", []*federation.Object{other()}, false, true},
		{"it comes back", []*federation.Object{other("m1")}, false, false},
		{"it goes", nil, false, true},
	} {
		hadPolicy := s.has()
		s.others, s.othersSeen = c.others, map[string]bool{"istio-system/acp-y-waypoint-80.shop-waypoint": c.seen}
		settle()
		state, why := s.facts().enforcementState("m1")
		if s.accepts() != c.accepts || s.has() != (c.accepts || hadPolicy) {
			t.Errorf("%s: pods accept the waypoint: %t, it has the policy: %t", c.reason, s.accepts(), s.has())
		}
		if (state == v1alpha1.MemberRealized) != c.accepts || !c.accepts && !strings.Contains(why.Text, "other-resource") {
			t.Errorf("%s: %s %s", c.reason, state, why.Text)
		}
		if checks := (&outcome{Step: stepApplied, Facts: s.facts()}); !c.accepts {
			if result, err := checks.result(); err != nil || result.RequeueAfter == 0 {
				t.Errorf("%s: nothing triggers another check: %v", c.reason, err)
			}
		}
	}
}

// TestWaypointOfAnotherResourceUnconfirmed checks that pods that accept a waypoint continue to do so while the member cannot be read, although an object
// of another resource was there before.
func TestWaypointOfAnotherResourceUnconfirmed(t *testing.T) {
	s := &waypointScene{t: t, seen: map[string]*federation.Observed{}, declared: waypointDeclared, app: "app-1", bound: true, deniesBound: true}
	s.others = []*federation.Object{{Kind: federation.IstioPolicy, Propagation: federation.Propagation{Seen: true},
		TemplateSpec: map[string]any{"targetRefs": []any{map[string]any{"name": "shop-waypoint"}}},
		Meta:         metav1.ObjectMeta{Name: "acp-y-waypoint-80.shop-waypoint", Annotations: map[string]string{federation.AnnotationEverPlaced: "m1"}}}}
	for range 4 {
		s.step()
	}
	if !s.accepts() {
		t.Fatal("pods refuse the waypoint")
	}
	s.gone = true
	s.step()
	if !s.accepts() {
		t.Error("the member cannot be read, and pods refuse the waypoint")
	}
}

// TestWaypointFromAuditToEnforce checks that a resource that is enforced from now on waits for the policies of its waypoint, although its policy in
// Audit contained the account.
func TestWaypointFromAuditToEnforce(t *testing.T) {
	s := &waypointScene{t: t, seen: map[string]*federation.Observed{}, declared: waypointDeclared, app: "app-1", bound: true, deniesBound: true,
		mode: v1alpha1.ModeAudit}
	s.step()
	s.step()
	s.mode = v1alpha1.ModeEnforce
	s.step()
	if s.accepts() {
		t.Error("pods accept the waypoint while its policies are those of Audit")
	}
	s.outdated = true
	s.step()
	if s.accepts() {
		t.Error("istiod has not reported about the policies of Enforce, and pods accept the waypoint")
	}
	s.outdated = false
	s.step()
	if !s.accepts() {
		t.Error("everything is in force, and pods refuse the waypoint")
	}
}

// TestEndOfDeclaration checks that the policies of a waypoint stay until istiod reports that ztunnel has the policy by which pods do not accept it,
// also if the whole declaration is removed, or cannot be parsed.
func TestEndOfDeclaration(t *testing.T) {
	for _, declared := range []string{ambientDeclared, "", "{"} {
		s := &waypointScene{t: t, seen: map[string]*federation.Observed{}, declared: waypointDeclared, app: "app-1", bound: true, deniesBound: true}
		for range 4 {
			s.step()
		}
		if !s.accepts() {
			t.Fatal("pods refuse the waypoint")
		}
		s.declared = declared
		s.step()
		s.seen[podsKey].Ztunnel = istio.ZtunnelStatus{}
		s.step()
		if s.accepts() || !s.has() || s.seen[deniesAt] == nil {
			t.Errorf("%q: pods accept the waypoint: %t, its policies are there: %t %t", declared, s.accepts(), s.has(), s.seen[deniesAt] != nil)
		}
		s.seen[podsKey].Ztunnel = istio.ZtunnelStatus{Reported: true}
		for range 3 {
			s.step()
		}
		if s.has() || s.seen[deniesAt] != nil {
			t.Errorf("%q: the policies of the waypoint stay", declared)
		}
	}
}

// TestEndOfDeclarationOfALargeUnit checks that the policies of a waypoint stay as long as a member may have the object with the rule by which pods accept
// the waypoint, if this object contains nothing else and is removed when the dedication ends.
func TestEndOfDeclarationOfALargeUnit(t *testing.T) {
	const maxRules = 512 // of a policy of Istio's
	acceptKey := podsKey + "-2"
	s := &waypointScene{t: t, seen: map[string]*federation.Observed{}, declared: waypointDeclared, app: "app-1", bound: true, deniesBound: true,
		more: maxRules - 1}
	for range 4 {
		s.step()
	}
	accept := s.seen[acceptKey]
	if accept == nil || !s.has() {
		t.Fatalf("an object has only the rule by which pods accept the waypoint: %t; the waypoint's policies are there: %t", accept != nil, s.has())
	}
	s.declared = ambientDeclared
	if s.step(); s.seen[acceptKey] != nil {
		t.Fatal("the object without rules stays")
	}
	s.seen[acceptKey] = accept // the engine has not removed it yet
	for range 3 {
		if s.step(); !s.has() || s.seen[deniesAt] == nil {
			t.Fatalf("pods may accept the waypoint, and its policies are there: %t %t", s.has(), s.seen[deniesAt] != nil)
		}
	}
	delete(s.seen, acceptKey)
	for range 3 {
		s.step()
	}
	if s.has() || s.seen[deniesAt] != nil {
		t.Error("the policies of the waypoint stay")
	}
}

// TestPortOfWaypointChanges checks that a waypoint never has the policies of one port while pods may accept it on another one: first the pods refuse
// it, and its policies change when istiod has reported that ztunnel has that.
func TestPortOfWaypointChanges(t *testing.T) {
	s := &waypointScene{t: t, seen: map[string]*federation.Observed{}, declared: waypointDeclared, app: "app-1", bound: true, deniesBound: true}
	for range 4 {
		s.step()
	}
	if !s.accepts() {
		t.Fatal("pods refuse the waypoint")
	}
	before := s.seen[atWaypoint].Revision
	s.declared = strings.Replace(waypointDeclared, "8080", "9090", 1)
	written := s.step()
	if s.accepts() {
		t.Fatal("pods accept the waypoint on a port for which it has no policies")
	}
	if denied := written[podsKey+"-deny"]; !strings.Contains(denied, "notPorts:[9090]") || !strings.Contains(denied, "map[ports:[9090]]") {
		t.Errorf("pods refuse the waypoint only by %s", denied)
	}
	s.seen[podsKey].Ztunnel = istio.ZtunnelStatus{}
	for range 3 {
		s.step()
		if !s.has() || s.seen[atWaypoint].Revision != before || s.seen[otherPort] != nil {
			t.Fatalf("ztunnel may still accept the earlier port; its policies are there: %t, those of the other port: %t", s.has(), s.seen[otherPort] != nil)
		}
	}
	s.seen[podsKey].Ztunnel = istio.ZtunnelStatus{Reported: true}
	for range 6 {
		s.step()
		if s.seen[otherPort] != nil && (s.has() || s.seen[deniesAt] != nil) {
			t.Fatal("the waypoint has the policies of both ports")
		}
	}
	if state, why := s.facts().enforcementState("m1"); !s.accepts() || state != v1alpha1.MemberRealized {
		t.Errorf("pods accept the waypoint: %t; %s %s", s.accepts(), state, why.Text)
	}
}

// TestRetainedObjectStaysAsItIs checks that a member in which an object is not wanted any more keeps its own spec while the object has to stay, and
// not that of other members, which may be an AUDIT that decides nothing.
func TestRetainedObjectStaysAsItIs(t *testing.T) {
	spec := func(action string) map[string]any {
		return map[string]any{"action": action, "targetRefs": []any{map[string]any{"kind": "Gateway", "name": "shop-waypoint"}}}
	}
	name := strings.TrimPrefix(atWaypoint, "istio-system/")
	r, err := enforcer.Render(enforcer.Object{Kind: "AuthorizationPolicy", Name: name, Spec: spec("AUDIT")}, "x",
		map[string]map[string]any{"m2": spec("ALLOW")})
	if err != nil {
		t.Fatal(err)
	}
	revision := enforcer.Revision(spec("ALLOW"))
	allows := federation.Override{Spec: spec("ALLOW"), Labels: map[string]string{v1alpha1.LabelRevision: revision}}
	f := &facts{Resource: waypointResource, Rendered: []enforcer.Rendered{r}, RenderedIn: map[string][]string{atWaypoint: {"m2"}},
		Existing: []*federation.Object{{Kind: federation.IstioPolicy, Meta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"},
			TemplateSpec: spec("AUDIT"), Placement: []string{"m1", "m2"}, Overrides: map[string]federation.Override{"m1": allows, "m2": allows}}}}
	p := plan{Desired: map[string]map[string]string{}}
	notRead := map[string]map[string]string{podsKey: {"m1": "revision"}}
	if err := p.placePartial(f, 0, []string{"m1", "m2"}, notRead); err != nil {
		t.Fatal(err)
	}
	if got := p.Desired[atWaypoint]["m1"]; got != revision {
		t.Errorf("m1 gets the revision %q, and had %q", got, revision)
	}
	for _, w := range p.Writes {
		if got := w.SpecIn("m1")["action"]; got != "ALLOW" {
			t.Errorf("m1 gets the action %v", got)
		}
	}
}

// TestInvalidDedication checks that a resource for which a member declares a waypoint that cannot be used is not realized there.
func TestInvalidDedication(t *testing.T) {
	s := &waypointScene{t: t, seen: map[string]*federation.Observed{}, app: "app-1", declared: strings.Replace(waypointDeclared, "8080", "0", 1)}
	s.step()
	state, why := s.facts().enforcementState("m1")
	if s.accepts() || s.has() || state != v1alpha1.MemberPending || !strings.Contains(why.Text, "port 0") {
		t.Errorf("pods accept the waypoint: %t; %s %s", s.accepts(), state, why.Text)
	}
}

// TestDedicationBecomesInvalid checks that pods refuse a waypoint on every port when its entry cannot be used any more, before its policies go.
func TestDedicationBecomesInvalid(t *testing.T) {
	s := &waypointScene{t: t, seen: map[string]*federation.Observed{}, declared: waypointDeclared, app: "app-1", bound: true, deniesBound: true}
	for range 4 {
		s.step()
	}
	if !s.accepts() {
		t.Fatal("pods refuse the waypoint")
	}
	s.declared = strings.Replace(waypointDeclared, "8080", "0", 1)
	refusal := fmt.Sprintf("map[from:[map[source:map[principals:[%s]]]]]", waypointMark)
	if denied := s.step()[podsKey+"-deny"]; !strings.Contains(denied, refusal) || s.accepts() || !s.has() {
		t.Fatalf("pods refuse the waypoint by %s, accept it: %t, its policy is there: %t", denied, s.accepts(), s.has())
	}
	s.seen[podsKey+"-deny"].Ztunnel = istio.ZtunnelStatus{}
	if s.step(); !s.has() {
		t.Error("ztunnel may not refuse the waypoint yet, and its policy is gone")
	}
	s.seen[podsKey+"-deny"].Ztunnel = istio.ZtunnelStatus{Reported: true}
	s.step()
	if _, why := s.facts().enforcementState("m1"); s.has() || !strings.Contains(why.Text, "refuse it on every port") {
		t.Errorf("the policy of the waypoint is there: %t; %s", s.has(), why.Text)
	}
}

// TestHeldWaypointOfAnotherEnforcer checks that a waypoint that pods do not accept yet does not keep a class from another enforcer.
func TestHeldWaypointOfAnotherEnforcer(t *testing.T) {
	s := &waypointScene{t: t, seen: map[string]*federation.Observed{}, declared: waypointDeclared, app: "app-1"}
	s.step()
	f := s.facts()
	if f.waypointProblem("m1").IsZero() {
		t.Error("pods refuse the waypoint, and there is no problem")
	}
	f.ReplacedRenderings, f.Rendered, f.Unit.Enforcers = f.Rendered, nil, []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}
	if why := f.waypointProblem("m1"); !why.IsZero() {
		t.Error(why.Text)
	}
}
