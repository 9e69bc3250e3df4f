package portal

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestStartOfAccess checks since when a client has access, as far as that is known.
func TestStartOfAccess(t *testing.T) {
	x := newSite(t)
	x.approveFirstTicket(t)
	var ticket struct {
		Events []struct {
			At   time.Time
			Kind string
		}
	}
	x.as("alice").Get("/api/v1/tickets/T-1").Into(t, &ticket)
	var approved time.Time
	for _, e := range ticket.Events {
		if e.Kind == "approved" {
			approved = e.At
		}
	}
	if approved.IsZero() {
		t.Fatalf("not approved: %+v", ticket.Events)
	}
	long, later := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), approved.Add(time.Hour).Truncate(time.Second)

	for name, tc := range map[string]struct {
		reason    string
		sid       string
		notBefore time.Time
		want      time.Time // zero if absent
	}{
		"by a ticket":                {"the ticket has the time", "t-1-1", time.Time{}, approved},
		"by a ticket, with an older": {"the statement did not exist before the ticket", "t-1-1", long, approved},
		"by a ticket, from later on": {"the statement starts at its own date", "t-1-1", later, later},
		"by hand, with a date":       {"the statement starts at its date", "by-hand", long, long},
		"by hand, without":           {"the time is unknown", "by-hand", time.Time{}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			st := v1alpha1.Statement{SID: tc.sid, Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{portaltest.App888},
				Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{portaltest.BobsCluster}}
			if !tc.notBefore.IsZero() {
				st.NotBefore = new(metav1.NewTime(tc.notBefore))
			}
			x.host.mu.Lock()
			x.host.input.Policies = []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(portaltest.BobsCluster)},
				Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{st}}}}
			x.host.mu.Unlock()
			var list struct{ Items []struct{ Since *time.Time } }
			x.as("alice").Get("/api/v1/applications/app-888/access").Into(t, &list)
			if len(list.Items) != 1 {
				t.Fatalf("%s: %+v", tc.reason, list.Items)
			}
			var got time.Time
			if list.Items[0].Since != nil {
				got = *list.Items[0].Since
			}
			if !got.Equal(tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
