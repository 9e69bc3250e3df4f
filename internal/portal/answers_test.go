package portal

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/notify/slack"
	"github.com/acp-io/acp/internal/notify/webhook"
	"github.com/acp-io/acp/internal/webhooksender"
)

const (
	signingSecret = "8f742231b10e8888abcd99yyyzzz85a5"
	receiverKey   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	otherKey      = "whsec_AAAQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
)

// answering is a site that accepts decisions from Slack and from the receivers jira and siem, of which siem may not answer.
type answering struct {
	*site
	address   string
	workspace *workspace
	bot       *slack.Bot
	jira      *webhook.Receiver
	sender    *webhook.Sender
	posted    chan webhook.Body
}

func newAnswering(t *testing.T) *answering {
	t.Helper()
	x := &answering{site: newSite(t), posted: make(chan webhook.Body, 8)}
	x.addresses(t)
	x.workspace = &workspace{calls: make(chan slackCall, 32), users: map[string]string{
		"U0CAROL": member("U0CAROL", "Carol@example.com", ""), "U0ALICE": member("U0ALICE", "alice@example.com", ""),
		"U0DAVE": member("U0DAVE", "dave@example.com", ""), "U0ERIN": member("U0ERIN", "erin@example.com", ""),
		"U0GRACE":   member("U0GRACE", "grace@example.com", ""),
		"U0TWICE":   member("U0TWICE", "both@example.com", ""),
		"U0GONE":    member("U0GONE", "carol@example.com", `,"deleted":true`),
		"U0GUEST":   member("U0GUEST", "carol@example.com", `,"is_restricted":true`),
		"U0FOREIGN": member("U0FOREIGN", "carol@example.com", `,"is_stranger":true`),
		"U0BOT":     member("U0BOT", "carol@example.com", `,"is_bot":true`),
		"U0MAIL":    `{"id":"U0MAIL","team_id":"T1","is_email_confirmed":false,"profile":{"email":"carol@example.com"}}`,
		"U0TEAM":    `{"id":"U0TEAM","team_id":"T2","profile":{"email":"carol@example.com"}}`,
	}}
	api := httptest.NewServer(x.workspace)
	t.Cleanup(api.Close)
	client := webhooksender.NewClient(webhooksender.Timeout)
	t.Cleanup(client.CloseIdleConnections)
	x.bot = &slack.Bot{API: mustParse(t, api.URL+"/api"), TokenFile: secretFile(t, "xoxb-1"), SigningSecretFile: secretFile(t, signingSecret),
		Client: client, Now: x.now}
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b webhook.Body
		_ = json.NewDecoder(r.Body).Decode(&b)
		x.posted <- b
	}))
	t.Cleanup(target.Close)
	keys := secretFile(t, receiverKey)
	x.jira = &webhook.Receiver{Name: "jira", KeyFile: keys}
	x.sender = &webhook.Sender{Receiver: x.jira, Target: &webhooksender.Target{URL: mustParse(t, target.URL), KeyFile: keys, Client: client, Now: x.now}}
	x.config.Slack, x.config.Receivers, x.config.Metrics = x.bot, map[string]*webhook.Receiver{"jira": x.jira}, prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(context.Background())
	server, err := New(ctx, x.config)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(server)
	t.Cleanup(func() {
		cancel()
		front.Close()
	})
	x.address = front.URL
	return x
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// addresses gives people mail addresses. Frank and Zoe have the same.
func (x *answering) addresses(t *testing.T) {
	t.Helper()
	file := filepath.Join(x.files, "demo.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for person, email := range map[string]string{
		"carol": "carol@example.com", "dave": "dave@example.com", "erin": "erin@example.com", "grace": "grace@example.com",
		"frank": "both@example.com", "zoe": "both@example.com",
	} {
		text = strings.Replace(text, "{kind: User, metadata: {name: "+person+"}}",
			"{kind: User, metadata: {name: "+person+"}, spec: {profile: {email: "+email+"}}}", 1)
	}
	text = strings.Replace(text, "{displayName: Alice}", "{displayName: Alice, email: alice@example.com}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := x.Directory.Sync(t.Context(), "files"); err != nil || st.Error != "" {
		t.Fatalf("%+v %v", st, err)
	}
}

// submit submits a request of Alice for a resource, whose first step waits for Carol.
func (x *answering) submit(t *testing.T, resource string) *approval.Ticket {
	t.Helper()
	a := x.as("alice").Post("/api/v1/tickets", newTicket("app-888", resource))
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	var created struct{ ID string }
	a.Into(t, &created)
	return x.ticket(t, created.ID)
}

func (x *answering) ticket(t *testing.T, id string) *approval.Ticket {
	t.Helper()
	n, ok := approval.ParseID(id)
	if !ok {
		t.Fatalf("%q is not a ticket", id)
	}
	out, err := x.Tickets.Store.Get(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// notification returns what is sent about the submission of a ticket to a person, or to a receiver if the person is "".
func (x *answering) notification(t *testing.T, tk *approval.Ticket, person string) notify.Notification {
	t.Helper()
	people := notify.Directory{Catalog: x.Catalog(), Now: x.now()}
	for _, m := range notify.MessagesForTicket(tk, 0, len(tk.Events), people) {
		if m.Person != person {
			continue
		}
		r := &notify.Renderer{Portal: mustParse(t, x.base)}
		to, _ := people.Recipient(person)
		out := notify.Notification{ID: "n1", To: to, Message: m, Text: r.Render(m, notify.Preferences{}), Open: r.Open(notify.Preferences{})}
		if m.Facts.Answer != nil {
			out.Answer = r.Answer(m, notify.Preferences{})
		}
		return out
	}
	t.Fatalf("nothing is sent to %q", person)
	return notify.Notification{}
}

type response struct {
	Status int
	Body   string
}

func (x *answering) post(t *testing.T, path, body string, h http.Header) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, string(data)}
}

// ledgerThrough returns the channel of the last decision about a ticket in the ledger.
func (x *answering) ledgerThrough(t *testing.T, id string) (through string) {
	t.Helper()
	for l, err := range x.config.Ledger.Lines(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Object, Action string
			Details        map[string]string
		}
		if err := json.Unmarshal([]byte(l.Text), &e); err != nil {
			t.Fatal(err)
		}
		if e.Object == id && e.Action == "ticket.step-approved" {
			through = e.Details["through"]
		}
	}
	return through
}
