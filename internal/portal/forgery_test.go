package portal

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestStatementWithForeignTicketID checks that a statement with the id of a ticket about another subject is not shown with that ticket, because
// revoking the ticket would not remove the statement.
func TestStatementWithForeignTicketID(t *testing.T) {
	x := newSite(t)
	if a := x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster")); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	statement := func(subject v1alpha1.Subject) v1alpha1.Statement {
		return v1alpha1.Statement{
			SID:       "t-1-1",
			Effect:    v1alpha1.EffectAllow,
			Subjects:  []v1alpha1.Subject{subject},
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{portaltest.BobsCluster},
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		subject v1alpha1.Subject
		ticket  string
	}{
		"the ticket's own": {"the ticket requested it", portaltest.App888, "T-1"},
		"another subject":  {"revoking the ticket would revoke another subject", portaltest.App889, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x.host.mu.Lock()
			x.host.input.Policies = []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(portaltest.BobsCluster)},
				Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{statement(tc.subject)}}}}
			x.host.mu.Unlock()
			var list struct {
				Items []struct{ SID, Ticket string }
			}
			x.as("bob").Get("/api/v1/resources/bobs-cluster/access").Into(t, &list)
			if len(list.Items) != 1 || list.Items[0].SID != "t-1-1" || list.Items[0].Ticket != tc.ticket {
				t.Errorf("%s: %+v", tc.reason, list.Items)
			}
		})
	}
}
