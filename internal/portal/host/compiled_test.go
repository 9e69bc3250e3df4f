package host_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// classes of the tests: redis clusters in m1, enforced by both dataplanes, and applications.
func classes() policy.Input {
	return policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
				Pattern:  "trnv1:rsc:trip-com:redis:clusters:*",
				LabelKey: "com.trip/redis-cluster",
				Enforcers: []v1alpha1.EnforcerName{
					v1alpha1.EnforcerCilium,
					v1alpha1.EnforcerIstio,
				},
				Placement: v1alpha1.Placement{Clusters: &[]v1alpha1.ClusterName{"m1"}},
				Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}}},
			}},
		},
		SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "application"},
			Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid", ServiceAccountTemplate: "app-{id}"}}},
	}
}

func TestCompiledLines(t *testing.T) {
	in := func() policy.Input {
		return classes()
	}
	it := approval.Item{ApplicationName: portaltest.App888, ResourceName: portaltest.BobsCluster, Actions: []string{"redis:connect"}}
	before := approval.NewShown(host.CompiledLines(in(), it))
	if !slices.ContainsFunc(before.Lines, func(l string) bool {
		return strings.Contains(l, "com.trip/appid=888") && strings.Contains(l, "6379/TCP")
	}) {
		t.Fatalf("it is said who may connect to which port: %q", before.Lines)
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*policy.Input)
		grows  string
	}{
		"nothing": {"the same", func(*policy.Input) {}, ""},
		"a port": {
			"the action means more",
			func(in *policy.Input) { in.ResourceClasses[0].Spec.Actions[0].Ports[0].EndPort = new(int32(6400)) }, "6379-6400/TCP",
		},
		"a label": {"other pods", func(in *policy.Input) { in.SubjectClasses[0].Spec.LabelKey = "other" }, "other=888"},
		"a member": {"one more", func(in *policy.Input) {
			*in.ResourceClasses[0].Spec.Placement.Clusters = []v1alpha1.ClusterName{"m1", "m2"}
		}, "in member m2"},
		"a machine": {
			"an address of the application",
			func(in *policy.Input) { in.Workloads = []*v1alpha1.ExternalWorkload{workload("vm", portaltest.App888)} }, "10.1.2.3/32",
		},
		"another's": {"nobody here", func(in *policy.Input) { in.Workloads = []*v1alpha1.ExternalWorkload{workload("vm", portaltest.App889)} }, ""},
		"an account": {
			"another service account, by which Istio knows the client",
			func(in *policy.Input) { in.SubjectClasses[0].Spec.ServiceAccountTemplate = "batch-{id}" }, "service account batch-888",
		},
		"others": {"their statements are their tickets' business", func(in *policy.Input) {
			in.Policies = []*v1alpha1.AccessControlPolicy{
				{
					ObjectMeta: metav1.ObjectMeta{Name: "x"},
					Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{statement("x", portaltest.BobsCluster)}},
				},
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := in()
			tc.change(&now)
			grown := strings.Join(before.Grown(approval.NewShown(host.CompiledLines(now, it))), "\n")
			if (grown == "") != (tc.grows == "") || !strings.Contains(grown, tc.grows) {
				t.Errorf("%s: it grew by %q, want %q", tc.reason, grown, tc.grows)
			}
		})
	}
}

// Approvals are for what the adapter compiles for the fleet: what a member cannot hold or do is shown. It lets nobody in, so that it
// makes no approval void when it comes or goes.
func TestCompiledLinesOfTheFleet(t *testing.T) {
	in := classes()
	in.ResourceClasses[0].Spec.Actions[0].HTTP = []v1alpha1.HTTPMatch{{Method: "GET"}}
	it := approval.Item{ApplicationName: portaltest.App888, ResourceName: portaltest.BobsCluster, Actions: []string{"redis:connect"}}
	lines := func(d *v1alpha1.MemberDataplane) approval.Shown {
		fleet := registry.FleetOf(
			[]*v1alpha1.MemberCluster{
				{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Dataplane: d}},
			},
		)
		return approval.NewShown(host.CompiledLines(policy.NewInput(in.Objects(), fleet), it))
	}
	able := lines(&v1alpha1.MemberDataplane{PolicyMapEntries: 16384})
	unable := lines(&v1alpha1.MemberDataplane{PolicyMapEntries: 16384, NoHTTP: "no Envoy"})
	refused := func(l string) bool { return strings.HasPrefix(l, "refused: ") && strings.Contains(l, "no Envoy") }
	if slices.ContainsFunc(able.Lines, refused) || !slices.ContainsFunc(unable.Lines, refused) {
		t.Errorf("with a proxy\n%s\nwithout\n%s", strings.Join(able.Lines, "\n"), strings.Join(unable.Lines, "\n"))
	}
	if g := append(able.Grown(unable), unable.Grown(able)...); len(g) > 0 {
		t.Errorf("it grew by %q", g)
	}
	// 300 identities of one application do not fit into a map of 256 entries, and the adapter grants no access.
	full := &v1alpha1.MemberDataplane{
		PolicyMapEntries: 256,
		Identities:       300,
		Labels:           []v1alpha1.MemberLabel{{Key: "com.trip/appid", Identities: 300, Most: 512}},
	}
	small := lines(full)
	if !slices.ContainsFunc(small.Lines, func(l string) bool { return strings.Contains(l, "(216 of 256 in m1)") }) ||
		slices.ContainsFunc(small.Lines, func(l string) bool { return strings.HasPrefix(l, "allow pods") }) {
		t.Errorf("what does not fit is shown as\n%s", strings.Join(small.Lines, "\n"))
	}
	if len(small.Grown(able)) == 0 {
		t.Error("access that nobody was shown is approved when there is room for it")
	}
}

// protects makes bob's cluster protected, with one client.
func protects(in *policy.Input, mode v1alpha1.Mode) {
	in.Resources = []*v1alpha1.ProtectedResource{
		{ObjectMeta: metav1.ObjectMeta{Name: "bobs"}, Spec: v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: mode}},
	}
	in.Policies = []*v1alpha1.AccessControlPolicy{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{statement("one", portaltest.BobsCluster)}},
		},
	}
}

// changed are the lines of an item in a state of the host cluster.
func changed(in policy.Input, it approval.Item) approval.Shown {
	return approval.NewShown(host.ChangedLines(policy.NewSnapshot(in), in, it, time.Now()))
}

// Approvals of a mode are for the unit that it compiles to, on both sides.
func TestLinesOfAMode(t *testing.T) {
	second := func(in *policy.Input) {
		s := statement("two", portaltest.BobsCluster)
		s.Subjects = []v1alpha1.Subject{portaltest.App889}
		in.Policies[0].Spec.Statements = append(in.Policies[0].Spec.Statements, s)
	}
	deny := func(in *policy.Input) {
		s := statement("never", portaltest.BobsCluster)
		s.Subjects, s.Effect = []v1alpha1.Subject{portaltest.App889}, v1alpha1.EffectDeny
		in.Policies[0].Spec.Statements = append(in.Policies[0].Spec.Statements, s)
	}
	member := func(in *policy.Input) {
		*in.ResourceClasses[0].Spec.Placement.Clusters = []v1alpha1.ClusterName{"m1", "m2"}
	}
	none := func(*policy.Input) {}
	for name, tc := range map[string]struct {
		reason        string
		from, to      v1alpha1.Mode
		before, after func(*policy.Input)
		grows         string
	}{
		"closing, nothing": {"the same", v1alpha1.ModeAudit, v1alpha1.ModeEnforce, none, none, ""},
		"closing, a client": {
			"one more stays able to connect", v1alpha1.ModeAudit, v1alpha1.ModeEnforce, none, second, "allow pods with com.trip/appid=889",
		},
		"closing, fewer clients": {"less than was shown", v1alpha1.ModeAudit, v1alpha1.ModeEnforce, second, none, ""},
		"closing, no deny": {
			"who would have been refused is let in", v1alpha1.ModeAudit, v1alpha1.ModeEnforce,
			deny, none, "no longer: deny pods with com.trip/appid=889",
		},
		"closing, a deny": {"less than was shown", v1alpha1.ModeAudit, v1alpha1.ModeEnforce, none, deny, ""},
		"closing, an account": {
			"another principal stays able to connect", v1alpha1.ModeAudit, v1alpha1.ModeEnforce, none,
			func(in *policy.Input) { in.SubjectClasses[0].Spec.ServiceAccountTemplate = "batch-{id}" }, "service account batch-888",
		},
		"closing, other ports": {
			"the class leaves all other ports open", v1alpha1.ModeAudit, v1alpha1.ModeEnforce, none,
			func(in *policy.Input) { in.ResourceClasses[0].Spec.OtherPorts = v1alpha1.OtherPortsAllow }, "a port of no action",
		},
		"opening, nothing":  {"the same", v1alpha1.ModeEnforce, v1alpha1.ModeObserve, none, none, ""},
		"opening, a member": {"it is opened in one more", v1alpha1.ModeEnforce, v1alpha1.ModeObserve, none, member, "- in member m2"},
		"opening, a client": {"everybody may connect after it anyway", v1alpha1.ModeEnforce, v1alpha1.ModeObserve, none, second, ""},
		"opening, a deny":   {"who was refused is let in", v1alpha1.ModeEnforce, v1alpha1.ModeObserve, none, deny, "- deny pods with com.trip/appid=889"},
		"to audit, another class": {
			"other pods are opened", v1alpha1.ModeEnforce, v1alpha1.ModeAudit, none,
			func(in *policy.Input) { in.ResourceClasses[0].Spec.LabelKey = "other" }, "other=bobs-cluster in Audit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := func(m v1alpha1.Mode) []byte {
				return text(t, v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: m})
			}
			it := approval.Item{
				ResourceName: portaltest.BobsCluster,
				Change: &approval.Change{
					Kind:   approval.ObjectProtectedResource,
					Name:   "bobs",
					Verb:   approval.VerbUpdate,
					Before: spec(tc.from),
					After:  spec(tc.to),
				},
			}
			lines := func(f func(*policy.Input)) approval.Shown {
				in := classes()
				protects(&in, tc.from)
				f(&in)
				return changed(in, it)
			}
			grown := strings.Join(lines(tc.before).Grown(lines(tc.after)), "\n")
			if (grown == "") != (tc.grows == "") || !strings.Contains(grown, tc.grows) {
				t.Errorf("%s: it grew by %q, want %q", tc.reason, grown, tc.grows)
			}
		})
	}
}

// Approvals of a class are for what it changes in the units of its resources.
func TestLinesOfAClass(t *testing.T) {
	spec := classes().ResourceClasses[0].Spec
	wide := *spec.DeepCopy()
	wide.Actions[0].Ports = append(wide.Actions[0].Ports, v1alpha1.Port{Port: 6380, Protocol: "TCP"})
	wider := approval.Item{
		Change: &approval.Change{Kind: approval.ObjectResourceClass, Name: "redis", Verb: approval.VerbUpdate, Before: text(t, spec), After: text(t, wide)},
	}
	in := classes()
	protects(&in, v1alpha1.ModeEnforce)
	was := changed(in, wider)
	for _, want := range []string{
		"+ allow pods with com.trip/appid=888 to pods with com.trip/redis-cluster=bobs-cluster on 6380/TCP",
		"+ allow service account app-888 to pods with com.trip/redis-cluster=bobs-cluster on 6380/TCP by istio",
	} {
		if !slices.Contains(was.Lines, want) {
			t.Errorf("%q is not among\n%s", want, strings.Join(was.Lines, "\n"))
		}
	}
	more := classes()
	protects(&more, v1alpha1.ModeEnforce)
	s := statement("two", portaltest.BobsCluster)
	s.Subjects = []v1alpha1.Subject{portaltest.App889}
	more.Policies[0].Spec.Statements = append(more.Policies[0].Spec.Statements, s)
	if grown := strings.Join(was.Grown(changed(more, wider)), "\n"); !strings.Contains(grown, "com.trip/appid=889") || !strings.Contains(grown, "app-889") {
		t.Errorf("one more client gets the port, and it grew by %q", grown)
	}

	subjects := classes().SubjectClasses[0].Spec
	other := subjects
	other.ServiceAccountTemplate = "batch-{id}"
	renamed := changed(
		in,
		approval.Item{
			Change: &approval.Change{
				Kind:   approval.ObjectSubjectClass,
				Name:   "application",
				Verb:   approval.VerbUpdate,
				Before: text(t, subjects),
				After:  text(t, other),
			},
		},
	)
	if !slices.ContainsFunc(renamed.Lines, func(l string) bool { return strings.HasPrefix(l, "+ allow service account batch-888 ") }) {
		t.Errorf("another account gets in, and the lines are\n%s", strings.Join(renamed.Lines, "\n"))
	}
}

// A class may have thousands of resources: the lines stay bounded, and say what each of them gets.
func TestLinesOfALargeClass(t *testing.T) {
	in := classes()
	for i := range 3000 {
		name := portaltest.BobsCluster + "-" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String()
		in.Resources = append(
			in.Resources,
			&v1alpha1.ProtectedResource{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(name), Mode: v1alpha1.ModeEnforce},
			},
		)
		in.Policies = append(
			in.Policies,
			&v1alpha1.AccessControlPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{statement("s", name)}},
			},
		)
	}
	spec := classes().ResourceClasses[0].Spec
	wide := *spec.DeepCopy()
	wide.Actions[0].Ports = append(wide.Actions[0].Ports, v1alpha1.Port{Port: 6380, Protocol: "TCP"})
	got := changed(
		in,
		approval.Item{
			Change: &approval.Change{Kind: approval.ObjectResourceClass, Name: "redis", Verb: approval.VerbUpdate, Before: text(t, spec), After: text(t, wide)},
		},
	)
	if len(got.Lines) > 20 || !slices.ContainsFunc(got.Lines, func(l string) bool {
		return strings.HasPrefix(l, "+ allow pods with com.trip/appid=<each> to pods with com.trip/redis-cluster=<each> on 6380/TCP")
	}) {
		t.Errorf("%d lines: %.2000s", len(got.Lines), strings.Join(got.Lines, "\n"))
	}
}

func workload(name, subject string) *v1alpha1.ExternalWorkload {
	return &v1alpha1.ExternalWorkload{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(subject), Addresses: []string{"10.1.2.3/32"}},
	}
}
