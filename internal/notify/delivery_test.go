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
	"github.com/acp-io/acp/internal/notify/hook"
	"github.com/acp-io/acp/internal/notify/setup"
)

var start = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

type people struct{}

func (people) Name(p string) string                                  { return p }
func (people) Owners(approval.Item) (application, resource []string) { return nil, nil }
func (people) Security() []string                                    { return nil }
func (people) Delegates(string) []string                             { return nil }

// office is a portal's notifications, with a clock that the test turns.
type office struct {
	t       *testing.T
	db      *database.DB
	tickets *approvalstore.Store
	store   *gormstore.Store
	router  *notify.Router
	now     time.Time
	log     strings.Builder
}

func open(t *testing.T, channels []notify.Channel, broadcasts ...notify.Broadcast) *office {
	t.Helper()
	db := databasetest.Open(t, databasetest.SQLite(t))
	o := &office{t: t, db: db, tickets: approvalstore.New(db), store: gormstore.New(db), now: start}
	o.router = notify.NewRouter(notify.RouterConfig{Store: o.store, Ticket: o.tickets.Get, Channels: channels, Broadcasts: broadcasts,
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

func (o *office) courier(c notify.Channel, s notify.Sender) *notify.Courier {
	u, err := url.Parse("https://acp.example.com")
	if err != nil {
		o.t.Fatal(err)
	}
	return notify.NewCourier(notify.CourierConfig{Name: "w", Channel: c, Sender: s, Store: o.store, Writer: &notify.Writer{Portal: u},
		Recipient: func(p string) (notify.Recipient, bool) {
			return notify.Recipient{Person: p, Name: p, Email: map[bool]string{true: "", false: p + "@example.com"}[p == "nomail"]}, p != "stranger"
		}, Now: func() time.Time { return o.now }, Log: slog.New(slog.NewTextHandler(&o.log, nil)), Poll: time.Second, Lease: time.Minute})
}

func (o *office) drain(c *notify.Courier) {
	o.t.Helper()
	if err := c.Drain(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

// buried are the reasons for which postings were given up, as an operator reads them.
func (o *office) buried() (problems []string) {
	o.t.Helper()
	if err := o.db.Read(o.t.Context(), func(tx *gorm.DB) error {
		return tx.Table("notifications").Where("state = 'dead'").Pluck("problem", &problems).Error
	}); err != nil {
		o.t.Fatal(err)
	}
	return problems
}

// outbox is a sender that answers what the test says.
type outbox struct {
	sent   []notify.Parcel
	answer func(n int) error // of the n-th try, from 1; nil: fine
	tries  int
}

func (x *outbox) Send(_ context.Context, p notify.Parcel) error {
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

func TestATicketReachesInboxesMailAndReceivers(t *testing.T) {
	o := open(t, []notify.Channel{notify.ChannelMail}, notify.Broadcast{Channel: "webhook:siem"}, notify.Broadcast{Channel: "webhook:glass", Kinds: []notify.Kind{notify.KindBreakGlass}})
	x := o.submit("cache")
	approver := x.Items[0].Steps[0].Approvers[0]
	if n, err := o.store.Unread(t.Context(), approver); err != nil || n != 0 {
		t.Errorf("nothing is sent in the transaction: %d %v", n, err)
	}
	o.route()
	o.route() // and once more there is nothing
	inbox, _, err := o.store.Inbox(t.Context(), notify.InboxFilter{Person: approver})
	if err != nil || len(inbox) != 1 || inbox[0].Kind != notify.KindNeeded || inbox[0].Ticket != x.Number {
		t.Fatalf("in the inbox: %+v %v", inbox, err)
	}
	mail, siem, glass := &outbox{}, &outbox{}, &outbox{}
	o.drain(o.courier(notify.ChannelMail, mail))
	o.drain(o.courier("webhook:siem", siem))
	o.drain(o.courier("webhook:glass", glass))
	if d := cmp.Diff(x.Items[0].Steps[0].Approvers, mail.to()); d != "" || !strings.Contains(mail.sent[0].Text.Title, x.ID()) {
		t.Errorf("by mail: %s", d)
	}
	if len(siem.sent) != 1 || siem.sent[0].To != (notify.Recipient{}) || siem.sent[0].Message.Facts.Told[approver] != notify.KindNeeded || len(glass.sent) != 0 {
		t.Errorf("once to the receiver that wants it: %+v, %+v", siem.sent, glass.sent)
	}
	if _, err := o.tickets.Delegate(t.Context(), approval.Delegation{From: approver, To: "deputy", Start: start, End: start.Add(time.Hour), CreatedBy: approver, CreatedAt: start}); err != nil {
		t.Fatal(err)
	}
	o.route()
	if n, err := o.store.Unread(t.Context(), "deputy"); err != nil || n != 1 {
		t.Errorf("a delegation is told: %d %v", n, err)
	}
}

func TestPreferencesDecide(t *testing.T) {
	o := open(t, []notify.Channel{notify.ChannelMail, notify.ChannelSlack})
	x := o.submit("cache")
	approver := x.Items[0].Steps[0].Approvers[0]
	p := notify.Preferences{Language: notify.Chinese, TimeZone: "Asia/Shanghai", Choices: map[notify.Channel]map[notify.Kind]notify.When{
		notify.ChannelMail: {notify.KindNeeded: notify.Digest}, notify.ChannelSlack: {notify.KindNeeded: notify.Off}}}
	if err := o.store.SetPreferences(t.Context(), approver, p, start); err != nil {
		t.Fatal(err)
	}
	o.submit("db")
	o.route()
	mail, slack := &outbox{}, &outbox{}
	courier := o.courier(notify.ChannelMail, mail)
	o.drain(courier)
	o.drain(o.courier(notify.ChannelSlack, slack))
	if slices.Contains(mail.to(), approver) || slices.Contains(slack.to(), approver) {
		t.Errorf("not at once, and not by Slack: %v %v", mail.to(), slack.to())
	}
	o.now = time.Date(2026, 3, 3, 1, 0, 0, 0, time.UTC) // nine in Shanghai
	o.drain(courier)
	var digest []notify.Parcel
	for _, p := range mail.sent {
		if p.To.Person == approver {
			digest = append(digest, p)
		}
	}
	if len(digest) != 1 || !strings.Contains(digest[0].Text.Title, "2 条新消息") || strings.Count(digest[0].Text.Body, "/tickets/T-") != 2 {
		t.Errorf("one digest in the morning: %+v", digest)
	}
}

func TestFailures(t *testing.T) {
	fail := errors.New("no answer")
	for name, tc := range map[string]struct {
		reason string
		answer func(n int) error
		wait   []time.Duration // between drains
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
		"permanent": {"what the receiver refuses for good is not tried again", func(int) error { return &notify.Problem{Err: errors.New("no such user"), Permanent: true} },
			[]time.Duration{time.Hour}, 1, false, "no such user"},
		"throttled": {"a pause that the receiver asks for is kept", func(n int) error {
			if n == 1 {
				return &notify.Problem{Err: fail, RetryAfter: 2 * time.Minute}
			}
			return nil
		}, []time.Duration{time.Minute, time.Minute}, 2, true, ""},
		"dead": {"after some ten hours it is given up", func(int) error { return fail }, slices.Repeat([]time.Duration{time.Hour}, 30), 18, false, "no answer"},
		"hidden": {"what the receiver says is one short line", func(int) error {
			return &notify.Problem{Err: errors.New("a\r\nb" + strings.Repeat("x", 9999)), Permanent: true}
		}, nil, 1, false, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, nil, notify.Broadcast{Channel: "webhook:x"})
			o.submit("cache")
			o.route()
			x := &outbox{answer: tc.answer}
			c := o.courier("webhook:x", x)
			o.drain(c)
			for _, d := range tc.wait {
				o.now = o.now.Add(d)
				o.drain(c)
			}
			dead := o.buried()
			if x.tries != tc.tries || (len(x.sent) == 1) != tc.sent || (len(dead) == 1) != (tc.dead != "") {
				t.Fatalf("%s: %d tries, %d sent, dead %+v", tc.reason, x.tries, len(x.sent), dead)
			}
			if tc.dead != "" && (!strings.HasPrefix(dead[0], tc.dead) || len(dead[0]) > 600 || !strings.Contains(o.log.String(), "given up")) {
				t.Errorf("visible: %+v", dead)
			}
			// However the channel does, tickets go on.
			o.submit("db")
		})
	}
}

func TestWhatWaitsIsCounted(t *testing.T) {
	o := open(t, nil, notify.Broadcast{Channel: "webhook:x"}, notify.Broadcast{Channel: "webhook:y"})
	o.submit("cache")
	o.route()
	o.submit("db")
	o.drain(o.courier("webhook:y", &outbox{answer: func(int) error { return &notify.Problem{Err: errors.New("no"), Permanent: true} }}))
	c := &notify.Collector{Store: o.store, Now: func() time.Time { return start.Add(time.Minute) }, Log: slog.New(slog.NewTextHandler(&o.log, nil))}
	want := `
# HELP acp_notifications_dead Notifications that were given up; their reasons are in the log and in the table notifications.
# TYPE acp_notifications_dead gauge
acp_notifications_dead{channel="webhook:x"} 0
acp_notifications_dead{channel="webhook:y"} 1
# HELP acp_notifications_overdue_seconds How long the oldest of them has been due.
# TYPE acp_notifications_overdue_seconds gauge
acp_notifications_overdue_seconds{channel="webhook:x"} 60
acp_notifications_overdue_seconds{channel="webhook:y"} 0
# HELP acp_notifications_queued Notifications on their way, digests that wait for the morning included.
# TYPE acp_notifications_queued gauge
acp_notifications_queued{channel="webhook:x"} 1
acp_notifications_queued{channel="webhook:y"} 0
# HELP acp_notifications_unrouted Changes of which it is not known yet who is told.
# TYPE acp_notifications_unrouted gauge
acp_notifications_unrouted 1
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestPeopleWhoCannotBeReached(t *testing.T) {
	o := open(t, nil)
	for _, p := range []string{"stranger", "nomail"} {
		m := notify.Posting{Message: notify.Message{Person: p, Event: "e", Kind: notify.KindComment, At: start, Ticket: 1}, Channel: notify.ChannelMail, RunAfter: start}
		o.submit(p)
		changes, err := o.store.Changes(t.Context(), 1)
		if err != nil || len(changes) != 1 {
			t.Fatalf("%v %v", changes, err)
		}
		if err := o.store.Route(t.Context(), notify.Routed{Change: changes[0], Postings: []notify.Posting{m}}); err != nil {
			t.Fatal(err)
		}
	}
	x := &outbox{}
	o.drain(o.courier(notify.ChannelMail, x))
	if dead := o.buried(); x.tries != 0 || len(dead) != 2 {
		t.Errorf("given up at once, and visible: %+v", dead)
	}
}

func TestACrashSendsTheSameAgain(t *testing.T) {
	o := open(t, nil, notify.Broadcast{Channel: "webhook:x"})
	o.submit("cache")
	o.route()
	ctx, cancel := context.WithCancel(t.Context())
	x := &outbox{answer: func(n int) error {
		if n == 1 {
			cancel() // the program ends while it sends
			return context.Canceled
		}
		return nil
	}}
	c := o.courier("webhook:x", x)
	if err := c.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	o.drain(c)
	if x.tries != 1 {
		t.Error("the lease holds")
	}
	o.now = o.now.Add(time.Minute)
	o.drain(c)
	again := &outbox{}
	if err := again.Send(t.Context(), x.sent[0]); err != nil || x.tries != 2 || x.sent[0].ID == "" {
		t.Errorf("after the lease it is sent: %+v", x.sent)
	}
}

func TestAChangeOfWhatIsGoneHoldsUpNothing(t *testing.T) {
	o := open(t, nil)
	o.router.Ticket = func(context.Context, int64) (*approval.Ticket, error) { return nil, approval.NotFound() }
	o.submit("cache")
	o.route()
	if left, err := o.store.Changes(t.Context(), 9); err != nil || len(left) != 0 || !strings.Contains(o.log.String(), "nobody is told") {
		t.Errorf("told in the log: %v %v", left, err)
	}
	o.router.Ticket = func(context.Context, int64) (*approval.Ticket, error) { return nil, errors.New("the database is away") }
	o.submit("db")
	if err := o.router.Drain(t.Context()); err == nil {
		t.Error("a database that is away is waited for")
	}
	o.router.Ticket = o.tickets.Get
	o.route()
	if left, err := o.store.Changes(t.Context(), 9); err != nil || len(left) != 0 {
		t.Errorf("nothing is lost: %v %v", left, err)
	}
}

// A real receiver behind the operator's file, and one beside it that hangs.
func TestFromTheFileToTheReceiver(t *testing.T) {
	got := make(chan hook.Body, 9)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b hook.Body
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
	o := open(t, channels.People, channels.Broadcasts...)
	x := o.submit("cache")
	o.route()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		o.courier("webhook:hangs", channels.Senders["webhook:hangs"]).Run(ctx)
		close(ended)
	}()
	<-hanging
	o.drain(o.courier("webhook:siem", channels.Senders["webhook:siem"]))
	if b := <-got; b.Type != "ticket.submitted" || b.Ticket != x.ID() || b.RequesterID != x.Requester || len(b.Told) == 0 {
		t.Errorf("%+v", b)
	}
	cancel()
	<-ended
}
