package policy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/norace"
)

// TestEffectiveIsWhatUnitsLetThrough checks that DecideEffective lets through exactly what the units let through, also with refusals.
func TestEffectiveIsWhatUnitsLetThrough(t *testing.T) {
	norace.SkipUnderRace(t)
	same, differ := 0, map[string]int{}
	for seed := range uint64(4000) {
		d := dice{rand.New(rand.NewPCG(seed, 11))}
		in := d.world()
		d.breakWorld(&in)
		s := NewSnapshot(in)
		plane := dataplane{units: s.Compile(noon), groups: s.ExternalGroups()}
		for range 12 {
			q := d.query()
			q.Resources = several(d, 2, pick(d, bobs, orders), shop)
			q.Cluster, q.At, q.Method, q.Path = "", noon, "", ""
			got, passes := s.DecideEffective(&q), plane.passes(q)
			if got.Verdict.LetsThrough() != passes {
				t.Fatalf("seed %d: %s (%s), and the units let through: %t\n%+v\n%s", seed, got.Verdict, got.Explain(), passes, q, mustJSON(t, plane.units))
			}
			if diff := cmp.Diff(s.Decide(q), got.Written); diff != "" {
				t.Fatalf("seed %d: what is written: -Decide +Written\n%s", seed, diff)
			}
			if !got.Differs() {
				same++
				continue
			}
			if len(got.LeftOut) == 0 && !in.Unsupported.Groups {
				t.Fatalf("seed %d: %s in place of %s, and nothing says why: %+v", seed, got.Verdict, got.Written.Verdict, q)
			}
			for _, r := range got.LeftOut {
				differ[r.Reason]++
			}
		}
	}
	for _, reason := range []string{v1alpha1.RefusedUnsupported, v1alpha1.RefusedShadowingDeny, v1alpha1.RefusedUnknownSubject, LeftOutUnknownName} {
		if differ[reason] < 20 {
			t.Errorf("%s made a difference %d times: too few to notice a mistake", reason, differ[reason])
		}
	}
	if same < 15000 {
		t.Errorf("only %d decisions are as written", same)
	}
}

// breakWorld adds what cannot be pushed.
func (d dice) breakWorld(in *Input) {
	in.KnownNames = slices.DeleteFunc(in.KnownNames, func(string) bool { return d.IntN(4) == 0 })
	in.Unsupported.Groups = d.IntN(8) == 0
	for _, p := range in.Policies {
		for i := range p.Spec.Statements {
			if st := &p.Spec.Statements[i]; d.IntN(12) == 0 {
				st.Subjects = append(st.Subjects, userBob)
			}
		}
	}
	if d.IntN(3) == 0 {
		in.Workloads = append(in.Workloads, workload("nobodys", userBob, "10.5.0.0/24"))
	}
}

func TestDecideEffective(t *testing.T) {
	allow := statementOf("a", Allow, app888, "redis:connect", bobs)
	enforced := protect(bobs, v1alpha1.ModeEnforce)
	for name, tc := range map[string]struct {
		reason  string
		world   []any
		query   Query
		word    Verdict
		written Verdict
		leftOut []string
		waiting []Ref
	}{
		"AsWritten": {reason: "nothing is refused", world: []any{allow, enforced}, query: ask(), word: Allowed, written: Allowed},
		"RefusedDeny": {
			reason: "a refused deny takes the allow with it",
			world:  []any{allow, statementOf("d", Deny, cidrHead+"10.5.0.9/24", "redis:connect", bobs), enforced}, query: ask(),
			word: DefaultDenied, written: Allowed, leftOut: []string{"p-a/a " + v1alpha1.RefusedShadowingDeny},
		},
		"RefusedAllow": {
			reason: "a statement goes as a whole",
			world:  []any{statementOf("a", Allow, app888, "redis:connect", bobs, alsoSubjects(userBob)), enforced}, query: ask(),
			word: DefaultDenied, written: Allowed, leftOut: []string{"p-a/a " + v1alpha1.RefusedUnknownSubject},
		},
		"OtherAllow": {
			reason: "what else allows is not touched, and nothing needs to be said",
			world:  []any{allow, statementOf("b", Allow, app888, "redis:connect", bobs, alsoSubjects(userBob)), enforced},
			query:  ask(), word: Allowed, written: Allowed,
		},
		"UnknownName": {
			reason: "a prefix stands for the known names",
			world:  []any{statementOf("a", Allow, appHead+"app/team-*", "redis:connect", bobs), enforced}, query: ask(by(teamApp)),
			word: DefaultDenied, written: Allowed, leftOut: []string{"p-a/a " + LeftOutUnknownName},
		},
		"KnownName": {
			reason: "of which this is one",
			world:  []any{statementOf("a", Allow, appHead+"app/team-*", "redis:connect", bobs), enforced, known{teamApp}},
			query:  ask(by(teamApp)), word: Allowed, written: Allowed,
		},
		"Waiting": {reason: "an allow of requests in Audit waits where another resource closes, and that is reported",
			world: []any{statementOf("a", Allow, app888, "web:orders", shop), protect(shop, v1alpha1.ModeAudit), enforced},
			query: ask(on(bobs, shop), at(80)), word: DefaultDenied, written: DefaultDenied, waiting: []Ref{{"p-a", "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := NewSnapshot(world(tc.world...)).DecideEffective(&tc.query)
			var leftOut []string
			for _, r := range got.LeftOut {
				leftOut = append(leftOut, r.Ref.String()+" "+r.Reason)
				if !strings.Contains(got.Explain().Text, r.Ref.String()) {
					t.Errorf("%s: %q does not name %s", tc.reason, got.Explain(), r.Ref)
				}
			}
			if got.Verdict != tc.word || got.Written.Verdict != tc.written || !slices.Equal(leftOut, tc.leftOut) || !slices.Equal(got.Waiting, tc.waiting) {
				t.Errorf("%s: %s of %s, left out %v, waiting %v", tc.reason, got.Verdict, got.Written.Verdict, leftOut, got.Waiting)
			}
		})
	}
}

// TestEffectiveWithoutCapacity checks that allows that do not fit into a workload's policy map are effective in no member.
func TestEffectiveWithoutCapacity(t *testing.T) {
	in := world(protect(bobs, v1alpha1.ModeEnforce))
	in.Members = 100
	for i := range 300 {
		in.Policies = append(in.Policies, acp(fmt.Sprintf("p-%03d", i), statementOf("s", Allow, appHead+fmt.Sprintf("app/%d", i), "redis:*", bobs)))
	}
	s := NewSnapshot(in)
	u, ok := s.CompileResource(bobs, noon)
	if !ok || len(u.Refused) == 0 || len(u.Refused) == 300 {
		t.Fatalf("%d statements are refused: the test needs some", len(u.Refused))
	}
	refused := map[Ref]bool{}
	for _, r := range u.Refused {
		refused[r.Ref] = true
	}
	for i := range 300 {
		q := ask(by(appHead + fmt.Sprintf("app/%d", i)))
		got, want := s.DecideEffective(&q), Allowed
		if refused[Ref{fmt.Sprintf("p-%03d", i), "s"}] {
			want = DefaultDenied
		}
		if got.Verdict != want || got.Written.Verdict != Allowed {
			t.Fatalf("application %d is %s, want %s", i, got.Verdict, want)
		}
	}
}

// A program that does not read the members' names must not treat a prefix as empty.
func TestEffectiveWithNamesUnknown(t *testing.T) {
	in := world(statementOf("a", Allow, appHead+"app/team-*", "redis:connect", redisHead+"bobs-*"), protect(bobs, v1alpha1.ModeEnforce))
	in.NamesUnknown = true
	q := ask(by(teamApp))
	if got := NewSnapshot(in).DecideEffective(&q); got.Verdict != Allowed {
		t.Errorf("%s: %s", got.Verdict, got.Explain())
	}
}

// A member in which the class is not placed has nothing of it.
func TestPlacement(t *testing.T) {
	in := world(protect(bobs, v1alpha1.ModeEnforce), protect(shop, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "redis:connect", allRedis))
	in.Clusters = []Cluster{{Name: "m1", Labels: map[string]string{"zone": "a"}}, {Name: "m2", Labels: map[string]string{"zone": "b"}}}
	in.ResourceClasses[0].Spec.Placement.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}
	in.ResourceClasses[1].Spec.Placement.Clusters = &[]v1alpha1.ClusterName{"m1", "m2"}
	s := NewSnapshot(in)
	in2 := in
	in2.Clusters = nil
	unstated := NewSnapshot(in2)
	for name, tc := range map[string]struct {
		snapshot  *Snapshot
		cluster   string
		subject   string
		resources []string
		want      Verdict
	}{
		"Placed":            {s, "m1", app889, []string{bobs}, DefaultDenied},
		"NotPlaced":         {s, "m2", app889, []string{bobs}, Unmanaged},
		"WildcardNotPlaced": {s, "m2", app888, []string{bobs}, Unmanaged},
		"OtherClassCloses":  {s, "m2", app888, []string{bobs, shop}, DefaultDenied},
		"NoMember":          {s, "", app889, []string{bobs}, DefaultDenied},
		"UnknownMember":     {s, "m9", app889, []string{bobs}, DefaultDenied},
		"FleetUnknown":      {unstated, "m2", app889, []string{bobs}, DefaultDenied},
		"NotInTheList":      {unstated, "m3", app889, []string{shop}, Unmanaged},
	} {
		q := ask(by(tc.subject), on(tc.resources...), func(q *Query) { q.Cluster = tc.cluster })
		if got := tc.snapshot.Decide(q); got.Verdict != tc.want {
			t.Errorf("%s: %s, want %s", name, got.Verdict, tc.want)
		}
		if got := tc.snapshot.DecideEffective(&q); got.Verdict != tc.want {
			t.Errorf("%s: effectively %s, want %s", name, got.Verdict, tc.want)
		}
	}
	if err := s.CheckCluster("m9"); !errors.Is(err, ErrUnknownCluster) {
		t.Errorf("CheckCluster of an unknown member: %v", err)
	}
	for _, known := range []error{s.CheckCluster("m2"), s.CheckCluster(""), unstated.CheckCluster("m9")} {
		if known != nil {
			t.Errorf("CheckCluster refuses what it knows, or what nobody knows: %v", known)
		}
	}
}

// TestEffectiveEnforcedIsEffectiveInEnforce compares the decision as if resources were in Enforce with the decision after their mode is
// changed to Enforce, in random worlds with refused statements.
func TestEffectiveEnforcedIsEffectiveInEnforce(t *testing.T) {
	norace.SkipUnderRace(t)
	compared, differ := 0, 0
	for seed := range uint64(1500) {
		d := dice{rand.New(rand.NewPCG(seed, 13))}
		in := d.world()
		d.breakWorld(&in)
		s := NewSnapshot(in)
		for range 6 {
			q := d.query()
			q.Resources = several(d, 2, pick(d, bobs, orders), shop)
			if len(q.Resources) == 0 {
				continue
			}
			closed := in
			closed.Resources = slices.DeleteFunc(
				slices.Clone(in.Resources),
				func(p *v1alpha1.ProtectedResource) bool { return slices.Contains(q.Resources, string(p.Spec.Resource)) },
			)
			for _, name := range q.Resources {
				closed.Resources = append(closed.Resources, protect(name, v1alpha1.ModeEnforce))
			}
			want := NewSnapshot(closed).DecideEffective(&q)
			got := s.EffectiveEnforced(&q, nil)
			if diff := cmp.Diff(want.Decision, got); diff != "" {
				t.Fatalf("seed %d: %+v -in Enforce +as if:\n%s", seed, q, diff)
			}
			compared++
			if s.DecideEnforced(&q, nil).Verdict != got.Verdict {
				differ++
			}
		}
	}
	if compared < 5000 || differ < 200 {
		t.Errorf("%d decisions, and a refusal shows in %d: too few to notice a mistake", compared, differ)
	}
}

// EffectiveInto is DecideEffective without explanations, and LeavesOut reports when it has to be called.
func TestEffectiveIntoIsDecideEffective(t *testing.T) {
	norace.SkipUnderRace(t)
	left := 0
	for seed := range uint64(1000) {
		d := dice{rand.New(rand.NewPCG(seed, 17))}
		in := d.world()
		d.breakWorld(&in)
		s := NewSnapshot(in)
		for range 12 {
			q := d.query()
			want := s.DecideEffective(&q)
			if diff := cmp.Diff(want.Decision, s.EffectiveInto(&q, nil)); diff != "" {
				t.Fatalf("seed %d: %+v -DecideEffective +EffectiveInto:\n%s", seed, q, diff)
			}
			if s.LeavesOut(&q) {
				left++
			} else if want.Differs() {
				t.Fatalf("seed %d: nothing is said to be left out, and %+v is %s in place of %s", seed, q, want.Verdict, want.Written.Verdict)
			}
		}
	}
	if left < 1000 {
		t.Errorf("something may be left out in %d questions: too few", left)
	}
}

// A member in which rules about requests do not work does not get them.
func TestEffectiveWithoutRequests(t *testing.T) {
	istio := webClass()
	istio.Spec.Enforcers = []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}
	post := func(q *Query) { q.Method, q.Path = "POST", "/orders/1" }
	for name, tc := range map[string]struct {
		reason  string
		mode    v1alpha1.Mode
		action  string
		class   *v1alpha1.ResourceClass
		cluster string
		want    Verdict
		closed  Verdict // as if in Enforce
	}{
		"Lacks": {"the statement is not brought there", v1alpha1.ModeEnforce, "web:orders", webClass(), "m1", DefaultDenied, DefaultDenied},
		"Has":   {"the other member gets it", v1alpha1.ModeEnforce, "web:orders", webClass(), "m2", Allowed, Allowed},
		"Whole": {"whole connections need no proxy", v1alpha1.ModeEnforce, "web:connect", webClass(), "m1", Allowed, Allowed},
		"Audit": {
			"in Audit nothing is refused, and what Enforce would do is asked apart",
			v1alpha1.ModeAudit, "web:orders", webClass(), "m1", Allowed, DefaultDenied,
		},
		"OtherProxy": {"it is not Cilium that looks at the requests", v1alpha1.ModeEnforce, "web:orders", istio, "m1", Allowed, Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			in := world(statementOf("a", Allow, app888, tc.action, shop), protect(shop, tc.mode))
			in.ResourceClasses[1] = tc.class
			in.Clusters = []Cluster{{Name: "m1", NoRequests: message.Verbatim("enable-l7-proxy is false")}, {Name: "m2"}}
			s := NewSnapshot(in)
			q := ask(on(shop), at(80), post, func(q *Query) { q.Cluster = tc.cluster })
			got := s.DecideEffective(&q)
			if got.Verdict != tc.want || got.Written.Verdict != Allowed {
				t.Errorf("%s: %s of %s: %s", tc.reason, got.Verdict, got.Written.Verdict, got.Explain())
			}
			if got.Differs() &&
				(len(got.LeftOut) != 1 || got.LeftOut[0].Ref != (Ref{"p-a", "a"}) || !strings.Contains(got.LeftOut[0].Message.Text, "enable-l7-proxy")) {
				t.Errorf("%s: left out %+v", tc.reason, got.LeftOut)
			}
			if closed := s.EffectiveEnforced(&q, nil); closed.Verdict != tc.closed {
				t.Errorf("%s: in Enforce it would be %s, want %s", tc.reason, closed.Verdict, tc.closed)
			}
		})
	}
}

// The finding that the adapter reports is what the flow collector and the portal decide by.
func TestFleetListsMembersWithoutRequests(t *testing.T) {
	member := func(name string, s v1alpha1.MemberClusterStatus) *v1alpha1.MemberCluster {
		return &v1alpha1.MemberCluster{ObjectMeta: named(name), Status: s}
	}
	f := FleetOf([]*v1alpha1.MemberCluster{
		member(
			"able",
			v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Findings: []v1alpha1.MemberFinding{{Code: "OldServer", Message: "old"}}},
		),
		member(
			"unable",
			v1alpha1.MemberClusterStatus{
				State:    v1alpha1.MemberClusterReady,
				Findings: []v1alpha1.MemberFinding{{Code: v1alpha1.FindingNoHTTP, Message: "no proxy"}},
			},
		),
		member("unread", v1alpha1.MemberClusterStatus{}),
	}, nil)
	got := map[string]string{}
	for _, c := range f.Clusters {
		got[c.Name] = c.NoRequests.Text
	}
	if diff := cmp.Diff(map[string]string{"able": "", "unable": "no proxy", "unread": "the member has not been read yet"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPlacedIn(t *testing.T) {
	members := []Member{
		{Name: "m2", Labels: map[string]string{"zone": "a"}},
		{Name: "m1", Labels: map[string]string{"zone": "a"}},
		{Name: "m3"},
		{Name: "m4", Labels: map[string]string{"zone": "a"}, Leaving: true},
	}
	names := &[]v1alpha1.ClusterName{"m9", "m4", "m1", "m1"}
	zone := &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}
	for name, tc := range map[string]struct {
		reason    string
		placement v1alpha1.Placement
		known     bool
		want      []string
		wantKnown bool
	}{
		"Names": {
			"a named member need not be registered, and one that leaves gets nothing",
			v1alpha1.Placement{Clusters: names}, false, []string{"m1", "m9"}, true,
		},
		"NoNames": {"an empty list is no member", v1alpha1.Placement{Clusters: &[]v1alpha1.ClusterName{}}, true, nil, true},
		"Labels":  {"by the labels of the registrations", v1alpha1.Placement{ClusterSelector: zone}, true, []string{"m1", "m2"}, true},
		"All": {
			"an empty selector is every member", v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
			true, []string{"m1", "m2", "m3"}, true,
		},
		"NotAllKnown": {"a member that is not known may be selected", v1alpha1.Placement{ClusterSelector: zone}, false, nil, false},
		"Nothing":     {"nothing says where", v1alpha1.Placement{}, true, nil, false},
		"Both":        {"only one of them is legal", v1alpha1.Placement{Clusters: names, ClusterSelector: zone}, true, nil, false},
		"NoSelector": {"it cannot be read",
			v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Like"}}}},
			true, nil, false},
	} {
		got, known := PlacedIn(&tc.placement, members, tc.known)
		if !slices.Equal(got, tc.want) || known != tc.wantKnown {
			t.Errorf("%s: %s: %v, known %v", name, tc.reason, got, known)
		}
	}
}
