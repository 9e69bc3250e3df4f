package governanceapi

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/featuretest"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/portal/views"
)

// host is a host cluster with policies, of which nothing else is read.
type host struct {
	views.Host
	policies []*v1alpha1.AccessControlPolicy
}

func (h host) Input() (policy.Input, bool) { return policy.Input{Policies: h.policies}, true }

func newAPI(t *testing.T, policies ...*v1alpha1.AccessControlPolicy) *API {
	t.Helper()
	d := featuretest.Data(t)
	d.Host = host{policies: policies}
	return New(d)
}

func policyNamed(name string) *v1alpha1.AccessControlPolicy {
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Statements = []v1alpha1.Statement{{SID: "eight", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{portaltest.App888},
		Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{portaltest.BobsCluster}}}
	return p
}

// TestAccessFilter checks each condition of the access map on one edge: the first parameters select it, the second do not.
func TestAccessFilter(t *testing.T) {
	managed := policyNamed("acp-bob")
	managed.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByPortal}
	a := newAPI(t, managed)
	edge := &governance.Edge{Class: "redis", Mode: v1alpha1.ModeAudit}
	edge.Ref, edge.Subject, edge.Resource = policy.Ref{Policy: "acp-bob", SID: "eight"}, portaltest.App888, portaltest.BobsCluster
	edge.Effect, edge.Actions, edge.NotAfter = v1alpha1.EffectAllow, []string{"redis:connect"}, featuretest.Now.Add(36*time.Hour)
	for name, tc := range map[string]struct{ selects, not openapi.GetAccessGraphParams }{
		"Subject":  {openapi.GetAccessGraphParams{Subject: new("app-888")}, openapi.GetAccessGraphParams{Subject: new("app-889")}},
		"Resource": {openapi.GetAccessGraphParams{Resource: new("bobs-cluster")}, openapi.GetAccessGraphParams{Resource: new("ledger-db-cache")}},
		"Name":     {openapi.GetAccessGraphParams{Resource: new(portaltest.BobsCluster)}, openapi.GetAccessGraphParams{Resource: new(portaltest.LedgerCache)}},
		"Class":    {openapi.GetAccessGraphParams{Class: new("redis")}, openapi.GetAccessGraphParams{Class: new("kafka")}},
		"Effect": {openapi.GetAccessGraphParams{Effect: new(openapi.StatementEffect("Allow"))},
			openapi.GetAccessGraphParams{Effect: new(openapi.StatementEffect("Deny"))}},
		"Mode": {openapi.GetAccessGraphParams{Mode: &[]openapi.Mode{"Audit", "Enforce"}}, openapi.GetAccessGraphParams{Mode: &[]openapi.Mode{"Observe"}}},
		"Origin": {openapi.GetAccessGraphParams{Origin: &[]openapi.PolicyOriginKind{"portal"}},
			openapi.GetAccessGraphParams{Origin: &[]openapi.PolicyOriginKind{"gitops", "kubectl"}}},
		"Expiry": {openapi.GetAccessGraphParams{ExpiresWithinDays: new(2)}, openapi.GetAccessGraphParams{ExpiresWithinDays: new(1)}},
		"Team":   {openapi.GetAccessGraphParams{Team: new("person:alice")}, openapi.GetAccessGraphParams{Team: new("group:storage")}},
		"Broad":  {openapi.GetAccessGraphParams{Broad: new(false)}, openapi.GetAccessGraphParams{Broad: new(true)}},
		"Title":  {openapi.GetAccessGraphParams{Q: new("BOB'S")}, openapi.GetAccessGraphParams{Q: new("alice's")}},
		"Action": {openapi.GetAccessGraphParams{Q: new("connect")}, openapi.GetAccessGraphParams{Q: new("publish")}},
		"SID":    {openapi.GetAccessGraphParams{Q: new("acp-bob/eight")}, openapi.GetAccessGraphParams{Q: new("acp-bob/nine")}},
		"All": {openapi.GetAccessGraphParams{Subject: new("app-888"), Class: new("redis"), Q: new("bob")},
			openapi.GetAccessGraphParams{Subject: new("app-888"), Class: new("kafka"), Q: new("bob")}},
	} {
		t.Run(name, func(t *testing.T) {
			for want, p := range map[bool]openapi.GetAccessGraphParams{true: tc.selects, false: tc.not} {
				f, err := a.accessFilter(p)
				if err != nil {
					t.Fatal(err)
				}
				if f.matches(edge) != want {
					t.Errorf("%+v selects the edge: %v", p, !want)
				}
			}
		})
	}
}

// TestAccessFilterIsChecked checks that values which no edge can have are refused, because a map without edges looks like no access.
func TestAccessFilterIsChecked(t *testing.T) {
	a := newAPI(t)
	for name, p := range map[string]openapi.GetAccessGraphParams{
		"Long text":      {Q: new(strings.Repeat("x", maxAccessText+1))},
		"Effect":         {Effect: new(openapi.StatementEffect("Maybe"))},
		"Mode":           {Mode: &[]openapi.Mode{"Off"}},
		"Origin":         {Origin: &[]openapi.PolicyOriginKind{"nowhere"}},
		"No days":        {ExpiresWithinDays: new(0)},
		"Too many days":  {ExpiresWithinDays: new(367)},
		"Team":           {Team: new("alice")},
		"Kind of a team": {Team: new("robot:alice")},
		"Empty team":     {Team: new("group:")},
	} {
		if _, err := a.accessFilter(p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestAccessMapIsForGovernors checks that the map of everybody's access is refused to people without a role.
func TestAccessMapIsForGovernors(t *testing.T) {
	_, _, err := newAPI(t).edges(featuretest.Context(t, approval.Actor{ID: "alice"}), openapi.GetAccessGraphParams{})
	if approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("the error is %v", err)
	}
}

// TestNamesInTwoRolesHaveTwoNodes checks that a name that is a client of one resource and itself a resource has a node in each role, and
// that each name and team is listed once.
func TestNamesInTwoRolesHaveTwoNodes(t *testing.T) {
	g := grapher{c: featuretest.Data(t).Catalog(), nodes: map[string]int{}, teams: map[catalog.Owner]int{}}
	asResource, asSubject := &governance.Edge{}, &governance.Edge{}
	asResource.Resource, asSubject.Subject = portaltest.BobsCluster, portaltest.BobsCluster
	if a, b, c := g.subject(asSubject), g.resource(asResource), g.subject(asSubject); a == b || a != c || len(g.out.Nodes) != 2 || len(g.out.Teams) != 1 {
		t.Errorf("the nodes are %d, %d and %d of %d, with %d teams", a, b, c, len(g.out.Nodes), len(g.out.Teams))
	}
}

// TestMemberWithoutReport checks that a member that only statuses name is listed, in an unknown state.
func TestMemberWithoutReport(t *testing.T) {
	reported := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}
	all := withUnreported([]*v1alpha1.MemberCluster{reported}, map[string]int{"m2": 0, "m1": 0})
	if len(all) != 2 || all[0].Name != "m1" || all[1] != reported {
		t.Fatalf("the members are %v", all)
	}
	if got := memberOf(
		all[0],
		0,
		governance.MemberWaves{},
	); got.State != openapi.MemberHealthUnknown || got.Guard != openapi.GuardStateUnknown ||
		got.Objects != nil {
		t.Errorf("a member without a report is %+v", got)
	}
}

// TestFindingsAreCounted checks that a severity that this version does not know counts as a warning.
func TestFindingsAreCounted(t *testing.T) {
	m := &v1alpha1.MemberCluster{}
	for _, s := range []v1alpha1.FindingSeverity{v1alpha1.FindingStops, v1alpha1.FindingFails, v1alpha1.FindingFails, v1alpha1.FindingWarns, "New"} {
		m.Status.Findings = append(m.Status.Findings, v1alpha1.MemberFinding{Severity: s})
	}
	if got := memberOf(m, 0, governance.MemberWaves{}); got.Stops != 1 || got.Fails != 2 || got.Warns != 2 {
		t.Errorf("%d, %d and %d", got.Stops, got.Fails, got.Warns)
	}
}

// TestPolicyIsRealizedOnlyAsObserved checks that a policy does not count as realized before the adapter has read its last change.
func TestPolicyIsRealizedOnlyAsObserved(t *testing.T) {
	c := featuretest.Data(t).Catalog()
	p := policyNamed("by-hand")
	if got := policySummary(c, p, nil); got.Realized != nil || *got.Subjects != 1 || *got.ResourcesTotal != 1 || !got.Accepted {
		t.Errorf("a policy without a status is %+v", got)
	}
	p.Generation, p.Status.ObservedGeneration = 2, 2
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRealized, Status: metav1.ConditionTrue, Reason: "Realized"}}
	if got := policySummary(c, p, nil); !*got.Realized {
		t.Error("the policy is not realized")
	}
	p.Generation = 3
	if got := policySummary(c, p, nil); *got.Realized {
		t.Error("the policy is realized before its last change was read")
	}
}

// TestPolicyThatIsNotAccepted checks that the text of a condition, which another version of the adapter wrote, is shown as a message with a code.
func TestPolicyThatIsNotAccepted(t *testing.T) {
	p := policyNamed("by-hand")
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "Invalid", Message: "too old"}}
	got := policySummary(featuretest.Data(t).Catalog(), p, nil)
	if got.Accepted || got.Message == nil || *got.Message != message.AccessPolicyNotAccepted("too old") {
		t.Errorf("the policy is %+v", got)
	}
}

// TestPolicyHas checks where the list of policies searches.
func TestPolicyHas(t *testing.T) {
	c, p := featuretest.Data(t).Catalog(), policyNamed("By-Hand")
	for part, want := range map[string]bool{"by-hand": true, "eight": true, "app/888": true, "bob's cluster": true, "app-888": true, "nine": false} {
		if got := policyHas(c, p, part); got != want {
			t.Errorf("%q: %v", part, got)
		}
	}
}

// TestPolicyYAML checks that the YAML has what a person wrote, and nothing that the API server added.
func TestPolicyYAML(t *testing.T) {
	p := policyNamed("by-hand")
	p.UID, p.ResourceVersion, p.ManagedFields = "u", "7", []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	p.Status.ObservedGeneration = 3
	want := `apiVersion: acp.io/v1alpha1
kind: AccessControlPolicy
metadata:
  name: by-hand
spec:
  statements:
  - actions:
    - redis:connect
    effect: Allow
    resources:
    - ` + portaltest.BobsCluster + `
    sid: eight
    subjects:
    - ` + portaltest.App888 + "\n"
	if d := cmp.Diff(want, *policyYAML(p)); d != "" {
		t.Error(d)
	}
}
