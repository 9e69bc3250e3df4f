package insight

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

func TestReplay(t *testing.T) {
	outside := func(e *audit.Edge) { e.SourceCluster = "" }
	for name, tc := range map[string]struct {
		reason        string
		before, after []func(*policy.Input)
		edge          audit.Edge
		allowed       bool
		denied        bool
		otherwise     bool
		uncertain     *message.Message
	}{
		"GrantInEnforce": {
			reason: "the new statement lets it in",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", app+"1", "redis:connect", bobs)},
			edge:   edge(app+"1", bobs, 6379, policy.DefaultDenied), allowed: true,
		},
		"SeenUnderOtherPolicies": {
			reason: "what was decided then does not matter: both states are asked anew",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", app+"1", "redis:connect", bobs)},
			edge:   edge(app+"1", bobs, 6379, policy.Unmanaged), allowed: true,
		},
		"Enforce": {
			reason: "whoever has no statement is cut off",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce)},
			edge:   edge(app+"1", bobs, 6379, policy.Audited), denied: true,
		},
		"EnforceElsewhere": {
			reason: "staged by member: this one is not there yet",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit, v1alpha1.ClusterMode{Cluster: "m9", Mode: v1alpha1.ModeEnforce})},
			edge:   edge(app+"1", bobs, 6379, policy.Audited),
		},
		"EnforceHere": {
			reason: "staged by member: this is the one",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit, v1alpha1.ClusterMode{Cluster: "m1", Mode: v1alpha1.ModeEnforce})},
			edge:   edge(app+"1", bobs, 6379, policy.Audited), denied: true,
		},
		"OtherPort": {
			reason: "enforcing closes every port of the workload",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit), allow("a", app+"1", "redis:*", bobs)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", app+"1", "redis:*", bobs)},
			edge:   edge(app+"1", bobs, 9121, policy.Audited), denied: true,
		},
		"RevokedInAudit": {
			reason: "it goes on for now, but Enforce will refuse it",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit), allow("a", app+"1", "redis:connect", bobs)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit)},
			edge:   edge(app+"1", bobs, 6379, policy.Allowed), otherwise: true,
		},
		"OtherName": {
			reason: "the pod is let in by its other name",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", svc+"x", "redis:connect", bobs)},
			edge:   edge(app+"1", bobs, 6379, policy.Audited, func(e *audit.Edge) { e.OtherSubjects = svc + "x" }), otherwise: true,
		},
		"OtherResource": {
			reason: "the pod is also another resource, which is closed",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit), allow("a", app+"1", "redis:connect", bobs)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit), allow("a", app+"1", "redis:connect", bobs), protect(shop, v1alpha1.ModeEnforce)},
			edge:   edge(app+"1", bobs, 9121, policy.Audited, func(e *audit.Edge) { e.OtherResources = shop }), denied: true,
		},
		"OwnNode": {
			reason: "probes of the own node pass whatever is enforced; they were audited by nobody",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce)},
			edge:   edge("", bobs, 6379, policy.Allowed, from(ownNode)),
		},
		"OtherNode": {
			reason: "other nodes are anyone",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit), allow("a", "*", "redis:connect", bobs)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce)},
			edge:   edge("", bobs, 6379, policy.Allowed, from("reserved:remote-node")), denied: true,
		},
		"LabelsGetAName": {
			reason: "a new class gives a name to what had none, and the statement for it counts",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", "trnv1:rsc:trip-com:iam:batch:etl", "redis:connect", bobs)},
			after: []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce),
				allow("a", "trnv1:rsc:trip-com:iam:batch:etl", "redis:connect", bobs), func(in *policy.Input) {
					in.SubjectClasses = append(in.SubjectClasses, &v1alpha1.SubjectClass{
						ObjectMeta: named("batch"), Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:batch:*", LabelKey: "job"},
					})
				}},
			edge: edge("", bobs, 6379, policy.DefaultDenied, from("namespace=apps,job=etl,tier=x")), allowed: true,
		},
		"LabelsCutOff": {
			reason: "with labels missing nobody can say whose pod it was",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce)},
			edge:   edge("", bobs, 6379, policy.Audited, from("namespace=apps,job=et…")), uncertain: whyLabels,
		},
		"WholePrefix": {
			reason: "all that the prefix can be is decided alike",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", cidr+"198.51.100.0/24", "redis:connect", bobs)},
			edge:   edge("", bobs, 6379, policy.Audited, from("203.0.113.0/24")), denied: true,
		},
		"HalfPrefix": {
			reason: "half of the prefix is allowed, and which half it was is not known",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeAudit)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", cidr+"203.0.113.0/25", "redis:connect", bobs)},
			edge:   edge("", bobs, 6379, policy.Audited, from("203.0.113.0/24")), uncertain: whyRange,
		},
		"HalfPrefixUnchanged": {
			reason: "whichever half it was, nothing changes for it",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", cidr+"203.0.113.0/25", "redis:connect", bobs)},
			after: []func(*policy.Input){
				protect(bobs, v1alpha1.ModeEnforce), allow("a", cidr+"203.0.113.0/25", "redis:connect", bobs), allow("b", app+"1", "redis:connect", bobs),
			},
			edge: edge("", bobs, 6379, policy.Allowed, from("203.0.113.0/24")),
		},
		"MachineByItsRange": {
			reason: "a machine outside the fleet is also let in by its address",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", cidr+"10.6.0.0/16", "redis:connect", bobs)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce)},
			edge:   edge(vm, bobs, 6379, policy.Allowed, outside), denied: true,
		},
		"MachineHalfInTheRange": {
			reason: "some of its addresses are in the range, some are not",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", cidr+"10.6.0.0/31", "redis:connect", bobs)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce)},
			edge:   edge(vm, bobs, 6379, policy.Allowed, outside), uncertain: whyMachine,
		},
		"PodOfTheSameName": {
			reason: "a pod is never let in by an address",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", cidr+"10.6.0.0/16", "redis:connect", bobs)},
			after:  []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce)},
			edge:   edge(vm, bobs, 6379, policy.DefaultDenied),
		},
		"MachineChangesHands": {
			reason: "half of the addresses become another's, so the earlier name does not decide",
			before: []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", vm, "redis:connect", bobs)},
			after: []func(*policy.Input){protect(bobs, v1alpha1.ModeEnforce), allow("a", vm, "redis:connect", bobs), func(in *policy.Input) {
				in.Workloads = append(in.Workloads, &v1alpha1.ExternalWorkload{
					ObjectMeta: named("other"),
					Spec:       v1alpha1.ExternalWorkloadSpec{Subject: app + "other", Addresses: []string{"10.6.0.2/31"}},
				})
			}},
			edge: edge(vm, bobs, 6379, policy.Allowed, outside), uncertain: whyMachine,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := store(watched(14, "m1", "m2"), flows(tc.edge, 5, 1, 3))
			im := must[Impact](
				t,
			)(
				Replay(
					t.Context(),
					r,
					ReplayInput{Fleet: onlyIn("m1"), Before: with(world(), tc.before...), After: with(world(), tc.after...), Since: ago(14), Until: now},
				),
			)
			want := Impact{
				Since:         ago(14),
				Until:         now,
				NewlyAllowed:  []ImpactLine{},
				NewlyDenied:   []ImpactLine{},
				ReasonChanged: []ImpactLine{},
				Uncertain:     []Uncertain{},
			}
			one := ImpactTotal{Connections: 10, Clients: 1, Resources: 1}
			lines := 1
			switch {
			case tc.allowed:
				want.Allowed, want.NewlyAllowed = one, im.NewlyAllowed
				lines = len(im.NewlyAllowed)
			case tc.denied:
				want.Denied, want.NewlyDenied = one, im.NewlyDenied
				lines = len(im.NewlyDenied)
			case tc.otherwise:
				want.ReasonChangedTotal, want.ReasonChanged = one, im.ReasonChanged
				lines = len(im.ReasonChanged)
			case tc.uncertain != nil:
				want.Uncertain = im.Uncertain
				if lines = len(im.Uncertain); lines == 1 && (im.Uncertain[0].Reason != *tc.uncertain || im.Uncertain[0].Count != 10) {
					t.Errorf("uncertain because %+v, want %q", im.Uncertain[0], tc.uncertain)
				}
			default:
				want.Unchanged = 10
			}
			if diff := cmp.Diff(want, im); diff != "" || lines != 1 {
				t.Errorf("%s: %d lines (-want +got):\n%s", tc.reason, lines, diff)
			}
		})
	}
}

func TestReplayLine(t *testing.T) {
	before, after := with(
		world(),
		protect(bobs, v1alpha1.ModeAudit),
		allow("a", app+"1", "redis:connect", bobs),
	), with(
		world(),
		protect(bobs, v1alpha1.ModeEnforce),
	)
	r := store(
		watched(14, "m1"),
		flows(edge(app+"1", bobs, 6379, policy.Unmanaged), 2, 9),
		flows(edge(app+"1", bobs, 6379, policy.Allowed, func(e *audit.Edge) { e.Verdict = audit.VerdictUnknown }), 3, 1),
		flows(edge(app+"2", bobs, 6379, policy.Audited), 1, 2),
		flows(edge(app+"1", orders, 6379, policy.Unmanaged), 7, 1),
	)
	im := must[Impact](t)(Replay(t.Context(), r, ReplayInput{Fleet: onlyIn("m1"), Before: before, After: after, Since: ago(14), Until: now}))
	at := func(days, seconds int) time.Time {
		return ago(days).Add(-time.Hour + time.Duration(seconds)*time.Second)
	}
	line := ImpactLine{
		Cluster:    "m1",
		Subject:    app + "1",
		Resource:   bobs,
		Action:     "redis:connect",
		Port:       6379,
		Protocol:   "TCP",
		Count:      5,
		First:      at(9, 1),
		Last:       at(1, 30),
		Before:     policy.Allowed,
		After:      policy.DefaultDenied,
		Statements: []policy.Ref{{Policy: "p-a", SID: "a"}},
	}
	second := line
	second.Subject, second.Count, second.First, second.Last, second.Before, second.Statements = app+"2", 1, at(2, 1), at(2, 30), policy.Audited, nil
	if diff := cmp.Diff([]ImpactLine{line, second}, im.NewlyDenied); diff != "" {
		t.Errorf("edges that differ in what was decided then are one line (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ImpactTotal{Connections: 6, Clients: 2, Resources: 1}, im.Denied); diff != "" || im.Unchanged != 7 {
		t.Errorf("totals, %d unchanged (-want +got):\n%s", im.Unchanged, diff)
	}
	only := must[Impact](
		t,
	)(
		Replay(t.Context(), r, ReplayInput{Fleet: onlyIn("m1"), Before: before, After: after, Resources: []string{orders}, Since: ago(14), Until: now}),
	)
	if len(only.NewlyDenied) != 0 || only.Unchanged != 7 {
		t.Errorf("of the other resource: %+v", only)
	}
	few := must[Impact](t)(Replay(t.Context(), r, ReplayInput{Fleet: onlyIn("m1"), Before: before, After: after, Since: ago(14), Until: now, MaxLines: 1}))
	if diff := cmp.Diff([]ImpactLine{line}, few.NewlyDenied); diff != "" || !few.Truncated || few.Denied != im.Denied {
		t.Errorf("the line with most connections stays, and the totals know all (truncated %v, %+v):\n%s", few.Truncated, few.Denied, diff)
	}
}

// A pod of two names that reaches a pod of two names has four edges, and its connections count once.
func TestReplayCountsOnce(t *testing.T) {
	pair := func(s, others, r, otherr string) audit.Edge {
		return edge(s, r, 80, policy.Audited, func(e *audit.Edge) { e.OtherSubjects, e.OtherResources = others, otherr })
	}
	b := []*audit.Batch{watched(14, "m1")}
	for _, s := range [][2]string{{app + "1", svc + "x"}, {svc + "x", app + "1"}} {
		b = append(b, flows(pair(s[0], s[1], bobs, shop), 4, 1), flows(pair(s[0], s[1], shop, bobs), 4, 1))
	}
	before, after := with(world(), protect(bobs, v1alpha1.ModeAudit)), with(world(), protect(bobs, v1alpha1.ModeEnforce))
	for name, resources := range map[string][]string{"All": nil, "First": {bobs}, "Second": {shop}} {
		t.Run(name, func(t *testing.T) {
			im := must[Impact](
				t,
			)(
				Replay(
					t.Context(),
					store(b...),
					ReplayInput{Fleet: onlyIn("m1"), Before: before, After: after, Resources: resources, Since: ago(14), Until: now},
				),
			)
			if im.Denied.Connections != 4 || im.Denied.Clients != 2 {
				t.Errorf("%+v, want 4 connections of 2 names", im.Denied)
			}
		})
	}
}

func TestReplayDoubts(t *testing.T) {
	s := with(world())
	for name, tc := range map[string]struct {
		reason string
		flows  []*audit.Batch
		want   []string
	}{
		"Nobody": {"a store that watched nobody proves nothing", nil, []string{" 14d No member's flows were watched."}},
		"All":    {"nothing to doubt", []*audit.Batch{watched(14, "m1", "m2")}, nil},
		"Late": {"the time before the collector was there", []*audit.Batch{watched(14, "m1"), watched(10, "m2")},
			[]string{"m2 4d 12h The flows of m2 were not watched for 4d."}},
		"Gap": {"a gap is no watching", []*audit.Batch{watched(14, "m1"), lost("m1", 0, audit.LossGap, ago(3), ago(3).Add(2*time.Hour))},
			[]string{"m1 1d The flows of m1 were not watched for 2h."}},
		"Lost": {"flows are known to be lost", []*audit.Batch{watched(14, "m1"), lost("m1", 17, audit.LossRing, ago(3), ago(3).Add(time.Minute))},
			[]string{"m1 1d At least 17 flows of m1 were lost."}},
		"Restart": {
			"a restart goes on where it stopped",
			[]*audit.Batch{watched(14, "m1"), lost("m1", 0, audit.LossGap, ago(3), ago(3).Add(20*time.Second))}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			im := must[Impact](t)(Replay(t.Context(), store(tc.flows...), ReplayInput{Fleet: onlyIn("m1"), Before: s, After: s, Since: ago(14), Until: now}))
			var got []string
			for _, u := range im.Uncertain {
				got = append(got, fmt.Sprintf("%s %s %s", u.Cluster, span(u.To.Sub(u.From)), u.Reason))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
