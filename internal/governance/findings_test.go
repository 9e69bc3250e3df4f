package governance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

func TestFindings(t *testing.T) {
	in := world(acp("p", statementOf("s", policy.Allow, apps+"1", redis+"*")))
	state := func(name string, s v1alpha1.MemberState) v1alpha1.ClusterState {
		return v1alpha1.ClusterState{Name: v1alpha1.ClusterName(name), State: s, Message: string(s)}
	}
	in.Resources[0].Status.Clusters = []v1alpha1.ClusterState{
		state("m1", v1alpha1.MemberLeaked),
		state("m2", v1alpha1.MemberUnreachable),
		state("m3", v1alpha1.MemberRealized),
		state("m4", v1alpha1.MemberPending),
	}
	in.Resources[1].Status.Clusters = []v1alpha1.ClusterState{
		state("m1", v1alpha1.MemberOverridden),
		state("m2", v1alpha1.MemberUnreachable),
		state("m5", v1alpha1.MemberQuarantined),
	}
	in.Resources[2].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Message: "two of a name"}}
	in.Policies[0].Status.Units = []v1alpha1.PolicyUnit{
		{Resource: redis + "*", Clusters: []v1alpha1.ClusterState{state("m1", v1alpha1.MemberDrifted)}},
		{Resource: redis + "a", Clusters: in.Resources[0].Status.Clusters},
	}
	in.Policies[0].Status.Refused = []v1alpha1.RefusedStatement{{SID: "s", Reason: "Unsupported", Message: "no"}}
	members := []*v1alpha1.MemberCluster{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "m5"},
			Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterQuarantined, Findings: []v1alpha1.MemberFinding{
				{
					Code:     "KindMissing",
					Severity: v1alpha1.FindingStops,
				},
				{Code: "GuardMissing", Severity: v1alpha1.FindingWarns},
				{Code: v1alpha1.FindingIdentitiesFull, Severity: v1alpha1.FindingFails},
				{Code: "Orphaned", Severity: v1alpha1.FindingWarns},
			}},
		},
		{ObjectMeta: metav1.ObjectMeta{Name: "m6"}, Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterDowngraded}},
	}
	got := []string{}
	for _, f := range SortFindings(Findings(in, members, nil, "")) {
		got = append(got, fmt.Sprintf("%s %s %s", f.Severity, f.Kind, f.Member))
	}
	want := []string{
		"Stops quarantined m5",
		"Stops preflight m5",
		"Fails leak m1",
		"Fails drift m1",
		"Fails overridden m1",
		"Fails downgraded m6",
		"Fails unreachable m2",
		"Fails refused ",
		"Fails rejected ",
		"Fails capacity m5",
		"Warns orphan m5",
		"Warns guard m5",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the worst first, and what holds for a member once: %s", d)
	}
	grouped := SortFindings(Findings(inGroups(in), members, nil, ""))
	var again []string
	for _, f := range grouped {
		again = append(again, fmt.Sprintf("%s %s %s", f.Severity, f.Kind, f.Member))
		if f.Kind == Leak && f.Message.IsZero() {
			t.Errorf("a finding about a member whose message the status has no room for says nothing: %+v", f)
		}
	}
	if d := cmp.Diff(want, again); d != "" {
		t.Errorf("members in groups are judged differently (-want +got): %s", d)
	}
}

// inGroups returns the same world, of which the statuses list every member in groups.
func inGroups(in policy.Input) policy.Input {
	out := in
	out.Resources, out.Policies = nil, nil
	for _, r := range in.Resources {
		r = r.DeepCopy()
		r.Status.Clusters, r.Status.Groups = nil, v1alpha1.GroupMembers(r.Status.Clusters)
		out.Resources = append(out.Resources, r)
	}
	for _, p := range in.Policies {
		p = p.DeepCopy()
		for i := range p.Status.Units {
			u := &p.Status.Units[i]
			u.Clusters, u.Groups = nil, v1alpha1.GroupMembers(u.Clusters)
		}
		out.Policies = append(out.Policies, p)
	}
	return out
}

func TestUnits(t *testing.T) {
	in := world(acp("p", statementOf("s", policy.Allow, apps+"1", redis+"*")))
	in.Resources[0].Status.Clusters = []v1alpha1.ClusterState{
		{Name: "m1", State: v1alpha1.MemberRealized, DesiredRevision: "a", ObservedRevision: "a"},
		{Name: "m2", State: v1alpha1.MemberPending, DesiredRevision: "a", ObservedRevision: "a"},
	}
	in.Policies[0].Status.Units = []v1alpha1.PolicyUnit{
		{Resource: redis + "*", Clusters: []v1alpha1.ClusterState{{Name: "m1", State: v1alpha1.MemberUnreachable, DesiredRevision: "a"}}},
	}
	in.Policies = append(in.Policies, in.Policies[0]) // another policy about the same wildcard
	for name, in := range map[string]policy.Input{"Listed": in, "Grouped": inGroups(in)} {
		if d := cmp.Diff(map[string]int{"m1": 1, "m2": 1}, UnitsBehind(in)); d != "" {
			t.Error(name, d)
		}
		for member, want := range map[string]string{"m1": "*:Unreachable:true ", "m2": "a:Pending:true ", "m3": ""} {
			units, listed := UnfinishedUnits(in, member)
			got := ""
			for _, u := range units {
				got += fmt.Sprintf("%s:%s:%v ", strings.TrimPrefix(u.Resource, redis), u.State.State, u.Behind())
			}
			if got != want || listed != (member != "m3") {
				t.Errorf("%s, %s: got %q, listed %v; want %q", name, member, got, listed, want)
			}
		}
	}
}

// TestFindingsOfRandomFleets compares the findings and the numbers of units with those of a simple loop over all members of all units.
func TestFindingsOfRandomFleets(t *testing.T) {
	states := []v1alpha1.MemberState{v1alpha1.MemberRealized, v1alpha1.MemberRealized, v1alpha1.MemberRealized, v1alpha1.MemberPending, v1alpha1.MemberLeaked,
		v1alpha1.MemberDrifted, v1alpha1.MemberOverridden, v1alpha1.MemberUnreachable, v1alpha1.MemberQuarantined}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		in := world(acp("p", statementOf("s", policy.Allow, apps+"1", redis+"*")))
		in.Resources = nil
		wantBehind, want := map[string]int{}, map[string]bool{}
		// A member is in one of these states for all units, or in none, as the adapter reports it.
		whole := map[int]v1alpha1.MemberState{r.IntN(20): v1alpha1.MemberUnreachable, 20 + r.IntN(20): v1alpha1.MemberQuarantined}
		for i := range 30 {
			o := &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(fmt.Sprint(redis, i))}}
			var members []v1alpha1.ClusterState
			for m := range 40 {
				name := fmt.Sprintf("m%02d", m)
				c := v1alpha1.ClusterState{Name: v1alpha1.ClusterName(name), State: states[r.IntN(len(states)-2)], DesiredRevision: "b", ObservedRevision: "b"}
				if s := whole[m]; s != "" {
					c.State = s
				}
				if r.IntN(4) == 0 {
					c.ObservedRevision = "a"
				}
				if wantBehind[name] += 0; c.ObservedRevision != "b" || c.State == v1alpha1.MemberPending {
					wantBehind[name]++
				}
				switch c.State {
				case v1alpha1.MemberLeaked, v1alpha1.MemberDrifted, v1alpha1.MemberOverridden:
					want[fmt.Sprint(kindsOfStates[c.State], " ", name, " ", o.Spec.Resource)] = true
				case v1alpha1.MemberUnreachable:
					want["unreachable "+name+" "] = true
				case v1alpha1.MemberQuarantined:
					want["quarantined "+name+" "] = true
				}
				members = append(members, c)
			}
			listed := r.IntN(len(members))
			o.Status.Clusters, o.Status.Groups = members[:listed], v1alpha1.GroupMembers(members[listed:])
			in.Resources = append(in.Resources, o)
		}
		got := map[string]bool{}
		for _, f := range SortFindings(Findings(in, nil, nil, "")) {
			got[fmt.Sprint(f.Kind, " ", f.Member, " ", f.Resource)] = true
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, d)
		}
		if d := cmp.Diff(wantBehind, UnitsBehind(in)); d != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, d)
		}
		for m := range 40 {
			name := fmt.Sprintf("m%02d", m)
			n := 0
			for _, f := range Findings(in, nil, nil, name) {
				n++
				if key := fmt.Sprint(f.Kind, " ", f.Member, " ", f.Resource); f.Member != name || !want[key] {
					t.Fatalf("seed %d: %s is a finding of %s", seed, key, name)
				}
			}
			for key := range want {
				if strings.Contains(key, " "+name+" ") {
					n--
				}
			}
			if n != 0 {
				t.Fatalf("seed %d: %s has %d findings too many", seed, name, n)
			}
		}
	}
}

// TestTooManyFindings checks that a fleet with very many findings of a kind says how many are left out, and that those of one member and
// those of other kinds are complete.
func TestTooManyFindings(t *testing.T) {
	in := world()
	in.Resources = nil
	const resources, members = 100, 50
	for i := range resources {
		o := &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(fmt.Sprint(redis, i))}}
		var states []v1alpha1.ClusterState
		for m := range members {
			c := v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprintf("m%02d", m)), State: v1alpha1.MemberDrifted}
			if i == resources-1 && m == members-1 {
				c.State = v1alpha1.MemberLeaked
			}
			states = append(states, c)
		}
		o.Status.Groups = v1alpha1.GroupMembers(states)
		in.Resources = append(in.Resources, o)
	}
	n, left := map[FindingKind]int{}, 0
	all := SortFindings(Findings(in, nil, nil, ""))
	for _, f := range all {
		if n[f.Kind]++; f.LeftOut > 0 {
			left += f.LeftOut
		}
	}
	if n[Drift] != maxOfKind+1 || left != resources*members-1-maxOfKind || n[Leak] != 1 || len(all) != maxOfKind+2 {
		t.Errorf("findings %v, of which %d are left out", n, left)
	}
	if all[1].LeftOut != left || all[1].Message != message.FindingMoreLeftOut(left) {
		t.Errorf("the second finding is %+v, want the one that stands for those that are left out", all[1])
	}
	if got := len(Findings(in, nil, nil, "m07")); got != resources {
		t.Errorf("a member has %d findings, want %d", got, resources)
	}
}

// TestRejectedHasACode checks that the finding about an object that is not accepted has the code of the problem, which the condition lacks.
func TestRejectedHasACode(t *testing.T) {
	in := world(acp("p", statementOf("s", policy.Allow, apps+"1", redis+"*")))
	twin := in.Resources[0].DeepCopy()
	twin.Name = "twin"
	in.Resources = append(in.Resources, twin)
	want := message.ProblemResourceTwice(2, string(twin.Spec.Resource))
	twin.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Message: want.Text}}
	got := Findings(in, nil, policy.NewSnapshot(in).Problems(), "")
	if len(got) != 1 || got[0].Message != want || got[0].Object != "ProtectedResource/twin" {
		t.Errorf("findings %+v, want one with the message %+v", got, want)
	}
}
