package portal

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

func registration(app, id string, addresses ...string) map[string]any {
	return map[string]any{
		"kind":   "workload",
		"reason": "the new rack",
		"items":  []map[string]any{{"application": app, "workload": map[string]any{"id": id, "addresses": addresses, "description": "rack 7"}}},
	}
}

// TestWorkloadTickets checks the registration of an address range by a ticket: the refusal without one, who may request it, who approves it, and what
// each person sees.
func TestWorkloadTickets(t *testing.T) {
	x := newSite(t)
	alice, bob, erin := x.as("alice"), x.as("bob"), x.as("erin")
	var put struct {
		Items []struct {
			Outcome       string
			Message       message.Message
			NeedsApproval bool
		}
	}
	alice.Post("/api/v1/workloads", map[string]any{"items": []map[string]any{
		{
			"id":        "rack",
			"subject":   portaltest.App888,
			"addresses": []string{"192.0.2.0/24"},
		},
		{"id": "other", "subject": portaltest.App889, "addresses": []string{"192.0.2.9"}},
	}}).Into(t, &put)
	if len(put.Items) != 2 || !put.Items[0].NeedsApproval || put.Items[1].NeedsApproval || put.Items[1].Outcome != "refused" {
		t.Fatalf("the results of the registration: %+v", put)
	}
	var preview struct {
		Items []struct {
			Steps []struct {
				Name      string
				Note      message.Message
				Approvers []struct{ ID string }
			}
			Lines   []message.Message
			Problem *problemBody
		}
		Change struct {
			Objects []struct{ Kind, Name, Before, After, Layer string }
		}
	}
	if a := alice.Post("/api/v1/tickets/preview", registration("app-888", "rack", "192.0.2.0/24")); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	} else {
		a.Into(t, &preview)
	}
	if p := preview.Items[0]; p.Problem != nil || len(p.Steps) != 1 || len(p.Steps[0].Approvers) != 1 || p.Steps[0].Approvers[0].ID != "bob" ||
		p.Steps[0].Note.Text != "An owner of bobs-cluster decides." {
		t.Errorf("the approvers in the preview: %+v", p)
	}
	kinds := map[string]string{}
	for _, o := range preview.Change.Objects {
		kinds[o.Kind] = o.After
	}
	if !strings.Contains(kinds["ExternalWorkload"], "192.0.2.0/24") || !strings.Contains(kinds["CiliumCIDRGroup"], "192.0.2.0/24") || len(kinds) != 2 {
		t.Errorf("the change in the preview: %+v", preview.Change)
	}
	for name, tc := range map[string]struct {
		reason string
		who    *portaltest.Browser
		body   map[string]any
		status int
	}{
		"another owner":    {"erin owns another application", erin, registration("app-888", "rack", "192.0.2.0/24"), 403},
		"bob":              {"bob owns the resource, not the application", bob, registration("app-888", "rack", "192.0.2.0/24"), 403},
		"the security":     {"it registers by a full sync", x.as("dave"), registration("app-888", "rack", "192.0.2.0/24"), 403},
		"an auditor":       {"changes nothing", x.as("grace"), registration("app-888", "rack", "192.0.2.0/24"), 403},
		"no addresses":     {"", alice, registration("app-888", "rack"), 422},
		"not an address":   {"", alice, registration("app-888", "rack", "192.0.2.1/24"), 422},
		"too many":         {"", alice, registration("app-888", "rack", numbered(65)...), 422},
		"a bad id":         {"", alice, registration("app-888", "Rack!", "192.0.2.1"), 422},
		"a body too large": {"", alice, registration("app-888", "rack", strings.Repeat("9", 70_000)), 413},
	} {
		if a := tc.who.Post("/api/v1/tickets", tc.body); a.Status != tc.status {
			t.Errorf("%s: %s: %d %s", name, tc.reason, a.Status, a.Body)
		}
	}
	if a := alice.Post("/api/v1/tickets", registration("app-888", "rack", "192.0.2.0/24")); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	var ticket struct {
		Kind  string
		Items []struct {
			Workload struct {
				ID, Description string
				Before, After   []string
			}
			Application struct{ ID string }
		}
	}
	bob.Get("/api/v1/tickets/T-1").Into(t, &ticket)
	if w := ticket.Items[0].Workload; ticket.Kind != "workload" || w.ID != "rack" || w.Description != "rack 7" || len(w.Before) != 0 ||
		fmt.Sprint(w.After) != "[192.0.2.0/24]" ||
		ticket.Items[0].Application.ID != "app-888" {
		t.Errorf("the change in the ticket: %+v", ticket)
	}
	if a := erin.Get("/api/v1/tickets/T-1"); a.Status != http.StatusNotFound {
		t.Errorf("erin, who is not concerned, sees the ticket: %d", a.Status)
	}
	if a := alice.Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "approve", "version": 1}); a.Status != http.StatusForbidden {
		t.Errorf("alice, the requester, does not see the ticket: %d", a.Status)
	}
	if a := bob.Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "approve", "version": 1}); a.Status != http.StatusOK {
		t.Errorf("the decision of bob: %d %s", a.Status, a.Body)
	}
}

func numbered(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("192.0.2.%d", i))
	}
	return out
}
