package organization

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

func named(name string, teams ...v1alpha1.TeamName) *v1alpha1.Organization {
	return &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.OrganizationSpec{
		Teams:          teams,
		Administrators: []v1alpha1.OrganizationAdministrator{"group:admins"},
		Bounds: v1alpha1.OrganizationBounds{
			Classes: &v1alpha1.ClassBounds{
				Patterns:      []v1alpha1.NamePattern{"trnv1:rsc:o:redis:clusters:pay-*"},
				LabelKeys:     []v1alpha1.LabelKey{"o/redis"},
				Enforcers:     []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium},
				Sensitivities: []v1alpha1.Sensitivity{"low"},
				Actions:       []v1alpha1.Action{"redis:*", "http:get"},
				DefaultModes:  []v1alpha1.Mode{v1alpha1.ModeAudit},
				RequireWaves:  true,
			},
			Approvals: &v1alpha1.ApprovalBounds{MaxDuration: &metav1.Duration{Duration: time.Hour}},
		},
	}}
}

func codes(list []message.Message) string {
	var out []string
	for _, m := range list {
		out = append(out, strings.TrimPrefix(m.Code, "organization."))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestClassViolations exceeds each bound of classes alone.
func TestClassViolations(t *testing.T) {
	within := func() *v1alpha1.ResourceClassSpec {
		return &v1alpha1.ResourceClassSpec{
			Organization: "pay",
			Pattern:      "trnv1:rsc:o:redis:clusters:pay-*",
			LabelKey:     "o/redis",
			Actions:      []v1alpha1.ClassAction{{Name: "redis:connect"}, {Name: "http:get"}},
			DefaultMode:  v1alpha1.ModeAudit,
			Rollout:      &v1alpha1.ClassRollout{Waves: []v1alpha1.Wave{{Name: "one"}}},
		}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.ResourceClassSpec, *v1alpha1.Organization)
		want   string
	}{
		"within": {"everything is allowed, and cilium is the default", nil, ""},
		"narrower pattern": {"a pattern may be a part", func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) {
			c.Pattern = "trnv1:rsc:o:redis:clusters:pay-a-*"
		}, ""},
		"wider pattern": {"other names", func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) {
			c.Pattern = "trnv1:rsc:o:redis:clusters:*"
		}, "bound-pattern"},
		"invalid pattern": {"in doubt it is outside", func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) { c.Pattern = "x" }, "bound-pattern"},
		"label":           {"pods of others", func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) { c.LabelKey = "app" }, "bound-label"},
		"enforcer": {"another dataplane", func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) {
			c.Enforcers = []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}
		}, "bound-enforcer"},
		"default enforcer": {"no enforcer means cilium", func(_ *v1alpha1.ResourceClassSpec, o *v1alpha1.Organization) {
			o.Spec.Bounds.Classes.Enforcers = []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}
		}, "bound-enforcer"},
		"action": {
			"a wildcard is of one service",
			func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) { c.Actions[0].Name = "redisx:connect" },
			"bound-action",
		},
		"mode":    {"not in the list", func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) { c.DefaultMode = v1alpha1.ModeEnforce }, "bound-mode"},
		"no mode": {"it protects nothing by itself", func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) { c.DefaultMode = "" }, ""},
		"other ports": {
			"open to everybody",
			func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) { c.OtherPorts = v1alpha1.OtherPortsAllow },
			"bound-other-ports",
		},
		"waves": {"at once", func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) { c.Rollout = nil }, "bound-waves"},
		"no classes": {
			"without bounds there are none",
			func(_ *v1alpha1.ResourceClassSpec, o *v1alpha1.Organization) { o.Spec.Bounds.Classes = nil },
			"no-classes",
		},
		"members by name": {"one is not in the list", func(c *v1alpha1.ResourceClassSpec, o *v1alpha1.Organization) {
			o.Spec.Bounds.Classes.Clusters = &v1alpha1.ClusterBounds{Names: []v1alpha1.ClusterName{"m1", "m2"}}
			c.Placement.Clusters = &[]v1alpha1.ClusterName{"m1", "m3"}
		}, "bound-cluster"},
		"members within": {"all are in the list", func(c *v1alpha1.ResourceClassSpec, o *v1alpha1.Organization) {
			o.Spec.Bounds.Classes.Clusters = &v1alpha1.ClusterBounds{Names: []v1alpha1.ClusterName{"m1", "m2"}}
			c.Placement.Clusters = &[]v1alpha1.ClusterName{"m1"}
		}, ""},
		"members by labels": {"the list has names only", func(c *v1alpha1.ResourceClassSpec, o *v1alpha1.Organization) {
			o.Spec.Bounds.Classes.Clusters = &v1alpha1.ClusterBounds{Names: []v1alpha1.ClusterName{"m1"}}
			c.Placement.ClusterSelector = &metav1.LabelSelector{}
		}, "bound-selector"},
		"every member": {"the label is missing", func(c *v1alpha1.ResourceClassSpec, o *v1alpha1.Organization) {
			o.Spec.Bounds.Classes.Clusters = &v1alpha1.ClusterBounds{MatchLabels: map[string]string{"unit": "pay"}}
			c.Placement.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"unit": "other"}}
		}, "bound-cluster-label"},
		"one of two values": {"members of others would be selected, too", func(c *v1alpha1.ResourceClassSpec, o *v1alpha1.Organization) {
			o.Spec.Bounds.Classes.Clusters = &v1alpha1.ClusterBounds{MatchLabels: map[string]string{"unit": "pay"}}
			c.Placement.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "unit", Operator: metav1.LabelSelectorOpIn, Values: []string{"pay", "other"}},
			}}
		}, "bound-cluster-label"},
		"narrower selector": {"the label is required, and another one", func(c *v1alpha1.ResourceClassSpec, o *v1alpha1.Organization) {
			o.Spec.Bounds.Classes.Clusters = &v1alpha1.ClusterBounds{MatchLabels: map[string]string{"unit": "pay"}}
			c.Placement.ClusterSelector = &metav1.LabelSelector{
				MatchLabels:      map[string]string{"zone": "a"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "unit", Operator: metav1.LabelSelectorOpIn, Values: []string{"pay"}}},
			}
		}, ""},
		"name without names": {"the bound has labels only", func(c *v1alpha1.ResourceClassSpec, o *v1alpha1.Organization) {
			o.Spec.Bounds.Classes.Clusters = &v1alpha1.ClusterBounds{MatchLabels: map[string]string{"unit": "pay"}}
			c.Placement.Clusters = &[]v1alpha1.ClusterName{"m1"}
		}, "bound-cluster"},
		"unknown": {"the organization is gone", func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) { c.Organization = "gone" }, "unknown"},
		"global":  {"bounds do not concern it", func(c *v1alpha1.ResourceClassSpec, _ *v1alpha1.Organization) { c.Organization, c.Pattern = "", "x" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, o := within(), named("pay", "team")
			if tc.change != nil {
				tc.change(c, o)
			}
			x := NewIndex([]*v1alpha1.Organization{o})
			if got := codes(x.ClassViolations(c)); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			if p := x.ClassProblem(&v1alpha1.ResourceClass{Spec: *c}); (p != nil) != (tc.want != "") || p != nil && p.LeftOut {
				t.Errorf("%s: the problem is %+v", tc.reason, p)
			}
		})
	}
}

// TestPolicyViolations exceeds each bound of approval policies alone, and checks that what is outside gives no right.
func TestPolicyViolations(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.ApprovalPolicySpec, *v1alpha1.Organization)
		want   string
		rights Rights
	}{
		"within": {"a step and a short duration", nil, "", Rights{MaxDuration: time.Minute}},
		"duration": {"longer than the bound", func(p *v1alpha1.ApprovalPolicySpec, _ *v1alpha1.Organization) {
			p.MaxDuration = &metav1.Duration{Duration: 2 * time.Hour}
		}, "bound-duration", Rights{MaxDuration: time.Hour}},
		"no duration": {"none is the longest", func(p *v1alpha1.ApprovalPolicySpec, _ *v1alpha1.Organization) { p.MaxDuration = nil }, "bound-duration",
			Rights{MaxDuration: time.Hour}},
		"auto": {"not allowed", func(p *v1alpha1.ApprovalPolicySpec, _ *v1alpha1.Organization) { p.Steps[0].AutoApprove = "true" }, "bound-auto-approve",
			Rights{MaxDuration: time.Minute}},
		"auto allowed": {"allowed", func(p *v1alpha1.ApprovalPolicySpec, o *v1alpha1.Organization) {
			p.Steps[0].AutoApprove, o.Spec.Bounds.Approvals.AllowAutoApprove = "true", true
		}, "", Rights{AutoApprove: true, MaxDuration: time.Minute}},
		"owners": {"not allowed", func(p *v1alpha1.ApprovalPolicySpec, _ *v1alpha1.Organization) { p.ReplaceOwners = true }, "bound-replace-owners",
			Rights{MaxDuration: time.Minute}},
		"owners allowed": {"allowed", func(p *v1alpha1.ApprovalPolicySpec, o *v1alpha1.Organization) {
			p.ReplaceOwners, o.Spec.Bounds.Approvals.AllowReplaceOwners = true, true
		}, "", Rights{ReplaceOwners: true, MaxDuration: time.Minute}},
		"break-glass": {"never allowed", func(p *v1alpha1.ApprovalPolicySpec, _ *v1alpha1.Organization) { p.BreakGlass = &v1alpha1.BreakGlass{} },
			"bound-break-glass", Rights{MaxDuration: time.Minute}},
		"many steps": {"never allowed", func(p *v1alpha1.ApprovalPolicySpec, _ *v1alpha1.Organization) { p.SamePersonManySteps = true }, "bound-many-steps",
			Rights{MaxDuration: time.Minute}},
		"no policies": {"no bounds", func(_ *v1alpha1.ApprovalPolicySpec, o *v1alpha1.Organization) { o.Spec.Bounds.Approvals = nil }, "no-policies",
			Rights{MaxDuration: time.Minute}},
		"unknown": {"the organization is gone", func(p *v1alpha1.ApprovalPolicySpec, _ *v1alpha1.Organization) { p.Organization = "gone" }, "unknown",
			Rights{MaxDuration: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			o := named("pay", "team")
			p := &v1alpha1.ApprovalPolicySpec{
				Organization: "pay",
				MaxDuration:  &metav1.Duration{Duration: time.Minute},
				Steps:        []v1alpha1.ApprovalStep{{Name: "s"}},
			}
			if tc.change != nil {
				tc.change(p, o)
			}
			x := NewIndex([]*v1alpha1.Organization{o})
			if got := codes(x.PolicyViolations(p)); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			if got := x.RightsOf(p); got != tc.rights {
				t.Errorf("%s: the rights are %+v, want %+v", tc.reason, got, tc.rights)
			}
		})
	}
}

// TestTeams checks that a team that two organizations name belongs to neither, and that both organizations' policies still add steps.
func TestTeams(t *testing.T) {
	x := NewIndex([]*v1alpha1.Organization{named("b", "team", "own"), named("a", "team")})
	for team, want := range map[string][2]bool{"team": {false, true}, "own": {true, true}, "none": {false, false}} {
		if got := [2]bool{x.Has("b", team), x.Names("b", team)}; got != want {
			t.Errorf("%s: belongs and is named: %v, want %v", team, got, want)
		}
	}
	if x.Has("a", "own") || x.Names("a", "own") {
		t.Error("a team of another organization")
	}
	ok, why := x.Acceptance(x.Get("b"))
	if ok || !strings.Contains(why.Text, "team") || !strings.Contains(why.Text, "a names") {
		t.Errorf("accepted %t: %s", ok, why.Text)
	}
	if ok, why := NewIndex([]*v1alpha1.Organization{named("b", "own")}).Acceptance(named("b", "own")); !ok {
		t.Errorf("no conflict: %s", why.Text)
	}
	if got := x.Problems(nil, []*v1alpha1.ApprovalPolicy{{Spec: v1alpha1.ApprovalPolicySpec{Organization: "gone"}}}); len(got) != 3 {
		t.Errorf("two conflicts and a policy: %+v", got)
	}
}
