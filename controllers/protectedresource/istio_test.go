package protectedresource

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const meshKey = "istio-system/acp-x"

// meshed are the facts about an enforced unit of a class that names both enforcers, whose objects have one name.
func meshed(t *testing.T) *facts {
	t.Helper()
	render := func(o enforcer.Object) enforcer.Rendered {
		o.Name, o.Spec = "acp-x", map[string]any{"kind": o.Kind}
		r, err := enforcer.Render(o, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return &facts{
		Resource:  "r:*",
		Wanted:    true,
		View:      policycache.New(policycache.NewQueues(clock.RealClock{})).View(),
		Placement: []string{"m1"},
		Clusters:  []federation.Cluster{{Name: "m1"}},
		Unit:      policy.Unit{Resource: "r:*", Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio}},
		Rendered: []enforcer.Rendered{
			render(enforcer.Object{Kind: "CiliumClusterwideNetworkPolicy"}),
			render(enforcer.Object{Kind: "AuthorizationPolicy", Namespace: "istio-system"}),
		},
		NotEnforcing: map[v1alpha1.EnforcerName]map[string]message.Message{},
		Observed:     observations{"acp-x": {"m1": {Registered: true, Reachable: true}}, meshKey: {"m1": {Registered: true, Reachable: true}}},
		Enforcement: map[string]enforcement{
			"m1": {Foreign: map[v1alpha1.EnforcerName]foreignPolicies{v1alpha1.EnforcerCilium: {}, v1alpha1.EnforcerIstio: {}}},
		},
	}
}

// TestSeenWithoutIstioIsNoRecord checks that a member is not remembered as one that may have an object only because its status says that it declares no
// Istio and gets none, and that it is if the status names a revision.
func TestSeenWithoutIstioIsNoRecord(t *testing.T) {
	state := func(why message.Message, desired, observed string) v1alpha1.ClusterState {
		c := v1alpha1.ClusterState{Name: "m1", State: v1alpha1.MemberPending, DesiredRevision: desired, ObservedRevision: observed}
		statusfields.SetMessage(&c, why)
		return c
	}
	for name, c := range map[string]struct {
		state v1alpha1.ClusterState
		want  bool
	}{
		"Without":     {state(message.StateWithoutIstio(), "", ""), true},
		"Desired":     {state(message.StateWithoutIstio(), "a", ""), false},
		"Observed":    {state(message.StateWithoutIstio(), "", "a"), false},
		"Unreachable": {state(message.MemberNotContacted("m1"), "", ""), false},
		"NoMessage":   {v1alpha1.ClusterState{Name: "m1", State: v1alpha1.MemberRealized}, false},
	} {
		if got := seenWithoutIstio(&c.state); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// observed is the observation of an object with a revision and a label.
func observed(revision, label string) federation.Observation {
	return federation.Observation{Registered: true, Reachable: true, Object: &federation.Observed{Name: "acp-x", Revision: revision, Label: label}}
}

func TestEachDataplaneGetsAnObject(t *testing.T) {
	p, err := newPlan(meshed(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range p.Writes {
		got = append(got, w.Kind.Federated.Kind+" "+w.Meta.Namespace+" "+w.Meta.Name)
	}
	if diff := cmp.Diff([]string{"FederatedCiliumClusterwideNetworkPolicy  acp-x", "FederatedAuthorizationPolicy istio-system acp-x"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(p.Desired) != 2 || p.Desired["acp-x"]["m1"] == p.Desired[meshKey]["m1"] {
		t.Errorf("%v", p.Desired)
	}
}

// TestUnrenderedKindsStay checks that the objects of an enforcer that cannot render at the moment stay, because without them
// the resource would be open for one of the two dataplanes.
func TestUnrenderedKindsStay(t *testing.T) {
	for _, stays := range []bool{true, false} {
		f := meshed(t)
		f.Rendered = f.Rendered[:1]
		there := &federation.Object{Kind: federation.IstioPolicy, Placement: []string{"m1"}, TemplateSpec: map[string]any{"action": "ALLOW"},
			Meta: metav1.ObjectMeta{Name: "acp-x", Namespace: "istio-system", ResourceVersion: "1"}}
		f.Existing = []*federation.Object{there}
		// Cilium's policy is in force, so nothing waits for it.
		f.Observed["acp-x"]["m1"] = observed(f.Rendered[0].Revision, f.Rendered[0].Revision)
		f.Observed[meshKey]["m1"] = observed(enforcer.Revision(there.TemplateSpec), f.Rendered[0].Revision)
		if stays {
			f.UnrenderedKinds = []federation.Kind{federation.IstioPolicy}
		}
		p, err := newPlan(f)
		if err != nil {
			t.Fatal(err)
		}
		taken := false
		for _, w := range p.Writes {
			taken = taken || w.Key() == meshKey && len(w.Placement) == 0
		}
		if taken == stays {
			t.Errorf("stays %t: taken away %t", stays, taken)
		}
		if _, desired := p.Desired[meshKey]["m1"]; desired != stays {
			t.Errorf("stays %t: desired %t", stays, desired)
		}
	}
}

// TestTheWorseDataplaneCounts checks that the worse state of the two dataplanes is the state of the member.
func TestTheWorseDataplaneCounts(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(f *facts, seen map[string]*federation.Observed)
		want   v1alpha1.MemberState
		says   string
	}{
		{"both are as they have to be", func(*facts, map[string]*federation.Observed) {}, v1alpha1.MemberRealized, ""},
		{
			"Istio's is not there", func(_ *facts, seen map[string]*federation.Observed) { seen[meshKey] = nil },
			v1alpha1.MemberPending, "AuthorizationPolicy acp-x is not there yet",
		},
		{
			"Istio's was changed by hand", func(_ *facts, seen map[string]*federation.Observed) { seen[meshKey].Revision = "other" },
			v1alpha1.MemberDrifted, "AuthorizationPolicy acp-x was changed",
		},
		{
			"Cilium's is not there", func(_ *facts, seen map[string]*federation.Observed) { seen["acp-x"] = nil },
			v1alpha1.MemberPending, "the policy is not there yet",
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f := meshed(t)
			seen := map[string]*federation.Observed{}
			for i := range f.Rendered {
				r := &f.Rendered[i]
				seen[renderedKey(r)] = &federation.Observed{Name: "acp-x", Revision: r.Revision, Label: r.Revision}
			}
			c.change(f, seen)
			for key, o := range seen {
				f.Observed[key]["m1"] = federation.Observation{Registered: true, Reachable: true, Object: o}
			}
			p, err := newPlan(f)
			if err != nil {
				t.Fatal(err)
			}
			states, _ := f.clusterStates(&outcome{Step: stepApplied, Plan: p}, objectNames(f, &p, nil))
			if len(states) != 1 || states[0].State != c.want || !strings.Contains(states[0].Message, c.says) {
				t.Errorf("%+v, want %s %q", states, c.want, c.says)
			}
		})
	}
}

func TestEnforcementState(t *testing.T) {
	const cilium, istio = v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio
	both := []v1alpha1.EnforcerName{cilium, istio}
	for _, c := range []struct {
		reason    string
		enforcers []v1alpha1.EnforcerName
		audits    string
		lacking   string
		// opens is the dataplane for which a policy that is not ACP's allows more, and unjudged that for which it is unknown.
		opens    v1alpha1.EnforcerName
		want     v1alpha1.MemberState
		unjudged v1alpha1.EnforcerName
	}{
		{"nobody lets more in", both, "", "", "", v1alpha1.MemberRealized, ""},
		{"Cilium lets everything through", both, "Cilium's audit mode is on", "", "", v1alpha1.MemberPending, ""},
		{"that is none of Istio's business", both[1:], "Cilium's audit mode is on", "", "", v1alpha1.MemberRealized, ""},
		{"the member has no Istio", both[1:], "", "it declares none", "", v1alpha1.MemberPending, ""},
		{"somebody's policy of Cilium", both, "", "", cilium, v1alpha1.MemberOverridden, ""},
		{"that is none of Istio's business", both[1:], "", "", cilium, v1alpha1.MemberRealized, ""},
		{"somebody's policy of Istio", both, "", "", istio, v1alpha1.MemberOverridden, ""},
		{"and no other dataplane", both[1:], "", "", istio, v1alpha1.MemberOverridden, ""},
		{"that is none of Cilium's business", both[:1], "", "", istio, v1alpha1.MemberRealized, ""},
		{"nobody knows what others let in", both, "", "", "", v1alpha1.MemberPending, cilium},
		{"that it is opened is known", both, "", "", cilium, v1alpha1.MemberOverridden, istio},
		{"nobody knows, and it is none of Cilium's business", both[:1], "", "", "", v1alpha1.MemberRealized, istio},
	} {
		f := meshed(t)
		f.Unit.Enforcers = c.enforcers
		r := &Reconciler{Members: unsound{"m1": c.audits}, OpenedBy: func(by v1alpha1.EnforcerName, _, _, _ string) string {
			if by == c.opens {
				return "somebody's policy"
			}
			return ""
		}, ForeignUnknown: func(by v1alpha1.EnforcerName, _ string) message.Message {
			if by == c.unjudged {
				return message.Verbatim("it is forbidden to list them")
			}
			return message.Message{}
		}}
		f.Enforcement["m1"] = r.enforcementIn(f, "m1")
		if c.lacking != "" {
			f.NotEnforcing[v1alpha1.EnforcerIstio] = map[string]message.Message{"m1": message.Verbatim(c.lacking)}
		}
		if state, why := f.enforcementState("m1"); state != c.want {
			t.Errorf("%s: %s (%s), want %s", c.reason, state, why, c.want)
		}
	}
}

// TestFoldWildcards checks that the allows of a wildcard are reported for the resources that it covers if Istio enforces them,
// and for the wildcard if Cilium does.
func TestFoldWildcards(t *testing.T) {
	exact, wide := policy.Ref{Policy: "p", SID: "exact"}, policy.Ref{Policy: "a", SID: "wide"}
	istioOnly, both := []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}, []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio}
	f := &facts{
		Resource: "r:x",
		Wanted:   true,
		Unit:     policy.Unit{Enforcers: both, From: []policy.Ref{exact}, Statements: []policy.UnitStatement{{Ref: exact}, {Ref: wide}}},
	}
	f.foldWildcards()
	if diff := cmp.Diff([]policy.Ref{wide, exact}, f.Unit.From); diff != "" || !f.Wanted {
		t.Errorf("wanted %t, -want +got\n%s", f.Wanted, diff)
	}
	for _, c := range []struct {
		enforcers []v1alpha1.EnforcerName
		want      bool
	}{{istioOnly, false}, {both, true}, {nil, true}} {
		f := &facts{Resource: "r:*", Wanted: true, Unit: policy.Unit{Enforcers: c.enforcers}}
		if f.foldWildcards(); f.Wanted != c.want {
			t.Errorf("%v: a wildcard's unit is wanted: %t", c.enforcers, f.Wanted)
		}
	}
}

// TestPodsWithoutProxyAreNotEnforced checks that a member with a pod of the resource that no proxy protects is not realized, and only for
// classes that Istio enforces.
func TestPodsWithoutProxyAreNotEnforced(t *testing.T) {
	both := []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio}
	for _, c := range []struct {
		reason    string
		enforcers []v1alpha1.EnforcerName
		now       Members
		m1        v1alpha1.MemberState
	}{
		{"every pod has a proxy", both[1:], sound{}, v1alpha1.MemberRealized},
		{"a pod has none", both[1:], unmeshed{member: "m1", key: redisKey, value: "x"}, v1alpha1.MemberPending},
		{"the policy of Cilium protects it, that of Istio does not", both, unmeshed{member: "m1", key: redisKey, value: "x"}, v1alpha1.MemberPending},
		{"the class names only Cilium", both[:1], unmeshed{member: "m1", key: redisKey, value: "x"}, v1alpha1.MemberRealized},
		{"it is of another resource", both[1:], unmeshed{member: "m1", key: redisKey, value: "y"}, v1alpha1.MemberRealized},
		{"it has one for connections only", both[1:], unmeshed{member: "m1", key: redisKey, value: "x", requests: true}, v1alpha1.MemberRealized},
		{"it is in another member", both[1:], unmeshed{member: "m2", key: redisKey, value: "x"}, v1alpha1.MemberRealized},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newScene(t, "m1", "m2")
			s.enforcers, s.members = c.enforcers, c.now
			if m1 := s.settle()["m1"]; m1.State != c.m1 || (c.m1 == v1alpha1.MemberPending) != strings.Contains(m1.Message, "ns/redis-0") {
				t.Errorf("%+v, want %s", m1, c.m1)
			}
		})
	}
	s := newScene(t, "m1")
	s.enforcers, s.requests = both[1:], []v1alpha1.HTTPMatch{{Method: "GET"}}
	s.members = unmeshed{member: "m1", key: redisKey, value: "x", requests: true}
	if m1 := s.settle()["m1"]; m1.State != v1alpha1.MemberPending || !strings.Contains(m1.Message, "ns/redis-0") {
		t.Errorf("rules about requests where a pod has a proxy for connections only: %+v", m1)
	}
}

// TestPoliciesThatZtunnelDoesNotGetAreNotEnforced checks that a member in ambient is realized only if istiod reports that ztunnel gets the
// current version of each policy as it is written, and that this does not count for sidecars.
func TestPoliciesThatZtunnelDoesNotGetAreNotEnforced(t *testing.T) {
	const ambient, sidecars = `{"dataplane": "ambient", "version": "1.31.2"}`, `{"dataplane": "sidecar", "version": "1.31.2"}`
	accepted := istio.ZtunnelStatus{Reported: true}
	for _, c := range []struct {
		reason   string
		declared string
		status   istio.ZtunnelStatus
		mode     v1alpha1.Mode
		m1       v1alpha1.MemberState
		says     string
	}{
		{"it gets the policy", ambient, accepted, v1alpha1.ModeEnforce, v1alpha1.MemberRealized, ""},
		{"istiod has not reported", ambient, istio.ZtunnelStatus{}, v1alpha1.ModeEnforce, v1alpha1.MemberPending, "istiod has not reported"},
		{"a part is left out", ambient, istio.ZtunnelStatus{Reported: true, Problem: "no HTTP"}, v1alpha1.ModeEnforce, v1alpha1.MemberPending, "no HTTP"},
		{"sidecars get more", sidecars, istio.ZtunnelStatus{Reported: true, Problem: "no HTTP"}, v1alpha1.ModeEnforce, v1alpha1.MemberRealized, ""},
		{"nobody reports about sidecars", sidecars, istio.ZtunnelStatus{}, v1alpha1.ModeEnforce, v1alpha1.MemberRealized, ""},
		{"nothing is enforced", ambient, istio.ZtunnelStatus{}, v1alpha1.ModeAudit, v1alpha1.MemberRealized, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newScene(t, "m1", "m2")
			s.enforcers, s.spec.Mode = []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}, c.mode
			s.clusters[0].Istio, s.clusters[1].Istio = c.declared, sidecars
			s.odd = map[string]func(*federation.Observation){"m1": func(o *federation.Observation) {
				if o.Object != nil {
					o.Object.Ztunnel = c.status
				}
			}}
			states := s.settle()
			if m1 := states["m1"]; m1.State != c.m1 || !strings.Contains(m1.Message, c.says) || (c.says == "") != (m1.Message == "") {
				t.Errorf("%+v, want %s", m1, c.m1)
			}
			if c.says != "" && !strings.Contains(states["m1"].Message, "AuthorizationPolicy acp-") {
				t.Errorf("the policy is not named: %q", states["m1"].Message)
			}
			if m2 := states["m2"]; m2.State != v1alpha1.MemberRealized {
				t.Errorf("another member: %+v", m2)
			}
		})
	}
}
