package v1alpha1

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manyMembers returns members of random states, modes, revisions and times, sorted by name.
func manyMembers(r *rand.Rand, n int) []ClusterState {
	start := time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)
	revision := func() string { return []string{"", "a", "b", "c"}[r.IntN(4)] }
	var out []ClusterState
	for i := range n {
		c := ClusterState{
			Name:             ClusterName(fmt.Sprintf("m%04d", i)),
			State:            severity[r.IntN(len(severity))],
			Mode:             []Mode{"", ModeAudit, ModeEnforce}[r.IntN(3)],
			DesiredRevision:  revision(),
			ObservedRevision: revision(),
			Propagated:       r.IntN(2) == 0,
		}
		if r.IntN(5) > 0 {
			at := metav1.NewMicroTime(start.Add(time.Duration(r.IntN(1e9)) * time.Millisecond))
			c.Since = &at
		}
		out = append(out, c)
	}
	return out
}

func TestGroupsKeepEverythingButMessages(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 28))
		want := manyMembers(r, r.IntN(300))
		in := slices.Clone(want)
		r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		for i := range in {
			in[i].Message = "left out"
		}
		groups := GroupMembers(in)
		text, err := json.Marshal(ProtectedResourceStatus{Groups: groups})
		if err != nil {
			t.Fatal(err)
		}
		var s ProtectedResourceStatus
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		got := s.States()
		for i := range got { // the instant counts, not the zone that it is read in
			if got[i].Since != nil {
				*got[i].Since = metav1.NewMicroTime(got[i].Since.UTC())
			}
		}
		if d := cmp.Diff(
			want,
			slices.Clip(got),
			cmp.Transformer("empty", func(l []ClusterState) []ClusterState { return append([]ClusterState{}, l...) }),
		); d != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, d)
		}
		again, err := json.Marshal(ProtectedResourceStatus{Groups: GroupMembers(got)})
		if err != nil {
			t.Fatal(err)
		}
		if string(again) != string(text) {
			t.Fatalf("seed %d: groups that were read are grouped differently:\n%s\n%s", seed, text, again)
		}
	}
}

func TestStatesAreAllMembersByName(t *testing.T) {
	old := []ClusterState{{Name: "a"}, {Name: "b"}}
	worst := []ClusterState{{Name: "m2", State: MemberDrifted, Message: "why"}, {Name: "m1", State: MemberPending}}
	rest := []MemberGroup{
		{State: MemberRealized, Revisions: []MemberRevision{{Desired: "x", Observed: "x", Members: []ClusterName{"m0", "m3"}, After: []int64{7}}}},
	}
	for name, tc := range map[string]struct {
		reason   string
		status   ProtectedResourceStatus
		want     []ClusterState
		unlisted int
	}{
		"Old":     {"an earlier version counted nothing", ProtectedResourceStatus{Clusters: old}, old, 0},
		"Nothing": {"no member", ProtectedResourceStatus{}, nil, 0},
		"Groups": {"times without an origin are none", ProtectedResourceStatus{Members: &MemberCounts{Total: 4}, Clusters: worst, Groups: rest},
			[]ClusterState{{Name: "m0", State: MemberRealized, DesiredRevision: "x", ObservedRevision: "x"}, worst[1], worst[0],
				{Name: "m3", State: MemberRealized, DesiredRevision: "x", ObservedRevision: "x"}}, 0},
		"Short": {
			"a member is missing from the list", ProtectedResourceStatus{Members: &MemberCounts{Total: 5}, Clusters: worst},
			[]ClusterState{worst[1], worst[0]}, 3,
		},
	} {
		if d := cmp.Diff(tc.want, tc.status.States()); d != "" {
			t.Errorf("%s, %s (-want +got):\n%s", name, tc.reason, d)
		}
		if n := tc.status.Unlisted(); n != tc.unlisted {
			t.Errorf("%s, %s: %d members are not listed, want %d", name, tc.reason, n, tc.unlisted)
		}
		u := PolicyUnit{Members: tc.status.Members, Clusters: tc.status.Clusters, Groups: tc.status.Groups}
		if d := cmp.Diff(tc.want, u.States()); d != "" || u.Unlisted() != tc.unlisted {
			t.Errorf("%s, %s: a unit says something else: %d not listed\n%s", name, tc.reason, u.Unlisted(), d)
		}
		n := 0
		for range tc.status.All() {
			n++
		}
		if n != len(tc.want) {
			t.Errorf("%s, %s: All yields %d of %d members", name, tc.reason, n, len(tc.want))
		}
	}
}

// TestListsOfMembersAgree checks that every way to read a status says the same of each member.
func TestListsOfMembersAgree(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 29))
		all := manyMembers(r, r.IntN(200))
		listed := 0
		if len(all) > 0 {
			listed = r.IntN(len(all))
		}
		s := ProtectedResourceStatus{Clusters: all[:listed], Groups: GroupMembers(all[listed:])}
		u := PolicyUnit{Clusters: s.Clusters, Groups: s.Groups}
		alike, states := map[ClusterName]ClusterState{}, map[MemberState]int{}
		for c, names := range s.Alike() {
			for _, name := range names {
				alike[name] = c
			}
		}
		for want := range s.All() {
			states[want.State]++
			if got, ok := s.Member(want.Name); !ok || !cmp.Equal(got, want) {
				t.Fatalf("seed %d: Member says %+v, %v, want %+v", seed, got, ok, want)
			}
			if got, ok := u.Member(want.Name); !ok || !cmp.Equal(got, want) {
				t.Fatalf("seed %d: Member of the unit says %+v, %v, want %+v", seed, got, ok, want)
			}
			shared := want
			shared.Name, shared.Since = "", nil
			if got := alike[want.Name]; !cmp.Equal(got, shared) {
				t.Fatalf("seed %d: Alike says %+v of %s, want %+v", seed, got, want.Name, shared)
			}
		}
		if len(alike) != len(all) {
			t.Fatalf("seed %d: Alike has %d of %d members", seed, len(alike), len(all))
		}
		for state, want := range states {
			keep := func(s MemberState) bool { return s == state }
			for name, seq := range map[string]iter.Seq[ClusterState]{"resource": s.In(keep), "unit": u.In(keep)} {
				n := 0
				for c := range seq {
					n++
					if c.State != state {
						t.Fatalf("seed %d: In of the %s has %+v", seed, name, c)
					}
				}
				if n != want {
					t.Fatalf("seed %d: In of the %s has %d members in %s, want %d", seed, name, n, state, want)
				}
			}
		}
		if got, ok := s.Member("nobody"); ok {
			t.Fatalf("seed %d: a member that is not listed is %+v", seed, got)
		}
	}
}

func TestCountsOfMembers(t *testing.T) {
	in := []ClusterState{
		{State: MemberRealized, DesiredRevision: "a"},
		{State: MemberRealized},
		{State: MemberPending, DesiredRevision: "a"},
		{State: MemberLeaked},
		{State: MemberOverridden, DesiredRevision: "a"},
		{State: "Unheard", DesiredRevision: "a"},
	}
	want := MemberCounts{Total: 6, Targeted: 4, Waiting: 3, Realized: 2, Pending: 1, Leaked: 1, Overridden: 1}
	if d := cmp.Diff(want, CountMembers(in)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	slices.SortFunc(in, CompareMembers)
	var order []MemberState
	for _, c := range in {
		order = append(order, c.State)
	}
	if d := cmp.Diff([]MemberState{"Unheard", MemberOverridden, MemberLeaked, MemberPending, MemberRealized, MemberRealized}, order); d != "" {
		t.Errorf("the worst come first (-want +got):\n%s", d)
	}
}
