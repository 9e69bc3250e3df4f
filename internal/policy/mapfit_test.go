package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

// The estimate counts as Cilium does: identities times masked ranges of ports. In conformance it is compared with Cilium.
func TestEntries(t *testing.T) {
	redis := func(subjects ...string) []*v1alpha1.AccessControlPolicy {
		st := statementOf("s", Allow, subjects[0], "redis:connect", bobs)
		for _, subject := range subjects[1:] {
			st.Subjects = append(st.Subjects, v1alpha1.Subject(subject))
		}
		return []*v1alpha1.AccessControlPolicy{acp("p", st)}
	}
	for name, c := range map[string]struct {
		reason string
		change func(in *Input)
		want   int
	}{
		"Anyone":  {"an entry for each aggregate identity", func(in *Input) { in.Policies = redis("*") }, everyoneEntries},
		"Name":    {"one identity", func(in *Input) { in.Policies = redis(app888) }, 1},
		"Members": {"one in each member", func(in *Input) { in.Policies, in.Members = redis(app888), 3 }, 3},
		"Counted": {"at most as many as any name has", func(in *Input) { in.Policies, in.Clusters = redis(app888), fleetWith(reports(100, 400, 16)) }, 16},
		"Several": {"several names have no more than the label", func(in *Input) {
			in.Policies, in.Clusters = redis(app888, app889, appHead+"app/1"), fleetWith(reports(100, 40, 16))
		}, 40},
		"Absent": {"a name that no pod has may get one", func(in *Input) { in.Policies, in.Clusters = redis(app888), fleetWith(reports(100, 0, 0)) }, 1},
		"Some": {
			"members that report nothing have one each",
			func(in *Input) { in.Policies, in.Clusters = redis(app888), fleetWith(reports(100, 40, 16), nil, nil) }, 18,
		},
		"Meshes": {"pods of another mesh have no identity", func(in *Input) {
			in.Policies, in.Clusters = redis(app888), fleetWith(inMesh("a", reports(9, 9, 8)), inMesh("b", reports(9, 9, 4)))
		}, 8},
		"Everyone": {"a deny of everyone names all identities", func(in *Input) {
			in.Policies, in.Clusters = []*v1alpha1.AccessControlPolicy{
				acp("p", statementOf("s", Deny, "*", "redis:connect", bobs)),
			}, fleetWith(reports(100, 40, 16), reports(200, 0, 0))
		}, denyEveryoneEntries + 300},
		"Ranges": {"one for each range", func(in *Input) { in.Policies = redis(cidrHead+"10.9.0.0/16", cidrHead+"10.8.0.0/16") }, 2},
		"Group":  {"one for a group of any size", func(in *Input) { in.Policies, in.Workloads = redis(app888), machines(30_000) }, 2},
		"Families": {"a group has one for each family of addresses", func(in *Input) {
			in.Policies, in.Workloads = redis(app888), machines(10)
			in.Workloads[0].Spec.Addresses = append(in.Workloads[0].Spec.Addresses, "2001:db8::/64", "2001:db8:1::/64")
		}, 3},
		"InGroup": {"a range cuts the group into two, and is one itself", func(in *Input) {
			in.Policies, in.Workloads = redis(app888, cidrHead+"172.16.3.0/24"), machines(30_000)
		}, 1 + 1 + 2},
		"AnyCount": {"the class's names", func(in *Input) {
			in.Policies, in.KnownNames, in.Clusters = redis(appHead+"*"), []string{app888, app889}, fleetWith(nil, nil)
		}, 4},
		"AnyReported": {"all identities with the label, whatever names are known", func(in *Input) {
			in.Policies, in.KnownNames, in.Clusters = redis(appHead+"*"), []string{app888, app889}, fleetWith(reports(100, 40, 16), reports(100, 3, 1))
		}, 43},
	} {
		t.Run(name, func(t *testing.T) {
			in := world(protect(bobs, v1alpha1.ModeEnforce))
			c.change(&in)
			u, ok := NewSnapshot(in).CompileResource(bobs, noon)
			if !ok || u.Entries != c.want || len(u.Refused) > 0 {
				t.Errorf("%s: %d entries, want %d; refused %v", c.reason, u.Entries, c.want, u.Refused)
			}
		})
	}
}

// reports is what a member reports: identities, and how many of them have the label of applications.
func reports(identities, labelled, most int32) *v1alpha1.MemberDataplane {
	d := &v1alpha1.MemberDataplane{PolicyMapEntries: MapEntries, Identities: identities}
	if labelled > 0 {
		d.Labels = []v1alpha1.MemberLabel{{Key: "other", Identities: 1, Most: 1}, {Key: "com.trip/appid", Identities: labelled, Most: most}}
	}
	return d
}

func inMesh(mesh string, d *v1alpha1.MemberDataplane) *v1alpha1.MemberDataplane {
	d.Mesh = mesh
	return d
}

func withMap(entries int32) *v1alpha1.MemberDataplane {
	return &v1alpha1.MemberDataplane{PolicyMapEntries: entries}
}

// fleetWith are members m1, m2 and so on with what they report.
func fleetWith(reported ...*v1alpha1.MemberDataplane) []Cluster {
	var out []Cluster
	for i, d := range reported {
		out = append(out, Cluster{Name: fmt.Sprintf("m%d", i+1), Labels: map[string]string{}, Dataplane: d})
	}
	return out
}

// The smallest policy map of the members that a unit is placed in decides how much fits, and the refusal says which that is.
func TestSmallestPolicyMapDecides(t *testing.T) {
	const n = 300
	grants := acp("p")
	for i := range n {
		grants.Spec.Statements = append(
			grants.Spec.Statements,
			statementOf(fmt.Sprint("s", i), Allow, fmt.Sprintf("%sapp/%d", appHead, i), "redis:connect", bobs),
		)
	}
	for name, c := range map[string]struct {
		reason   string
		clusters []Cluster
		placed   []v1alpha1.ClusterName
		refused  int
		message  string
	}{
		"Default":  {"300 of 16384 entries", fleetWith(nil), nil, 0, ""},
		"Bigger":   {"what does not fit into the usual map fits into a bigger one", fleetWith(manyPods(withMap(65536))), nil, 0, ""},
		"Usual":    {"it does not fit into the usual map", fleetWith(manyPods(withMap(16384))), nil, n - 14733/64, "(14733 of 16384 in m1)"},
		"Smallest": {"the smallest one decides", fleetWith(withMap(16384), withMap(512), withMap(1024)), nil, n - 450/3, "(450 of 512 in m2)"},
		"Elsewhere": {
			"a small map where the unit is not placed does not count",
			fleetWith(withMap(16384), withMap(512), withMap(1024)), []v1alpha1.ClusterName{"m1"}, 0, "",
		},
		"Mesh": {
			"nor do pods of other meshes", fleetWith(inMesh("a", withMap(512)), inMesh("b", withMap(512)), inMesh("b", withMap(1024))),
			[]v1alpha1.ClusterName{"m1"}, 0, "",
		},
		"Mesh2": {
			"the fuller mesh decides", fleetWith(inMesh("a", withMap(512)), inMesh("b", withMap(1024)), inMesh("b", withMap(512))),
			[]v1alpha1.ClusterName{"m1", "m2", "m3"}, n - 450/2, "(450 of 512 in m3)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := world(protect(bobs, v1alpha1.ModeEnforce), grants)
			in.Clusters = c.clusters
			if c.placed != nil {
				in.ResourceClasses[0] = in.ResourceClasses[0].DeepCopy()
				in.ResourceClasses[0].Spec.Placement = v1alpha1.Placement{Clusters: &c.placed}
			}
			u, ok := NewSnapshot(in).CompileResource(bobs, noon)
			if !ok || len(u.Refused) != c.refused || len(u.Overfull) > 0 {
				t.Fatalf("%s: %d of %d refused, want %d; overfull %v", c.reason, len(u.Refused), n, c.refused, u.Overfull)
			}
			for _, r := range u.Refused {
				if !strings.Contains(r.Message.Text, c.message) {
					t.Fatalf("%s: %s", c.reason, r.Message)
				}
			}
		})
	}
}

// manyPods has many identities for each application.
func manyPods(d *v1alpha1.MemberDataplane) *v1alpha1.MemberDataplane {
	d.Identities, d.Labels = 60000, []v1alpha1.MemberLabel{{Key: "com.trip/appid", Identities: 60000, Most: 64}}
	return d
}

// Denies stay also where they do not fit. Then every allow of the unit is refused, other ports are closed, and the unit says where it
// is not in force in full.
func TestDeniesThatDoNotFitIntoThePolicyMap(t *testing.T) {
	build := func(denies int, clusters ...Cluster) Unit {
		p := acp("p", statementOf("friend", Allow, appHead+"app/friend", "web:connect", shop))
		for i := range denies {
			p.Spec.Statements = append(p.Spec.Statements, statementOf(fmt.Sprint("d", i), Deny, fmt.Sprintf("%sapp/%d", appHead, i), "web:connect", shop))
		}
		in := world(protect(shop, v1alpha1.ModeEnforce), p)
		in.ResourceClasses = openOthers(in.ResourceClasses)
		in.Clusters = clusters
		s := NewSnapshot(in)
		u, ok := s.CompileResource(shop, noon)
		if !ok {
			t.Fatal("no unit")
		}
		q := ask(on(shop), func(q *Query) { q.Port = 9999 })
		if passes := s.DecideEffective(&q).Verdict.LetsThrough(); passes != (len(u.OpenPorts) > 0) {
			t.Errorf("%d denies: a port of no action passes: %v, and the unit opens %v", denies, passes, u.OpenPorts)
		}
		return u
	}
	fleet := fleetWith(withMap(1024), withMap(2048), withMap(65536))
	if u := build(3, fleet...); len(u.Refused) > 0 || len(u.OpenPorts) == 0 || u.Overfull != nil {
		t.Fatalf("with room for all: refused %v, overfull %v, opens %v", u.Refused, u.Overfull, u.OpenPorts)
	}
	u := build(250, fleet...) // 3 identities each
	if len(u.Refused) != 1 || len(u.OpenPorts) > 0 || u.Overfull != nil || len(u.Rules) == 0 {
		t.Errorf("with room for the denies alone: refused %v, overfull %v, opens %v", u.Refused, u.Overfull, u.OpenPorts)
	}
	u = build(800, fleet...)
	if len(u.Refused) != 1 || u.Refused[0].Reason != v1alpha1.RefusedTooMany || len(u.OpenPorts) > 0 || !slices.Equal(u.Overfull, []string{"m1", "m2"}) {
		t.Errorf("without room for the denies: refused %v, overfull %v, opens %v", u.Refused, u.Overfull, u.OpenPorts)
	}
	for _, r := range u.Rules {
		if r.Effect != Deny || len(r.Subjects[0].Values) != 800 {
			t.Errorf("the unit has the rule %+v, want all denies and nothing else", r)
		}
	}
	if u := build(6000); !slices.Equal(u.Overfull, nil) {
		t.Errorf("6000 of 16384 entries: overfull %v", u.Overfull)
	}
	if u := build(15000); !slices.Equal(u.Overfull, []string{""}) {
		t.Errorf("of members that are not known: overfull %v", u.Overfull)
	}
}

func openOthers(classes []*v1alpha1.ResourceClass) []*v1alpha1.ResourceClass {
	var out []*v1alpha1.ResourceClass
	for _, c := range classes {
		c = c.DeepCopy()
		c.Spec.OtherPorts = v1alpha1.OtherPortsAllow
		out = append(out, c)
	}
	return out
}

// A whole class is not suggested where it would be refused, too.
func TestWholeClassIsSuggestedOnlyIfItFits(t *testing.T) {
	for _, c := range []struct {
		reason   string
		clusters []Cluster
		advised  bool
	}{
		{"it fits", fleetWith(reports(1000, 900, 4)), true},
		{"it does not fit into the usual policy map", fleetWith(reports(20000, 18000, 4)), false},
		{
			"it fits into a bigger one",
			fleetWith(func() *v1alpha1.MemberDataplane { d := reports(20000, 18000, 4); d.PolicyMapEntries = 65536; return d }()), true,
		},
		{"not into that of every member", fleetWith(reports(1000, 900, 4), withMap(512)), false},
	} {
		for _, st := range []v1alpha1.Statement{
			statementOf("s", Deny, appHead+"app/team-*", "redis:connect", bobs), statementOf("s", Allow, appHead+"app/team-*", "redis:connect", bobs),
		} {
			in := world(protect(bobs, v1alpha1.ModeEnforce), acp("p", st))
			in.Clusters, in.Unsupported.Names = c.clusters, true
			before := NewSnapshot(world(protect(bobs, v1alpha1.ModeEnforce)))
			s := before.Next(in)
			refused := s.Refusals()
			if len(refused) != 1 || strings.Contains(refused[0].Message.Text, "or the whole class") != c.advised {
				t.Errorf("%s: %v", c.reason, refused)
			}
			whole := st.DeepCopy()
			whole.Subjects, whole.Effect = []v1alpha1.Subject{appHead + "app/*"}, Allow
			in.Policies = []*v1alpha1.AccessControlPolicy{acp("p", *whole)}
			if u, ok := s.Next(in).CompileResource(bobs, noon); !ok || (len(u.Refused) == 0) != c.advised {
				t.Errorf("%s: an allow of the whole class is refused: %v", c.reason, u.Refused)
			}
		}
	}
}

// machines are an application's, in /24s of 172.16.0.0/12.
func machines(n int) []*v1alpha1.ExternalWorkload {
	w := &v1alpha1.ExternalWorkload{Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(app888)}}
	w.Name = "machines"
	for i := range n {
		w.Spec.Addresses = append(w.Spec.Addresses, fmt.Sprintf("172.%d.%d.%d", 16+i>>16, i>>8&255, i&255))
	}
	return []*v1alpha1.ExternalWorkload{w}
}
