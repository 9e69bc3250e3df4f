package portal

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestChangeHidesWhatTheResourceHides: the diff of a request must not tell who else reaches a resource, which the
// resource's page tells its owners, the security team and auditors only.
func TestChangeHidesWhatTheResourceHides(t *testing.T) {
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
				statement("hers", portaltest.BobsCluster, portaltest.App889),
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
			"she sees her own rows of the resource",
			x.as("alice").Post("/api/v1/tickets/preview", newTicket("app-888", "bobs-cluster")), false,
		},
		"requester":             {"the ticket tells her no more", change("alice"), false},
		"approver":              {"he has to know what he adds to", change("carol"), true},
		"owner of the resource": {"it is his", change("bob"), true},
		"security team":         {"it sees all", change("dave"), true},
		"auditor":               {"so does she", change("grace"), true},
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
				t.Errorf("what it asks for is there: %s", text)
			}
		})
	}
	if a := x.as("carol").
		Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "reject", "comment": "not now", "version": 1}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := change("carol"); a.Status != http.StatusOK || strings.Contains(string(a.Body), "app/889") {
		t.Errorf("it is decided, so who reaches the resource today is not hers to know any more: %d %s", a.Status, a.Body)
	}
}

// The lines of a request about a resource name its clients: to whom the resource's page does, and to those who decide.
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
			t.Errorf("%s has to see all of it: %v, %v", who, clients, others)
		}
	}
	if a := x.as("carol").
		Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "reject", "comment": "not now", "version": 1}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if clients, others := shows("carol"); clients || !others {
		t.Errorf("it is decided, so the resource's clients are not hers to know any more: %v, %v", clients, others)
	}
}

// TestClaimedAuditorsTokens: the catalog does not know an auditor by the login's claim, so that a token of his would be
// one of somebody who changes things.
func TestClaimedAuditorsTokens(t *testing.T) {
	x := newSite(t)
	b := x.as("")
	b.Login(x.provider, "/", "alice", "auditors")
	token := func(scopes ...string) portaltest.Answer {
		return b.Post("/api/v1/me/tokens", map[string]any{"name": "mine", "scopes": scopes, "expiresInSeconds": 3600})
	}
	if a := b.Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster")); a.Status != http.StatusForbidden {
		t.Fatalf("she only reads: %d", a.Status)
	}
	for _, s := range []string{"tickets:write", "tickets:decide", "catalog:write", "workloads:write"} {
		if a := token("read", s); a.Status != http.StatusForbidden {
			t.Errorf("nor does a token with %s: %d %s", s, a.Status, a.Body)
		}
	}
	if a := token("read", "ledger:read"); a.Status != http.StatusCreated {
		t.Errorf("reading she may hand on: %d %s", a.Status, a.Body)
	}
	codes, err := x.Credentials.StartDevice(t.Context(), "kubectl acp", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if a := b.Post("/api/v1/auth/device/approve", map[string]any{"userCode": codes.UserCode}); a.Status != http.StatusForbidden {
		t.Errorf("a command line's token decides, too: %d %s", a.Status, a.Body)
	}
	if a := b.Post("/api/v1/auth/device/approve", map[string]any{"userCode": codes.UserCode, "deny": true}); a.Status != http.StatusNoContent {
		t.Errorf("to say no she may: %d %s", a.Status, a.Body)
	}
	codes, err = x.Credentials.StartDevice(t.Context(), "kubectl acp", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if a := x.as("grace").Post("/api/v1/auth/device/approve", map[string]any{"userCode": codes.UserCode}); a.Status != http.StatusNoContent {
		t.Errorf("an auditor of the catalog is one with every token: %d %s", a.Status, a.Body)
	}
}

// TestStreamsLoseRoles: who left the security team is told of his own tickets only, also by a page that he had open.
func TestStreamsLoseRoles(t *testing.T) {
	x := newSite(t)
	dave := listen(t, x.as("dave"))
	x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	if got := dave("ticket"); !strings.Contains(got, "T-1") {
		t.Fatalf("the security team is told: %s", got)
	}
	x.moved(
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
		t.Errorf("what he owns is all that he is told of: %s", got)
	}
}

// TestNoNumberStandsForEveryItem: who names one item must not decide others.
func TestNoNumberStandsForEveryItem(t *testing.T) {
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
		t.Errorf("nothing was changed: %+v %v", now, err)
	}
}

// moved replaces texts of the catalog's files.
func (x *site) moved(t *testing.T, oldnew ...string) {
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
