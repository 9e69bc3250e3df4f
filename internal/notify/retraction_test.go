package notify_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/notify"
)

// deciding are people who may decide in messages.
type deciding struct{ people }

func (deciding) Answerable(t *approval.Ticket) (approval.Answerable, bool) {
	return approval.Answerable{Version: t.Version, Digest: "d", Lines: []string{"allow a"}}, t.State() == approval.StatePending
}

// chat is a Retractor that records messages, and returns the test's errors of retractions.
type chat struct {
	outbox
	controls []string // people who got a message with controls
	replaced []notify.Outcome
	receipts []string
	refuse   func(n int) error // error of the n-th retraction, counted from 1; nil means success
	tries    int
}

func (x *chat) SendAnswerable(ctx context.Context, p notify.Notification) (string, error) {
	x.controls = append(x.controls, p.To.Person)
	return "receipt of " + p.To.Person + " " + p.Message.Event, x.Send(ctx, p)
}

func (x *chat) Retract(_ context.Context, receipt string, o notify.Outcome) error {
	x.tries++
	if x.refuse != nil {
		if err := x.refuse(x.tries); err != nil {
			return err
		}
	}
	x.receipts, x.replaced = append(x.receipts, receipt), append(x.replaced, o)
	return nil
}

// chatting is an office in which carol got a message about a ticket, in which she can decide it.
func chatting(t *testing.T) (*office, *notify.Dispatcher, *chat, *approval.Ticket) {
	t.Helper()
	o := open(t, []notify.Channel{notify.ChannelSlack})
	o.router.People = func(context.Context) (notify.People, error) { return deciding{}, nil }
	x := &chat{}
	c := o.dispatcher(notify.ChannelSlack, x)
	tk := o.submit("cache")
	o.route()
	o.drain(c)
	if !slices.Equal(x.controls, []string{"carol"}) || len(x.replaced) != 0 {
		t.Fatalf("messages with controls went to %v, and %v were replaced", x.controls, x.replaced)
	}
	return o, c, x, tk
}

func (o *office) change(tk *approval.Ticket, f func(*approval.Ticket) error) {
	o.t.Helper()
	if _, err := o.tickets.Update(o.t.Context(), tk.Number, f); err != nil {
		o.t.Fatal(err)
	}
	o.route()
}

// TestOutcomesReplaceControls checks what the message of an approver says after the ticket changed elsewhere.
func TestOutcomesReplaceControls(t *testing.T) {
	vote := func(person string, approve bool, through string) func(*approval.Ticket) error {
		return func(t *approval.Ticket) error {
			return t.Vote(0, approval.Vote{Person: person, Approve: approve, At: start, Comment: "c", Through: through})
		}
	}
	for name, tc := range map[string]struct {
		reason string
		do     []func(*approval.Ticket) error
		want   []string // parts of what replaced the message of carol
	}{
		"rejected": {"decided in the portal", []func(*approval.Ticket) error{vote("carol", false, "")}, []string{"was rejected"}},
		"withdrawn": {"by the requester", []func(*approval.Ticket) error{
			func(t *approval.Ticket) error { return t.Withdraw("alice", "no need", start) },
		}, []string{"was withdrawn"}},
		"timed out": {"nobody decided", []func(*approval.Ticket) error{func(t *approval.Ticket) error {
			t.Items[0].Steps[0].OnTimeout, t.Items[0].Steps[0].Deadline = v1alpha1.TimeoutDeny, start
			t.Tick(start.Add(time.Second))
			return nil
		}}, []string{"in time"}},
		"comment": {"the version changed, so the controls decide nothing", []func(*approval.Ticket) error{
			func(t *approval.Ticket) error { return t.Comment("alice", "please", start) },
			func(t *approval.Ticket) error { return t.Comment("alice", "please!", start) },
		}, []string{"changed after this message"}},
		"approved": {"at the end it says how it ended", []func(*approval.Ticket) error{vote("carol", true, ""), vote("bob", true, "")},
			[]string{"changed after this message", "was approved"}},
		"by a webhook": {"only the message of Slack shows the result", []func(*approval.Ticket) error{vote("carol", false, "webhook:jira")},
			[]string{"was rejected"}},
		"in the message": {"it shows the result already", []func(*approval.Ticket) error{vote("carol", false, approval.ThroughSlack)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o, c, x, tk := chatting(t)
			for _, f := range tc.do {
				o.change(tk, f)
				o.drain(c)
			}
			var got []notify.Outcome
			for i, r := range x.receipts {
				if strings.HasPrefix(r, "receipt of carol ") {
					got = append(got, x.replaced[i])
				}
			}
			if len(got) != len(tc.want) {
				t.Fatalf("%s: got %+v, want %q", tc.reason, got, tc.want)
			}
			for i, part := range tc.want {
				link := "https://acp.example.com/tickets/" + tk.ID()
				if !strings.Contains(got[i].Text, part) || !strings.Contains(got[i].Text, tk.ID()) || got[i].Link != link || got[i].Open != "Open" {
					t.Errorf("%s: got %+v, want %q", tc.reason, got[i], part)
				}
			}
		})
	}
}

// TestOutcomeInTheLanguageOfTheReader checks that the outcome is rendered when it is sent.
func TestOutcomeInTheLanguageOfTheReader(t *testing.T) {
	o, c, x, tk := chatting(t)
	if err := o.store.SetPreferences(t.Context(), "carol", notify.Preferences{Language: notify.Chinese}, start); err != nil {
		t.Fatal(err)
	}
	o.change(tk, func(t *approval.Ticket) error { return t.Withdraw("alice", "no need", start) })
	o.drain(c)
	if len(x.replaced) != 1 || !strings.Contains(x.replaced[0].Text, "该申请已撤回") {
		t.Errorf("got %+v", x.replaced)
	}
}

// TestMessageOfAnEarlierVersionHasNoControls checks that a message that is sent after the ticket changed cannot be answered.
func TestMessageOfAnEarlierVersionHasNoControls(t *testing.T) {
	o := open(t, []notify.Channel{notify.ChannelSlack})
	o.router.People = func(context.Context) (notify.People, error) { return deciding{}, nil }
	tk := o.submit("cache")
	o.route()
	o.change(tk, func(t *approval.Ticket) error { return t.Comment("alice", "please", start) })
	x := &chat{}
	o.drain(o.dispatcher(notify.ChannelSlack, x))
	if len(x.controls) != 0 || !slices.Equal(x.to(), []string{"carol"}) || len(x.replaced) != 0 {
		t.Errorf("controls went to %v, messages to %v, and %v were replaced", x.controls, x.to(), x.replaced)
	}
}

// TestRetractionsThatFail checks that a retraction is tried again a few times, and that messages do not wait for it or become dead letters.
func TestRetractionsThatFail(t *testing.T) {
	fail := errors.New("no answer")
	for name, tc := range map[string]struct {
		reason string
		refuse func(n int) error
		tries  int
		done   bool
	}{
		"later": {"it is tried again", func(n int) error {
			if n < 3 {
				return fail
			}
			return nil
		}, 3, true},
		"never":     {"the attempts are bounded", func(int) error { return fail }, 8, false},
		"permanent": {"the message is gone", func(int) error { return &notify.Problem{Err: fail, Permanent: true} }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, c, x, tk := chatting(t)
			x.refuse = tc.refuse
			o.change(tk, func(t *approval.Ticket) error { return t.Withdraw("alice", "no need", start) })
			for range 20 {
				o.drain(c)
				o.now = o.now.Add(time.Hour)
			}
			if x.tries != tc.tries || (len(x.replaced) == 1) != tc.done {
				t.Errorf("%s: %d attempts, %d replaced", tc.reason, x.tries, len(x.replaced))
			}
			if dead := o.deadReasons(); len(dead) != 0 {
				t.Errorf("%s: dead letters %v", tc.reason, dead)
			}
			if logged := strings.Contains(o.log.String(), "they decide nothing"); logged == tc.done {
				t.Errorf("%s: the log is %s", tc.reason, o.log.String())
			}
			next := o.submit("db")
			o.route()
			o.drain(c)
			if last := x.sent[len(x.sent)-1]; last.Message.Ticket != next.Number {
				t.Errorf("%s: the next message was not sent", tc.reason)
			}
		})
	}
}

// TestChannelWithoutRetractions checks that a sender that cannot replace messages gets none to replace.
func TestChannelWithoutRetractions(t *testing.T) {
	o := open(t, []notify.Channel{notify.ChannelMail})
	o.router.People = func(context.Context) (notify.People, error) { return deciding{}, nil }
	tk := o.submit("cache")
	o.route()
	x := &outbox{}
	c := o.dispatcher(notify.ChannelMail, x)
	o.drain(c)
	o.change(tk, func(t *approval.Ticket) error { return t.Vote(0, approvaltest.Yes("carol", start)) })
	o.drain(c)
	if x.tries != len(x.sent) || strings.Contains(o.log.String(), "level=WARN") {
		t.Errorf("%d attempts for %d messages: %s", x.tries, len(x.sent), o.log.String())
	}
}
