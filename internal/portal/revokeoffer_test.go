package portal

import (
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestRevocationIsOfferedWhereItIsAccepted checks that a row of access says that the reader may revoke it exactly if the portal accepts their revocation:
// not for auditors, and only for the statement that a ticket granted, not for others with the id of one.
func TestRevocationIsOfferedWhereItIsAccepted(t *testing.T) {
	x := newSite(t)
	x.approveFirstTicket(t)
	statement := func(sid string) v1alpha1.Statement {
		return v1alpha1.Statement{SID: sid, Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{portaltest.App888},
			Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{portaltest.BobsCluster}}
	}
	x.host.mu.Lock()
	x.host.input.Policies = []*v1alpha1.AccessControlPolicy{
		{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(portaltest.BobsCluster)}, Spec: v1alpha1.AccessControlPolicySpec{
			Statements: []v1alpha1.Statement{statement("t-1-1"), statement("t-99-1"), statement("by-hand")}}},
		// It has the id of the ticket's statement in a policy that is not the portal's.
		{ObjectMeta: metav1.ObjectMeta{Name: "copied"}, Spec: v1alpha1.AccessControlPolicySpec{
			Statements: []v1alpha1.Statement{statement("t-1-1")}}},
	}
	x.host.mu.Unlock()

	offered := []string{"t-1-1"}
	for who, want := range map[string][]string{"alice": offered, "bob": offered, "dave": offered, "grace": nil} {
		b := x.as(who)
		var list struct {
			Items []struct {
				Policy, Sid, Ticket string
				TicketItem          int
				CanRevoke           bool
			}
		}
		b.Get("/api/v1/resources/bobs-cluster/access").Into(t, &list)
		if len(list.Items) != 4 {
			t.Errorf("%s sees %+v", who, list.Items)
		}
		var got []string
		for _, row := range list.Items {
			if row.CanRevoke {
				got = append(got, row.Sid)
			}
			if row.Ticket == "" {
				continue
			}
			// Without a reason nothing is revoked; a person who may not revoke it is refused before.
			a := b.Post("/api/v1/tickets/"+row.Ticket+"/revoke", map[string]any{"item": row.TicketItem, "reason": " "})
			if accepted := a.Status == http.StatusUnprocessableEntity; accepted != row.CanRevoke {
				t.Errorf("%s: %s of %s is offered: %v, and answered with %d %s", who, row.Sid, row.Policy, row.CanRevoke, a.Status, a.Body)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is offered the revocation of %v, want %v", who, got, want)
		}
	}
}
