package portal

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestRequestForAccess checks which requests are refused, the preview, and the decisions until the access is granted.
func TestRequestForAccess(t *testing.T) {
	x := newSite(t)
	alice, bob, carol, erin, zoe := x.as("alice"), x.as("bob"), x.as("carol"), x.as("erin"), x.as("zoe")
	with := func(change func(map[string]any)) map[string]any {
		b := newTicket("app-888", "bobs-cluster")
		change(b)
		return b
	}
	item := func(b map[string]any) map[string]any { return b["items"].([]map[string]any)[0] }
	for name, tc := range map[string]struct {
		reason string
		body   map[string]any
		status int
		code   string
		field  string
	}{
		"unknown application": {"names the field", newTicket("app-1", "bobs-cluster"), 422, "invalid", "items[0].application"},
		"unknown resource":    {"names the field", newTicket("app-888", "x"), 422, "invalid", "items[0].resource"},
		"unknown action": {
			"names the field", with(func(b map[string]any) { item(b)["actions"] = []string{"redis:drop"} }),
			422, "invalid", "items[0].actions",
		},
		"wildcard action": {
			"only what the class names", with(func(b map[string]any) { item(b)["actions"] = []string{"redis:*"} }),
			422, "invalid", "items[0].actions",
		},
		"no action": {"at least one", with(func(b map[string]any) { item(b)["actions"] = []string{} }), 422, "invalid", "items[0].actions"},
		"no class":  {"nothing could enforce it", newTicket("app-888", "unclassed"), 422, "invalid", "items[0].resource"},
		"no reason": {"the approvers need it", with(func(b map[string]any) { b["reason"] = " " }), 422, "invalid", "reason"},
		"too short": {"five minutes at least", with(func(b map[string]any) { b["durationSeconds"] = 10 }), 422, "invalid", "durationSeconds"},
		"overflow": {
			"a number that is no duration", with(func(b map[string]any) { b["durationSeconds"] = int64(1) << 62 }),
			422, "invalid", "durationSeconds",
		},
		"no item":             {"one item", with(func(b map[string]any) { b["items"] = []any{} }), 422, "invalid", "items"},
		"wrong type":          {"JSON of another form", with(func(b map[string]any) { b["reason"] = 7 }), 400, "invalid", "reason"},
		"other's application": {"only owners ask", newTicket("app-889", "bobs-cluster"), 403, "forbidden", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/api/v1/tickets", "/api/v1/tickets/preview"} {
				if path != "/api/v1/tickets" && tc.field == "reason" && tc.status == 422 {
					continue // a preview needs no reason yet
				}
				a := alice.Post(path, tc.body)
				var p problemBody
				a.Into(t, &p)
				if a.Status == http.StatusOK { // what is wrong with an item is said beside the others
					var preview struct {
						Items []struct{ Problem problemBody }
					}
					a.Into(t, &preview)
					p = preview.Items[0].Problem
					a.Status = p.Status
				}
				if a.Status != tc.status || p.Code != tc.code || tc.field != "" && (len(p.Fields) != 1 || p.Fields[0].Field != tc.field) {
					t.Errorf("%s: %s: %d %s", tc.reason, path, a.Status, a.Body)
				}
			}
		})
	}

	var preview struct {
		Items []struct {
			Kind      string
			Steps     []struct{ Name, State string }
			Existing  []struct{ SID string }
			Statement string
			Denied24h int
		}
	}
	two := newTicket("app-888", "bobs-cluster")
	two["items"] = append(
		two["items"].([]map[string]any),
		map[string]any{"application": "app-888", "resource": "ledger-db-cache", "actions": []string{"redis:connect"}},
	)
	alice.Post("/api/v1/tickets/preview", two).Into(t, &preview)
	if len(preview.Items) != 2 {
		t.Fatalf("the items of the preview: %+v", preview)
	}
	if p := preview.Items[0]; p.Kind != "grant" || len(p.Steps) != 2 || p.Steps[0].State != "current" || len(p.Existing) != 1 || p.Denied24h != 3 ||
		!strings.Contains(p.Statement, "app/888") {
		t.Errorf("preview: %+v", p)
	}
	if p := preview.Items[1]; len(p.Steps) != 3 || p.Steps[2].Name != "security" || len(p.Existing) != 0 {
		t.Errorf("the chain of a sensitive resource lacks the security team: %+v", p)
	}
	made := alice.Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	if made.Status != http.StatusCreated {
		t.Fatalf("%d %s", made.Status, made.Body)
	}
	var p problemBody
	again := alice.Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	if again.Into(t, &p); again.Status != http.StatusConflict || p.Code != "duplicate" || p.Ticket != "T-1" {
		t.Errorf("the problem of the second request lacks the first ticket: %s", again.Body)
	}

	decide := func(who *portaltest.Browser, decision string, version int, comment string) (int, string) {
		a := who.Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": decision, "version": version, "comment": comment})
		var p problemBody
		a.Into(t, &p)
		return a.Status, p.Code
	}
	for _, step := range []struct {
		reason   string
		who      *portaltest.Browser
		decision string
		version  int
		comment  string
		status   int
		code     string
	}{
		{"the requester cannot decide", alice, "approve", 1, "", 403, "forbidden"},
		{"the step is not current", bob, "approve", 1, "", 403, "forbidden"},
		{"a person who may not see it", erin, "approve", 1, "", 404, "not-found"},
		{"a rejection needs a comment", carol, "reject", 1, "", 422, "invalid"},
		{"another version", carol, "approve", 9, "", 409, "stale"},
		{"not a decision", carol, "maybe", 1, "", 422, "invalid"},
		{"the current step", carol, "approve", 1, "fine", 200, ""},
		{"twice", carol, "approve", 1, "", 409, "stale"},
		{"one person decides one step", carol, "approve", 2, "", 403, "forbidden"},
		{"not an approver of this one", zoe, "approve", 2, "", 404, "not-found"},
		{"the last step", bob, "approve", 2, "", 200, ""},
		{"nothing left to decide", bob, "approve", 3, "", 409, "conflict"},
	} {
		if status, code := decide(step.who, step.decision, step.version, step.comment); status != step.status || code != step.code {
			t.Errorf("%s: %d %s, want %d %s", step.reason, status, code, step.status, step.code)
		}
	}
	for _, step := range []struct {
		reason, path string
		who          *portaltest.Browser
		status       int
	}{
		{"only pending ones", "withdraw", alice, 409},
		{"a leader may not revoke", "revoke", carol, 403},
		{"the resource's owner", "revoke", bob, 200},
		{"once", "revoke", bob, 409},
	} {
		if a := step.who.Post("/api/v1/tickets/T-1/"+step.path, map[string]any{"reason": "enough"}); a.Status != step.status {
			t.Errorf("%s: %d %s", step.reason, a.Status, a.Body)
		}
	}
}

// TestDoubleSubmit checks that concurrent calls with the same idempotency key are applied once.
func TestDoubleSubmit(t *testing.T) {
	x := newSite(t)
	alice := x.as("alice")
	call := func(path string, body any, key string) portaltest.Answer {
		return alice.Call(http.MethodPost, "/api/v1"+path, body, http.Header{"X-Acp-Request": {"1"}, "Idempotency-Key": {key}})
	}
	start := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	end := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
	if a := call("/tickets", newTicket("app-888", "bobs-cluster"), "key-of-T-1"); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for name, tc := range map[string]struct {
		reason, path string
		body, other  map[string]any
		count        func() int
		want         int
	}{
		"ticket": {"the first call's ticket", "/tickets", newTicket("app-888", "ledger-db-cache"), newTicket("app-888", "bobs-cluster"), func() int {
			var list struct{ Items []any }
			alice.Get("/api/v1/tickets").Into(t, &list)
			return len(list.Items) - 1
		}, 1},
		"comment": {"it is said once", "/tickets/T-1/comments", map[string]any{"comment": "please"}, map[string]any{"comment": "now"}, func() int {
			var ticket struct{ Events []struct{ Kind string } }
			alice.Get("/api/v1/tickets/T-1").Into(t, &ticket)
			n := 0
			for _, e := range ticket.Events {
				if e.Kind == "comment" {
					n++
				}
			}
			return n
		}, 1},
		"delegation": {"one is enough", "/delegations", map[string]any{"to": "carol", "start": start, "end": end, "reason": "away"},
			map[string]any{"to": "zoe", "start": start, "end": end, "reason": "away"}, func() int {
				var list struct{ Items []any }
				alice.Get("/api/v1/delegations").Into(t, &list)
				return len(list.Items)
			}, 1},
		"token": {"its secret is shown once, so the second is refused", "/me/tokens",
			map[string]any{"name": "ci", "scopes": []string{"read"}, "expiresInSeconds": 3600},
			map[string]any{"name": "cd", "scopes": []string{"read"}, "expiresInSeconds": 3600}, func() int {
				var list struct{ Items []any }
				alice.Get("/api/v1/me/tokens").Into(t, &list)
				return len(list.Items)
			}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for range 6 {
				all.Go(func() {
					if a := call(tc.path, tc.body, "0123456789"+name); a.Status >= 300 && a.Status != http.StatusConflict {
						t.Errorf("%d %s", a.Status, a.Body)
					}
				})
			}
			all.Wait()
			if got := tc.count(); got != tc.want {
				t.Errorf("%s: there are %d", tc.reason, got)
			}
			if a := call(tc.path, tc.body, "0123456789"+name); a.Status >= 300 && name != "token" {
				t.Errorf("a repeated call: %d %s", a.Status, a.Body)
			}
			if a := call(tc.path, tc.other, "0123456789"+name); a.Status != http.StatusConflict {
				t.Errorf("another call with the same key: %d %s", a.Status, a.Body)
			}
			if a := call(tc.path, tc.body, "short"); a.Status != http.StatusBadRequest {
				t.Errorf("the same key of another caller: %d", a.Status)
			}
		})
	}
}
