package insight

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
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
	"Allow":  {"a statement goes as a whole", []func(*policy.Input){say("a", v1alpha1.EffectAllow, app+"1", "redis:connect", bobs, also(nobodys))}},
	"Deny":   {"a refused deny takes the allow with it", []func(*policy.Input){allow("a", app+"1", "redis:connect", bobs), say("d", v1alpha1.EffectDeny, nobodys, "redis:connect", bobs)}},
	"Prefix": {"a prefix stands for the names that members have", []func(*policy.Input){say("a", v1alpha1.EffectAllow, app+"*", "redis:connect", redis+"*", also(nobodys))}},
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
				unused := must[[]UnusedStatement](t)(Unused(t.Context(), store(seen...), UnusedInput{Snapshot: s, Fleet: Fleet{Everywhere: []string{"m1"}, Known: true}, Now: now}))
				if len(unused) != 1 || unused[0].Ref.SID != "a" || unused[0].Why != refusedGrant || unused[0].LastUsed != nil {
					t.Errorf("%s: in %s the unused grants are %+v, want the one that is in no member", tc.reason, mode, unused)
				}
			}
		})
	}
}

func TestReplayShowsWhatARefusalDrops(t *testing.T) {
	for name, tc := range refusals {
		t.Run(name, func(t *testing.T) {
			before, after := with(world(), append(tc.world, protect(bobs, v1alpha1.ModeAudit))...), with(world(), append(tc.world, protect(bobs, v1alpha1.ModeEnforce))...)
			for what, e := range map[string]audit.Edge{
				"of one name":     edge(app+"1", bobs, 6379, policy.Audited),
				"of two services": edge(app+"1", bobs, 6379, policy.Audited, func(e *audit.Edge) { e.OtherSubjects = svc + "cart" }),
			} {
				im := must[Impact](t)(Replay(t.Context(), store(watched(14, "m1"), flows(e, 10, every(14)...)), ReplayInput{Before: before, After: after, Resources: []string{bobs}, Fleet: onlyIn("m1"), Since: ago(14), Until: now}))
				if im.Denied.Connections != 140 || len(im.NewlyDenied) != 1 || im.NewlyDenied[0].After != policy.DefaultDenied || im.Unchanged != 0 {
					t.Errorf("%s: %s: %+v, want 140 connections that Enforce drops", tc.reason, what, im)
				}
			}
		})
	}
}

// A grant that is refused lets nobody in, so its replay must not promise that.
func TestReplayOfARefusedGrant(t *testing.T) {
	dropped := flows(edge(app+"1", bobs, 6379, policy.DefaultDenied), 10, every(14)...)
	closed := protect(bobs, v1alpha1.ModeEnforce)
	for name, tc := range map[string]struct {
		grant func(*policy.Input)
		want  int64
	}{
		"Refused": {say("a", v1alpha1.EffectAllow, app+"1", "redis:connect", bobs, also(nobodys)), 0},
		"Pushed":  {allow("a", app+"1", "redis:connect", bobs), 140},
	} {
		im := must[Impact](t)(Replay(t.Context(), store(watched(14, "m1"), dropped), ReplayInput{Before: with(world(), closed), After: with(world(), closed, tc.grant), Resources: []string{bobs}, Fleet: onlyIn("m1"), Since: ago(14), Until: now}))
		if im.Allowed.Connections != tc.want {
			t.Errorf("%s: %d connections would newly pass, want %d", name, im.Allowed.Connections, tc.want)
		}
	}
}

// A member whose proxy does not work does not get rules about requests, and the others do.
func TestRequestsAreJudgedMemberByMember(t *testing.T) {
	clusters := func(in *policy.Input) {
		in.Clusters = []policy.Cluster{{Name: "m1"}, {Name: "m2", NoRequests: "no proxy"}}
	}
	grant := allow("a", app+"1", "web:buy", shop)
	before, after := with(world(), clusters, grant, protect(shop, v1alpha1.ModeAudit)), with(world(), clusters, grant, protect(shop, v1alpha1.ModeEnforce))
	seen := func(member string) *audit.Batch {
		return flows(edge(app+"1", shop, 80, policy.Allowed, in(member)), 10, every(14)...)
	}
	im := must[Impact](t)(Replay(t.Context(), store(watched(14, "m1", "m2"), seen("m1"), seen("m2")), ReplayInput{Before: before, After: after, Resources: []string{shop}, Fleet: onlyIn("m1", "m2"), Since: ago(14), Until: now}))
	var where []string
	for _, l := range im.NewlyDenied {
		where = append(where, l.Cluster)
	}
	if diff := cmp.Diff([]string{"m2"}, where); diff != "" || im.Unchanged != 140 {
		t.Errorf("the change cuts off clients in %v, want m2 alone: %+v", where, im)
	}
	for member, want := range map[string]int{"m1": 0, "m2": 1} {
		score := must[Score](t)(Evidence(t.Context(), store(watched(14, member), seen(member)), EvidenceInput{Snapshot: before, Resource: shop, Now: now, Fleet: onlyIn(member)}))
		if score.Uncovered != want {
			t.Errorf("%d clients of %s are uncovered, want %d", score.Uncovered, member, want)
		}
	}
}
