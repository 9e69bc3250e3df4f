package portal

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	catalogstore "github.com/acp-io/acp/internal/catalog/gormstore"
	"github.com/acp-io/acp/internal/notify"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/notify/slack"
)

// slackCall is a call of the portal to Slack's API.
type slackCall struct {
	method string
	body   map[string]any
	text   string // of the whole body
}

// workspace imitates Slack's API.
type workspace struct {
	users   map[string]string // the field user of users.info by ID
	noViews bool
	calls   chan slackCall
}

func (w *workspace) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	answer := `{"ok":true}`
	switch {
	case r.Header.Get("Authorization") != "Bearer xoxb-1":
		answer = `{"ok":false,"error":"invalid_auth"}`
	case method == "users.lookupByEmail":
		answer = `{"ok":true,"user":{"id":"U0CAROL"}}`
	case method == "users.info":
		answer = `{"ok":false,"error":"user_not_found"}`
		if u := w.users[r.URL.Query().Get("user")]; u != "" {
			answer = `{"ok":true,"user":` + u + `}`
		}
	default:
		data, _ := io.ReadAll(r.Body)
		c := slackCall{method: method, text: string(data)}
		_ = json.Unmarshal(data, &c.body)
		w.calls <- c
		if method == "chat.postMessage" {
			answer = `{"ok":true,"channel":"D1","ts":"1700000000.000100"}`
		}
		if method == "views.open" && w.noViews {
			answer = `{"ok":false,"error":"expired_trigger_id"}`
		}
	}
	_, _ = io.WriteString(rw, answer)
}

// member returns a member of the workspace as users.info does.
func member(id, email, more string) string {
	return `{"id":"` + id + `","team_id":"T1","is_email_confirmed":true,"profile":{"email":"` + email + `"}` + more + `}`
}

// buttons sends a notification to Carol and returns the values of its controls by their ids.
func (x *answering) buttons(t *testing.T, tk *approval.Ticket) map[string]string {
	t.Helper()
	if err := x.bot.Send(t.Context(), x.notification(t, tk, "carol")); err != nil {
		t.Fatal(err)
	}
	var message struct {
		Blocks []struct {
			Elements []struct {
				ActionID string `json:"action_id"`
				Value    string `json:"value"`
			} `json:"elements"`
		} `json:"blocks"`
	}
	c := x.call(t, "chat.postMessage")
	if err := json.Unmarshal([]byte(c.text), &message); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, b := range message.Blocks {
		for _, e := range b.Elements {
			out[e.ActionID] = e.Value
		}
	}
	return out
}

// call waits for the next call of the portal to Slack.
func (x *answering) call(t *testing.T, method string) slackCall {
	t.Helper()
	select {
	case c := <-x.workspace.calls:
		if c.method != method {
			t.Fatalf("the portal called %s, want %s: %s", c.method, method, c.text)
		}
		return c
	case <-time.After(time.Minute):
		t.Fatalf("the portal did not call %s", method)
		return slackCall{}
	}
}

// press returns the body of an interaction with a button.
func press(user, action, value string) string {
	p, _ := json.Marshal(map[string]any{
		"type": "block_actions", "user": map[string]any{"id": user, "team_id": "T1"}, "team": map[string]any{"id": "T1"}, "trigger_id": "1.2.3",
		"container": map[string]any{"type": "message", "channel_id": "D1", "message_ts": "1700000000.000100"},
		"actions":   []any{map[string]any{"action_id": action, "value": value, "type": "button"}}, "response_url": "https://evil.example.com/",
	})
	return url.Values{"payload": {string(p)}}.Encode()
}

func binding(t *testing.T, b slack.Binding) string {
	t.Helper()
	v, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(v)
}

// interact posts a body as Slack does, with a signature by a secret at a time.
func (x *answering) interact(t *testing.T, body, secret string, at time.Time) int {
	t.Helper()
	stamp := strconv.FormatInt(at.Unix(), 10)
	return x.post(t, "/integrations/slack/interactions", body, http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"}, slack.TimestampHeader: {stamp},
		slack.SignatureHeader: {slack.Signature(secret, stamp, []byte(body))},
	}).Status
}

// TestDecideInSlack approves with a button, and rejects with a button and a dialog.
func TestDecideInSlack(t *testing.T) {
	x := newAnswering(t)
	tk := x.submit(t, "bobs-cluster")
	buttons := x.buttons(t, tk)
	if s := x.interact(t, press("U0CAROL", "acp_approve", buttons["acp_approve"]), signingSecret, x.now()); s != http.StatusOK {
		t.Fatalf("approve: %d", s)
	}
	if c := x.call(t, "chat.update"); c.body["channel"] != "D1" || c.body["ts"] != "1700000000.000100" || !strings.Contains(c.text, "You approved "+tk.ID()) {
		t.Errorf("the message was replaced by %s", c.text)
	}
	got := x.ticket(t, tk.ID())
	if v := got.Items[0].Steps[0].Votes; len(v) != 1 || v[0].Person != "carol" || !v[0].Approve || v[0].Through != approval.ThroughSlack {
		t.Errorf("the step has the votes %+v", v)
	}
	e := got.Events[len(got.Events)-1]
	if e.Kind != approval.EventStepApproved || e.Actor != "carol" || e.Through != approval.ThroughSlack {
		t.Errorf("the timeline ends with %+v", e)
	}
	if through := x.ledgerThrough(t, tk.ID()); through != "slack" {
		t.Errorf("the ledger has the channel %q", through)
	}
	// The button is dead now.
	if s := x.interact(t, press("U0CAROL", "acp_approve", buttons["acp_approve"]), signingSecret, x.now().Add(time.Second)); s != http.StatusOK {
		t.Fatalf("approve again: %d", s)
	}
	if c := x.call(t, "chat.update"); !strings.Contains(c.text, "The ticket changed since you looked") || !strings.Contains(c.text, "/tickets/"+tk.ID()) {
		t.Errorf("a dead button answers %s", c.text)
	}
	if v := x.ticket(t, tk.ID()).Items[0].Steps; len(v[0].Votes) != 1 || len(v[1].Votes) != 0 {
		t.Errorf("a dead button decided: %+v", v)
	}
}

func TestRejectInSlack(t *testing.T) {
	x := newAnswering(t)
	tk := x.submit(t, "bobs-cluster")
	buttons := x.buttons(t, tk)
	x.interact(t, press("U0CAROL", "acp_reject", buttons["acp_reject"]), signingSecret, x.now())
	c := x.call(t, "views.open")
	view, _ := c.body["view"].(map[string]any)
	if c.body["trigger_id"] != "1.2.3" || view["callback_id"] != "acp_reject_reason" {
		t.Fatalf("the dialog is %s", c.text)
	}
	if x.ticket(t, tk.ID()).State() != approval.StatePending {
		t.Fatal("the button alone rejected the ticket")
	}
	submit := func(reason string) string {
		p, _ := json.Marshal(map[string]any{
			"type": "view_submission", "user": map[string]any{"id": "U0CAROL", "team_id": "T1"},
			"view": map[string]any{"callback_id": view["callback_id"], "private_metadata": view["private_metadata"],
				"state": map[string]any{"values": map[string]any{"reason": map[string]any{"text": map[string]any{"value": reason}}}}},
		})
		return url.Values{"payload": {string(p)}}.Encode()
	}
	x.interact(t, submit(" "), signingSecret, x.now())
	if c := x.call(t, "chat.postMessage"); !strings.Contains(c.text, "a rejection needs a comment") || x.ticket(t, tk.ID()).State() != approval.StatePending {
		t.Errorf("without a reason: %s", c.text)
	}
	x.interact(t, submit("not now"), signingSecret, x.now())
	if c := x.call(t, "chat.update"); !strings.Contains(c.text, "You rejected "+tk.ID()) {
		t.Errorf("the message was replaced by %s", c.text)
	}
	got := x.ticket(t, tk.ID())
	if v := got.Items[0].Steps[0].Votes; got.State() != approval.StateRejected || len(v) != 1 || v[0].Comment != "not now" ||
		v[0].Through != approval.ThroughSlack {
		t.Errorf("the ticket is %s with the votes %+v", got.State(), v)
	}

	x.workspace.noViews = true
	second := x.submit(t, "bobs-cluster")
	x.interact(t, press("U0CAROL", "acp_reject", x.buttons(t, second)["acp_reject"]), signingSecret, x.now())
	x.call(t, "views.open")
	if c := x.call(t, "chat.postMessage"); !strings.Contains(c.text, "/tickets/"+second.ID()) {
		t.Errorf("if the dialog cannot be opened, the answer is %s", c.text)
	}
}

// TestSlackRequestsThatAreRefused checks requests that are refused before anything is decided.
func TestSlackRequestsThatAreRefused(t *testing.T) {
	x := newAnswering(t)
	tk := x.submit(t, "bobs-cluster")
	good := press("U0CAROL", "acp_approve", x.buttons(t, tk)["acp_approve"])
	now := x.now()
	for name, tc := range map[string]struct {
		reason, body, secret string
		at                   time.Time
		want                 int
	}{
		"forged":     {"another secret", good, strings.Repeat("x", 32), now, http.StatusUnauthorized},
		"old":        {"older than five minutes", good, signingSecret, now.Add(-6 * time.Minute), http.StatusUnauthorized},
		"future":     {"its time has not come", good, signingSecret, now.Add(6 * time.Minute), http.StatusUnauthorized},
		"oversized":  {"more than 64 KiB", good + strings.Repeat("x", 70_000), signingSecret, now, http.StatusRequestEntityTooLarge},
		"no payload": {"not an interaction", "x=1", signingSecret, now, http.StatusBadRequest},
		"two":        {"which of them counts is not clear", good + "&" + good, signingSecret, now, http.StatusBadRequest},
		"not JSON":   {"Slack sends JSON", "payload=%7B", signingSecret, now, http.StatusBadRequest},
		"no binding": {"the portal's buttons have a value", press("U0CAROL", "acp_approve", ""), signingSecret, now, http.StatusBadRequest},
		"odd user": {
			"not an ID of Slack", press("U0/../x", "acp_approve", `{"t":"T-1","v":1,"d":"x","p":"carol"}`), signingSecret, now, http.StatusBadRequest,
		},
		"only a link": {"a link was opened", press("U0CAROL", "acp_open", ""), signingSecret, now, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if got := x.interact(t, tc.body, tc.secret, tc.at); got != tc.want {
				t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
	if got := x.ticket(t, tk.ID()); got.Version != tk.Version {
		t.Errorf("a refused request changed the ticket: %+v", got.Events)
	}
	if s := x.interact(t, good, signingSecret, now); s != http.StatusOK {
		t.Fatalf("%d", s)
	}
	x.call(t, "chat.update")
	if s := x.interact(t, good, signingSecret, now); s != http.StatusConflict {
		t.Errorf("a repeated request: %d", s)
	}
	off := *x
	off.address = x.base // this portal has no channels
	if s := off.interact(t, good, signingSecret, now); s != http.StatusNotFound {
		t.Errorf("without a configuration: %d", s)
	}
	// A secret that cannot be read admits nobody, also not with the empty secret.
	if err := os.WriteFile(x.bot.SigningSecretFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s := x.interact(t, good, "", now); s != http.StatusInternalServerError {
		t.Errorf("with an empty file of the secret: %d", s)
	}
}

// TestSlackDecisionsThatAreRefused checks who cannot decide what by a button, with requests that Slack signed.
func TestSlackDecisionsThatAreRefused(t *testing.T) {
	x := newAnswering(t)
	tk, high := x.submit(t, "bobs-cluster"), x.submit(t, "ledger-db-cache")
	if n := x.notification(t, high, "carol"); n.Answer != nil {
		t.Error("a message about a highly sensitive resource can be answered")
	}
	of := func(tk *approval.Ticket, person string) slack.Binding {
		return slack.Binding{Ticket: tk.ID(), Version: tk.Version, Digest: tk.Items[0].Shown.Digest, Person: person}
	}
	changed, older, missing := of(tk, "carol"), of(tk, "carol"), of(tk, "carol")
	changed.Digest, older.Ticket = strings.Repeat("0", 64), tk.ID()
	older.Version, missing.Ticket = tk.Version+1, "T-999"
	for name, tc := range map[string]struct {
		reason, user string
		binding      slack.Binding
		method, want string
	}{
		"another version": {"the ticket changed", "U0CAROL", older, "chat.update", "The ticket changed"},
		"another digest":  {"the ticket grants something else", "U0CAROL", changed, "chat.update", "The ticket changed"},
		"missing":         {"no such ticket", "U0CAROL", missing, "chat.update", "/tickets/T-999"},
		"wrong person":    {"the button of somebody else", "U0DAVE", of(tk, "carol"), "chat.postMessage", "another person"},
		"no approver":     {"security sees it and does not decide the step", "U0DAVE", of(tk, "dave"), "chat.postMessage", "waits for another person"},
		"unconcerned":     {"it looks missing", "U0ERIN", of(tk, "erin"), "chat.update", "no such ticket"},
		"auditor":         {"auditors only read", "U0GRACE", of(tk, "grace"), "chat.postMessage", "Auditors"},
		"requester":       {"their own request", "U0ALICE", of(tk, "alice"), "chat.postMessage", "their own requests"},
		"unknown":         {"no such user", "U0NOBODY", of(tk, "carol"), "chat.postMessage", "exactly one active person"},
		"two people":      {"an address of two people", "U0TWICE", of(tk, "carol"), "chat.postMessage", "exactly one active person"},
		"deleted":         {"left the workspace", "U0GONE", of(tk, "carol"), "chat.postMessage", "exactly one active person"},
		"guest":           {"nobody vouches for the address of a guest", "U0GUEST", of(tk, "carol"), "chat.postMessage", "exactly one active person"},
		"foreign":         {"of a connected workspace", "U0FOREIGN", of(tk, "carol"), "chat.postMessage", "exactly one active person"},
		"bot":             {"not a person", "U0BOT", of(tk, "carol"), "chat.postMessage", "exactly one active person"},
		"unconfirmed":     {"the address is not confirmed", "U0MAIL", of(tk, "carol"), "chat.postMessage", "exactly one active person"},
		"another team":    {"another workspace", "U0TEAM", of(tk, "carol"), "chat.postMessage", "exactly one active person"},
		"sensitive":       {"needs a login", "U0CAROL", of(high, "carol"), "chat.postMessage", "only be decided in the portal"},
	} {
		t.Run(name, func(t *testing.T) {
			if s := x.interact(t, press(tc.user, "acp_approve", binding(t, tc.binding)), signingSecret, x.now()); s != http.StatusOK {
				t.Fatalf("%d", s)
			}
			c := x.call(t, tc.method)
			if !strings.Contains(c.text, tc.want) {
				t.Errorf("%s: %s, want %q", tc.reason, c.text, tc.want)
			}
			if !strings.Contains(c.text, x.base+"/tickets/"+tc.binding.Ticket) {
				t.Errorf("%s: the message has no link to the ticket: %s", tc.reason, c.text)
			}
		})
	}
	if got := x.ticket(t, tk.ID()); got.Version != tk.Version {
		t.Errorf("a refused decision changed the ticket: %+v", got.Events)
	}
}

// TestDepartedPersonCannotDecideInSlack checks that a person who is not in the catalog any more decides nothing, although Slack has them.
func TestDepartedPersonCannotDecideInSlack(t *testing.T) {
	x := newAnswering(t)
	tk := x.submit(t, "bobs-cluster")
	value := x.buttons(t, tk)["acp_approve"]
	file := filepath.Join(x.files, "demo.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "{kind: User, metadata: {name: carol}, spec: {profile: {email: carol@example.com}}}\n---\n", "", 1)
	text = strings.Replace(strings.Replace(text, ", carol]", "]", 1), "annotations: {acp.io/lead: carol}", "annotations: {}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := x.Directory.Sync(t.Context(), "files"); err != nil || st.Error != "" {
		t.Fatalf("%+v %v", st, err)
	}
	if _, ok := x.Catalog().Person("carol"); ok {
		t.Fatal("carol is still there")
	}
	x.interact(t, press("U0CAROL", "acp_approve", value), signingSecret, x.now())
	if c := x.call(t, "chat.postMessage"); !strings.Contains(c.text, "exactly one active person") {
		t.Errorf("%s", c.text)
	}
	if got := x.ticket(t, tk.ID()); got.Version != tk.Version {
		t.Errorf("a person who left decided: %+v", got.Events)
	}
}

// TestSensitivityRaisedByAnotherReplica checks that a resource that became sensitive by what another replica read is not decided in Slack.
func TestSensitivityRaisedByAnotherReplica(t *testing.T) {
	x := newAnswering(t)
	tk := x.submit(t, "bobs-cluster")
	value := x.buttons(t, tk)["acp_approve"]
	other, err := catalog.NewService(t.Context(), catalog.Config{
		Store: catalogstore.New(x.db), Sources: []catalog.Source{catalog.Folder{ID: "files", Dir: x.files}}, Now: time.Now, Log: x.Log,
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(x.files, "demo.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "acp.io/sensitivity: medium", "acp.io/sensitivity: high", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := other.Sync(t.Context(), "files"); err != nil || st.Error != "" {
		t.Fatalf("%+v %v", st, err)
	}
	if r, _ := x.Catalog().Resource("bobs-cluster"); r.Sensitivity != catalog.SensitivityMedium {
		t.Fatalf("this replica has read the change already: %+v", r)
	}
	x.interact(t, press("U0CAROL", "acp_approve", value), signingSecret, x.now())
	if c := x.call(t, "chat.postMessage"); !strings.Contains(c.text, "only be decided in the portal") {
		t.Errorf("%s", c.text)
	}
	if got := x.ticket(t, tk.ID()); got.Version != tk.Version {
		t.Errorf("it was decided: %+v", got.Events)
	}
}

// notifier returns a function that routes all changes, and sends what is due in Slack.
func (x *answering) notifier(t *testing.T) func() {
	t.Helper()
	store := notifystore.New(x.db)
	people := func() notify.Directory { return notify.Directory{Catalog: x.Catalog(), Now: x.now()} }
	router := notify.NewRouter(notify.RouterConfig{
		Store: store, Ticket: x.Tickets.Store.Get, Channels: []notify.Channel{notify.ChannelSlack}, Now: x.now, Log: x.Log,
		People: func(context.Context) (notify.People, error) { return people(), nil },
		Gone:   func(error) bool { return false },
	})
	dispatcher := notify.NewDispatcher(notify.DispatcherConfig{
		Name: "w", Channel: notify.ChannelSlack, Sender: x.bot, Store: store, Renderer: &notify.Renderer{Portal: mustParse(t, x.base)},
		Recipient: func(person string) (notify.Recipient, bool) { return people().Recipient(person) },
		Now:       x.now, Log: x.Log, Poll: time.Second, Lease: time.Minute,
	})
	return func() {
		t.Helper()
		if err := router.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := dispatcher.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMessagesLoseTheirButtons checks that the message of an approver says what happened when the ticket is decided elsewhere, and that its
// button decides nothing while that could not be shown.
func TestMessagesLoseTheirButtons(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(x *answering, tk *approval.Ticket) int
		want string
	}{
		"rejected": {func(x *answering, tk *approval.Ticket) int {
			return x.as("carol").Post("/api/v1/tickets/"+tk.ID()+"/decision",
				map[string]any{"decision": "reject", "comment": "not now", "version": tk.Version}).Status
		}, "The request was rejected"},
		"withdrawn": {func(x *answering, tk *approval.Ticket) int {
			return x.as("alice").Post("/api/v1/tickets/"+tk.ID()+"/withdraw", map[string]any{"reason": "no need"}).Status
		}, "The request was withdrawn"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newAnswering(t)
			notifyAll := x.notifier(t)
			tk := x.submit(t, "bobs-cluster")
			notifyAll()
			sent := x.call(t, "chat.postMessage")
			if !strings.Contains(sent.text, "acp_approve") {
				t.Fatalf("the message has no buttons: %s", sent.text)
			}
			if s := tc.do(x, tk); s != http.StatusOK {
				t.Fatalf("%d", s)
			}
			// The update is not made yet.
			b := slack.Binding{Ticket: tk.ID(), Version: tk.Version, Digest: tk.Items[0].Shown.Digest, Person: "carol"}
			before := x.ticket(t, tk.ID()).Version
			x.interact(t, press("U0CAROL", "acp_approve", binding(t, b)), signingSecret, x.now())
			if c := x.call(t, "chat.update"); !strings.Contains(c.text, "The ticket changed") || x.ticket(t, tk.ID()).Version != before {
				t.Errorf("an outdated button answers %s", c.text)
			}
			notifyAll()
			c := x.call(t, "chat.update")
			if c.body["channel"] != "D1" || c.body["ts"] != "1700000000.000100" || !strings.Contains(c.text, tc.want) ||
				strings.Contains(c.text, "acp_approve") || !strings.Contains(c.text, x.base+"/tickets/"+tk.ID()) {
				t.Errorf("the message was replaced by %s", c.text)
			}
			notifyAll()
			select {
			case c := <-x.workspace.calls:
				t.Errorf("the portal called Slack again: %s %s", c.method, c.text)
			default:
			}
		})
	}
}

// TestWhoDecidesInSlackKeepsTheResult checks that the answer to a button is not replaced by the general one.
func TestWhoDecidesInSlackKeepsTheResult(t *testing.T) {
	x := newAnswering(t)
	notifyAll := x.notifier(t)
	tk := x.submit(t, "bobs-cluster")
	notifyAll()
	x.call(t, "chat.postMessage")
	b := slack.Binding{Ticket: tk.ID(), Version: tk.Version, Digest: tk.Items[0].Shown.Digest, Person: "carol"}
	x.interact(t, press("U0CAROL", "acp_approve", binding(t, b)), signingSecret, x.now())
	if c := x.call(t, "chat.update"); !strings.Contains(c.text, "You approved") {
		t.Fatalf("%s", c.text)
	}
	notifyAll()
	for {
		select {
		case c := <-x.workspace.calls:
			if c.method == "chat.update" {
				t.Errorf("the result was replaced: %s", c.text)
			}
			continue
		default:
		}
		return
	}
}
