package portal

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestChangeHidesOtherClients checks that the diff of a request does not show who else can reach a resource, which the resource's page shows only
// to its owners, the security team and auditors.
func TestChangeHidesOtherClients(t *testing.T) {
	x := newSite(t)
	statement := func(sid string, resource v1alpha1.ResourceName, subjects ...v1alpha1.Subject) v1alpha1.Statement {
		return v1alpha1.Statement{
			SID:       sid,
			Effect:    v1alpha1.EffectAllow,
			Subjects:  subjects,
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{resource},
		}
	}
	x.host.mu.Lock()
	class := x.host.input.ResourceClasses[0]
	class.Spec.Enforcers, class.Spec.Placement = []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}, v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}
	x.host.input.Policies = append(
		x.host.input.Policies,
		&v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(portaltest.BobsCluster)},
			Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
				statement("889", portaltest.BobsCluster, portaltest.App889),
				statement(
					"both",
					portaltest.BobsCluster,
					portaltest.App888,
					portaltest.App889,
				),
				statement("wide", "trnv1:rsc:trip-com:redis:*", portaltest.App889),
			}}},
	)
	x.host.mu.Unlock()
	if a := x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster")); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	change := func(who string) portaltest.Answer { return x.as(who).Get("/api/v1/tickets/T-1/change") }
	for name, tc := range map[string]struct {
		reason string
		answer portaltest.Answer
		whole  bool
	}{
		"preview of an application's owner": {
			"it shows the rows of the own application",
			x.as("alice").Post("/api/v1/tickets/preview", newTicket("app-888", "bobs-cluster")), false,
		},
		"requester":             {"the ticket shows no more than the preview", change("alice"), false},
		"approver":              {"the decision needs the other statements", change("carol"), true},
		"owner of the resource": {"owners see all clients", change("bob"), true},
		"security team":         {"the security team sees all clients", change("dave"), true},
		"auditor":               {"auditors see all clients", change("grace"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.answer.Status != http.StatusOK {
				t.Fatalf("%d %s", tc.answer.Status, tc.answer.Body)
			}
			text := string(tc.answer.Body)
			if strings.Contains(text, "app/889") != tc.whole || strings.Contains(text, "What others may do there is left out") == tc.whole {
				t.Errorf("%s: %s", tc.reason, text)
			}
			if !strings.Contains(text, "app/888") {
				t.Errorf("the requested statement is missing: %s", text)
			}
		})
	}
	if a := x.as("carol").
		Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "reject", "comment": "not now", "version": 1}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := change("carol"); a.Status != http.StatusOK || strings.Contains(string(a.Body), "app/889") {
		t.Errorf("a former approver sees the resource's clients: %d %s", a.Status, a.Body)
	}
}

// TestLinesHideClients checks that the lines of a request about a resource name its clients only to people who see them on the resource's page, and
// to the approvers.
func TestLinesHideClients(t *testing.T) {
	x := newSite(t)
	x.host.compiled = []string{
		"allow pods with com.trip/appid=889 to pods with redis=bobs-cluster on 6379/TCP",
		"- deny anyone to pods with redis=bobs-cluster on 22/TCP",
		"in every member",
	}
	x.host.approvals = []*v1alpha1.ApprovalPolicy{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec:       v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{{Name: "s", Approvers: []v1alpha1.Approver{"person:carol"}}}},
		},
	}
	a := x.as("bob").
		Post("/api/v1/tickets", map[string]any{"kind": "mode", "reason": "why", "items": []map[string]any{{"resource": "bobs-cluster", "mode": "Observe"}}})
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	shows := func(who string) (clients, others bool) {
		a := x.as(who).Get("/api/v1/tickets/T-1")
		if a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", who, a.Status, a.Body)
		}
		return strings.Contains(string(a.Body), "appid=889") ||
				strings.Contains(string(a.Body), "deny anyone"), strings.Contains(
				string(a.Body),
				"in every member",
			)
	}
	for _, who := range []string{"bob", "carol", "dave", "grace"} {
		if clients, others := shows(who); !clients || !others {
			t.Errorf("%s does not see all lines: %v, %v", who, clients, others)
		}
	}
	if a := x.as("carol").
		Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "reject", "comment": "not now", "version": 1}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if clients, others := shows("carol"); clients || !others {
		t.Errorf("a former approver sees the resource's clients: %v, %v", clients, others)
	}
}

// twoOwners has the resources bobs-cluster of Bob and ledger-db-cache of Frank, each decided by its owner, and returns the site.
func twoOwners(t *testing.T) *site {
	t.Helper()
	x := newSite(t)
	x.editCatalog(t, "acp.io/sensitivity: high}}, spec: {owner: storage}", "acp.io/sensitivity: high}}, spec: {owner: \"user:frank\"}")
	x.host.mu.Lock()
	defer x.host.mu.Unlock()
	x.host.approvals = []*v1alpha1.ApprovalPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{{Name: "s", Approvers: []v1alpha1.Approver{"resource.owner"}}}},
	}}
	return x
}

// aboutBoth returns a request of access of app-888 to the resources of both owners.
func aboutBoth() map[string]any {
	r := newTicket("app-888", "bobs-cluster")
	r["items"] = append(r["items"].([]map[string]any), newTicket("app-888", "ledger-db-cache")["items"].([]map[string]any)...)
	return r
}

// TestChangeHidesClientsOfOtherItems checks that the approver of one item of a ticket sees the other clients of its resource in the differences,
// and not those of the resource of another item.
func TestChangeHidesClientsOfOtherItems(t *testing.T) {
	x := twoOwners(t)
	x.host.mu.Lock()
	var others []*v1alpha1.AccessControlPolicy
	for subject, resource := range map[string]string{"one": portaltest.BobsCluster, "two": portaltest.LedgerCache} {
		others = append(others, &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(resource)},
			Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{
				SID: "other", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{v1alpha1.Subject("trnv1:rsc:trip-com:iam:sa:app/client-" + subject)},
				Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)}}}}})
	}
	x.host.input.Policies = others
	x.host.mu.Unlock()
	if a := x.as("alice").Post("/api/v1/tickets", aboutBoth()); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for who, shows := range map[string][2]bool{"alice": {false, false}, "bob": {true, false}, "frank": {false, true}, "dave": {true, true}} {
		a := x.as(who).Get("/api/v1/tickets/T-1/change")
		text := string(a.Body)
		if a.Status != http.StatusOK || strings.Contains(text, "client-one") != shows[0] || strings.Contains(text, "client-two") != shows[1] {
			t.Errorf("%s should see the clients of the resources: %v: %d %s", who, shows, a.Status, text)
		}
		if whole := shows[0] && shows[1]; strings.Contains(text, "What others may do there is left out") == whole {
			t.Errorf("%s: the answer does not say whether something is left out: %s", who, text)
		}
	}
}

// TestLinesHideClientsOfOtherItems checks that the approver of one item of a ticket does not see the clients in the lines of another item.
func TestLinesHideClientsOfOtherItems(t *testing.T) {
	x := twoOwners(t)
	x.host.compiled = []string{"allow pods with com.trip/appid=889 to pods with redis=x on 6379/TCP", "in every member"}
	x.host.mu.Lock()
	second := x.host.input.Resources[0].DeepCopy()
	second.Name, second.Spec.Resource = policy.PolicyNameFor(portaltest.LedgerCache), portaltest.LedgerCache
	x.host.input.Resources = append(x.host.input.Resources, second)
	x.host.mu.Unlock()
	if a := x.as("dave").Post("/api/v1/tickets", map[string]any{"kind": "mode", "reason": "why", "items": []map[string]any{
		{"resource": "bobs-cluster", "mode": "Observe"}, {"resource": "ledger-db-cache", "mode": "Observe"}}}); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for who, shows := range map[string][2]bool{"bob": {true, false}, "frank": {false, true}, "dora": {true, true}} {
		var got struct {
			Items []struct{ Lines []struct{ Text string } }
		}
		x.as(who).Get("/api/v1/tickets/T-1").Into(t, &got)
		if len(got.Items) != 2 {
			t.Fatalf("%s sees %d items", who, len(got.Items))
		}
		for i, it := range got.Items {
			clients := slices.ContainsFunc(it.Lines, func(l struct{ Text string }) bool { return strings.Contains(l.Text, "appid=889") })
			if clients != shows[i] || len(it.Lines) == 0 {
				t.Errorf("%s, item %d: %v", who, i, it.Lines)
			}
		}
	}
}

// TestImpactHidesFlowsOfOtherItems checks that the approver of one item of a ticket does not see the connections to the resource of another item.
func TestImpactHidesFlowsOfOtherItems(t *testing.T) {
	x := twoOwners(t)
	x.host.approvals[0].Spec.Steps[0].Approvers = []v1alpha1.Approver{"person:zoe"} // who owns nothing
	x.host.approvals[0].Spec.Match = `request.resource.id == "ledger-db-cache"`
	x.host.mu.Lock()
	x.host.input.Policies = nil // nothing allows app-888
	x.host.mu.Unlock()
	if a := x.as("alice").Post("/api/v1/tickets", aboutBoth()); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for who, sees := range map[string]bool{"zoe": false, "carol": true, "dave": true} {
		var impact struct {
			Available    bool
			NewlyAllowed []struct{ Subject struct{ ID string } }
			Unchanged    int
		}
		a := x.as(who).Get("/api/v1/tickets/T-1/impact")
		a.Into(t, &impact)
		if a.Status != http.StatusOK || !impact.Available || len(impact.NewlyAllowed) > 0 != sees || !sees && impact.Unchanged > 0 {
			t.Errorf("%s sees the connections to bobs-cluster: %d %s", who, a.Status, a.Body)
		}
	}
}

// TestLedgerHidesClients checks that the ledger's lines about a ticket name the clients of a resource only to people to whom the page of the ticket
// names them, and that the ledger says that lines are left out.
func TestLedgerHidesClients(t *testing.T) {
	x := newSite(t)
	x.host.approvals = []*v1alpha1.ApprovalPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{{Name: "s", Approvers: []v1alpha1.Approver{"person:carol"}}}},
	}}
	a := x.as("bob").
		Post("/api/v1/tickets", map[string]any{"kind": "mode", "reason": "why", "items": []map[string]any{{"resource": "bobs-cluster", "mode": "Observe"}}})
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	more := []string{"allow pods with com.trip/appid=889 to pods with redis=x on 6379/TCP", "in every member"}
	if _, err := x.Tickets.Apply(t.Context(), 1, func(t *approval.Ticket) error {
		t.Void(0, approval.NewShown(append(t.Items[0].Shown.Lines, more...)), x.Now())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	check := func(who string, want bool) {
		t.Helper()
		a := x.as(who).Get("/api/v1/tickets/T-1/ledger")
		text := string(a.Body)
		if a.Status != http.StatusOK || !strings.Contains(text, "in every member") {
			t.Fatalf("%s: %d %s", who, a.Status, text)
		}
		if strings.Contains(text, "appid=889") != want || strings.Contains(text, "Lines that name clients are left out") == want {
			t.Errorf("%s should see the clients: %v: %s", who, want, text)
		}
	}
	for _, who := range []string{"bob", "carol", "dave", "grace"} {
		check(who, true)
	}
	if a := x.as("carol").
		Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "reject", "comment": "not now", "version": 2}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for who, want := range map[string]bool{"bob": true, "carol": false, "dave": true, "grace": true} {
		check(who, want)
	}
	if a := x.as("grace").Get("/api/v1/ledger"); !strings.Contains(string(a.Body), "appid=889") {
		t.Errorf("the whole ledger, which only the security team and auditors read, lacks lines: %s", a.Body)
	}
}

// TestTokensOfAuditorsByClaim checks that an auditor by the login's claim gets no token that can change anything: a token carries no claims, so the
// portal would not treat its caller as an auditor.
func TestTokensOfAuditorsByClaim(t *testing.T) {
	x := newSite(t)
	b := x.as("")
	b.Login(x.provider, "/", "alice", "auditors")
	token := func(scopes ...string) portaltest.Answer {
		return b.Post("/api/v1/me/tokens", map[string]any{"name": "mine", "scopes": scopes, "expiresInSeconds": 3600})
	}
	if a := b.Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster")); a.Status != http.StatusForbidden {
		t.Fatalf("the auditor changed something: %d", a.Status)
	}
	for _, s := range []string{"tickets:write", "tickets:decide", "catalog:write", "workloads:write"} {
		if a := token("read", s); a.Status != http.StatusForbidden {
			t.Errorf("a token with scope %s: %d %s", s, a.Status, a.Body)
		}
	}
	if a := token("read", "ledger:read"); a.Status != http.StatusCreated {
		t.Errorf("a token for reading: %d %s", a.Status, a.Body)
	}
	codes, err := x.Credentials.StartDevice(t.Context(), "kubectl acp", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if a := b.Post("/api/v1/auth/device/approve", map[string]any{"userCode": codes.UserCode}); a.Status != http.StatusForbidden {
		t.Errorf("approving a command line: %d %s", a.Status, a.Body)
	}
	if a := b.Post("/api/v1/auth/device/approve", map[string]any{"userCode": codes.UserCode, "deny": true}); a.Status != http.StatusNoContent {
		t.Errorf("rejecting a command line: %d %s", a.Status, a.Body)
	}
	codes, err = x.Credentials.StartDevice(t.Context(), "kubectl acp", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if a := x.as("grace").Post("/api/v1/auth/device/approve", map[string]any{"userCode": codes.UserCode}); a.Status != http.StatusNoContent {
		t.Errorf("a token of an auditor of the catalog: %d %s", a.Status, a.Body)
	}
}

// TestEventStreamFollowsRoleChanges checks that an open event stream of a former member of the security team contains only events of their own
// objects.
func TestEventStreamFollowsRoleChanges(t *testing.T) {
	x := newSite(t)
	dave := listen(t, x.as("dave"))
	x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	if got := dave("ticket"); !strings.Contains(got, "T-1") {
		t.Fatalf("the event of the security team: %s", got)
	}
	x.editCatalog(
		t,
		"members: [dave, dora]",
		"members: [dora]",
		"acp.io/sensitivity: high}}, spec: {owner: storage}",
		"acp.io/sensitivity: high}}, spec: {owner: \"user:dave\"}",
	)
	for _, r := range []map[string]any{newTicket("app-889", "bobs-cluster"), newTicket("app-889", "ledger-db-cache")} {
		if a := x.as("erin").Post("/api/v1/tickets", r); a.Status != http.StatusCreated {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	if got := dave("ticket"); !strings.Contains(got, "T-3") {
		t.Errorf("the event after leaving the security team: %s", got)
	}
}

// TestNegativeItemIsRefused checks that no position of an item means all items.
func TestNegativeItemIsRefused(t *testing.T) {
	x := newSite(t)
	if a := x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster")); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	carol := x.as("carol")
	for name, tc := range map[string]struct {
		path string
		body map[string]any
	}{
		"decision": {"/api/v1/tickets/T-1/decision", map[string]any{"decision": "approve", "version": 1, "item": -1}},
		"bulk": {
			"/api/v1/tickets/decisions",
			map[string]any{"decision": "approve", "items": []map[string]any{{"ticket": "T-1", "version": 1, "item": -1}}},
		},
		"revoke": {"/api/v1/tickets/T-1/revoke", map[string]any{"reason": "r", "item": -1}},
		"review": {"/api/v1/tickets/T-1/review", map[string]any{"confirm": true, "comment": "c", "item": -1}},
	} {
		if a := carol.Post(tc.path, tc.body); a.Status < 400 || a.Status > 499 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	if now, err := x.Tickets.Store.Get(t.Context(), 1); err != nil || now.Version != 1 {
		t.Errorf("the ticket was changed: %+v %v", now, err)
	}
}

// editCatalog replaces texts in the catalog's files and synchronizes.
func (x *site) editCatalog(t *testing.T, oldnew ...string) {
	t.Helper()
	file := filepath.Join(x.files, "demo.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.NewReplacer(oldnew...).Replace(string(data))), 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := x.Directory.Sync(t.Context(), "files"); err != nil || st.Error != "" || len(st.Problems) > 0 {
		t.Fatalf("%+v %v", st, err)
	}
}
