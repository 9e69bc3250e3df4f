package portal

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

const (
	allApps     = "trnv1:rsc:trip-com:iam:sa:app/*"
	allClusters = "trnv1:rsc:trip-com:redis:clusters:*"
	cidrNames   = "trnv1:rsc:trip-com:net:cidr:"
)

// decidedByCarol makes carol, who owns nothing, the approver of every request.
func (x *site) decidedByCarol() {
	x.host.approvals = []*v1alpha1.ApprovalPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{{Name: "s", Approvers: []v1alpha1.Approver{"person:carol"}}}},
	}}
}

// askStatement requests a statement, and returns the id of the ticket.
func (x *site) askStatement(who, effect string, subjects, resources []string) string {
	x.t.Helper()
	a := x.as(who).Post("/api/v1/tickets", map[string]any{"kind": "statement", "reason": "a rule", "items": []map[string]any{{
		"scope": map[string]any{"effect": effect, "subjects": subjects, "resources": resources}, "actions": []string{"redis:connect"}, "durationSeconds": 86400,
	}}})
	var created struct{ ID string }
	if a.Into(x.t, &created); a.Status != http.StatusCreated {
		x.t.Fatalf("%d %s", a.Status, a.Body)
	}
	return created.ID
}

// itemFacts reads the facts of a ticket, with all fields.
func (x *site) itemFacts(who, ticket string) openapi.TicketFacts {
	x.t.Helper()
	var out openapi.TicketFacts
	a := x.as(who).Get("/api/v1/tickets/" + ticket + "/facts")
	if a.Into(x.t, &out); a.Status != http.StatusOK || len(out.Items) == 0 {
		x.t.Fatalf("%s %s: %d %s", who, ticket, a.Status, a.Body)
	}
	return out
}

func hides(f *openapi.ItemFacts, part openapi.ItemFactsHidden) bool {
	return f.Hidden != nil && slices.Contains(*f.Hidden, part)
}

// TestFactsOfADeny checks that an approver who owns nothing sees what a deny with prefixes covers and whom it would cut off, and that everybody
// else sees what concerns their own applications and resources.
func TestFactsOfADeny(t *testing.T) {
	x := newSite(t)
	x.decidedByCarol()
	ticket := x.askStatement("dave", "Deny", []string{allApps}, []string{allClusters})
	all := x.itemFacts("carol", ticket)
	f := all.Items[0]
	s := f.Statement
	if s == nil || f.Hidden != nil || !all.FlowsAvailable {
		t.Fatalf("%+v", all)
	}
	if r := s.Resources; r.Total != 2 || !r.Later || r.Sensitivities.High != 1 || r.Sensitivities.Medium != 1 || r.NotOnboarded != 1 || len(r.Items) != 2 ||
		r.Items[0].Resource.Name != portaltest.LedgerCache || r.Items[0].Mode != nil || len(r.Items[0].Owners) != 1 || r.Items[0].Owners[0].Id != "storage" ||
		*r.Items[1].Mode != openapi.ModeEnforce {
		t.Errorf("the resources: %+v", r)
	}
	if u := s.Subjects; u.Anyone || !u.Later || u.Applications.Total != 2 || len(u.Applications.Items) != 2 || len(u.Addresses) != 0 {
		t.Errorf("the subjects: %+v", u)
	}
	if o := s.Observed; o == nil || o.Total != 2 || o.Examined != 2 || o.Items[0].Subject.Name != portaltest.App889 || o.Items[0].Refused != 5 ||
		o.Items[0].LastSeen.IsZero() || o.Watched.Enough {
		t.Errorf("the observed clients: %+v", o)
	}
	if e := s.Effect; e == nil || e.CutsOff.Clients != 2 || e.CutsOff.Connections != 8 || len(e.CutsOff.Items) != 2 ||
		e.CutsOff.Items[0].Subject.Name != portaltest.App889 || e.CutsOff.Items[0].Count != 5 || e.CutsOff.Items[0].Resources != 1 ||
		e.LetsIn.Clients != 0 || e.Unknown == 0 {
		t.Errorf("the effect: %+v", e)
	}

	for who, want := range map[string]struct {
		reason            string
		examined, cutsOff int
		hidden            bool
	}{
		"bob":   {"owns all resources", 2, 2, false},
		"frank": {"owns one of the two resources, to which nobody connected", 1, 0, true},
		"erin":  {"owns one of the applications", 0, 1, true},
		"grace": {"is an auditor", 2, 2, false},
	} {
		f := x.itemFacts(who, ticket).Items[0]
		if f.Statement == nil || f.Statement.Effect == nil || f.Statement.Resources.Total != 2 {
			t.Errorf("%s: %+v", who, f)
			continue
		}
		examined := 0
		if o := f.Statement.Observed; o != nil {
			examined = o.Examined
		}
		if got := f.Statement.Effect.CutsOff.Clients; examined != want.examined || got != want.cutsOff ||
			hides(&f, openapi.ItemFactsHiddenObserved) != want.hidden || hides(&f, openapi.ItemFactsHiddenEarlier) != want.hidden {
			t.Errorf("%s %s: %d resources examined, %d clients cut off, hidden %v", who, want.reason, examined, got, f.Hidden)
		}
	}
	if a := x.as("erin").Get("/api/v1/tickets/" + ticket + "/facts"); strings.Contains(string(a.Body), `"count":3`) {
		t.Errorf("the connections of another's application: %s", a.Body)
	}

	x.flows.err = errUnavailable
	x.advance(time.Minute)
	if got := x.itemFacts("carol", ticket); got.FlowsAvailable || got.Items[0].Statement.Observed != nil || got.Items[0].Statement.Effect != nil ||
		got.Items[0].Statement.Resources.Total != 2 {
		t.Errorf("without the flow store: %+v", got)
	}
	x.flows.err = nil
	if a := x.as("carol").Post("/api/v1/tickets/"+ticket+"/decision",
		map[string]any{"decision": "reject", "comment": "not now", "version": 1}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := x.as("carol").Get("/api/v1/tickets/" + ticket + "/facts"); a.Status != http.StatusForbidden {
		t.Errorf("a former approver: %d %s", a.Status, a.Body)
	}
	if s := x.itemFacts("dora", ticket).Items[0].Statement; s.Effect != nil || s.Observed == nil {
		t.Errorf("a decided statement has an effect, or lacks what was observed: %+v", s)
	}
}

// TestFactsOfAnAllow checks whom statements about anyone and about addresses let in, and that a source of which only a part may be covered is
// counted as unknown, not as one that is let in and not as none.
func TestFactsOfAnAllow(t *testing.T) {
	for name, tc := range map[string]struct {
		subject            string
		anyone             bool
		addresses          int
		registered         int
		named              int
		unnamed, uncertain int64
		letsIn             int
	}{
		"anyone":     {subject: "*", anyone: true, named: 3, unnamed: 4, letsIn: 2},
		"the range":  {subject: cidrNames + "203.0.113.0/24", addresses: 1, unnamed: 4, letsIn: 1},
		"half of it": {subject: cidrNames + "203.0.113.0/25", addresses: 1, uncertain: 4},
		// App 889 is registered with an address in it, and has access already.
		"another range": {subject: cidrNames + "198.51.100.0/24", addresses: 1, registered: 1, named: 1},
		// Members are given only the names below a prefix that the policies know, and app/900 is none of them.
		"a prefix": {subject: "trnv1:rsc:trip-com:iam:sa:app/9*", named: 1},
	} {
		t.Run(name, func(t *testing.T) {
			x := newSite(t)
			x.decidedByCarol()
			x.host.input.Workloads = []*v1alpha1.ExternalWorkload{{ObjectMeta: metav1.ObjectMeta{Name: "rack"},
				Spec: v1alpha1.ExternalWorkloadSpec{Subject: portaltest.App889, Addresses: []string{"198.51.100.7"}}}}
			source := refused("m1", "")
			source.Source = "203.0.113.0/24"
			x.flows.see(x.now(), source, 4)
			x.flows.see(x.now(), refused("m1", "trnv1:rsc:trip-com:iam:sa:app/900"), 6)
			s := x.itemFacts("carol", x.askStatement("bob", "Allow", []string{tc.subject}, []string{portaltest.BobsCluster})).Items[0].Statement
			if s == nil || s.Observed == nil || s.Effect == nil {
				t.Fatalf("%+v", s)
			}
			if u := s.Subjects; u.Anyone != tc.anyone || len(u.Addresses) != tc.addresses || u.Registered.Total != tc.registered {
				t.Errorf("the subjects: %+v", u)
			}
			if s.Resources.Total != 1 || s.Resources.Later || s.Resources.NotOnboarded != 0 {
				t.Errorf("the resources: %+v", s.Resources)
			}
			if o := s.Observed; o.Total != tc.named || o.Unnamed != tc.unnamed || o.Uncertain != tc.uncertain {
				t.Errorf("the observed clients: %+v", o)
			}
			if e := s.Effect; e.LetsIn.Clients != tc.letsIn || e.CutsOff.Clients != 0 || len(e.LetsIn.Items) != tc.letsIn {
				t.Errorf("the effect: %+v", e)
			}
		})
	}
}

// TestFactsOfManyResources checks that the facts of a prefix that covers many resources are bounded, and say what they leave out.
func TestFactsOfManyResources(t *testing.T) {
	x := newSite(t)
	x.decidedByCarol()
	const onboarded = 230
	for i := range onboarded {
		name := fmt.Sprintf("trnv1:rsc:trip-com:redis:clusters:extra-%03d", i)
		x.host.input.Resources = append(x.host.input.Resources, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("extra-%03d", i)},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(name), Mode: v1alpha1.ModeEnforce}})
		e := refused("m1", fmt.Sprintf("trnv1:rsc:trip-com:iam:sa:app/x%d", i%20))
		e.Resource = name
		x.flows.see(x.now(), e, 1)
	}
	s := x.itemFacts("carol", x.askStatement("dave", "Allow", []string{allApps}, []string{allClusters})).Items[0].Statement
	if r := s.Resources; r.Total != onboarded+2 || r.Sensitivities.Unknown != onboarded || len(r.Items) != 10 ||
		r.Items[0].Resource.Name != portaltest.LedgerCache {
		t.Errorf("the resources: %+v", r)
	}
	if o := s.Observed; o.Resources != onboarded+2 || o.Examined != 200 || o.Total != 22 || len(o.Items) != 10 {
		t.Errorf("the observed clients: %+v", o)
	}
	if e := s.Effect; !e.Truncated || e.LetsIn.Clients == 0 || len(e.LetsIn.Items) != 10 || e.LetsIn.Items[0].Resources < 2 {
		t.Errorf("the effect: %+v", e)
	}
}

// TestFactsHideTheClientsOfUncatalogedResources checks that the owner of everything in the catalog that a statement covers does not see the
// clients of a resource that is onboarded without being in it, nor numbers that contain them.
func TestFactsHideTheClientsOfUncatalogedResources(t *testing.T) {
	const uncataloged = portaltest.BobsCluster + "-2"
	x := newSite(t)
	x.decidedByCarol()
	x.host.input.Resources = append(x.host.input.Resources, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "uncataloged"},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: uncataloged, Mode: v1alpha1.ModeEnforce}})
	e := refused("m1", "trnv1:rsc:trip-com:iam:sa:app/900")
	e.Resource = uncataloged
	x.flows.see(x.now(), e, 6)
	ticket := x.askStatement("bob", "Allow", []string{"*"}, []string{portaltest.BobsCluster + "*"})
	f := x.itemFacts("bob", ticket).Items[0]
	if s := f.Statement; s == nil || s.Resources.Total != 2 || s.Observed == nil || s.Observed.Examined != 1 || !hides(&f, openapi.ItemFactsHiddenObserved) {
		t.Fatalf("%+v, hidden: %v", s, f.Hidden)
	}
	if e := f.Statement.Effect; e == nil || e.LetsIn.Connections >= 6 {
		t.Errorf("the effect has the connections of a resource that bob does not own: %+v", e)
	}
	if s := x.itemFacts("carol", ticket).Items[0].Statement; s.Observed.Examined != 2 || s.Effect.LetsIn.Connections < 6 {
		t.Errorf("the approver sees all of it: %+v, %+v", s.Observed, s.Effect)
	}
}

// TestFactsOfTheEndOfADeny checks that the end of a deny shows whom it would let in again, and the statement that it ends among the earlier ones.
func TestFactsOfTheEndOfADeny(t *testing.T) {
	x := newSite(t)
	x.decidedByCarol()
	x.askStatement("dave", "Deny", []string{portaltest.App889}, []string{portaltest.LedgerCache}) // overlaps in neither
	made, err := x.Tickets.Store.Create(t.Context(), approval.NewTicket(approval.Draft{Kind: approval.KindStatement, Requester: "dave", Reason: "a rule",
		Items: []approval.Item{{
			Scope:   &approval.StatementScope{Effect: v1alpha1.EffectDeny, Subjects: []string{portaltest.App888}, Resources: []string{allClusters}},
			Actions: []string{"redis:connect"}, Steps: []approval.Step{{Name: "owner", Approvers: []string{"nina"}, Quorum: 1}},
		}}}, x.now()))
	if err != nil {
		t.Fatal(err)
	}
	n, deny := made.Number, made.ID()
	if _, err := x.Tickets.Apply(t.Context(), n, func(t *approval.Ticket) error {
		if err := t.Vote(0, approval.Vote{Person: "nina", Approve: true, At: x.now()}); err != nil {
			return err
		}
		t.Written(0, policy.StatementsPolicy, approval.Written{Generation: 1, UID: "u"}, x.now())
		t.Items[0].State = approval.StateEffective
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	written, err := x.Tickets.Store.Get(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	x.host.input.Policies = append(x.host.input.Policies, &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.StatementsPolicy},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{approval.Statement(written.Items[0])}}})
	a := x.as("dora").Post("/api/v1/tickets", map[string]any{"kind": "revoke", "reason": "not needed any more",
		"items": []map[string]any{{"target": map[string]any{"ticket": deny, "item": 0}}}})
	var created struct{ ID string }
	if a.Into(t, &created); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	f := x.itemFacts("carol", created.ID).Items[0]
	if f.Statement == nil || f.Statement.Effect == nil {
		t.Fatalf("%+v", f)
	}
	if e := f.Statement.Effect; e.LetsIn.Clients != 1 || e.LetsIn.Items[0].Subject.Name != portaltest.App888 || e.CutsOff.Clients != 0 ||
		e.LetsIn.Items[0].Before != openapi.DecisionDenied {
		t.Errorf("the effect: %+v", e)
	}
	if e := f.Earlier; e == nil || e.Total != 1 || e.Items[0].Kind != openapi.TicketKindStatement || e.Items[0].State != openapi.TicketStateEffective {
		t.Errorf("the earlier statements: %+v", e)
	}
}

// TestFactsOfAPackage checks that the approvers of a version of an access package see its resources beside those before it, and what it changes
// for those who hold it.
func TestFactsOfAPackage(t *testing.T) {
	x := newSite(t)
	x.decidedByCarol()
	first := x.itemFacts("carol", x.ask("bob", newPackage("storage"))).Items[0].Package
	if first == nil || first.ToHolders || first.Holders == nil || first.Holders.Total != 0 || first.Resources.Total != 1 ||
		first.Resources.Items[0].Change != openapi.PackagedResourceChangeAdded || first.Resources.Sensitivities.Medium != 1 {
		t.Errorf("the first version: %+v", first)
	}
	x.publish("caches", "Caches")
	if _, err := x.config.Tickets.Store.Create(t.Context(), approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: "alice", Reason: "carts",
		Items: []approval.Item{{Application: "app-888", ApplicationName: portaltest.App888, Resource: "bobs-cluster", ResourceName: portaltest.BobsCluster,
			Actions: []string{"redis:connect"}, Package: &approval.PackageRef{Name: "caches", Version: 1},
			Steps: []approval.Step{{Name: "owner", Approvers: []string{"nina"}, Quorum: 1, Auto: true}}}}}, x.now())); err != nil {
		t.Fatal(err)
	}
	next := newPackage("storage")
	body := next["items"].([]any)[0].(map[string]any)["package"].(map[string]any)
	body["name"] = "caches"
	body["resources"] = []any{map[string]any{"resource": "ledger-db-cache", "actions": []string{"redis:connect"}}}
	kept := x.itemFacts("carol", x.ask("bob", next)).Items[0].Package
	if kept == nil || kept.ToHolders || kept.Holders.Total != 1 || kept.Changes != nil {
		t.Errorf("a version that holders do not get: %+v", kept)
	}
	x.withdrawAll("bob")
	body["toHolders"] = true
	got := x.itemFacts("carol", x.ask("bob", next)).Items[0].Package
	if got == nil || !got.ToHolders || got.Holders.Total != 1 || got.Holders.Items[0].Name != portaltest.App888 || got.Changes == nil ||
		len(*got.Changes) != 1 {
		t.Fatalf("a version for holders: %+v", got)
	}
	if h := (*got.Changes)[0]; h.Gets.Total != 1 || h.Gets.Items[0].Name != portaltest.LedgerCache || h.Loses.Total != 1 ||
		h.Loses.Items[0].Name != portaltest.BobsCluster || h.Renews.Total != 0 {
		t.Errorf("what changes for the holder: %+v", h)
	}
	changes := map[string]openapi.PackagedResourceChange{}
	for _, r := range got.Resources.Items {
		changes[r.Resource.Name] = r.Change
	}
	if changes[portaltest.LedgerCache] != openapi.PackagedResourceChangeAdded || changes[portaltest.BobsCluster] != openapi.PackagedResourceChangeRemoved ||
		got.Resources.Total != 1 || got.Resources.Sensitivities.High != 1 {
		t.Errorf("the resources: %+v", got.Resources)
	}
}

// ask submits a request, and returns the id of the ticket.
func (x *site) ask(who string, body map[string]any) string {
	x.t.Helper()
	var created struct{ ID string }
	a := x.as(who).Post("/api/v1/tickets", body)
	if a.Into(x.t, &created); a.Status != http.StatusCreated {
		x.t.Fatalf("%d %s", a.Status, a.Body)
	}
	return created.ID
}

// withdrawAll withdraws the pending tickets about packages of a person, so that others about the same packages can be submitted.
func (x *site) withdrawAll(who string) {
	x.t.Helper()
	list, err := x.Tickets.Store.List(x.t.Context(), approval.Filter{Kinds: []approval.Kind{approval.KindPackage}})
	if err != nil {
		x.t.Fatal(err)
	}
	for _, t := range list {
		if a := x.as(who).Post("/api/v1/tickets/"+t.ID()+"/withdraw", map[string]any{"reason": "another one"}); a.Status != http.StatusOK {
			x.t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
}

// TestFactsOfARegistration checks that the approvers of a registration see what its addresses reach already and what was seen from them, and that
// the requester does not.
func TestFactsOfARegistration(t *testing.T) {
	x := newSite(t)
	x.decidedByCarol()
	x.host.input.Policies = append(x.host.input.Policies, &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "ranges"},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
			{SID: "near", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{cidrNames + "192.0.2.0/25"}, Actions: []v1alpha1.Action{"redis:connect"},
				Resources: []v1alpha1.ResourceName{portaltest.LedgerCache}},
			{SID: "far", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{cidrNames + "198.51.100.0/24"}, Actions: []v1alpha1.Action{"redis:connect"},
				Resources: []v1alpha1.ResourceName{portaltest.BobsCluster}},
		}}})
	source := refused("m1", "")
	source.Source = "192.0.2.0/24"
	x.flows.see(x.now(), source, 9)
	source.Source = "198.51.100.0/24"
	x.flows.see(x.now(), source, 100)
	ticket := x.ask("alice", registration("app-888", "rack", "192.0.2.0/24"))
	f := x.itemFacts("carol", ticket).Items[0]
	w := f.Workload
	if w == nil || w.ByAddress == nil || w.Observed == nil || f.Hidden != nil {
		t.Fatalf("%+v", f)
	}
	if len(w.Added) != 1 || len(w.Removed) != 0 || w.ByAddress.Total != 1 || w.ByAddress.Items[0].Resource.Name != portaltest.LedgerCache ||
		w.ByAddress.Items[0].Anyone {
		t.Errorf("what the addresses reach already: %+v", w)
	}
	if o := w.Observed; o.Examined != 1 || o.Refused != 9 || o.Count != 0 || o.Uncertain != 0 || o.LastSeen == nil {
		t.Errorf("what was seen from the addresses: %+v", o)
	}
	if f.Reached == nil || f.Reached.Total != 1 {
		t.Errorf("what the addresses would reach: %+v", f.Reached)
	}
	if f := x.itemFacts("alice", ticket).Items[0]; f.Workload.ByAddress != nil || f.Workload.Observed != nil || !hides(&f, openapi.ItemFactsHiddenAddresses) {
		t.Errorf("the requester: %+v", f)
	}
	single := x.itemFacts("carol", x.ask("alice", registration("app-888", "one", "192.0.2.7"))).Items[0].Workload
	if single.Observed == nil || single.Observed.Uncertain != 9 || single.Observed.Refused != 0 {
		t.Errorf("a single address, of which only the range is recorded: %+v", single.Observed)
	}
}
