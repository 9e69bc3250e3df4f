package protectedresource

import (
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// groupFleet are members with one observation of every group.
type groupFleet struct {
	federation.Members
	seen federation.Observation
}

func (g groupFleet) Observe(string, string) federation.Observation { return g.seen }

// TestObservedGroups checks that a group is what was read, although only differences are kept, and that a member that was
// not read has an unknown state.
func TestObservedGroups(t *testing.T) {
	object := func(revision, invalid string) federation.Observation {
		return federation.Observation{Registered: true, Reachable: true, Object: &federation.Observed{Name: "g", Revision: revision, Invalid: invalid}}
	}
	absent := federation.Observation{Registered: true, Reachable: true}
	for _, c := range []struct {
		reason   string
		revision string
		seen     federation.Observation
		stored   bool
	}{
		{"it is as wanted", "r", object("r", ""), false},
		{"it has another revision", "r", object("q", ""), true},
		{"the dataplane rejects it", "r", object("r", "no"), true},
		{"it is missing", "r", absent, true},
		{"the member cannot be read", "r", federation.Observation{Registered: true}, true},
		{"it is removed", "", absent, false},
		{"it has to be removed", "", object("r", ""), true},
		{"it has to be removed from a member that cannot be read", "", federation.Observation{Registered: true}, true},
	} {
		f := &facts{Groups: []externalgroup.Object{{Name: "g", Revision: c.revision}}}
		r := &Reconciler{Groups: &externalgroup.Reconciler{Fleet: groupFleet{seen: c.seen}}}
		f.ObservedGroups = r.observeGroups(f, []string{"m1"})
		if stored := len(f.ObservedGroups["m1"]) > 0; stored != c.stored {
			t.Errorf("%s: stored %t", c.reason, stored)
		}
		got := f.observedGroup("m1", &f.Groups[0])
		if got.Reachable != c.seen.Reachable || (got.Object == nil) != (c.seen.Object == nil) ||
			got.Object != nil && (got.Object.Revision != c.seen.Object.Revision || got.Object.Invalid != c.seen.Object.Invalid) {
			t.Errorf("%s: got %+v, want %+v", c.reason, got, c.seen)
		}
		if other := f.observedGroup("m2", &f.Groups[0]); other.Reachable || !other.Unknown || other.Message.IsZero() {
			t.Errorf("a member that was not read: %+v", other)
		}
	}
}

// TestWhatWasNotReadIsNotRealized checks that a member that is missing in one of the maps of the facts is never Realized.
func TestWhatWasNotReadIsNotRealized(t *testing.T) {
	full := func() *facts {
		f := meshed(t)
		for i := range f.Rendered {
			r := &f.Rendered[i]
			f.Observed[renderedKey(r)]["m1"] = observed(r.Revision, r.Revision)
		}
		return f
	}
	for _, c := range []struct {
		reason string
		forget func(*facts)
		want   v1alpha1.MemberState
	}{
		{"everything was read", func(*facts) {}, v1alpha1.MemberRealized},
		{"an object was not read", func(f *facts) { delete(f.Observed[meshKey], "m1") }, v1alpha1.MemberUnreachable},
		{"no object was read", func(f *facts) { f.Observed = nil }, v1alpha1.MemberUnreachable},
		{"its dataplane was not read", func(f *facts) { f.Enforcement = nil }, v1alpha1.MemberPending},
		{"a group was not read", func(f *facts) { f.Groups = []externalgroup.Object{{Name: "g", Revision: "r"}} }, v1alpha1.MemberUnreachable},
	} {
		f := full()
		c.forget(f)
		p, err := newPlan(f)
		if err != nil {
			t.Fatal(err)
		}
		states, _ := f.clusterStates(&outcome{Step: stepApplied, Facts: f, Plan: p}, objectNames(f, &p, nil))
		if len(states) != 1 || states[0].State != c.want || (states[0].Message == "") != (c.want == v1alpha1.MemberRealized) {
			t.Errorf("%s: %+v, want %s", c.reason, states, c.want)
		}
	}

	f := full()
	f.Enforcement["m1"] = enforcement{} // the policies of others were not read
	if state, why := f.enforcementState("m1"); state != v1alpha1.MemberPending || why.IsZero() {
		t.Errorf("%s (%s)", state, why)
	}
}

// TestForeignGroupOverrides checks that a unit is overridden in a member that has an address group of others in a class that the unit
// allows as a whole, also by a rule of a wildcard.
func TestForeignGroupOverrides(t *testing.T) {
	class := func(effect policy.Effect) []policy.Rule {
		return []policy.Rule{{Effect: effect, ExternalClasses: []string{"app"}}}
	}
	for reason, c := range map[string]struct {
		own, inherited []policy.Rule
		by             map[string]string
		want           v1alpha1.MemberState
	}{
		"it is allowed":                    {class(policy.Allow), nil, map[string]string{"m1": "theirs"}, v1alpha1.MemberOverridden},
		"a wildcard allows it":             {nil, class(policy.Allow), map[string]string{"m1": "theirs"}, v1alpha1.MemberOverridden},
		"a deny refuses it":                {class(policy.Deny), nil, map[string]string{"m1": "theirs"}, v1alpha1.MemberRealized},
		"no rule is about a class":         {nil, nil, map[string]string{"m1": "theirs"}, v1alpha1.MemberRealized},
		"another member has it":            {class(policy.Allow), nil, map[string]string{"m2": "theirs"}, v1alpha1.MemberRealized},
		"all groups of the class are ours": {class(policy.Allow), nil, nil, v1alpha1.MemberRealized},
	} {
		f := newScene(t, "m1").facts()
		f.Unit.Rules, f.Unit.Inherited = c.own, c.inherited
		r := newScene(t, "m1").reconciler()
		r.GroupInClass = func(cluster, label string) string {
			if label != cilium.LabelClass("app") {
				t.Errorf("label %q", label)
			}
			return c.by[cluster]
		}
		f.Enforcement = map[string]enforcement{"m1": r.enforcementIn(f, "m1")}
		if state, why := f.enforcementState("m1"); state != c.want {
			t.Errorf("%s: %s (%s), want %s", reason, state, why.Text, c.want)
		}
	}
}

// TestGroupsOfAFormerEngineArePending checks that a unit is not realized while KubeFed, which has not handled the present version of a group, may
// write an earlier version over the one that the member's former engine wrote.
func TestGroupsOfAFormerEngineArePending(t *testing.T) {
	for reason, tc := range map[string]struct {
		engine          federation.Engine
		writtenDirectly bool
		handled         bool
		want            v1alpha1.MemberState
	}{
		"the former engine wrote it last":       {federation.EngineKubeFed, true, false, v1alpha1.MemberPending},
		"KubeFed has handled it since":          {federation.EngineKubeFed, true, true, v1alpha1.MemberRealized},
		"KubeFed wrote it last":                 {federation.EngineKubeFed, false, false, v1alpha1.MemberRealized},
		"the member's own engine wrote it last": {federation.EngineDirect, true, true, v1alpha1.MemberRealized},
	} {
		r := newScene(t, "m1").reconciler()
		r.Groups = &externalgroup.Reconciler{Fleet: groupFleet{seen: federation.Observation{Registered: true, Reachable: true,
			Object: &federation.Observed{Name: "acp-g", Revision: "r", WrittenDirectly: tc.writtenDirectly}}}}
		group := &federation.Object{Kind: federation.CiliumGroup, Placement: []string{"m1"}, Propagation: federation.Propagation{Seen: tc.handled}}
		f := &facts{Clusters: []federation.Cluster{{Name: "m1", Engine: tc.engine}},
			Groups: []externalgroup.Object{{Name: "acp-g", Revision: "r", Federated: group}}}
		f.ObservedGroups = r.observeGroups(f, []string{"m1"})
		unit := objectState{Desired: "q", Handled: true, Observation: federation.Observation{Registered: true, Reachable: true,
			Object: &federation.Observed{Name: "acp-x", Revision: "q", Label: "q"}}}
		out := v1alpha1.ClusterState{Name: "m1"}
		if why := f.worstState(&out, []objectState{unit}, v1alpha1.ClusterState{}); out.State != tc.want {
			t.Errorf("%s: %s (%s), want %s", reason, out.State, why.Text, tc.want)
		}
	}
}
