package approval_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

const (
	nameA    = "trnv1:rsc:o:iam:sa:app/a"
	nameHigh = "trnv1:rsc:o:redis:clusters:high"
	nameLow  = "trnv1:rsc:o:redis:clusters:low"
)

func registers(id string, addresses ...string) approval.Request {
	return approval.Request{
		Kind:  approval.KindWorkload,
		Items: []approval.RequestItem{{Application: "a", Workload: &approval.Registration{ID: id, Addresses: addresses}}},
	}
}

func (m *model) reaches(resources ...string) {
	m.host.Reaches = map[string]approval.Reached{nameA: {Resources: resources}}
}

// TestRegistrationChains checks who decides about addresses: an owner of each resource that they reach, never the
// requester, and the security team where no owner can. bob owns high, the team owns low, erin and frank are the security team.
func TestRegistrationChains(t *testing.T) {
	all := asked("owners", "resource.owner")
	all.Quorum = "All"
	auto := asked("own", "resource.owner")
	auto.AutoApprove = "true"
	late := asked("own", "resource.owner", "person:zoe")
	late.Timeout = &v1alpha1.StepTimeout{
		After:      metav1.Duration{Duration: time.Hour},
		Action:     v1alpha1.TimeoutEscalate,
		EscalateTo: []v1alpha1.Approver{"person:zoe"},
	}
	for name, tc := range map[string]struct {
		reason   string
		policies []*v1alpha1.ApprovalPolicy
		reached  approval.Reached
		asks     string
		want     string
	}{
		"nothing":   {reason: "there is no resource's side", want: ": security(erin frank)"},
		"one":       {reason: "an owner who does not ask", reached: approval.Reached{Resources: []string{nameLow}}, want: ": owner(bob carol dan)"},
		"sensitive": {reason: "and the security team", reached: approval.Reached{Resources: []string{nameHigh}}, want: ": owner(bob), security(erin frank)"},
		"two":       {reason: "bob owns both", reached: approval.Reached{Resources: []string{nameHigh, nameLow}}, want: ": owner(bob), security(erin frank)"},
		"not known": {
			reason: "the catalog names no owner", reached: approval.Reached{Resources: []string{nameLow, "trnv1:rsc:o:redis:clusters:x"}},
			want: ": owner(bob carol dan), security(erin frank)",
		},
		"a wildcard": {
			reason:  "nobody owns all of a class",
			reached: approval.Reached{Resources: []string{nameLow}, Wildcards: []string{"trnv1:rsc:o:redis:*"}},
			want:    ": owner(bob carol dan), security(erin frank)",
		},
		"a policy": {
			reason:   "that does not name the owners cannot hand their decision to others",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("p", 1, "", asked("lead", "requester.leader"))},
			reached:  approval.Reached{Resources: []string{nameHigh}},
			want:     "p: lead(carol), owner(bob)",
		},
		"an owner step": {
			reason: "is one for each resource",
			policies: []*v1alpha1.ApprovalPolicy{
				policyOf("p", 1, `request.kind == "workload" && request.application.id == "a"`,
					asked("own", "resource.owner", "person:zoe"), asked("lead", "requester.leader")),
			},
			reached: approval.Reached{Resources: []string{nameHigh}},
			want:    "p: own(bob), lead(carol)",
		},
		"every owner": {
			reason: "each resource has its own people", policies: []*v1alpha1.ApprovalPolicy{policyOf("p", 1, "", all)},
			reached: approval.Reached{Resources: []string{nameLow}},
			want:    "p: owners(bob carol dan)/3",
		},
		"by itself": {
			reason: "no condition agrees in an owner's place", policies: []*v1alpha1.ApprovalPolicy{policyOf("p", 1, "", auto)},
			reached: approval.Reached{Resources: []string{nameLow}},
			want:    "p: own(bob carol dan)",
		},
		"by time": {
			reason: "nor does time hand it to somebody else", policies: []*v1alpha1.ApprovalPolicy{policyOf("p", 1, "", late)},
			reached: approval.Reached{Resources: []string{nameLow}},
			want:    "p: own(bob carol dan)",
		},
		"another kind's": {
			reason:   "the policy is for grants",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("p", 1, `request.kind == "grant"`, asked("x", "person:zoe"))},
			reached:  approval.Reached{Resources: []string{nameLow}},
			want:     ": owner(bob carol dan)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t, tc.policies...)
			m.host.Reaches = map[string]approval.Reached{nameA: tc.reached}
			p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), registers("vm", "192.0.2.0/24"))
			if err != nil || p.Items[0].Err != nil {
				t.Fatal(err, p.Items)
			}
			if d := cmp.Diff(tc.want, chainOf(p.Items[0].Item)); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
			for _, s := range p.Items[0].Steps {
				if s.OnTimeout == v1alpha1.TimeoutEscalate || len(s.EscalateTo) > 0 {
					t.Errorf("%s: %+v", tc.reason, s)
				}
			}
		})
	}
}

// TestOwnersOfDifferentResourcesAllAgree checks that one owner does not speak for another one's resource, and that there is
// a bound on the number of owners.
func TestOwnersOfDifferentResourcesAllAgree(t *testing.T) {
	company := strings.NewReplacer("SECURITY", "erin, frank", "OWNER", "user:bob").Replace(modelCompany)
	var reached []string
	for i := range 22 {
		who := fmt.Sprintf("p%02d", i)
		company += fmt.Sprintf(
			"\n---\n{kind: User, metadata: {name: %s}}\n---\n"+
				"{kind: Resource, metadata: {name: r%02d, annotations: {acp.io/resource-name: \"trnv1:rsc:o:redis:clusters:r%02d\"}}, "+
				"spec: {owner: \"user:%s\"}}",
			who,
			i,
			i,
			who,
		)
		reached = append(reached, fmt.Sprintf("trnv1:rsc:o:redis:clusters:r%02d", i))
	}
	m := quiet(t)
	m.catalog = readCatalog(t, company)
	m.reaches(reached[:2]...)
	x := m.submit("alice", registers("vm", "192.0.2.0/24"))
	if got := chainOf(x.Items[0]); got != ": owner:r00(p00), owner:r01(p01)" {
		t.Errorf("one step for each: %s", got)
	}
	m.approve(x.Number, "p00")
	m.settle()
	m.is(x.Number, approval.StatePending)
	m.approve(x.Number, "p01")
	m.settle()
	m.is(x.Number, approval.StateEffective)

	m.reaches(reached...)
	p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), registers("vm-2", "192.0.2.1"))
	if err != nil || approval.CodeOf(p.Items[0].Err) != approval.CodeNoApprover ||
		!strings.Contains(p.Items[0].Err.Error(), "ask the security team to register") {
		t.Errorf("22 owners are not asked at once: %v, %v", p.Items[0].Err, err)
	}
}

func TestRegistration(t *testing.T) {
	m := quiet(t)
	m.reaches(nameLow)
	for reason, tc := range map[string]struct {
		who  string
		r    approval.Request
		code approval.Code
	}{
		"the leader does not own it": {"carol", registers("vm", "192.0.2.0/24"), approval.CodeForbidden},
		"nor does the security team": {"erin", registers("vm", "192.0.2.0/24"), approval.CodeForbidden},
		"an auditor":                 {"otto", registers("vm", "192.0.2.0/24"), approval.CodeForbidden},
		"no such application": {
			"alice",
			approval.Request{
				Kind:  approval.KindWorkload,
				Items: []approval.RequestItem{{Application: "x", Workload: &approval.Registration{ID: "vm", Addresses: []string{"192.0.2.1"}}}},
			},
			approval.CodeInvalid,
		},
		"no workload": {
			"alice", approval.Request{Kind: approval.KindWorkload, Items: []approval.RequestItem{{Application: "a"}}}, approval.CodeInvalid,
		},
		"more addresses than a machine": {"alice", registers("vm", slices.Repeat([]string{"192.0.2.1"}, 65)...), approval.CodeInvalid},
		"more than a ticket":            {"alice", manyNetworks(65), approval.CodeInvalid},
	} {
		tc.r.Reason = "work"
		if _, err := m.svc.Submit(t.Context(), m.actorOf(tc.who), tc.r); approval.CodeOf(err) != tc.code {
			t.Errorf("%s: %v", reason, err)
		}
	}
	x := m.submit("alice", registers("vm", "192.0.2.0/24"))
	if it := x.Items[0]; !slices.Contains(it.Shown.Lines, `+ spec.addresses[0]: "192.0.2.0/24"`) || it.Change.Name != "portal.vm" ||
		it.ApplicationName != nameA {
		t.Errorf("the approvers see the addresses: %+v", it)
	}
	if _, err := m.svc.Submit(
		t.Context(), m.actorOf("alice"), func() approval.Request { r := registers("vm", "192.0.2.1"); r.Reason = "again"; return r }(),
	); approval.CodeOf(err) != approval.CodeDuplicate {
		t.Errorf("a second ticket about the same workload: %v", err)
	}
	if _, err := m.svc.Decide(t.Context(), m.actorOf("alice"), x.Number, 0, x.Version, true, ""); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("alice is of the team that owns it, and asked: %v", err)
	}
	m.settle()
	m.is(x.Number, approval.StatePending)
	m.approve(x.Number, "dan")
	m.settle()
	m.is(x.Number, approval.StateEffective)
	o, ok, _ := m.host.Object(approval.ObjectExternalWorkload, "portal.vm")
	if want := `{"subject":"` + nameA + `","addresses":["192.0.2.0/24"]}`; !ok || string(o.Spec) != want {
		t.Errorf("what is written: %s", o.Spec)
	}
	again := m.submit("alice", registers("vm", "192.0.2.0/24", "198.51.100.0/24"))
	if c := again.Items[0].Change; c.Verb != approval.VerbUpdate || string(c.Before) != string(o.Spec) {
		t.Errorf("a change of what there is: %+v", c)
	}
}

func manyNetworks(n int) approval.Request {
	r := approval.Request{Kind: approval.KindWorkload}
	for i := range n {
		r.Items = append(
			r.Items,
			approval.RequestItem{
				Application: "a",
				Workload:    &approval.Registration{ID: fmt.Sprint("n-", i), Addresses: []string{fmt.Sprintf("10.0.%d.0/24", i)}},
			},
		)
	}
	if n > approval.MaxItems { // as few items as can hold them
		for len(r.Items) > approval.MaxItems {
			last := r.Items[len(r.Items)-1]
			r.Items = r.Items[:len(r.Items)-1]
			r.Items[0].Workload.Addresses = append(r.Items[0].Workload.Addresses, last.Workload.Addresses...)
		}
	}
	return r
}

// TestAccessThatBeginsAfterTheRequest checks that the owner of a resource to which access is granted meanwhile has to decide,
// regardless of earlier approvals: between two approvals, and between the last one and the write.
func TestAccessThatBeginsAfterTheRequest(t *testing.T) {
	m := quiet(t)
	m.reaches(nameLow)
	x := m.submit("alice", registers("vm", "192.0.2.0/24"))
	m.reaches(nameHigh, nameLow)
	if _, err := m.svc.Decide(t.Context(), m.actorOf("dan"), x.Number, 0, x.Version, true, ""); approval.CodeOf(err) != approval.CodeStale {
		t.Fatalf("dan was shown less: %v", err)
	}
	if _, err := m.svc.Decide(t.Context(), m.actorOf("dan"), x.Number, 0, m.version(x.Number), true, ""); approval.CodeOf(err) != approval.CodeStale {
		t.Fatalf("and more people are asked: %v", err)
	}
	if got := chainOf(m.get(x.Number).Items[0]); got != ": owner(bob), security(erin frank)" {
		t.Errorf("bob owns high: %s", got)
	}

	m = quiet(t)
	m.reaches(nameLow)
	x = m.submit("alice", registers("vm", "192.0.2.0/24"))
	m.approve(x.Number, "dan")
	m.reaches(nameHigh, nameLow)
	m.settle()
	m.is(x.Number, approval.StatePending)
	if _, ok, _ := m.host.Object(approval.ObjectExternalWorkload, "portal.vm"); ok {
		t.Error("it is written, and bob was not asked")
	}
}

// TestAccessThatEndsAfterTheRequest checks that approvals remain valid when the addresses reach less than was shown.
func TestAccessThatEndsAfterTheRequest(t *testing.T) {
	m := quiet(t)
	m.reaches(nameHigh, nameLow)
	x := m.submit("alice", registers("vm", "192.0.2.0/24"))
	m.approve(x.Number, "bob")
	m.reaches(nameHigh)
	m.approve(x.Number, "erin")
	m.settle()
	m.is(x.Number, approval.StateEffective)
}

// TestAddressesOfAnotherApplication checks that an approved registration is not written when the addresses belong to
// another application by then, because neither could connect.
func TestAddressesOfAnotherApplication(t *testing.T) {
	m := quiet(t)
	m.reaches(nameLow)
	x := m.submit("alice", registers("vm", "192.0.2.0/24"))
	m.approve(x.Number, "dan")
	m.host.Contested = map[string]bool{"192.0.2.0/24": true}
	m.settle()
	m.is(x.Number, approval.StateFailed)
	if got := m.get(x.Number).Items[0].Message.Text; !strings.Contains(got, "registered for another application") {
		t.Errorf("the ticket says why: %s", got)
	}
	if _, ok, _ := m.host.Object(approval.ObjectExternalWorkload, "portal.vm"); ok {
		t.Error("it is written")
	}
}

// TestRequesterLosesTheApplication checks that no one can approve a registration whose requester does not own the application
// any more.
func TestRequesterLosesTheApplication(t *testing.T) {
	m := quiet(t)
	m.reaches(nameLow)
	x := m.submit("alice", registers("vm", "192.0.2.0/24"))
	m.catalog = readCatalog(
		t,
		strings.NewReplacer("SECURITY", "erin, frank", "OWNER", "user:bob", `spec: {owner: "user:alice"}`, `spec: {owner: "user:zoe"}`).Replace(modelCompany),
	)
	if _, err := m.svc.Decide(t.Context(), m.actorOf("dan"), x.Number, 0, x.Version, true, ""); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("alice may not ask any more: %v", err)
	}
}

// TestWorkloadChangedBeforeTheWrite checks that an object that was changed meanwhile is not overwritten.
func TestWorkloadChangedBeforeTheWrite(t *testing.T) {
	m := quiet(t)
	m.reaches(nameLow)
	x := m.submit("alice", registers("vm", "192.0.2.0/24"))
	m.approve(x.Number, "dan")
	m.host.SetObject(approval.ObjectExternalWorkload, "portal.vm", json.RawMessage(`{"subject":"`+nameA+`","addresses":["203.0.113.1"]}`))
	m.settle()
	m.is(x.Number, approval.StateFailed)
}
