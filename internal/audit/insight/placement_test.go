package insight

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

func place(p v1alpha1.Placement) func(*policy.Input) {
	return func(in *policy.Input) {
		for _, c := range in.ResourceClasses {
			c.Spec.Placement = p
		}
	}
}

func placedBy(clusters ...v1alpha1.ClusterName) v1alpha1.Placement {
	return v1alpha1.Placement{Clusters: &clusters}
}

func selecting(labels map[string]string) v1alpha1.Placement {
	return v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: labels}}
}

var threeMembers = Fleet{
	Known: true,
	Members: []Member{{Name: "m1", Labels: map[string]string{"zone": "a"}}, {Name: "m2", Labels: map[string]string{"zone": "a"}},
		{Name: "m3", Labels: map[string]string{"zone": "b"}}, {Name: "m4", Labels: map[string]string{"zone": "a"}, Leaving: true}},
}

func TestPlacedIn(t *testing.T) {
	type answer struct {
		Names []string
		Known bool
	}
	for name, tc := range map[string]struct {
		reason    string
		placement v1alpha1.Placement
		fleet     Fleet
		resource  string
		want      answer
	}{
		"ByName":        {"names need no registration", placedBy("m3", "m1", "m9"), Fleet{}, bobs, answer{[]string{"m1", "m3", "m9"}, true}},
		"ByNameLeaving": {"nothing is placed in a member that leaves", placedBy("m1", "m4"), threeMembers, bobs, answer{[]string{"m1"}, true}},
		"BySelector": {
			"labels of the registration select", selecting(map[string]string{"zone": "a"}),
			threeMembers, bobs, answer{[]string{"m1", "m2"}, true},
		},
		"Everything":       {"an empty selector is every member", selecting(nil), threeMembers, bobs, answer{[]string{"m1", "m2", "m3"}, true}},
		"UnknownMembers":   {"a selector without known members may select any", selecting(nil), Fleet{Members: threeMembers.Members}, bobs, answer{nil, false}},
		"NoClass":          {"no class says where it is placed", selecting(nil), threeMembers, "trnv1:rsc:trip-com:other:x:y", answer{nil, false}},
		"NoPlacement":      {"a class without a placement says nothing", v1alpha1.Placement{}, threeMembers, bobs, answer{nil, false}},
		"Stated":           {"who asks may state the members", selecting(nil), onlyIn("m2", "m1"), bobs, answer{[]string{"m1", "m2"}, true}},
		"SelectorOfNobody": {"it is known that there is none", selecting(map[string]string{"zone": "c"}), threeMembers, bobs, answer{nil, true}},
	} {
		t.Run(name, func(t *testing.T) {
			names, known := tc.fleet.PlacedIn(with(world(), place(tc.placement)), tc.resource)
			if diff := cmp.Diff(tc.want, answer{names, known}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPlacementsOfAllStated: a whole policy is placed where its single resources are.
func TestPlacementsOfAllStated(t *testing.T) {
	const unclassed = "trnv1:rsc:trip-com:other:x:y"
	for name, tc := range map[string]struct {
		placement v1alpha1.Placement
		fleet     Fleet
		stated    []string
	}{
		"ByName":         {placedBy("m3", "m1"), Fleet{}, []string{bobs}},
		"BySelector":     {selecting(map[string]string{"zone": "a"}), threeMembers, []string{bobs}},
		"UnknownMembers": {selecting(nil), Fleet{}, []string{bobs}},
		"NoClass":        {placedBy("m1"), threeMembers, []string{bobs, unclassed}},
		"Everywhere":     {placedBy("m1"), onlyIn("m2", "m1"), []string{bobs, unclassed}},
		"NothingStated":  {placedBy("m1"), onlyIn("m2"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			changes := []func(*policy.Input){place(tc.placement)}
			for i, r := range tc.stated {
				changes = append(changes, allow(fmt.Sprint("p", i), app+"1", "redis:connect", r))
			}
			s := with(world(), changes...)
			want, got := placements{members: map[string]bool{}}, placements{members: map[string]bool{}}
			for _, r := range tc.stated {
				want.add(tc.fleet.PlacedIn(s, r))
			}
			tc.fleet.addStated(&got, s)
			if diff := cmp.Diff(want.members, got.members); diff != "" || (want.unknown > 0) != (got.unknown > 0) {
				t.Errorf("unknown: want %d, got %d; members (-want +got):\n%s", want.unknown, got.unknown, diff)
			}
		})
	}
}

// A resource is judged by the members it is placed in, not by those that the store happens to know.
func TestUnwatchedMembersCount(t *testing.T) {
	three := place(placedBy("m1", "m2", "m3"))
	s := with(world(), three, protect(bobs, v1alpha1.ModeAudit), allow("a", app+"1", "redis:connect", bobs))
	regular := flows(edge(app+"2", bobs, 6379, policy.Audited), 100, every(14)...)
	ended := &audit.Batch{Watched: []audit.WatchedSpan{{Source: "m3", From: ago(31), To: now.Add(-time.Hour)}}}
	for name, tc := range map[string]struct {
		reason  string
		policy  *policy.Snapshot
		flows   []*audit.Batch
		enough  bool
		says    string
		unused  int
		doubted []string
	}{
		"OneOfThree": {
			"m2 and m3 were never watched", s, []*audit.Batch{watched(31, "m1"), regular},
			false, "The flows of m2, m3 are not watched", 0, []string{"m2", "m3"},
		},
		"AllOfThree": {"every member was watched", s, []*audit.Batch{watched(31, "m1", "m2", "m3"), regular}, true, "", 1, nil},
		"WatchEnded": {
			"m3 is not watched any more", s, []*audit.Batch{watched(31, "m1", "m2"), ended, regular},
			false, "The flows of m3 are not watched any more", 0, []string{"m3"},
		},
		"OtherMembers": {
			"a member without the resource does not matter", s,
			[]*audit.Batch{watched(31, "m1", "m2", "m3"), watched(1, "m9"), regular}, true, "", 1, nil,
		},
		"Unknown": {"a placement that is not known is not fine",
			with(world(), place(selecting(nil)), protect(bobs, v1alpha1.ModeAudit), allow("a", app+"1", "redis:connect", bobs)),
			[]*audit.Batch{watched(31, "m1"), regular}, false, message.EvidencePlacementUnknown().Text, 0, []string{""}},
		"Nowhere": {"a resource in no member has no evidence",
			with(world(), place(placedBy()), protect(bobs, v1alpha1.ModeAudit), allow("a", app+"1", "redis:connect", bobs)),
			[]*audit.Batch{watched(31, "m1"), regular}, false, message.EvidencePlacedNowhere().Text, 0, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			r := store(tc.flows...)
			score := must[Score](t)(Evidence(t.Context(), r, EvidenceInput{Snapshot: tc.policy, Resource: bobs, Now: now}))
			if score.Enough != tc.enough || score.Value == 100 != tc.enough || !strings.HasPrefix(score.Parts[0].Missing.Text, tc.says) {
				t.Errorf("%s: %d of 100, enough %v, missing %q", tc.reason, score.Value, score.Enough, score.Parts[0].Missing)
			}
			if got := must[[]UnusedStatement](t)(Unused(t.Context(), r, UnusedInput{Snapshot: tc.policy, Now: now})); len(got) != tc.unused {
				t.Errorf("%s: unused %+v, want %d", tc.reason, got, tc.unused)
			}
			im := must[Impact](
				t,
			)(
				Replay(t.Context(), r, ReplayInput{Before: tc.policy, After: tc.policy, Resources: []string{bobs}, Since: ago(14), Until: now}),
			)
			var doubted []string
			for _, u := range im.Uncertain {
				doubted = append(doubted, u.Cluster)
			}
			if diff := cmp.Diff(tc.doubted, doubted); diff != "" {
				t.Errorf("%s: uncertain in (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Losses count in the member where they happened: a busy member does not hide those of a quiet one.
func TestLossesCountWhereTheyHappened(t *testing.T) {
	s := with(world(), place(placedBy("m1", "m2")), protect(bobs, v1alpha1.ModeAudit), protect(shop, v1alpha1.ModeAudit))
	busy := flows(edge(app+"1", orders, 6379, policy.Unmanaged), 1_000_000, every(14)...)
	quiet := flows(edge(app+"1", bobs, 6379, policy.Audited, in("m2")), 10, every(14)...)
	r := store(watched(14, "m1", "m2"), busy, quiet, lost("m2", 100, audit.LossRing, ago(3), ago(3)))
	score := must[Score](t)(Evidence(t.Context(), r, EvidenceInput{Snapshot: s, Resource: bobs, Now: now}))
	if loss := score.Parts[2]; loss.Points != 0 || !strings.HasPrefix(loss.Missing.Text, "At least 100 flows of m2 were lost (41.7% of all there)") ||
		score.Enough {
		t.Errorf("losses have %d points: %q", loss.Points, loss.Missing)
	}
	elsewhere := must[Score](t)(Evidence(t.Context(), r, EvidenceInput{Snapshot: s, Resource: bobs, Now: now, Fleet: onlyIn("m1")}))
	if loss := elsewhere.Parts[2]; loss.Points != loss.Of {
		t.Errorf("losses of m2 count for a resource in m1: %q", loss.Missing)
	}
}
