package accesscontrolpolicy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const (
	manyUnits   = 512
	manyMembers = 500
)

// membersWith returns members with a revision of their own each and the state that of returns.
func membersWith(of func(i int) v1alpha1.MemberState) []v1alpha1.ClusterState {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var out []v1alpha1.ClusterState
	for i := range manyMembers {
		at := metav1.NewMicroTime(start.Add(time.Duration(i) * 17 * time.Hour))
		c := v1alpha1.ClusterState{
			Name:             v1alpha1.ClusterName(fmt.Sprintf("m%062d", i)),
			State:            of(i),
			Mode:             []v1alpha1.Mode{v1alpha1.ModeEnforce, v1alpha1.ModeAudit}[i%2],
			DesiredRevision:  fmt.Sprintf("%016x", 1<<60+i),
			ObservedRevision: fmt.Sprintf("%016x", 1<<61+i),
			Since:            &at,
		}
		if c.State != v1alpha1.MemberRealized {
			c.Message, c.MessageCode, c.MessageParams = strings.Repeat("<", 200), "member.no-answer", strings.Repeat("<", 130)
		}
		out = append(out, c)
	}
	return out
}

func always(s v1alpha1.MemberState) func(int) v1alpha1.MemberState {
	return func(int) v1alpha1.MemberState { return s }
}

func sids(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("s%062d", i))
	}
	return out
}

func factsOf(reports ...statuscache.Report) *facts {
	return &facts{Policy: &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 3}}, Now: time.Unix(1e9, 0), Reports: reports,
		Protecting: func(r string) string { return "of-" + r[max(len(r)-3, 0):] }}
}

func sizeOf(t *testing.T, s v1alpha1.AccessControlPolicyStatus) int {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// TestStatusIsBounded checks the size and the content of the largest statuses of policies with 500 members.
func TestStatusIsBounded(t *testing.T) {
	realized, pending := membersWith(always(v1alpha1.MemberRealized)), membersWith(always(v1alpha1.MemberPending))
	one := membersWith(func(i int) v1alpha1.MemberState {
		if i == manyMembers-1 {
			return v1alpha1.MemberPending
		}
		return v1alpha1.MemberRealized
	})
	for name, tc := range map[string]struct {
		reason  string
		units   int
		name    int // length
		sids    int
		refused int
		of      func(i int) []v1alpha1.ClusterState
		// listed is the least number of listed units, whole that of units with all members, and named that of units with all sids.
		listed, whole, named int
	}{
		"Portal": {
			"one resource with every statement that a policy can hold", 1, 512, 512,
			0, func(int) []v1alpha1.ClusterState { return realized[:200] }, 1, 1, 1,
		},
		"Few":      {"some resources in few members", 20, 60, 1, 0, func(int) []v1alpha1.ClusterState { return realized[:3] }, 20, 20, 20},
		"One":      {"one resource that is pending in every member", 1, 512, 1, 0, func(int) []v1alpha1.ClusterState { return pending }, 1, 0, 1},
		"Realized": {"every unit is realized everywhere", manyUnits, 40, 1, 0, func(int) []v1alpha1.ClusterState { return realized }, manyUnits, 0, 100},
		"Pending":  {"no unit is realized anywhere", manyUnits, 40, 1, 0, func(int) []v1alpha1.ClusterState { return pending }, manyUnits, 0, 100},
		"Long":     {"the longest names", manyUnits, 512, 512, 0, func(int) []v1alpha1.ClusterState { return pending }, 100, 0, 0},
		"Refused":  {"every statement is refused", manyUnits, 512, 512, 512, func(int) []v1alpha1.ClusterState { return pending }, 30, 0, 0},
		"OneMissing": {
			"one member lacks the last unit", manyUnits, 512, 1, 0,
			func(i int) []v1alpha1.ClusterState { return [][]v1alpha1.ClusterState{realized, one}[i/(manyUnits-1)] }, 100, 0, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := factsOf()
			for i := range tc.units {
				f.Reports = append(f.Reports, statuscache.Report{Resource: fmt.Sprintf("r%0*d", tc.name-1, i), Wanted: true, Revision: fmt.Sprintf("%016x", i),
					SIDs: map[string][]string{"p": sids(tc.sids)}, Clusters: tc.of(i)})
			}
			for _, sid := range sids(tc.refused) {
				f.Refusals = append(
					f.Refusals,
					policy.Refusal{
						Ref:     policy.Ref{Policy: "p", SID: sid},
						Reason:  "Unsupported",
						Message: message.RefusalPart(strings.Repeat("<", 150), message.RefusalEffect()),
					},
				)
			}
			s := status(f)
			size, whole, named := sizeOf(t, s), 0, 0
			for i := range s.Units {
				u := &s.Units[i]
				if u.Unlisted() == 0 {
					whole++
				}
				if !u.LacksSIDs() {
					named++
				}
				if u.Counts().Total != int32(len(tc.of(i))) || len(u.SIDs)+int(u.Statements) != tc.sids || len(u.Clusters) > worstMembers {
					t.Fatalf("unit %d: %+v, %d statements", i, u.Counts(), u.Statements)
				}
			}
			t.Logf("%d bytes, %d units, %d with all members, %d with all sids", size, len(s.Units), whole, named)
			if size > 100_000 || len(s.Units) < tc.listed || whole < tc.whole || named < tc.named || int(s.UnitsTotal) != tc.units {
				t.Errorf("%s: %d bytes, %d of %d units, %d with all members, %d with all sids", tc.reason, size, len(s.Units), s.UnitsTotal, whole, named)
			}
			refused := map[string]bool{}
			for _, r := range s.Refused {
				refused[r.SID] = true
			}
			for _, sid := range s.RefusedOthers {
				refused[sid] = true
			}
			if len(refused) != tc.refused {
				t.Errorf("%s: %d of %d refused statements are named", tc.reason, len(refused), tc.refused)
			}
			last := &s.Units[len(s.Units)-1]
			if name == "OneMissing" &&
				(len(last.Clusters) == 0 || !strings.HasSuffix(string(last.Resource), "511") || last.Clusters[0].State != v1alpha1.MemberPending) {
				t.Errorf("%s: the status lists %s and %+v instead", tc.reason, last.Resource, last.Clusters)
			}
			if last.Unlisted() > 0 && name == "One" && last.Details != "ProtectedResource/of-000" {
				t.Errorf("%s: the details do not name the object that lists the members: %q", tc.reason, last.Details)
			}
			// The same facts give the same status, so nothing is written.
			f.Policy.Status = s
			if next := status(f); !equality.Semantic.DeepEqual(s, next) {
				t.Errorf("%s: the status changes without a reason:\n%s", tc.reason, cmp.Diff(s, next))
			}
		})
	}
}

// TestRealizedCountsUnlistedMembers checks that a policy is Realized only if every member of every unit is, also of units and members that its
// status does not list.
func TestRealizedCountsUnlistedMembers(t *testing.T) {
	f := factsOf()
	all := membersWith(always(v1alpha1.MemberRealized))
	for i := range manyUnits {
		f.Reports = append(
			f.Reports,
			statuscache.Report{Resource: fmt.Sprintf("r%0511d", i), Wanted: true, SIDs: map[string][]string{"p": {"s"}}, Clusters: all},
		)
	}
	if s := status(f); !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionRealized) || s.UnitsRealized != manyUnits || s.UnitsUnlisted() == 0 {
		t.Fatalf("%d of %d units are realized, %d are not listed", s.UnitsRealized, s.UnitsTotal, s.UnitsUnlisted())
	}
	late := slices.Clone(all)
	late[manyMembers-1].State = v1alpha1.MemberPending
	f.Reports[manyUnits-1].Clusters = late
	s := status(f)
	if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionRealized) || s.UnitsRealized != manyUnits-1 {
		t.Errorf("one member of one unit is pending, and %d of %d units are reported as realized", s.UnitsRealized, s.UnitsTotal)
	}
}

// TestWildcardUnitsAreListedFirst checks that the members of a wildcard's unit are listed before others, because no ProtectedResource lists
// them.
func TestWildcardUnitsAreListedFirst(t *testing.T) {
	f := factsOf()
	all := membersWith(always(v1alpha1.MemberRealized))
	for i := range 40 {
		f.Reports = append(f.Reports, statuscache.Report{Resource: fmt.Sprintf("r%d", i), Wanted: true, SIDs: map[string][]string{"p": {"s"}}, Clusters: all})
	}
	f.Reports = append(f.Reports, statuscache.Report{Resource: "z*", Wanted: true, SIDs: map[string][]string{"p": {"s"}}, Clusters: all[:400]})
	s := status(f)
	last := &s.Units[len(s.Units)-1]
	if last.Resource != "z*" || last.Unlisted() != 0 || len(last.States()) != 400 || sizeOf(t, s) > 100_000 {
		t.Errorf("of %s %d members are not listed; %d bytes", last.Resource, last.Unlisted(), sizeOf(t, s))
	}
}

func BenchmarkStatusOf(b *testing.B) {
	for units, members := range map[int]int{1: 3, 2: manyMembers, manyUnits: manyMembers} {
		f := factsOf()
		all := membersWith(always(v1alpha1.MemberRealized))[:members]
		for i := range units {
			f.Reports = append(
				f.Reports,
				statuscache.Report{Resource: fmt.Sprintf("r%040d", i), Wanted: true, SIDs: map[string][]string{"p": {"s"}}, Clusters: all},
			)
		}
		b.Run(fmt.Sprint(units, "x", members), func(b *testing.B) {
			for b.Loop() {
				if _, err := json.Marshal(status(f)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
