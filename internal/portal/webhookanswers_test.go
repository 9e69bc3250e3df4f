package portal

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/notify/webhook"
	"github.com/acp-io/acp/internal/webhooksender"
)

// offer returns the answer that the portal offers to the receiver.
func (x *answering) offer(t *testing.T, tk *approval.Ticket) *webhook.Offer {
	t.Helper()
	if err := x.sender.Send(t.Context(), x.notification(t, tk, "")); err != nil {
		t.Fatal(err)
	}
	return (<-x.posted).Answer
}

// answer posts the answer of a receiver, signed with a key.
func (x *answering) answer(t *testing.T, receiver, id, key string, at time.Time, body any) response {
	t.Helper()
	data, ok := body.(string)
	if !ok {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		data = string(text)
	}
	w, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := w.Sign(id, at, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return x.post(t, "/integrations/webhooks/"+receiver+"/answers", data, http.Header{
		"Content-Type": {"application/json"}, "Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {signature},
	})
}

// reply returns the body of an answer to an offer, with other values for some fields.
func reply(o webhook.Offer, changes map[string]any) map[string]any {
	out := map[string]any{"ticket": o.Ticket, "version": o.Version, "digest": o.Digest, "token": o.Token, "expires": o.Expires,
		"decision": "approve", "comment": "", "person": map[string]any{"email": "carol@example.com"}}
	for k, v := range changes {
		out[k] = v
	}
	return out
}

// TestWebhookAnswers checks the answers of a receiver: those that are refused, and one that counts.
func TestWebhookAnswers(t *testing.T) {
	x := newAnswering(t)
	tk, high := x.submit(t, "bobs-cluster"), x.submit(t, "ledger-db-cache")
	if o := x.offer(t, high); o != nil {
		t.Errorf("the portal offers to decide about a highly sensitive resource: %+v", o)
	}
	o := x.offer(t, tk)
	if o == nil || o.Ticket != tk.ID() || !strings.HasSuffix(o.URL, "/integrations/webhooks/jira/answers") || len(o.Lines) == 0 {
		t.Fatalf("the offer is %+v", o)
	}
	now := x.now()
	token := func(o webhook.Offer) string { // of an offer that the portal did not make, by who has the key
		macs, err := webhooksender.MAC(x.jira.KeyFile, strings.Join([]string{"acp-answer-v1", "jira", o.Ticket, strconv.FormatInt(o.Version, 10), o.Digest,
			strconv.FormatInt(o.Expires.Unix(), 10)}, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return macs[0]
	}
	forged := func(change func(*webhook.Offer)) map[string]any {
		f := *o
		change(&f)
		f.Token = token(f)
		return reply(f, nil)
	}
	for name, tc := range map[string]struct {
		reason, receiver, key string
		at                    time.Time
		body                  any
		want                  int
		code                  string
	}{
		"forged":        {"another key", "jira", otherKey, now, reply(*o, nil), 401, "unsigned"},
		"old":           {"older than five minutes", "jira", receiverKey, now.Add(-6 * time.Minute), reply(*o, nil), 401, "unsigned"},
		"future":        {"its time has not come", "jira", receiverKey, now.Add(6 * time.Minute), reply(*o, nil), 401, "unsigned"},
		"not permitted": {"a receiver that may not answer", "siem", receiverKey, now, reply(*o, nil), 404, "not-found"},
		"oversized":     {"more than 64 KiB", "jira", receiverKey, now, reply(*o, map[string]any{"comment": strings.Repeat("x", 70_000)}), 413, "too-large"},
		"long comment": {
			"longer than a comment can be", "jira", receiverKey, now, reply(*o, map[string]any{"comment": strings.Repeat("x", 9_000)}), 422, "invalid",
		},
		"not JSON":      {"JSON only", "jira", receiverKey, now, "{", 400, "invalid"},
		"twice":         {"which field counts is not clear", "jira", receiverKey, now, `{"ticket":"T-1","Ticket":"T-2"}`, 400, "invalid"},
		"unknown field": {"a typing error", "jira", receiverKey, now, reply(*o, map[string]any{"persona": 1}), 400, "invalid"},
		"odd decision":  {"neither", "jira", receiverKey, now, reply(*o, map[string]any{"decision": "yes"}), 422, "invalid"},
		"no person":     {"nobody decided", "jira", receiverKey, now, reply(*o, map[string]any{"person": map[string]any{}}), 422, "invalid"},
		"two persons": {
			"who decided is not clear", "jira", receiverKey, now,
			reply(*o, map[string]any{"person": map[string]any{"id": "carol", "email": "x@example.com"}}), 422, "invalid",
		},
		"another token": {
			"the portal did not offer it", "jira", receiverKey, now, reply(*o, map[string]any{"token": strings.Repeat("0", 64)}), 403, "forbidden",
		},
		"raised version": {"the token is of another version", "jira", receiverKey, now, reply(*o, map[string]any{"version": o.Version + 1}), 403, "forbidden"},
		"later end": {
			"the token is of another end", "jira", receiverKey, now, reply(*o, map[string]any{"expires": o.Expires.Add(time.Hour)}), 403, "forbidden",
		},
		"expired": {"too late", "jira", receiverKey, now, forged(func(o *webhook.Offer) { o.Expires = now.Add(-time.Second) }), 409, "stale"},
		"stale":   {"the ticket changed", "jira", receiverKey, now, forged(func(o *webhook.Offer) { o.Version++ }), 409, "stale"},
		"digest":  {"the ticket grants something else", "jira", receiverKey, now, forged(func(o *webhook.Offer) { o.Digest = "0" }), 409, "stale"},
		"sensitive": {"needs a login", "jira", receiverKey, now, forged(func(o *webhook.Offer) {
			o.Ticket, o.Version, o.Digest = high.ID(), high.Version, high.Items[0].Shown.Digest
		}), 403, "forbidden"},
		"unknown person": {
			"not in the directory", "jira", receiverKey, now, reply(*o, map[string]any{"person": map[string]any{"email": "x@example.com"}}), 403, "forbidden",
		},
		"address of two": {
			"not one person", "jira", receiverKey, now, reply(*o, map[string]any{"person": map[string]any{"email": "both@example.com"}}), 403, "forbidden",
		},
		"requester": {"their own request", "jira", receiverKey, now, reply(*o, map[string]any{"person": map[string]any{"id": "alice"}}), 403, "forbidden"},
		"no approver": {
			"security does not decide the step", "jira", receiverKey, now, reply(*o, map[string]any{"person": map[string]any{"id": "dave"}}), 403, "forbidden",
		},
		"auditor": {
			"auditors only read", "jira", receiverKey, now, reply(*o, map[string]any{"person": map[string]any{"id": "grace"}}), 403, "forbidden",
		},
		"unconcerned":      {"it looks missing", "jira", receiverKey, now, reply(*o, map[string]any{"person": map[string]any{"id": "erin"}}), 404, "not-found"},
		"reject, no words": {"a rejection needs a reason", "jira", receiverKey, now, reply(*o, map[string]any{"decision": "reject"}), 422, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			got := x.answer(t, tc.receiver, "id "+name, tc.key, tc.at, tc.body)
			if got.Status != tc.want || !strings.Contains(got.Body, `"code":"`+tc.code+`"`) {
				t.Errorf("%s: %d %s, want %d %s", tc.reason, got.Status, got.Body, tc.want, tc.code)
			}
			if name == "sensitive" && !strings.Contains(got.Body, `"link":"`+x.base+"/tickets/"+high.ID()+`"`) {
				t.Errorf("%s, and the answer has no link to the ticket: %s", tc.reason, got.Body)
			}
		})
	}
	if got := x.ticket(t, tk.ID()); got.Version != tk.Version {
		t.Fatalf("a refused answer changed the ticket: %+v", got.Events)
	}
	good := reply(*o, nil)
	if got := x.answer(t, "jira", "good", receiverKey, now, good); got.Status != http.StatusOK || !strings.Contains(got.Body, `"ticket":"`+tk.ID()+`"`) {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if v := x.ticket(t, tk.ID()).Items[0].Steps[0].Votes; len(v) != 1 || v[0].Person != "carol" || v[0].Through != "webhook:jira" {
		t.Errorf("the step has the votes %+v", v)
	}
	if through := x.ledgerThrough(t, tk.ID()); through != "webhook:jira" {
		t.Errorf("the ledger has the channel %q", through)
	}
	if got := x.answer(t, "jira", "good", receiverKey, now, good); got.Status != http.StatusConflict || !strings.Contains(got.Body, "replayed") {
		t.Errorf("a repeated answer: %d %s", got.Status, got.Body)
	}
	if got := x.answer(t, "jira", "good again", receiverKey, now, good); got.Status != http.StatusConflict || !strings.Contains(got.Body, "stale") {
		t.Errorf("a repeated answer with another id: %d %s", got.Status, got.Body)
	}
	var view struct {
		Events []struct{ Kind, Through string }
	}
	x.as("alice").Get("/api/v1/tickets/"+tk.ID()).Into(t, &view)
	if e := view.Events[len(view.Events)-1]; e.Kind != "step-approved" || e.Through != "webhook:jira" {
		t.Errorf("the timeline ends with %+v", e)
	}
}

// documented returns the example of docs/notifications.md with a name.
func documented(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "<!-- example: "+name+" -->\n```json\n")
	text, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("docs/notifications.md has no example %s", name)
	}
	return text
}

// TestDocumentedAnswers posts the bodies of the examples for Jira and ServiceNow through a stand-in for the program that signs them.
func TestDocumentedAnswers(t *testing.T) {
	x := newAnswering(t)
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got := x.answer(t, "jira", r.URL.Path, receiverKey, x.now(), string(body))
		w.WriteHeader(got.Status)
		_, _ = io.WriteString(w, got.Body)
	}))
	t.Cleanup(relay.Close)
	for name, want := range map[string]approval.StepState{"jira": approval.StepApproved, "servicenow": approval.StepRejected} {
		t.Run(name, func(t *testing.T) {
			tk := x.submit(t, "bobs-cluster")
			o := x.offer(t, tk)
			expires := o.Expires.Format(time.RFC3339)
			body := strings.NewReplacer(
				"{{issue.properties.acpAnswer.ticket}}", o.Ticket, "{{issue.properties.acpAnswer.version}}", strconv.FormatInt(o.Version, 10),
				"{{issue.properties.acpAnswer.digest}}", o.Digest, "{{issue.properties.acpAnswer.token}}", o.Token,
				"{{issue.properties.acpAnswer.expires}}", expires, "{{issue.comments.last.body.asJsonString}}", `"Fine."`,
				"{{initiator.emailAddress}}", "carol@example.com",
				`"T-42"`, `"`+o.Ticket+`"`, `"version": 7`, `"version": `+strconv.FormatInt(o.Version, 10), `"9f86d0"`, `"`+o.Digest+`"`,
				`"5e88"`, `"`+o.Token+`"`, "2026-03-05T10:00:00Z", expires, "li.na@example.com", "carol@example.com",
			).Replace(documented(t, name))
			resp, err := http.Post(relay.URL+"/"+name, "application/json", strings.NewReader(body)) //nolint:noctx // a stand-in
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%d %s for %s", resp.StatusCode, text, body)
			}
			got := x.ticket(t, tk.ID())
			if s := got.Items[0].Steps[0]; s.State != want || len(s.Votes) != 1 || s.Votes[0].Comment == "" {
				t.Errorf("the step is %+v", s)
			}
			if want == approval.StepApproved { // so that the next request is no duplicate
				if _, err := x.Tickets.Withdraw(t.Context(), approval.Actor{ID: "alice"}, got.Number, "done"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
