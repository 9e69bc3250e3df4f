package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	approvalstore "github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/notify/setup"
	"github.com/acp-io/acp/internal/notify/webhook"
)

var start = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

type people struct{}

func (people) Name(p string) string                                  { return p }
func (people) Title(name string) string                              { return name }
func (people) Owners(approval.Item) (application, resource []string) { return nil, nil }
func (people) Answerable(*approval.Ticket) (approval.Answerable, bool) {
	return approval.Answerable{}, false
}

func (people) Security() []string        { return nil }
func (people) Delegates(string) []string { return nil }
func (people) OnCall() approval.OnCall   { return nil }

// office is the notification system of a portal with a fake clock.
type office struct {
	t       *testing.T
	db      *database.DB
	tickets *approvalstore.Store
	store   *gormstore.Store
	router  *notify.Router
	now     time.Time
	log     strings.Builder
}

func open(t *testing.T, channels []notify.Channel, broadcasts ...notify.SharedChannel) *office {
	t.Helper()
	db := databasetest.Open(t, databasetest.SQLite(t))
	o := &office{t: t, db: db, tickets: approvalstore.New(db), store: gormstore.New(db), now: start}
	o.router = notify.NewRouter(notify.RouterConfig{Store: o.store, Ticket: o.tickets.Get, Channels: channels, SharedChannels: broadcasts,
		Delegation: func(ctx context.Context, id int64) (approval.Delegation, error) {
			all, err := o.tickets.Delegations(ctx, approval.DelegationFilter{})
			for _, d := range all {
				if d.ID == id {
					return d, err
				}
			}
			return approval.Delegation{}, errors.Join(err, approval.NotFound())
		},
		People: func(context.Context) (notify.People, error) { return people{}, nil }, Now: func() time.Time { return o.now },
		Gone: func(err error) bool { return approval.CodeOf(err) == approval.CodeNotFound }, Log: slog.New(slog.NewTextHandler(&o.log, nil))})
	return o
}

func (o *office) submit(resource string) *approval.Ticket {
	o.t.Helper()
	t, err := o.tickets.Create(o.t.Context(), approvaltest.Ticket("orders", resource, ""))
	if err != nil {
		o.t.Fatal(err)
	}
	return t
}

func (o *office) route() {
	o.t.Helper()
	if err := o.router.Drain(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) dispatcher(c notify.Channel, s notify.Sender) *notify.Dispatcher {
	u, err := url.Parse("https://acp.example.com")
	if err != nil {
		o.t.Fatal(err)
	}
	return notify.NewDispatcher(notify.DispatcherConfig{Name: "w", Channel: c, Sender: s, Store: o.store, Renderer: &notify.Renderer{Portal: u},
		Recipient: func(p string) (notify.Recipient, bool) {
			return notify.Recipient{Person: p, Name: p, Email: map[bool]string{true: "", false: p + "@example.com"}[p == "nomail"]}, p != "stranger"
		}, Now: func() time.Time { return o.now }, Log: slog.New(slog.NewTextHandler(&o.log, nil)), Poll: time.Second, Lease: time.Minute})
}

func (o *office) drain(c *notify.Dispatcher) {
	o.t.Helper()
	if err := c.Drain(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

// deadReasons returns the errors of the dead letters, as an operator reads them.
func (o *office) deadReasons() (problems []string) {
	o.t.Helper()
	if err := o.db.Read(o.t.Context(), func(tx *gorm.DB) error {
		return tx.Table("notifications").Where("state = 'dead'").Pluck("problem", &problems).Error
	}); err != nil {
		o.t.Fatal(err)
	}
	return problems
}

// outbox is a Sender that records notifications and returns the test's errors.
type outbox struct {
	sent   []notify.Notification
	answer func(n int) error // error of the n-th attempt, counted from 1; nil means success
	tries  int
}

func (x *outbox) Send(_ context.Context, p notify.Notification) error {
	x.tries++
	if x.answer != nil {
		if err := x.answer(x.tries); err != nil {
			return err
		}
	}
	x.sent = append(x.sent, p)
	return nil
}

func (x *outbox) to() (out []string) {
	for _, p := range x.sent {
		out = append(out, p.To.Person)
	}
	slices.Sort(out)
	return out
}

func TestTicketIsSentToInboxesMailAndReceivers(t *testing.T) {
	o := open(
		t,
		[]notify.Channel{notify.ChannelMail},
		notify.SharedChannel{Channel: "webhook:siem"},
		notify.SharedChannel{Channel: "webhook:glass", Kinds: []notify.Kind{notify.KindBreakGlass}},
	)
	x := o.submit("cache")
	approver := x.Items[0].Steps[0].Approvers[0]
	if n, err := o.store.Unread(t.Context(), approver); err != nil || n != 0 {
		t.Errorf("got %d notices before routing, %v; want none", n, err)
	}
	o.route()
	o.route() // a second run finds nothing
	inbox, _, err := o.store.Inbox(t.Context(), notify.InboxFilter{Person: approver})
	if err != nil || len(inbox) != 1 || inbox[0].Kind != notify.KindNeeded || inbox[0].Ticket != x.Number {
		t.Fatalf("got inbox %+v %v", inbox, err)
	}
	mail, siem, glass := &outbox{}, &outbox{}, &outbox{}
	o.drain(o.dispatcher(notify.ChannelMail, mail))
	o.drain(o.dispatcher("webhook:siem", siem))
	o.drain(o.dispatcher("webhook:glass", glass))
	if d := cmp.Diff(x.Items[0].Steps[0].Approvers, mail.to()); d != "" || !strings.Contains(mail.sent[0].Text.Title, x.ID()) {
		t.Errorf("mail (-want +got): %s", d)
	}
	if len(siem.sent) != 1 || siem.sent[0].To != (notify.Recipient{}) || siem.sent[0].Message.Facts.Recipients[approver] != notify.KindNeeded ||
		len(glass.sent) != 0 {
		t.Errorf("got posts %+v and %+v, want one to the receiver of the kind", siem.sent, glass.sent)
	}
	if _, err := o.tickets.Delegate(
		t.Context(),
		approval.Delegation{From: approver, To: "deputy", Start: start, End: start.Add(time.Hour), CreatedBy: approver, CreatedAt: start},
	); err != nil {
		t.Fatal(err)
	}
	o.route()
	if n, err := o.store.Unread(t.Context(), "deputy"); err != nil || n != 1 {
		t.Errorf("delegation: got %d notices, %v", n, err)
	}
}

func TestPreferencesSelectChannelAndTime(t *testing.T) {
	o := open(t, []notify.Channel{notify.ChannelMail, notify.ChannelSlack})
	x := o.submit("cache")
	approver := x.Items[0].Steps[0].Approvers[0]
	p := notify.Preferences{Language: notify.Chinese, TimeZone: "Asia/Shanghai", Choices: map[notify.Channel]map[notify.Kind]notify.Timing{
		notify.ChannelMail: {notify.KindNeeded: notify.Digest}, notify.ChannelSlack: {notify.KindNeeded: notify.Off}}}
	if err := o.store.SetPreferences(t.Context(), approver, p, start); err != nil {
		t.Fatal(err)
	}
	o.submit("db")
	o.route()
	mail, slack := &outbox{}, &outbox{}
	dispatcher := o.dispatcher(notify.ChannelMail, mail)
	o.drain(dispatcher)
	o.drain(o.dispatcher(notify.ChannelSlack, slack))
	if slices.Contains(mail.to(), approver) || slices.Contains(slack.to(), approver) {
		t.Errorf("got mail %v and Slack %v, want none yet", mail.to(), slack.to())
	}
	o.now = time.Date(2026, 3, 3, 1, 0, 0, 0, time.UTC) // 9 o'clock in Shanghai
	o.drain(dispatcher)
	var digest []notify.Notification
	for _, p := range mail.sent {
		if p.To.Person == approver {
			digest = append(digest, p)
		}
	}
	if len(digest) != 1 || !strings.Contains(digest[0].Text.Title, "2 条新消息") || strings.Count(digest[0].Text.Body, "/tickets/T-") != 2 {
		t.Errorf("got %+v, want one digest in the morning", digest)
	}
}

func TestFailures(t *testing.T) {
	fail := errors.New("no answer")
	for name, tc := range map[string]struct {
		reason string
		answer func(n int) error
		wait   []time.Duration // pauses between attempts
		tries  int
		sent   bool
		dead   string
	}{
		"later": {"a failure is tried again, not too soon", func(n int) error {
			if n < 3 {
				return fail
			}
			return nil
		}, []time.Duration{5 * time.Second, 5 * time.Second, 20 * time.Second}, 3, true, ""},
		"permanent": {"a permanent error is not retried", func(int) error { return &notify.Problem{Err: errors.New("no such user"), Permanent: true} },
			[]time.Duration{time.Hour}, 1, false, "no such user"},
		"throttled": {"a pause that the receiver asks for is kept", func(n int) error {
			if n == 1 {
				return &notify.Problem{Err: fail, RetryAfter: 2 * time.Minute}
			}
			return nil
		}, []time.Duration{time.Minute, time.Minute}, 2, true, ""},
		"dead": {
			"after about ten hours the delivery fails permanently", func(int) error { return fail },
			slices.Repeat([]time.Duration{time.Hour}, 30), 18, false, "no answer",
		},
		"hidden": {"what the receiver says is one short line", func(int) error {
			return &notify.Problem{Err: errors.New("a\r\nb" + strings.Repeat("x", 9999)), Permanent: true}
		}, nil, 1, false, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, nil, notify.SharedChannel{Channel: "webhook:x"})
			o.submit("cache")
			o.route()
			x := &outbox{answer: tc.answer}
			c := o.dispatcher("webhook:x", x)
			o.drain(c)
			for _, d := range tc.wait {
				o.now = o.now.Add(d)
				o.drain(c)
			}
			dead := o.deadReasons()
			if x.tries != tc.tries || (len(x.sent) == 1) != tc.sent || (len(dead) == 1) != (tc.dead != "") {
				t.Fatalf("%s: got %d attempts, %d sent, dead letters %+v", tc.reason, x.tries, len(x.sent), dead)
			}
			if tc.dead != "" && (!strings.HasPrefix(dead[0], tc.dead) || len(dead[0]) > 600 || !strings.Contains(o.log.String(), "failed permanently")) {
				t.Errorf("got dead letters %+v", dead)
			}
			// Tickets do not depend on the channel.
			o.submit("db")
		})
	}
}

func TestCollectorExportsQueueStats(t *testing.T) {
	o := open(t, nil, notify.SharedChannel{Channel: "webhook:x"}, notify.SharedChannel{Channel: "webhook:y"})
	o.submit("cache")
	o.route()
	o.submit("db")
	o.drain(o.dispatcher("webhook:y", &outbox{answer: func(int) error { return &notify.Problem{Err: errors.New("no"), Permanent: true} }}))
	c := &notify.Collector{Store: o.store, Now: func() time.Time { return start.Add(time.Minute) }, Log: slog.New(slog.NewTextHandler(&o.log, nil))}
	want := `
# HELP acp_notifications_dead Notifications that failed permanently; the reasons are in the log and in the table notifications.
# TYPE acp_notifications_dead gauge
acp_notifications_dead{channel="webhook:x"} 0
acp_notifications_dead{channel="webhook:y"} 1
# HELP acp_notifications_overdue_seconds Time for which the oldest queued notification has been due.
# TYPE acp_notifications_overdue_seconds gauge
acp_notifications_overdue_seconds{channel="webhook:x"} 60
acp_notifications_overdue_seconds{channel="webhook:y"} 0
# HELP acp_notifications_queued Notifications that wait to be sent, including those that wait for a digest.
# TYPE acp_notifications_queued gauge
acp_notifications_queued{channel="webhook:x"} 1
acp_notifications_queued{channel="webhook:y"} 0
# HELP acp_notifications_unrouted Changes whose recipients are not determined yet.
# TYPE acp_notifications_unrouted gauge
acp_notifications_unrouted 1
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestPeopleWithoutAddressBecomeDeadLetters(t *testing.T) {
	o := open(t, nil)
	for _, p := range []string{"stranger", "nomail"} {
		m := notify.QueuedMessage{
			Message:  notify.Message{Person: p, Event: "e", Kind: notify.KindComment, At: start, Ticket: 1},
			Channel:  notify.ChannelMail,
			RunAfter: start,
		}
		o.submit(p)
		changes, err := o.store.Changes(t.Context(), 1)
		if err != nil || len(changes) != 1 {
			t.Fatalf("%v %v", changes, err)
		}
		if err := o.store.Route(t.Context(), notify.Routed{Change: changes[0], Messages: []notify.QueuedMessage{m}}); err != nil {
			t.Fatal(err)
		}
	}
	x := &outbox{}
	o.drain(o.dispatcher(notify.ChannelMail, x))
	if dead := o.deadReasons(); x.tries != 0 || len(dead) != 2 {
		t.Errorf("got dead letters %+v, want one at once", dead)
	}
}

func TestInterruptedDeliveryIsRepeatedWithTheSameID(t *testing.T) {
	o := open(t, nil, notify.SharedChannel{Channel: "webhook:x"})
	o.submit("cache")
	o.route()
	ctx, cancel := context.WithCancel(t.Context())
	x := &outbox{answer: func(n int) error {
		if n == 1 {
			cancel() // the process ends while it sends
			return context.Canceled
		}
		return nil
	}}
	c := o.dispatcher("webhook:x", x)
	if err := c.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	o.drain(c)
	if x.tries != 1 {
		t.Error("the delivery was leased again before the lease ended")
	}
	o.now = o.now.Add(time.Minute)
	o.drain(c)
	again := &outbox{}
	if err := again.Send(t.Context(), x.sent[0]); err != nil || x.tries != 2 || x.sent[0].ID == "" {
		t.Errorf("got %+v after the lease, want the notification again", x.sent)
	}
}

func TestChangeOfAMissingTicketDoesNotBlockOthers(t *testing.T) {
	o := open(t, nil)
	o.router.Ticket = func(context.Context, int64) (*approval.Ticket, error) { return nil, approval.NotFound() }
	o.submit("cache")
	o.route()
	if left, err := o.store.Changes(t.Context(), 9); err != nil || len(left) != 0 || !strings.Contains(o.log.String(), "a change is not notified") {
		t.Errorf("got outbox %v %v, want it empty and a log line", left, err)
	}
	o.router.Ticket = func(context.Context, int64) (*approval.Ticket, error) { return nil, errors.New("the database is away") }
	o.submit("db")
	if err := o.router.Drain(t.Context()); err == nil {
		t.Error("Drain succeeded without a database")
	}
	o.router.Ticket = o.tickets.Get
	o.route()
	if left, err := o.store.Changes(t.Context(), 9); err != nil || len(left) != 0 {
		t.Errorf("got outbox %v %v, want the change to remain", left, err)
	}
}

// TestFromTheFileToTheReceiver sends to a real receiver that is configured in a file, while another receiver hangs.
func TestFromTheFileToTheReceiver(t *testing.T) {
	got := make(chan webhook.Body, 9)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b webhook.Body
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		got <- b
	}))
	t.Cleanup(server.Close)
	hanging := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(hanging)
		<-r.Context().Done()
	}))
	t.Cleanup(hangs.Close)
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "notify.yaml")
	for name, text := range map[string]string{key: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=\n",
		file: fmt.Sprintf("webhooks:\n- {name: siem, url: %q, keyFile: %q}\n- {name: hangs, url: %q, keyFile: %q}\n", server.URL, key, hangs.URL, key)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	channels, err := setup.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	o := open(t, channels.People, channels.SharedChannels...)
	x := o.submit("cache")
	o.route()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		o.dispatcher("webhook:hangs", channels.Senders["webhook:hangs"]).Run(ctx)
		close(ended)
	}()
	<-hanging
	o.drain(o.dispatcher("webhook:siem", channels.Senders["webhook:siem"]))
	if b := <-got; b.Type != "ticket.submitted" || b.Ticket != x.ID() || b.RequesterID != x.Requester || len(b.Recipients) == 0 {
		t.Errorf("%+v", b)
	}
	cancel()
	<-ended
}
