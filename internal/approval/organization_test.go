package approval_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

const lowResource = "trnv1:rsc:o:redis:clusters:low"

// payments is an organization with the team that owns low. Carol and dan administer it.
func payments(change func(*v1alpha1.OrganizationSpec)) *v1alpha1.Organization {
	o := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "payments"}, Spec: v1alpha1.OrganizationSpec{
		Teams:          []v1alpha1.TeamName{"team"},
		Administrators: []v1alpha1.OrganizationAdministrator{"person:carol", "person:dan"},
		Bounds: v1alpha1.OrganizationBounds{
			Classes: &v1alpha1.ClassBounds{
				Patterns:      []v1alpha1.NamePattern{"trnv1:rsc:o:redis:clusters:*"},
				LabelKeys:     []v1alpha1.LabelKey{"o/redis"},
				Enforcers:     []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium},
				Sensitivities: []v1alpha1.Sensitivity{v1alpha1.Sensitivity("low"), v1alpha1.Sensitivity("medium")},
			},
			Approvals: &v1alpha1.ApprovalBounds{},
		},
	}}
	if change != nil {
		change(&o.Spec)
	}
	return o
}

func organizationClass(change func(*v1alpha1.ResourceClassSpec)) v1alpha1.ResourceClassSpec {
	spec := v1alpha1.ResourceClassSpec{
		Organization: "payments",
		Pattern:      "trnv1:rsc:o:redis:clusters:*",
		LabelKey:     "o/redis",
		Actions:      []v1alpha1.ClassAction{{Name: "x:read", Ports: []v1alpha1.Port{{Port: 1}}}},
		Enforcers:    []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium},
	}
	if change != nil {
		change(&spec)
	}
	return spec
}

func objectRequest(kind approval.Kind, object, verb string, spec any) approval.Request {
	text, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	if verb == approval.VerbDelete {
		text = nil
	}
	return approval.Request{
		Kind:  kind,
		Items: []approval.RequestItem{{Object: &approval.ObjectChange{Kind: object, Name: "x", Verb: verb, Spec: text}}},
	}
}

func withOrganizations(t *testing.T, all ...*v1alpha1.Organization) *model {
	m := quiet(t)
	m.host.Organized = all
	return m
}

// TestAdministratorsChangeTheirObjects checks that another administrator decides, and never the one who requests.
func TestAdministratorsChangeTheirObjects(t *testing.T) {
	for name, r := range map[string]approval.Request{
		"class": objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbCreate, organizationClass(nil)),
		"policy": objectRequest(approval.KindApprovalPolicy, approval.ObjectApprovalPolicy, approval.VerbCreate, v1alpha1.ApprovalPolicySpec{
			Organization: "payments", Steps: []v1alpha1.ApprovalStep{asked("more", "person:bob")},
		}),
	} {
		t.Run(name, func(t *testing.T) {
			m := withOrganizations(t, payments(nil))
			x := m.submit("carol", r)
			if got, want := chainOf(x.Items[0]), ": administrator(dan erin frank)"; got != want {
				t.Errorf("the chain is %q, want %q", got, want)
			}
			for _, who := range []string{"carol", "bob"} {
				if _, err := m.svc.Decide(t.Context(), m.actorOf(who), x.Number, 0, x.Version, true, ""); err == nil {
					t.Errorf("%s decides", who)
				}
			}
			m.approve(x.Number, "dan")
			m.settle()
			m.is(x.Number, approval.StateEffective)
		})
	}
	m := withOrganizations(t, payments(nil))
	x := m.submit("erin", objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbCreate, organizationClass(nil)))
	if got, want := chainOf(x.Items[0]), ": security(frank)"; got != want {
		t.Errorf("requested by the security team: %q, want %q", got, want)
	}
	m = withOrganizations(t, payments(nil))
	lax := asked("any", "person:bob")
	lax.AutoApprove = "true"
	m.host.Policies = []*v1alpha1.ApprovalPolicy{policyOf("lax", 1, "", lax)}
	x = m.submit("carol", objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbCreate, organizationClass(nil)))
	if got, want := chainOf(x.Items[0]), "lax: any(bob) auto, administrator(dan erin frank)"; got != want {
		t.Errorf("a policy about everything does not replace the administrators: %q, want %q", got, want)
	}
}

// TestAdministratorsMayNotRequest lists what an administrator is refused.
func TestAdministratorsMayNotRequest(t *testing.T) {
	other := payments(func(s *v1alpha1.OrganizationSpec) {
		s.Teams, s.Administrators = []v1alpha1.TeamName{"others"}, []v1alpha1.OrganizationAdministrator{"person:zoe"}
	})
	other.Name = "other"
	class := func(change func(*v1alpha1.ResourceClassSpec)) approval.Request {
		return objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbCreate, organizationClass(change))
	}
	policy := func(change func(*v1alpha1.ApprovalPolicySpec)) approval.Request {
		spec := v1alpha1.ApprovalPolicySpec{Organization: "payments", Steps: []v1alpha1.ApprovalStep{asked("more", "person:bob")}}
		change(&spec)
		return objectRequest(approval.KindApprovalPolicy, approval.ObjectApprovalPolicy, approval.VerbCreate, spec)
	}
	existing := func(organization string) json.RawMessage {
		text, _ := json.Marshal(organizationClass(func(s *v1alpha1.ResourceClassSpec) { s.Organization = v1alpha1.OrganizationName(organization) }))
		return text
	}
	update := objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbUpdate, organizationClass(nil))
	for name, tc := range map[string]struct {
		who      string
		existing json.RawMessage
		request  approval.Request
		says     string
	}{
		"nobody's administrator":         {"alice", nil, class(nil), "Only the security team"},
		"administrator of another one":   {"zoe", nil, class(nil), "that belong to it"},
		"a class of everybody":           {"carol", nil, class(func(s *v1alpha1.ResourceClassSpec) { s.Organization = "" }), "that belong to it"},
		"a class of another one":         {"carol", nil, class(func(s *v1alpha1.ResourceClassSpec) { s.Organization = "other" }), "that belong to it"},
		"a class of one that is gone":    {"carol", nil, class(func(s *v1alpha1.ResourceClassSpec) { s.Organization = "gone" }), "that belong to it"},
		"to take a class of everybody":   {"carol", existing(""), update, "that belong to it"},
		"to take a class of another one": {"carol", existing("other"), update, "that belong to it"},
		"to delete a class of everybody": {
			"carol",
			existing(""),
			objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbDelete, nil),
			"that belong to it",
		},
		"to delete a class of another one": {
			"carol",
			existing("other"),
			objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbDelete, nil),
			"that belong to it",
		},
		"to give a class away": {
			"carol",
			existing("payments"),
			objectRequest(
				approval.KindClass,
				approval.ObjectResourceClass,
				approval.VerbUpdate,
				organizationClass(func(s *v1alpha1.ResourceClassSpec) { s.Organization = "" }),
			),
			"that belong to it",
		},
		"the organization itself": {
			"carol",
			nil,
			objectRequest(approval.KindApprovalPolicy, approval.ObjectOrganization, approval.VerbCreate, payments(nil).Spec),
			"that belong to it",
		},
		"a subject class": {
			"carol",
			nil,
			objectRequest(approval.KindClass, approval.ObjectSubjectClass, approval.VerbCreate, map[string]string{"organization": "payments"}),
			"that belong to it",
		},
		"a class outside of the bounds": {"carol", nil, class(func(s *v1alpha1.ResourceClassSpec) { s.LabelKey = "app" }), "bounds.classes.labelKeys"},
		"outside, by the security team": {
			"erin",
			nil,
			class(func(s *v1alpha1.ResourceClassSpec) { s.LabelKey = "app" }),
			"The security team can change the bounds",
		},
		"automatic approval": {
			"carol",
			nil,
			policy(func(s *v1alpha1.ApprovalPolicySpec) { s.Steps[0].AutoApprove = "true" }),
			"bounds.approvals.allowAutoApprove",
		},
		"replacing owners": {
			"carol",
			nil,
			policy(func(s *v1alpha1.ApprovalPolicySpec) { s.ReplaceOwners = true }),
			"bounds.approvals.allowReplaceOwners",
		},
		"a team of another one, by security": {
			"erin",
			nil,
			objectRequest(approval.KindApprovalPolicy, approval.ObjectOrganization, approval.VerbCreate, payments(nil).Spec),
			"payments names them",
		},
		"an auditor who is an administrator": {"otto", nil, class(nil), "Auditors"},
		"a policy with break-glass access": {"carol", nil, policy(func(s *v1alpha1.ApprovalPolicySpec) {
			s.BreakGlass = &v1alpha1.BreakGlass{MaxDuration: metav1.Duration{Duration: time.Hour}}
		}), "break-glass"},
		"a policy that lets one decide twice": {"carol", nil, policy(func(s *v1alpha1.ApprovalPolicySpec) { s.SamePersonManySteps = true }), "several steps"},
	} {
		t.Run(name, func(t *testing.T) {
			m := withOrganizations(t, payments(func(s *v1alpha1.OrganizationSpec) { s.Administrators = append(s.Administrators, "person:otto") }), other)
			if tc.existing != nil {
				m.host.SetObject(approval.ObjectResourceClass, "x", tc.existing)
			}
			tc.request.Reason = "work"
			_, err := m.svc.Submit(t.Context(), m.actorOf(tc.who), tc.request)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

// TestOrganizationsChangeMeanwhile changes an organization after the submission of a request.
func TestOrganizationsChangeMeanwhile(t *testing.T) {
	submitted := func(t *testing.T) (*model, *approval.Ticket) {
		m := withOrganizations(t, payments(nil))
		return m, m.submit("carol", objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbCreate, organizationClass(nil)))
	}
	refused := func(t *testing.T, m *model, n int64, who string) {
		t.Helper()
		for range 2 { // the first decision may only restart the chain
			if x, err := m.svc.Decide(t.Context(), m.actorOf(who), n, 0, m.version(n), true, ""); err == nil {
				t.Fatalf("%s decides: %s", who, x.State())
			}
		}
		m.settle()
		m.is(n, approval.StatePending)
	}
	t.Run("the requester is no administrator any more", func(t *testing.T) {
		m, x := submitted(t)
		m.host.Organized = []*v1alpha1.Organization{payments(func(s *v1alpha1.OrganizationSpec) { s.Administrators = s.Administrators[1:] })}
		refused(t, m, x.Number, "dan")
		refused(t, m, x.Number, "frank")
	})
	t.Run("the approver is no administrator any more", func(t *testing.T) {
		m, x := submitted(t)
		m.host.Organized = []*v1alpha1.Organization{payments(func(s *v1alpha1.OrganizationSpec) { s.Administrators = s.Administrators[:1] })}
		refused(t, m, x.Number, "dan")
		m.approve(x.Number, "frank")
	})
	t.Run("the bounds are tightened before the decision", func(t *testing.T) {
		m, x := submitted(t)
		m.host.Organized = []*v1alpha1.Organization{payments(func(s *v1alpha1.OrganizationSpec) { s.Bounds.Classes = nil })}
		refused(t, m, x.Number, "dan")
	})
	t.Run("the bounds are tightened before the write", func(t *testing.T) {
		m, x := submitted(t)
		m.approve(x.Number, "dan")
		m.host.Organized = []*v1alpha1.Organization{payments(func(s *v1alpha1.OrganizationSpec) { s.Bounds.Classes = nil })}
		m.settle()
		m.is(x.Number, approval.StateFailed)
		if _, exists, _ := m.host.Object(approval.ObjectResourceClass, "x"); exists {
			t.Error("it was written")
		}
	})
	t.Run("an old change of an object that everybody has now", func(t *testing.T) {
		m := withOrganizations(t, payments(nil))
		spec, _ := json.Marshal(organizationClass(nil))
		m.host.SetObject(approval.ObjectResourceClass, "x", spec)
		x := m.submit("carol", objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbDelete, nil))
		all, _ := json.Marshal(organizationClass(func(s *v1alpha1.ResourceClassSpec) { s.Organization = "" }))
		m.approve(x.Number, "dan")
		m.host.SetObject(approval.ObjectResourceClass, "x", all)
		m.settle()
		if _, exists, _ := m.host.Object(approval.ObjectResourceClass, "x"); !exists {
			t.Error("the object of everybody was deleted")
		}
	})
}

// TestPoliciesOfOrganizations checks which steps the policy of an organization adds to a request for access, and what it cannot take away.
func TestPoliciesOfOrganizations(t *testing.T) {
	spec := func(change func(*v1alpha1.ApprovalPolicySpec)) *v1alpha1.ApprovalPolicy {
		p := policyOf("extra", 1, "", v1alpha1.ApprovalStep{Name: "more", Approvers: []v1alpha1.Approver{"person:zoe"}, AutoApprove: "true"})
		p.Spec.Organization, p.Spec.ReplaceOwners = "payments", true
		if change != nil {
			change(&p.Spec)
		}
		return p
	}
	allows := func(s *v1alpha1.OrganizationSpec) {
		s.Bounds.Approvals = &v1alpha1.ApprovalBounds{AllowAutoApprove: true, AllowReplaceOwners: true}
	}
	other := payments(allows)
	other.Name = "other"
	for name, tc := range map[string]struct {
		reason        string
		organizations []*v1alpha1.Organization
		policies      []*v1alpha1.ApprovalPolicy
		resource      string
		want          string
	}{
		"adds": {"the bounds allow neither", []*v1alpha1.Organization{payments(nil)}, []*v1alpha1.ApprovalPolicy{spec(nil)}, "low", "leader owner more"},
		"no bounds": {"a policy outside of its bounds still adds", []*v1alpha1.Organization{
			payments(func(s *v1alpha1.OrganizationSpec) { s.Bounds.Approvals = nil }),
		},
			[]*v1alpha1.ApprovalPolicy{spec(nil)}, "low", "leader owner more"},
		"allowed": {"the bounds allow both", []*v1alpha1.Organization{payments(allows)}, []*v1alpha1.ApprovalPolicy{spec(nil)}, "low", "leader more:auto"},
		"denied": {"another policy forbids automatic approval", []*v1alpha1.Organization{payments(allows)},
			[]*v1alpha1.ApprovalPolicy{spec(func(s *v1alpha1.ApprovalPolicySpec) { s.DenyAutoApprove = []string{"true"} })}, "low", "leader more"},
		"not needed": {"a policy without a step replaces nothing", []*v1alpha1.Organization{payments(allows)},
			[]*v1alpha1.ApprovalPolicy{spec(func(s *v1alpha1.ApprovalPolicySpec) { s.Steps[0].Condition = "false" })}, "low", "leader owner"},
		"no match": {"it does not apply", []*v1alpha1.Organization{payments(allows)},
			[]*v1alpha1.ApprovalPolicy{spec(func(s *v1alpha1.ApprovalPolicySpec) { s.Match = "false" })}, "low", "leader owner"},
		"another resource": {"no team of the organization owns it", []*v1alpha1.Organization{payments(allows)}, []*v1alpha1.ApprovalPolicy{spec(nil)}, "high",
			"leader owner security"},
		"moved": {"the team is not in the organization any more", []*v1alpha1.Organization{payments(func(s *v1alpha1.OrganizationSpec) {
			allows(s)
			s.Teams[0] = "others"
		})}, []*v1alpha1.ApprovalPolicy{spec(nil)}, "low", "leader owner"},
		"conflict": {"two organizations name the team: steps are added, and no right is given", []*v1alpha1.Organization{payments(allows), other},
			[]*v1alpha1.ApprovalPolicy{spec(nil)}, "low", "leader owner more"},
		"gone": {"there is no such organization", nil, []*v1alpha1.ApprovalPolicy{spec(nil)}, "low", "leader owner"},
		"name": {"a step with the name of another one keeps both", []*v1alpha1.Organization{payments(nil)},
			[]*v1alpha1.ApprovalPolicy{spec(func(s *v1alpha1.ApprovalPolicySpec) { s.Steps[0].Name = "owner" })}, "low", "leader owner owner-always"},
		"global": {"the policy of everybody applies first, and its owners are replaced", []*v1alpha1.Organization{payments(allows)},
			[]*v1alpha1.ApprovalPolicy{policyOf("all", 5, "", asked("o", "resource.owner"), asked("s", "group:security")), spec(nil)}, "low", "s more:auto"},
	} {
		t.Run(name, func(t *testing.T) {
			m := withOrganizations(t, tc.organizations...)
			m.host.Policies = tc.policies
			x := m.submit("alice", approval.Request{Kind: approval.KindGrant, Items: []approval.RequestItem{
				{Application: "a", Resource: tc.resource, Actions: []string{"x:read"}, Duration: time.Hour},
			}})
			var got []string
			for _, s := range x.Items[0].Steps {
				name := s.Name
				if s.Auto {
					name += ":auto"
				}
				got = append(got, name)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, strings.Join(got, " "), tc.want)
			}
		})
	}
	m := withOrganizations(t, payments(func(s *v1alpha1.OrganizationSpec) {
		s.Bounds.Approvals.MaxDuration = &metav1.Duration{Duration: time.Hour}
	}))
	m.host.Policies = []*v1alpha1.ApprovalPolicy{spec(nil)}
	if _, err := m.svc.Submit(t.Context(), m.actorOf("alice"), approval.Request{Kind: approval.KindGrant, Reason: "work", Items: []approval.RequestItem{
		{Application: "a", Resource: "low", Actions: []string{"x:read"}, Duration: 2 * time.Hour},
	}}); approval.CodeOf(err) != approval.CodeInvalid || !strings.Contains(err.Error(), "extra") {
		t.Errorf("the bound limits a policy without a limit: %v", err)
	}
}

// TestClassesOfOrganizations checks which resources may use the class of an organization, at the request and before the write.
func TestClassesOfOrganizations(t *testing.T) {
	class := func(change func(*v1alpha1.ResourceClassSpec)) *v1alpha1.ResourceClass {
		return &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: organizationClass(change)}
	}
	grant := approval.Request{Kind: approval.KindGrant, Reason: "work", Items: []approval.RequestItem{
		{Application: "a", Resource: "low", Actions: []string{"x:read"}, Duration: time.Hour},
	}}
	onboard := approval.Request{Kind: approval.KindOnboard, Reason: "work", Items: []approval.RequestItem{{Resource: "low", Mode: v1alpha1.ModeAudit}}}
	other := payments(nil)
	other.Name = "other"
	for name, tc := range map[string]struct {
		reason        string
		organizations []*v1alpha1.Organization
		class         *v1alpha1.ResourceClass
		says          string
	}{
		"own":         {"the team owns the resource", []*v1alpha1.Organization{payments(nil)}, class(nil), ""},
		"everybody's": {"it belongs to no organization", nil, class(func(s *v1alpha1.ResourceClassSpec) { s.Organization = "" }), ""},
		"out of bounds": {
			"tightened later",
			[]*v1alpha1.Organization{payments(nil)},
			class(func(s *v1alpha1.ResourceClassSpec) { s.LabelKey = "app" }),
			"bounds.classes.labelKeys",
		},
		"gone": {"there is no such organization", nil, class(nil), "there is no organization payments"},
		"moved": {"the team left", []*v1alpha1.Organization{payments(func(s *v1alpha1.OrganizationSpec) { s.Teams[0] = "others" })}, class(
			nil,
		),
			"not all owners"},
		"conflict": {"another organization names the team", []*v1alpha1.Organization{payments(nil), other}, class(nil), "not all owners"},
		"sensitivity": {"a resource of this sensitivity may not", []*v1alpha1.Organization{payments(func(s *v1alpha1.OrganizationSpec) {
			s.Bounds.Classes.Sensitivities = []v1alpha1.Sensitivity{"high"}
		})}, class(nil), "bounds.classes.sensitivities"},
	} {
		t.Run(name, func(t *testing.T) {
			for who, r := range map[string]approval.Request{"alice": grant, "bob": onboard} {
				m := withOrganizations(t, tc.organizations...)
				m.host.About = map[string]approval.Facts{lowResource: {Class: "redis", ClassObject: tc.class}}
				_, err := m.svc.Submit(t.Context(), m.actorOf(who), r)
				if (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s, %s: got %v, want %q", tc.reason, r.Kind, err, tc.says)
				}
			}
		})
	}
	m := withOrganizations(t, payments(nil))
	m.host.About = map[string]approval.Facts{lowResource: {Class: "redis", ClassObject: class(nil)}}
	x := m.submit("alice", grant)
	m.approve(x.Number, "carol", "bob")
	m.host.Organized = nil
	m.settle()
	m.is(x.Number, approval.StateFailed)
	if slices.Contains(m.host.Names(), "p-"+lowResource) {
		t.Error("the statement was written")
	}
}
