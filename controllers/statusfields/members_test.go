package statusfields

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

var states = []v1alpha1.MemberState{
	v1alpha1.MemberRealized,
	v1alpha1.MemberPending,
	v1alpha1.MemberUnreachable,
	v1alpha1.MemberQuarantined,
	v1alpha1.MemberLeaked,
	v1alpha1.MemberDrifted,
	v1alpha1.MemberDowngraded,
	v1alpha1.MemberOverridden,
}

// members returns members of random states, sorted by name, of which few are equal.
func members(r *rand.Rand, n int) []v1alpha1.ClusterState {
	var out []v1alpha1.ClusterState
	for i := range n {
		at := metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, r.IntN(1e9), time.UTC).Add(time.Duration(r.Int64N(1e17))).Truncate(time.Millisecond))
		c := v1alpha1.ClusterState{
			Name:             v1alpha1.ClusterName(fmt.Sprintf("%063d", i)),
			State:            states[r.IntN(len(states))],
			Mode:             v1alpha1.ModeEnforce,
			Since:            &at,
			DesiredRevision:  fmt.Sprintf("%016x", r.Uint64()),
			ObservedRevision: fmt.Sprintf("%016x", r.Uint64()),
			Propagated:       r.IntN(2) == 0,
		}
		if c.State != v1alpha1.MemberRealized {
			c.Message = strings.Repeat([]string{"a", "\"", "<", "界", "\x01", "\xff", "\u2028"}[r.IntN(7)], r.IntN(300))
			if r.IntN(2) == 0 {
				c.MessageCode, c.MessageParams = "member.no-answer", strings.Repeat(`{"a":"<"}`, r.IntN(60))
			}
		}
		out = append(out, c)
	}
	return out
}

func TestNothingIsLostButMessages(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := members(r, r.IntN(200))
		clusters, groups := ListMembers(in, r.IntN(2*MaxSize))
		s := v1alpha1.ProtectedResourceStatus{Clusters: clusters, Groups: groups}
		got := slices.Clone(s.States())
		listed := map[v1alpha1.ClusterName]bool{}
		for _, c := range clusters {
			listed[c.Name] = true
		}
		if len(clusters) > MaxListed || len(clusters) == 0 && len(in) > 0 {
			t.Fatalf("seed %d: %d of %d members are listed in full", seed, len(clusters), len(in))
		}
		want := slices.Clone(in)
		for i := range want {
			if !listed[want[i].Name] {
				want[i].Message, want[i].MessageCode, want[i].MessageParams = "", "", ""
			}
		}
		if d := cmp.Diff(want, got, cmp.Transformer("some", func(l []v1alpha1.ClusterState) []v1alpha1.ClusterState {
			return append([]v1alpha1.ClusterState{}, l...)
		})); d != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, d)
		}
		for _, c := range in {
			if !listed[c.Name] && v1alpha1.CompareMembers(c, clusters[len(clusters)-1]) < 0 {
				t.Fatalf("seed %d: %s is %s, and only in a group, though %s is listed", seed, c.Name, c.State, clusters[len(clusters)-1].State)
			}
		}
	}
}

func TestSizesAreUpperBounds(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		in := members(r, 1+r.IntN(60))
		measure := func(v any) int {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return len(text)
		}
		for i := range in {
			if is, bound := measure(in[i]), SizeOfMember(&in[i]); is > bound || bound > is+80 {
				t.Fatalf("a member takes %d bytes, not %d: %+v", is, bound, in[i])
			}
		}
		groups := v1alpha1.GroupMembers(in)
		if is, bound := measure(groups), SizeOfGroups(groups); is > bound+2 || bound > is+is/2 {
			t.Fatalf("seed %d: groups take %d bytes, not %d", seed, is, bound)
		}
	}
}
