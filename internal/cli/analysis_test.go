package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

func TestAnalyze(t *testing.T) {
	const (
		app  = "trnv1:rsc:trip-com:iam:sa:app/"
		rsc  = "trnv1:rsc:trip-com:redis:clusters:"
		cidr = "trnv1:rsc:trip-com:net:cidr:"
	)
	later, before := metav1.NewTime(goldenTime.AddDate(0, 0, 1)), metav1.NewTime(goldenTime.AddDate(0, 0, -1))
	statement := func(effect v1alpha1.Effect, subjects, action, resources string, change ...func(*v1alpha1.Statement)) v1alpha1.Statement {
		st := v1alpha1.Statement{Effect: effect, Actions: []v1alpha1.Action{v1alpha1.Action(action)}}
		for s := range strings.SplitSeq(subjects, " ") {
			st.Subjects = append(st.Subjects, v1alpha1.Subject(s))
		}
		for r := range strings.SplitSeq(resources, " ") {
			st.Resources = append(st.Resources, v1alpha1.ResourceName(r))
		}
		for _, f := range change {
			f(&st)
		}
		return st
	}
	expires := func(st *v1alpha1.Statement) { st.NotAfter = &later }
	begins := func(st *v1alpha1.Statement) { st.NotBefore = &later }
	over := func(st *v1alpha1.Statement) { st.NotAfter = &before }
	one := statement("Allow", app+"1", "redis:connect", rsc+"a")
	cases := map[string]struct {
		reason string
		a, b   v1alpha1.Statement
		want   string
	}{
		"Apart":             {"nothing in common", one, statement("Allow", app+"2", "redis:connect", rsc+"a"), ""},
		"OtherResource":     {"nothing in common", one, statement("Deny", app+"1", "redis:connect", rsc+"b"), ""},
		"OtherAction":       {"nothing in common", one, statement("Deny", app+"1", "redis:admin", rsc+"a"), ""},
		"Same":              {"the later one is too many", one, one, "redundant b"},
		"Wider":             {"the wildcard says it", one, statement("Allow", app+"*", "redis:*", rsc+"*"), "redundant a"},
		"WiderFirst":        {"in whichever order", statement("Allow", app+"*", "redis:*", rsc+"*"), one, "redundant b"},
		"PartlyTheSame":     {"each says something of its own", statement("Allow", app+"1 "+app+"2", "redis:connect", rsc+"a"), statement("Allow", app+"2 "+app+"3", "redis:connect", rsc+"a"), ""},
		"LongerWins":        {"the one that expires is too many", one, statement("Allow", app+"1", "redis:connect", rsc+"a", expires), "redundant b"},
		"ExpiringDoesNot":   {"the wider one will be gone", one, statement("Allow", app+"*", "redis:connect", rsc+"a", expires), ""},
		"Shadowed":          {"the deny wins", one, statement("Deny", app+"1", "redis:*", rsc+"a"), "shadowed a"},
		"ShadowedByWild":    {"of every resource", one, statement("Deny", "*", "redis:connect", rsc+"*"), "shadowed a"},
		"ShadowedForAWhile": {"only until it expires", one, statement("Deny", app+"1", "redis:connect", rsc+"a", expires), "contradictory a"},
		"Contradictory":     {"for one of two", statement("Allow", app+"1 "+app+"2", "redis:connect", rsc+"a"), statement("Deny", app+"2", "redis:connect", rsc+"a"), "contradictory a"},
		"TwoWildcards":      {"of different width", statement("Allow", app+"*", "redis:connect", rsc+"*"), statement("Deny", app+"team-*", "redis:connect", rsc+"*"), "contradictory a"},
		"Ranges":            {"one range holds the other", statement("Allow", cidr+"10.5.0.0/24", "redis:connect", rsc+"a"), statement("Allow", cidr+"10.0.0.0/8", "redis:connect", rsc+"a"), "redundant a"},
		"RangeAndName":      {"an address is never an application", one, statement("Deny", cidr+"0.0.0.0/0", "redis:connect", rsc+"a"), ""},
		"NeverTogether":     {"one ends when the other begins", statement("Allow", app+"1", "redis:connect", rsc+"a", expires), statement("Deny", app+"1", "redis:connect", rsc+"a", begins), ""},
		"Over":              {"it does nothing any more", one, statement("Deny", app+"1", "redis:connect", rsc+"a", over), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.a.SID, tc.b.SID = "a", "b"
			in := policy.Input{
				ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
					Pattern: rsc + "*", LabelKey: "r", Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}}, {Name: "redis:admin", Ports: []v1alpha1.Port{{Port: 6380, Protocol: "TCP"}}}}}}},
				SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "application"}, Spec: v1alpha1.SubjectClassSpec{Pattern: app + "*", LabelKey: "s"}}},
				Policies:       []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{tc.a, tc.b}}}},
			}
			var got []string
			for _, m := range analyze(policy.NewSnapshot(in), in, nil, goldenTime) {
				got = append(got, m.kind+" "+m.ref.SID)
				agree(t, in, m)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ",")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// agree checks a remark against the evaluator: with its resource enforced, its example is decided as the remark says.
func agree(t *testing.T, in policy.Input, m remark) {
	t.Helper()
	q, _, err := m.example.question(goldenTime)
	if err != nil {
		t.Fatalf("the example %+v is no query: %v", m.example, err)
	}
	in.Resources = []*v1alpha1.ProtectedResource{{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: v1alpha1.ProtectedResourceSpec{
		Resource: v1alpha1.ResourceName(q.Resources[0]), Mode: v1alpha1.ModeEnforce}}}
	d := policy.NewSnapshot(in).Decide(q)
	want := policy.Denied
	if m.kind == kindRedundant {
		want = policy.Allowed
	}
	if d.Word != want {
		t.Errorf("%s: the example %+v is %s, want %s", m.kind, m.example, d.Word, want)
	}
}
