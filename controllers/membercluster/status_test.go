package membercluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
)

var (
	earlier = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now     = metav1.NewTime(earlier.Add(time.Hour))
)

func healthy() *facts {
	return &facts{
		Cluster: federation.Cluster{Name: "m1"},
		Seen:    federation.Observation{Registered: true, Reachable: true},
		Check: memberhealth.CheckResult{
			Kubernetes:    "v1.36.3",
			Cilium:        "v1.20.2",
			IdentityLimit: 65536,
			Guard:         guard.Present,
			Marked:        true,
		},
		Units: &Units{},
		Now:   now,
	}
}

// TestState checks which state is reported if several apply.
func TestState(t *testing.T) {
	unreachable := federation.Observation{Registered: true, Message: message.Verbatim("member m1 does not answer at https://m1")}
	mark := &guard.DowngradeMark{By: "dave", Reason: "an outage"}
	for _, c := range []struct {
		reason string
		change func(*facts)
		state  v1alpha1.MemberClusterState
		says   string
	}{
		{"nothing is wrong", func(*facts) {}, v1alpha1.MemberClusterReady, ""},
		{"it cannot be read", func(f *facts) { f.Seen = unreachable }, v1alpha1.MemberClusterUnreachable, "does not answer"},
		{"KubeFed's token is refused", func(f *facts) {
			f.Check.Findings = []preflight.Finding{
				{
					Severity: preflight.Stops, Code: preflight.Unreachable,
					Message: message.Verbatim("it refuses the token"), Remedy: message.Verbatim("check the token"),
				},
			}
		}, v1alpha1.MemberClusterUnreachable, "it refuses the token; check the token"},
		{
			"leaving is worse than unreachable", func(f *facts) { f.Seen, f.Cluster.Leaving = unreachable, true },
			v1alpha1.MemberClusterLeaving, "cluster leave m1",
		},
		{
			"a downgrade is worse than leaving", func(f *facts) { f.Cluster.Leaving, f.Check.Mark = true, mark },
			v1alpha1.MemberClusterDowngraded, "by dave (an outage)",
		},
		{"a downgraded member is excluded from KubeFed, which is no quarantine", func(f *facts) {
			f.Cluster.Quarantined, f.Cluster.DowngradeMark, f.Check.Mark = true, mark, mark
		}, v1alpha1.MemberClusterDowngraded, "by dave (an outage)"},
		{"it is excluded from KubeFed because of the mark", func(f *facts) {
			f.Cluster.Quarantined, f.Cluster.QuarantineReason, f.Cluster.DowngradeMark, f.Seen, f.Check.Marked = true,
				message.Verbatim("it is downgraded"), mark, unreachable, false
		}, v1alpha1.MemberClusterDowngraded, "by dave (an outage)"},
		{"a quarantine is the worst", func(f *facts) {
			f.Cluster.Quarantined, f.Cluster.QuarantineReason, f.Check.Mark, f.Seen = true, message.Verbatim("a kind is missing"), mark, unreachable
		}, v1alpha1.MemberClusterQuarantined, "a kind is missing"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f := healthy()
			c.change(f)
			s := f.status(&v1alpha1.MemberClusterStatus{})
			ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
			if s.State != c.state || (s.Message == "") != (c.says == "") || !strings.Contains(s.Message, c.says) ||
				ready == nil || (ready.Status == metav1.ConditionTrue) != (c.state == v1alpha1.MemberClusterReady) || ready.Reason != string(c.state) {
				t.Errorf("%s %q, %+v", s.State, s.Message, ready)
			}
		})
	}
}

// TestRegistrationIsReported checks that the labels and declarations of a registration, on which placement and rendering depend, are reported
// also for an unreachable member.
func TestRegistrationIsReported(t *testing.T) {
	f := healthy()
	f.Cluster.Labels, f.Cluster.Istio = map[string]string{"zone": "a"}, `{"dataplane": "none"}`
	f.Seen = federation.Observation{Registered: true, Message: message.Verbatim("unreachable")}
	if s := f.status(&v1alpha1.MemberClusterStatus{}); s.Labels["zone"] != "a" || s.Istio != f.Cluster.Istio {
		t.Errorf("labels %v, Istio %q", s.Labels, s.Istio)
	}
	for i := range maxLabels + 1 {
		f.Cluster.Labels[fmt.Sprint(i)] = "x"
	}
	if s := f.status(&v1alpha1.MemberClusterStatus{}); s.Labels != nil {
		t.Errorf("%d labels are reported, more than the API accepts", len(s.Labels))
	}
}

func TestEngineIsReported(t *testing.T) {
	for named, want := range map[federation.Engine]string{
		"": "kubefed", federation.EngineKubeFed: "kubefed", federation.EngineDirect: "direct",
		"no-such-engine": "no-such-engine", federation.Engine(strings.Repeat("x", 100)): strings.Repeat("x", 63),
	} {
		f := healthy()
		f.Cluster.Engine = named
		if s := f.status(&v1alpha1.MemberClusterStatus{Engine: "former"}); s.Engine != want {
			t.Errorf("%q is reported as %q", named, s.Engine)
		}
	}
}

func TestOrphansAreFindings(t *testing.T) {
	f := healthy()
	for i := range maxOrphans + 2 {
		f.Orphans = append(f.Orphans, fmt.Sprintf("acp-%02d", i))
	}
	s := f.status(&v1alpha1.MemberClusterStatus{})
	if n := len(s.Findings); n != maxOrphans+1 || s.Findings[0].Object != "acp-00" || s.Findings[0].Code != v1alpha1.FindingOrphan ||
		!strings.HasPrefix(s.Findings[maxOrphans].Message, "and 2 more") || s.State != v1alpha1.MemberClusterReady {
		t.Errorf("%s, %+v", s.State, s.Findings)
	}
}

// TestStatusKeepsLastKnownValues checks that the values of an unreachable member stay, and that time alone changes nothing.
func TestStatusKeepsLastKnownValues(t *testing.T) {
	f := healthy()
	f.Units = &Units{Objects: v1alpha1.MemberObjects{Managed: 2, Realized: 2}}
	f.Identities = &v1alpha1.MemberIdentities{Used: 5, Limit: 10, ObservedAt: earlier}
	f.Now = earlier
	before := f.status(&v1alpha1.MemberClusterStatus{})

	again := *f
	again.Now, again.Identities = now, &v1alpha1.MemberIdentities{Used: 5, Limit: 10, ObservedAt: now}
	if d := cmp.Diff(before, again.status(&before)); d != "" {
		t.Errorf("the status changed with the time:\n%s", d)
	}

	gone := *f
	gone.Now, gone.Check, gone.Units, gone.Identities = now, memberhealth.CheckResult{}, nil, nil
	gone.Seen = federation.Observation{Registered: true, Message: message.Verbatim("unreachable")}
	after := gone.status(&before)
	if d := cmp.Diff(before, after, cmpopts.IgnoreFields(v1alpha1.MemberClusterStatus{}, "State", "Since", "Message", "Conditions", "ObservedAt")); d != "" {
		t.Errorf("known values were removed:\n%s", d)
	}
	if after.Since == nil || !after.Since.Equal(&now) || !after.ObservedAt.Equal(&now) || !before.Since.Equal(&earlier) {
		t.Errorf("since %v, observed %v, before %v", after.Since, after.ObservedAt, before.Since)
	}

	upgraded := *f
	upgraded.Check.Cilium = ""
	if s := upgraded.status(&before); s.CiliumVersion != "" {
		t.Errorf("the member answers without a version of Cilium, and %q is reported", s.CiliumVersion)
	}
}

func TestGuardAndDowngrade(t *testing.T) {
	mark := &guard.DowngradeMark{Since: earlier.Time, By: strings.Repeat("d", 300), Reason: strings.Repeat("r", 2000)}
	for _, c := range []struct {
		reason string
		before v1alpha1.MemberClusterStatus
		check  func(*memberhealth.CheckResult)
		guard  v1alpha1.GuardState
		marked bool
	}{
		{"nothing is wrong", v1alpha1.MemberClusterStatus{}, func(*memberhealth.CheckResult) {}, v1alpha1.GuardPresent, false},
		{
			"the guard is gone", v1alpha1.MemberClusterStatus{Guard: v1alpha1.GuardPresent},
			func(l *memberhealth.CheckResult) { l.Guard = guard.Missing }, v1alpha1.GuardMissing, false,
		},
		{
			"it differs from the rendered one", v1alpha1.MemberClusterStatus{},
			func(l *memberhealth.CheckResult) { l.Guard = guard.Changed }, v1alpha1.GuardChanged, false,
		},
		{
			"it may not be read", v1alpha1.MemberClusterStatus{Guard: v1alpha1.GuardPresent},
			func(l *memberhealth.CheckResult) { l.Guard = guard.Unknown }, v1alpha1.GuardUnknown, false,
		},
		{
			"the member does not answer", v1alpha1.MemberClusterStatus{Guard: v1alpha1.GuardPresent},
			func(l *memberhealth.CheckResult) { *l = memberhealth.CheckResult{Guard: guard.Unknown} }, v1alpha1.GuardPresent, false,
		},
		{
			"the member never answered", v1alpha1.MemberClusterStatus{},
			func(l *memberhealth.CheckResult) { *l = memberhealth.CheckResult{Guard: guard.Unknown} }, v1alpha1.GuardUnknown, false,
		},
		{"a mark is there", v1alpha1.MemberClusterStatus{}, func(l *memberhealth.CheckResult) { l.Mark = mark }, v1alpha1.GuardPresent, true},
		{
			"a mark was removed", v1alpha1.MemberClusterStatus{Downgrade: &v1alpha1.MemberDowngrade{}},
			func(*memberhealth.CheckResult) {}, v1alpha1.GuardPresent, false,
		},
		{
			"a mark cannot be read now", v1alpha1.MemberClusterStatus{Downgrade: &v1alpha1.MemberDowngrade{}},
			func(l *memberhealth.CheckResult) { l.Marked = false }, v1alpha1.GuardPresent, true,
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f := healthy()
			c.check(&f.Check)
			s := f.status(&c.before)
			if s.Guard != c.guard || (s.Downgrade != nil) != c.marked || (s.State == v1alpha1.MemberClusterDowngraded) != c.marked {
				t.Errorf("%s, %+v, %s", s.Guard, s.Downgrade, s.State)
			}
			if d := s.Downgrade; d != nil && (len(d.By) > 253 || len(d.Reason) > 1024) {
				t.Errorf("too long for the API: %d and %d", len(d.By), len(d.Reason))
			}
		})
	}
}

func TestFindings(t *testing.T) {
	f := healthy()
	f.Check.Findings = []preflight.Finding{
		{
			Severity: preflight.Fails,
			Code:     preflight.LabelNotIdentity,
			Class:    "redis",
			Message:  message.Verbatim("the label is not there"),
			Remedy:   message.Verbatim("add it"),
		},
		{Severity: preflight.Warns, Code: preflight.IstioCapabilities, Message: message.Verbatim("Istio is there"), Remedy: message.RemedyNothing()},
	}
	f.Check.Guard = guard.Missing
	f.Identities = &v1alpha1.MemberIdentities{Used: 91, Limit: 100, Labels: []v1alpha1.IdentityLabel{{Key: "build", Values: 80}}}
	f.Units.Heaviest = &v1alpha1.MemberPolicyMap{Highest: 9000, Limit: 16384, Unit: "r"}
	s := f.status(&v1alpha1.MemberClusterStatus{})
	var got []string
	for _, x := range s.Findings {
		got = append(got, string(x.Severity)+" "+x.Code+" "+x.Object)
	}
	want := []string{"Fails LabelNotInIdentities redis", "Fails IdentitiesFull build", "Warns IstioCapabilities ", "Warns PolicyMapFilling r"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if s.Findings[0].Message != "the label is not there; add it" || s.Findings[2].Message != "Istio is there" || s.Guard != v1alpha1.GuardMissing {
		t.Errorf("%+v", s)
	}
	for range 100 {
		f.Check.Findings = append(f.Check.Findings, preflight.Finding{Severity: preflight.Warns, Code: "More"})
	}
	if s := f.status(&v1alpha1.MemberClusterStatus{}); len(s.Findings) != maxFindings || s.Findings[1].Code != v1alpha1.FindingIdentitiesFull {
		t.Errorf("%d findings", len(s.Findings))
	}
}

// TestFillingLimits checks the findings about identities and policy maps near their limits.
func TestFillingLimits(t *testing.T) {
	for _, c := range []struct {
		reason     string
		used       int32
		highest    int32
		identities string
		policyMap  bool
	}{
		{"little is used", 10, 10, "", false},
		{"exactly the threshold", 70, 50, "", false},
		{"above the threshold", 71, 51, v1alpha1.FindingIdentitiesFilling, true},
		{"exactly the second threshold", 90, 100, v1alpha1.FindingIdentitiesFilling, true},
		{"above the second threshold", 91, 100, v1alpha1.FindingIdentitiesFull, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := &v1alpha1.MemberClusterStatus{
				Identities: &v1alpha1.MemberIdentities{Used: c.used, Limit: 100},
				PolicyMap:  &v1alpha1.MemberPolicyMap{Highest: c.highest, Limit: 100},
			}
			var want []string
			if c.identities != "" {
				want = append(want, c.identities)
			}
			if c.policyMap {
				want = append(want, v1alpha1.FindingPolicyMapFilling)
			}
			var got []string
			for _, f := range limitFindings(s) {
				got = append(got, f.Code)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
	if got := limitFindings(&v1alpha1.MemberClusterStatus{}); len(got) != 0 {
		t.Errorf("nothing was read, and %v is reported", got)
	}
}

// TestDataplane checks that the numbers for the compiler are rounded up, and do not change while they are precise enough.
func TestDataplane(t *testing.T) {
	label := func(key v1alpha1.LabelKey, identities, most int32, values ...string) v1alpha1.MemberLabel {
		return v1alpha1.MemberLabel{Key: key, Identities: identities, Most: most, Values: values}
	}
	several := func(n int) map[string][]string {
		out := map[string][]string{}
		for i := range n {
			out["app"] = append(out["app"], fmt.Sprintf("%04d", i))
		}
		return out
	}
	for _, c := range []struct {
		reason string
		before *v1alpha1.MemberDataplane
		limit  int
		read   dataplane
		mesh   string
		want   *v1alpha1.MemberDataplane
	}{
		{reason: "it was never read"},
		{reason: "identities were not read", limit: 512, read: dataplane{NoHTTP: message.Verbatim("off"), NoGroups: true}, mesh: "east",
			want: &v1alpha1.MemberDataplane{PolicyMapEntries: 512, NoHTTP: "off", NoGroups: true, Mesh: "east"}},
		{reason: "numbers are rounded up", limit: 16384,
			read: dataplane{Identities: 1001, Labels: []v1alpha1.MemberLabel{label("app", 15, 5), label("svc", 1000, 1)}},
			want: &v1alpha1.MemberDataplane{
				PolicyMapEntries: 16384, Identities: 1024, Labels: []v1alpha1.MemberLabel{label("app", 15, 8), label("svc", 1024, 1)},
			}},
		{reason: "reported numbers stay while they are precise enough", limit: 16384,
			before: &v1alpha1.MemberDataplane{PolicyMapEntries: 16384, Identities: 1024, Labels: []v1alpha1.MemberLabel{label("app", 18, 8)}},
			read:   dataplane{Identities: 900, Labels: []v1alpha1.MemberLabel{label("app", 15, 4)}},
			want:   &v1alpha1.MemberDataplane{PolicyMapEntries: 16384, Identities: 1024, Labels: []v1alpha1.MemberLabel{label("app", 18, 8)}}},
		{reason: "reported numbers are never too small", limit: 16384,
			before: &v1alpha1.MemberDataplane{PolicyMapEntries: 16384, Identities: 1024, Labels: []v1alpha1.MemberLabel{label("app", 15, 8)}},
			read:   dataplane{Identities: 1025, Labels: []v1alpha1.MemberLabel{label("app", 16, 9)}},
			want:   &v1alpha1.MemberDataplane{PolicyMapEntries: 16384, Identities: 1152, Labels: []v1alpha1.MemberLabel{label("app", 16, 16)}}},
		{reason: "nor are they much too large", limit: 16384,
			before: &v1alpha1.MemberDataplane{
				PolicyMapEntries: 16384, Identities: 1024, Labels: []v1alpha1.MemberLabel{label("app", 15, 8), label("gone", 1, 1)},
			},
			read: dataplane{Identities: 100, Labels: []v1alpha1.MemberLabel{label("app", 2, 1)}},
			want: &v1alpha1.MemberDataplane{PolicyMapEntries: 16384, Identities: 104, Labels: []v1alpha1.MemberLabel{label("app", 2, 1)}}},
		{reason: "unknown numbers stay, and unknown values do not",
			before: &v1alpha1.MemberDataplane{
				PolicyMapEntries: 1024, Identities: 1024, Labels: []v1alpha1.MemberLabel{label("app", 15, 8, "a")}, ValuesKnown: true,
			},
			want: &v1alpha1.MemberDataplane{PolicyMapEntries: 1024, Identities: 1024, Labels: []v1alpha1.MemberLabel{label("app", 15, 8)}}},
		{reason: "values of few pods", limit: 1024,
			read: dataplane{
				Identities: 3, Labels: []v1alpha1.MemberLabel{label("app", 2, 1)},
				Values: map[string][]string{"app": {"a", "b"}, "svc": {"c"}}, ValuesKnown: true,
			},
			want: &v1alpha1.MemberDataplane{
				PolicyMapEntries: 1024, Identities: 3,
				Labels: []v1alpha1.MemberLabel{label("app", 2, 1, "a", "b"), label("svc", 1, 1, "c")}, ValuesKnown: true,
			}},
		{reason: "too many values are not reported", limit: 1024,
			read: dataplane{Identities: 2000, Labels: []v1alpha1.MemberLabel{label("app", 1025, 1)}, Values: several(maxValues + 1), ValuesKnown: true},
			want: &v1alpha1.MemberDataplane{PolicyMapEntries: 1024, Identities: 2048, Labels: []v1alpha1.MemberLabel{label("app", 1152, 1)}}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f := healthy()
			f.Check.PolicyMapMax, f.Cluster.Mesh, f.Dataplane = c.limit, c.mesh, c.read
			f.Units = &Units{Heaviest: &v1alpha1.MemberPolicyMap{Highest: 3, Limit: 16384}}
			s := f.status(&v1alpha1.MemberClusterStatus{Dataplane: c.before})
			if diff := cmp.Diff(c.want, s.Dataplane); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if c.want != nil && s.PolicyMap.Limit != c.want.PolicyMapEntries {
				t.Errorf("the limit of a policy map is reported as %d", s.PolicyMap.Limit)
			}
		})
	}
	for n := int32(1); n < 1<<20; n += 1 + n/50 {
		if r := roundUp(n); r < n || r > n+n/8 || roundUp(r) != r {
			t.Fatalf("%d is rounded up to %d", n, r)
		}
		if p := powerOfTwo(n); p < n || p >= 2*n && n > 1 || p&(p-1) != 0 {
			t.Fatalf("%d becomes the power %d", n, p)
		}
	}
}
