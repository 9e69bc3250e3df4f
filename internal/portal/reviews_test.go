package portal

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// grantAccess creates an approved grant.
func (x *site) grantAccess(requester, app, appName, resource, resourceName, reason string) int64 {
	x.t.Helper()
	return x.approved(approval.KindGrant, requester, reason, approval.Item{Application: app, ApplicationName: appName, Resource: resource,
		ResourceName: resourceName})
}

// grantStatement creates an approved statement.
func (x *site) grantStatement(requester string, effect v1alpha1.Effect, subject, resource string) int64 {
	x.t.Helper()
	return x.approved(approval.KindStatement, requester, "statement", approval.Item{Scope: &approval.StatementScope{Effect: effect, Subjects: []string{subject},
		Resources: []string{resource}}})
}

// approved creates an approved ticket for access with the action redis:connect, and returns its number.
func (x *site) approved(kind approval.Kind, requester, reason string, it approval.Item) int64 {
	x.t.Helper()
	ctx := x.t.Context()
	it.Actions, it.Steps = []string{"redis:connect"}, []approval.Step{{Name: "owner", Approvers: []string{"nina"}, Quorum: 1}}
	s := x.config.Tickets
	t, err := s.Store.Create(
		ctx,
		approval.NewTicket(approval.Draft{Kind: kind, Requester: requester, Reason: reason, Items: []approval.Item{it}}, x.now()),
	)
	if err == nil {
		t, err = s.Apply(ctx, t.Number, func(t *approval.Ticket) error {
			return t.Vote(0, approval.Vote{Person: "nina", Approve: true, At: x.now()})
		})
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return t.Number
}

func (x *site) review() {
	x.t.Helper()
	if err := x.reviewer.Once(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
}

func newReview(x *site) map[string]any {
	return map[string]any{"name": "=Quarterly", "silence": "revoke", "deadline": x.now().Add(90 * time.Minute)}
}

type reviewLine struct {
	Line      int
	Version   int64
	State     string
	Outcome   string
	CanDecide bool
	Ticket    string
	Reviewers []struct{ ID string }
	Resource  struct{ ID string }
}

type lineList struct {
	Items      []reviewLine
	Total      int
	NextCursor string
}

func choice(line int, version int64, decision string) map[string]any {
	return map[string]any{"decisions": []map[string]any{{"line": line, "version": version, "decision": decision, "comment": "not needed", "days": 3}}}
}

// TestAccessReview follows a review through the API, and tries what others, forged and stale calls could do.
func TestAccessReview(t *testing.T) {
	x := newSite(t)
	alice, bob, dave, grace, erin := x.as("alice"), x.as("bob"), x.as("dave"), x.as("grace"), x.as("erin")
	mine := x.grantAccess("alice", "app-888", portaltest.App888, "bobs-cluster", portaltest.BobsCluster, "carts")
	other := x.grantAccess("erin", "app-889", portaltest.App889, "ledger-db-cache", portaltest.LedgerCache, "search")

	for who, b := range map[string]*portaltest.Browser{"owner": bob, "auditor": grace} {
		for _, path := range []string{"/api/v1/reviews", "/api/v1/reviews/preview"} {
			if a := b.Post(path, newReview(x)); a.Status != http.StatusForbidden {
				t.Errorf("the %s posts %s: %d %s", who, path, a.Status, a.Body)
			}
		}
	}
	var preview struct{ Accesses, Permanent, Reviewers int }
	dave.Post("/api/v1/reviews/preview", newReview(x)).Into(t, &preview)
	if preview.Accesses != 2 || preview.Permanent != 2 || preview.Reviewers != 2 {
		t.Errorf("preview: %+v", preview)
	}
	var made struct{ ID, State string }
	key := http.Header{"X-Acp-Request": {"1"}, "Idempotency-Key": {"0123456789"}}
	body := newReview(x)
	dave.PostWith("/api/v1/reviews", body, key).Into(t, &made)
	var again struct{ ID string }
	dave.PostWith("/api/v1/reviews", body, key).Into(t, &again)
	if made.State != "preparing" || again.ID != made.ID {
		t.Fatalf("%+v, and repeated %+v", made, again)
	}
	x.review()
	path := "/api/v1/reviews/" + made.ID
	var all, own lineList
	grace.Get(path+"/lines").Into(t, &all)
	bob.Get(path+"/lines?q=BOBS").Into(t, &own)
	if len(all.Items) != 2 || len(own.Items) != 1 || own.Items[0].Ticket != approval.FormatID(mine) || !own.Items[0].CanDecide {
		t.Fatalf("lines: all %+v, bob's %+v", all, own)
	}
	var down, rest lineList
	grace.Get(path+"/lines?sort=-recommendation&limit=1").Into(t, &down)
	grace.Get(path+"/lines?sort=-recommendation&cursor="+down.NextCursor).Into(t, &rest)
	if len(down.Items) != 1 || len(rest.Items) != 1 || down.Items[0].Line != 2 || rest.Items[0].Line != 1 {
		t.Errorf("descending: %+v, then %+v", down.Items, rest.Items)
	}
	for _, query := range []string{"sort=line", "cursor=" + down.NextCursor} {
		if a := grace.Get(path + "/lines?" + query); a.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, a.Status, a.Body)
		}
	}
	for _, l := range all.Items {
		if l.CanDecide {
			t.Error("an auditor may decide")
		}
	}
	line := own.Items[0]
	var waiting lineList
	bob.Get("/api/v1/me/review-lines").Into(t, &waiting)
	// Bob reviews both lines: they own the resource of the first, and a group of which they are a member owns that of the second.
	if len(waiting.Items) != 2 || waiting.Total != 2 {
		t.Errorf("bob has to decide %+v", waiting)
	}

	for name, tc := range map[string]struct {
		reason string
		call   func() portaltest.Answer
		status int
	}{
		"stranger reads": {"the review has no line of theirs", func() portaltest.Answer { return alice.Get(path) }, 404},
		"stranger lists": {"the same", func() portaltest.Answer { return alice.Get(path + "/lines") }, 404},
		"requester decides": {"their own access", func() portaltest.Answer {
			return alice.Post(path+"/decisions", choice(line.Line, line.Version, "keep"))
		}, 404},
		"owner decides": {"the owner of the application", func() portaltest.Answer {
			return erin.Post(path+"/decisions", choice(line.Line, line.Version, "revoke"))
		}, 404},
		"auditor decides": {"auditors change nothing", func() portaltest.Answer {
			return grace.Post(path+"/decisions", choice(line.Line, line.Version, "keep"))
		}, 403},
		"nobody decides": {"no login", func() portaltest.Answer {
			return x.as("").Post(path+"/decisions", choice(line.Line, line.Version, "keep"))
		}, 401},
		"reviewer reads report": {"the report shows every line", func() portaltest.Answer { return bob.Get(path + "/report") }, 403},
		"reviewer ends":         {"only security", func() portaltest.Answer { return bob.Post(path+"/end", map[string]any{"reason": "x"}) }, 403},
		"auditor ends":          {"auditors change nothing", func() portaltest.Answer { return grace.Post(path+"/end", map[string]any{"reason": "x"}) }, 403},
		"no such review":        {"the answer for what is hidden", func() portaltest.Answer { return bob.Get("/api/v1/reviews/R-999") }, 404},
		"other ID":              {"the ID must have its form", func() portaltest.Answer { return bob.Get("/api/v1/reviews/R-01") }, 404},
		"foreign cursor":        {"of another list", func() portaltest.Answer { return bob.Get(path + "/lines?cursor=eA") }, 400},
		"unknown state":         {"no such value", func() portaltest.Answer { return bob.Get(path + "/lines?state=x") }, 400},
		"no decision":           {"empty", func() portaltest.Answer { return bob.Post(path+"/decisions", map[string]any{"decisions": []any{}}) }, 422},
		"unknown decision": {"no such value", func() portaltest.Answer {
			return bob.Post(path+"/decisions", choice(line.Line, line.Version, "approve"))
		}, 422},
		"token without scope": {"a token that reads", func() portaltest.Answer {
			return x.as("").PostWith(path+"/decisions", choice(line.Line, line.Version, "keep"),
				http.Header{"Authorization": {"Bearer " + x.token("bob", "read")}})
		}, 403},
	} {
		if a := tc.call(); a.Status != tc.status {
			t.Errorf("%s (%s): %d %s, want %d", name, tc.reason, a.Status, a.Body, tc.status)
		}
	}

	type results struct {
		Items []struct {
			Line    int
			Ok      bool
			Current *reviewLine
			Problem *problemBody
		}
	}
	decide := func(b *portaltest.Browser, line int, version int64, decision string) results {
		var r results
		b.Post(path+"/decisions", choice(line, version, decision)).Into(t, &r)
		if len(r.Items) != 1 {
			t.Fatalf("%+v", r)
		}
		return r
	}
	if r := decide(bob, line.Line, line.Version+1, "keep"); r.Items[0].Ok || r.Items[0].Problem.Code != "stale" {
		t.Errorf("another version of the line: %+v", r.Items[0])
	}
	if r := decide(bob, 99, 1, "keep"); r.Items[0].Ok || r.Items[0].Problem.Code != "not-found" || r.Items[0].Current != nil {
		t.Errorf("no such line: %+v", r.Items[0])
	}
	if r := decide(bob, line.Line, line.Version, "revoke"); !r.Items[0].Ok || r.Items[0].Current.State != "decided" {
		t.Errorf("the reviewer revokes: %+v", r.Items[0])
	}
	if r := decide(bob, line.Line, line.Version, "revoke"); r.Items[0].Ok || r.Items[0].Problem.Code != "conflict" {
		t.Errorf("the same call again: %+v", r.Items[0])
	}
	x.review()
	var ticket struct{ State string }
	bob.Get("/api/v1/tickets/"+approval.FormatID(mine)).Into(t, &ticket)
	if ticket.State != "revoking" {
		t.Errorf("the ticket is %s", ticket.State)
	}

	x.advance(91 * time.Minute)
	x.review()
	var closed struct {
		State  string
		Counts struct{ Revoked, Silent int }
	}
	dave.Get(path).Into(t, &closed)
	if closed.State != "closed" || closed.Counts.Revoked != 2 || closed.Counts.Silent != 1 {
		t.Errorf("%+v", closed)
	}
	answer := grace.Get(path + "/report")
	rows, err := csv.NewReader(strings.NewReader(string(answer.Body))).ReadAll()
	if err != nil || len(rows) != 3 || answer.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("report: %v, %s", err, answer.Body)
	}
	for _, row := range rows[1:] {
		if len(row) != len(rows[0]) || row[1] != "'=Quarterly" {
			t.Errorf("a name that a spreadsheet would calculate: %q", row)
		}
	}
	if text := fmt.Sprint(rows); !strings.Contains(text, approval.FormatID(other)) || !strings.Contains(text, "not needed") || !strings.Contains(text, "bob") {
		t.Errorf("the report does not say who decided what: %s", text)
	}
}

// TestAccessReviewOfStatements follows a statement of a ticket through a review, from the preview to the report.
func TestAccessReviewOfStatements(t *testing.T) {
	x := newSite(t)
	alice, bob, dave := x.as("alice"), x.as("bob"), x.as("dave")
	number := x.grantStatement("alice", v1alpha1.EffectAllow, "*", portaltest.BobsCluster)
	x.grantStatement("alice", v1alpha1.EffectDeny, "*", portaltest.BobsCluster)
	type access struct {
		Application, Resource *struct{ Name string }
		Scope                 *struct{ Effect, Subjects, Resources any }
	}
	is := func(what string, got access) {
		t.Helper()
		want := access{Scope: &struct{ Effect, Subjects, Resources any }{"Allow", []any{"*"}, []any{portaltest.BobsCluster}}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	var preview struct {
		Accesses int
		Examples []access
	}
	dave.Post("/api/v1/reviews/preview", newReview(x)).Into(t, &preview)
	if preview.Accesses != 1 || len(preview.Examples) != 1 {
		t.Fatalf("the preview is %+v", preview)
	}
	is("the preview", preview.Examples[0])
	var made struct{ ID string }
	dave.Post("/api/v1/reviews", newReview(x)).Into(t, &made)
	x.review()
	path := "/api/v1/reviews/" + made.ID
	var list struct {
		Items []struct {
			Line      int
			Version   int64
			CanDecide bool
			Ticket    string
			access
		}
	}
	bob.Get(path+"/lines?q=bobs").Into(t, &list)
	if len(list.Items) != 1 || !list.Items[0].CanDecide || list.Items[0].Ticket != approval.FormatID(number) {
		t.Fatalf("bob's lines are %+v", list.Items)
	}
	line := list.Items[0]
	is("the line", line.access)
	for who, b := range map[string]*portaltest.Browser{"the requester": alice, "a stranger": x.as("erin")} {
		if a := b.Post(path+"/decisions", choice(line.Line, line.Version, "keep")); a.Status != http.StatusNotFound {
			t.Errorf("%s decides: %d %s", who, a.Status, a.Body)
		}
	}
	if a := bob.Post(path+"/decisions", choice(line.Line, line.Version, "shorten")); a.Status != http.StatusOK {
		t.Fatalf("bob decides: %d %s", a.Status, a.Body)
	}
	x.review()
	var ticket struct{ Items []struct{ ExpiresAt string } }
	bob.Get("/api/v1/tickets/"+approval.FormatID(number)).Into(t, &ticket)
	if len(ticket.Items) != 1 || ticket.Items[0].ExpiresAt == "" {
		t.Errorf("the statement has no end: %+v", ticket)
	}
	rows, err := csv.NewReader(strings.NewReader(string(dave.Get(path + "/report").Body))).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("the report is %v, %v", rows, err)
	}
	for column, want := range map[string]string{"kind": "statement", "application": "*", "resource": portaltest.BobsCluster, "outcome": "shortened",
		"decided by": "bob"} {
		if at := slices.Index(rows[0], column); at < 0 || rows[1][at] != want {
			t.Errorf("%q of the report is not %q: %q", column, want, rows[1])
		}
	}
}
