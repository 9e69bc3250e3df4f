package admission

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

const (
	app888 = "trnv1:rsc:trip-com:iam:sa:app/888"
	bobs   = "trnv1:rsc:trip-com:redis:clusters:bobs-cluster"
)

var (
	now   = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	later = metav1.NewTime(now.Add(time.Hour))
	past  = metav1.NewTime(now.Add(-time.Hour))
)

func resourceClass(name, pattern string, change ...func(*v1alpha1.ResourceClass)) *v1alpha1.ResourceClass {
	c := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ResourceClassSpec{
		Pattern:  v1alpha1.NamePattern(pattern),
		LabelKey: v1alpha1.LabelKey("key/" + name),
		Actions: []v1alpha1.ClassAction{
			{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}},
			{Name: "redis:admin", Ports: []v1alpha1.Port{{Port: 6380}}},
		},
		Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
	}}
	for _, f := range change {
		f(c)
	}
	return c
}

func subjectClass(name, pattern string) *v1alpha1.SubjectClass {
	return &v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubjectClassSpec{
		Pattern: v1alpha1.NamePattern(pattern), LabelKey: v1alpha1.LabelKey("key/" + name)}}
}

func grant(effect v1alpha1.Effect, subject, resource string, change ...func(*v1alpha1.Statement)) *v1alpha1.AccessControlPolicy {
	st := v1alpha1.Statement{SID: "s", Effect: effect, Subjects: []v1alpha1.Subject{v1alpha1.Subject(subject)},
		Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)}}
	for _, f := range change {
		f(&st)
	}
	return &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{st}}}
}

func protected(mode v1alpha1.Mode, change ...func(*v1alpha1.ProtectedResource)) *v1alpha1.ProtectedResource {
	o := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "bobs"}, Spec: v1alpha1.ProtectedResourceSpec{Resource: bobs, Mode: mode}}
	for _, f := range change {
		f(o)
	}
	return o
}

func workload(name, subject string, addresses ...string) *v1alpha1.ExternalWorkload {
	return &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ExternalWorkloadSpec{
		Subject: v1alpha1.ResourceName(subject), Addresses: addresses}}
}

func base() policy.Input {
	return policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{resourceClass("redis", "trnv1:rsc:trip-com:redis:clusters:*")},
		SubjectClasses:  []*v1alpha1.SubjectClass{subjectClass("application", "trnv1:rsc:trip-com:iam:sa:app/*")},
	}
}

func with(change func(*policy.Input)) policy.Input {
	in := base()
	change(&in)
	return in
}

func TestVerdicts(t *testing.T) {
	forAnHour := func(st *v1alpha1.Statement) { st.NotAfter = &later }
	cases := map[string]struct {
		reason  string
		got     Verdict
		denials []string
		warns   []string
	}{
		"Grant": {reason: "an ordinary grant", got: Policy(nil, grant("Allow", app888, bobs), base(), now)},
		"UnknownResource": {reason: "a pattern in no class", denials: []string{"no ResourceClass covers any of it"},
			got: Policy(nil, grant("Allow", app888, "trnv1:rsc:trip-com:kafka:topics:*", forAnHour), base(), now), warns: []string{""}},
		"BadLabelValue": {
			reason:  "it can be no pod's label",
			got:     Policy(nil, grant("Allow", app888+"/x", bobs), base(), now),
			denials: []string{"cannot be a label value"},
		},
		"WildcardForever": {reason: "nobody would remember it", got: Policy(nil, grant("Allow", "trnv1:rsc:trip-com:iam:sa:app/*", bobs), base(), now),
			warns: []string{"never expires"}},
		"Expired": {
			reason: "it does nothing",
			got:    Policy(nil, grant("Allow", app888, bobs, func(st *v1alpha1.Statement) { st.NotAfter = &past }), base(), now),
			warns:  []string{"expired at"},
		},
		"DenyInAudit": {reason: "it refuses nothing yet", got: Policy(nil, grant("Deny", app888, bobs), with(func(in *policy.Input) {
			in.Resources = append(in.Resources, protected(v1alpha1.ModeAudit))
		}), now), warns: []string{"refuses nothing while"}},
		"DenyInEnforce": {reason: "it counts", got: Policy(nil, grant("Deny", app888, bobs), with(func(in *policy.Input) {
			in.Resources = append(in.Resources, protected(v1alpha1.ModeEnforce))
		}), now)},
		"DenyInOneMember": {reason: "it counts in one member", got: Policy(nil, grant("Deny", app888, bobs), with(func(in *policy.Input) {
			in.Resources = append(in.Resources, protected(v1alpha1.ModeAudit, func(o *v1alpha1.ProtectedResource) {
				o.Spec.ClusterModes = []v1alpha1.ClusterMode{{Cluster: "m1", Mode: v1alpha1.ModeEnforce}}
			}))
		}), now)},
		"HugeRange": {
			reason: "hardly anyone is outside it",
			got:    Policy(nil, grant("Allow", "trnv1:rsc:trip-com:net:cidr:0.0.0.0/0", bobs), base(), now),
			warns:  []string{"very large part"},
		},

		"ClosedResource": {
			reason: "nobody can connect",
			got:    ProtectedResource(nil, protected(v1alpha1.ModeEnforce), base(), now),
			warns:  []string{"no statement allows anyone"},
		},
		"ReachedResource": {
			reason: "somebody can",
			got: ProtectedResource(
				nil,
				protected(v1alpha1.ModeEnforce),
				with(func(in *policy.Input) { in.Policies = append(in.Policies, grant("Allow", app888, bobs)) }),
				now,
			),
		},
		"NoClass": {
			reason:  "it could never be closed",
			got:     ProtectedResource(nil, protected(v1alpha1.ModeEnforce), policy.Input{}, now),
			denials: []string{"no ResourceClass covers"},
		},
		"NoClassAnyMore": {
			reason: "its mode has to be changeable all the same",
			got:    ProtectedResource(protected(v1alpha1.ModeEnforce), protected(v1alpha1.ModeObserve), policy.Input{}, now),
			warns:  []string{"no ResourceClass covers"},
		},
		"AuditThatIsOver": {reason: "it is a left-over", got: ProtectedResource(nil, protected(v1alpha1.ModeAudit, func(o *v1alpha1.ProtectedResource) {
			o.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: past}
		}), base(), now), warns: []string{"was over at"}},
		"AuditOfAudit": {reason: "it changes nothing", got: ProtectedResource(nil, protected(v1alpha1.ModeAudit, func(o *v1alpha1.ProtectedResource) {
			o.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: later}
		}), base(), now), warns: []string{"changes nothing in Audit"}},
		"DeleteClosed": {reason: "it would open", got: DeleteProtectedResource(protected(v1alpha1.ModeEnforce)), denials: []string{"is in Enforce"}},
		"DeleteClosedInOne": {reason: "it would open there", got: DeleteProtectedResource(protected(v1alpha1.ModeObserve, func(o *v1alpha1.ProtectedResource) {
			o.Spec.ClusterModes = []v1alpha1.ClusterMode{{Cluster: "m1", Mode: v1alpha1.ModeAudit}}
		})), denials: []string{"is in Audit"}},
		"DeleteObserved": {reason: "that is the way", got: DeleteProtectedResource(protected(v1alpha1.ModeObserve))},

		"Overlap": {
			reason:  "a name must be in one class",
			got:     ResourceClass(nil, resourceClass("a", "trnv1:rsc:trip-com:redis:clusters:a-*"), base()),
			denials: []string{"overlaps with"},
		},
		"SubjectOverlap": {
			reason:  "the same for clients",
			got:     SubjectClass(nil, subjectClass("all", "trnv1:rsc:trip-com:iam:sa:*"), base()),
			denials: []string{"overlaps with"},
		},
		"Itself": {reason: "a class does not overlap with itself", got: ResourceClass(base().ResourceClasses[0], base().ResourceClasses[0], base())},
		"ActionGone": {
			reason: "statements that name it stop",
			got: ResourceClass(base().ResourceClasses[0], resourceClass("redis", "trnv1:rsc:trip-com:redis:clusters:*", func(c *v1alpha1.ResourceClass) {
				c.Spec.Actions = c.Spec.Actions[:1]
			}), base()),
			warns: []string{"redis:admin is gone"},
		},
		"OpenPorts": {
			reason: "more is open than is named",
			got: ResourceClass(nil, resourceClass("redis", "trnv1:rsc:trip-com:redis:clusters:*", func(c *v1alpha1.ResourceClass) {
				c.Spec.OtherPorts = v1alpha1.OtherPortsAllow
			}), base()),
			warns: []string{"opens every port"},
		},
		"BadExpression": {
			reason: "the action would be left out",
			got: ResourceClass(nil, resourceClass("redis", "trnv1:rsc:trip-com:redis:clusters:*", func(c *v1alpha1.ResourceClass) {
				c.Spec.Actions[0].HTTP = []v1alpha1.HTTPMatch{{Path: "("}}
			}), base()),
			denials: []string{"action redis:connect is left out"},
		},
		"ClassInUseByWildcard": {
			reason: "a wildcard covers names of the class",
			got: DeleteResourceClass(base().ResourceClasses[0], with(func(in *policy.Input) {
				in.Policies = append(in.Policies, grant("Deny", app888, "trnv1:rsc:trip-com:redis:clusters:bob*"))
			})),
			denials: []string{"in use by statement p/s"},
		},
		"ClassUnused": {reason: "nothing needs it", got: DeleteResourceClass(base().ResourceClasses[0], policy.Input{})},
		"SubjectClassInUse": {
			reason:  "the workload would lose its identity",
			got:     DeleteSubjectClass(base().SubjectClasses[0], policy.Input{Workloads: []*v1alpha1.ExternalWorkload{workload("vm", app888, "10.0.0.1")}}),
			denials: []string{"ExternalWorkload vm"},
		},
		"WorkloadHostBits": {
			reason:  "one machine or 256",
			got:     ExternalWorkload(nil, workload("vm", app888, "10.5.0.7/24"), base()),
			denials: []string{"host bits"},
		},
		"WorkloadEverything": {
			reason: "everybody outside would be that subject",
			got:    ExternalWorkload(nil, workload("vm", app888, "0.0.0.0/0"), base()),
			warns:  []string{"very large part"},
		},
		"WorkloadConflict": {reason: "the denies of both count", got: ExternalWorkload(nil, workload("vm", app888, "10.0.0.1"), with(func(in *policy.Input) {
			in.Workloads = append(in.Workloads, workload("other", "trnv1:rsc:trip-com:iam:sa:app/1", "10.0.0.1"))
		})), warns: []string{"several subjects"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, tc.reason, "denials", tc.got.Denials, tc.denials)
			// Messages about what is not translated yet change with the translation, and have tests there.
			expect(t, tc.reason, "warnings", untranslated(tc.got.Warnings), untranslated(tc.warns))
		})
	}
}

func untranslated(in []string) []string {
	var out []string
	for _, w := range in {
		if w != "" && !strings.Contains(w, "will not be enforced") && !strings.Contains(w, "not translated") {
			out = append(out, w)
		}
	}
	return out
}

func expect(t *testing.T, reason, what string, got, want []string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.Contains(got[i], want[i])
	}
	if !ok {
		t.Errorf("%s: %s %q, want %q", reason, what, got, want)
	}
}

// TestLintOfAllObjects checks the notes that need all objects: allows of requests that wait for Enforce, and label keys
// of several classes.
func TestLintOfAllObjects(t *testing.T) {
	const site = "trnv1:rsc:trip-com:web:sites:shop"
	in := base()
	web := resourceClass("web", "trnv1:rsc:trip-com:web:sites:*", func(c *v1alpha1.ResourceClass) {
		c.Spec.Actions = []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 80}}, HTTP: []v1alpha1.HTTPMatch{{Method: "GET"}}}}
	})
	in.ResourceClasses = append(in.ResourceClasses, web)
	in.Resources = []*v1alpha1.ProtectedResource{protected(v1alpha1.ModeAudit, func(r *v1alpha1.ProtectedResource) { r.Name, r.Spec.Resource = "shop", site })}
	in.Policies = []*v1alpha1.AccessControlPolicy{grant("Allow", app888, site)}
	notes := func() (out []string) {
		for _, n := range Lint(policy.NewSnapshot(in), in, now) {
			out = append(out, n.Message.Text)
		}
		return out
	}
	expect(t, "nothing closes a workload", "notes", notes(), nil)
	in.Resources = append(in.Resources, protected(v1alpha1.ModeEnforce))
	in.Policies = append(in.Policies, &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: grant("Allow", app888, bobs).Spec})
	expect(t, "a workload may carry both labels", "notes", notes(), []string{"while " + site + " is in Audit"})
	web.Spec.LabelKey = in.ResourceClasses[0].Spec.LabelKey
	shared := []string{"label key key/redis is that of web", "label key key/redis is that of redis"}
	expect(t, "the label of a workload may be a name of both classes", "notes", notes(), append([]string{"while " + site + " is in Audit"}, shared...))
	in.Resources[0].Spec.Mode = v1alpha1.ModeEnforce
	expect(t, "two classes have one label key", "notes", notes(), shared)
}

func TestLintIsSortedAndComplete(t *testing.T) {
	in := with(func(in *policy.Input) {
		in.Resources = append(in.Resources, protected(v1alpha1.ModeEnforce))
		in.Policies = append(in.Policies, grant("Deny", "*", bobs))
		in.Workloads = append(in.Workloads, workload("vm", app888, "::/0"))
	})
	var kinds []string
	for _, n := range Lint(policy.NewSnapshot(in), in, now) {
		kinds = append(kinds, n.Kind+"/"+n.Name)
	}
	if got, want := strings.Join(kinds, " "), "AccessControlPolicy/p ExternalWorkload/vm ProtectedResource/bobs"; got != want {
		t.Errorf("notes about %s, want %s", got, want)
	}
}

func TestOddDefaultMode(t *testing.T) {
	const said = bobs + " is in no ProtectedResource, so everything passes to it and the statement has no effect there: defaultMode Audit"
	for name, tc := range map[string]struct {
		reason string
		change func(*policy.Input)
		want   []string
	}{
		"others":    {"the portal does not onboard what others write", func(*policy.Input) {}, []string{said}},
		"portal":    {"the portal onboards what it grants", func(in *policy.Input) { in.Policies[0].Name = policy.PolicyNameFor(bobs) }, nil},
		"onboarded": {"it is onboarded", func(in *policy.Input) { in.Resources = append(in.Resources, protected(v1alpha1.ModeObserve)) }, nil},
		"no mode":   {"nobody expects that it is onboarded", func(in *policy.Input) { in.ResourceClasses[0].Spec.DefaultMode = "" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := base()
			in.ResourceClasses[0].Spec.DefaultMode = v1alpha1.ModeAudit
			in.Policies = []*v1alpha1.AccessControlPolicy{grant("Allow", app888, bobs)}
			tc.change(&in)
			var notes []string
			for _, n := range Lint(policy.NewSnapshot(in), in, now) {
				notes = append(notes, n.Message.Text)
			}
			expect(t, tc.reason, "notes", notes, tc.want)
		})
	}
}
