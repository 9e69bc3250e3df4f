package notificationapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/featuretest"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// notices is an inbox that records what is requested of it.
type notices struct {
	calls       []string
	preferences notify.Preferences
	letters     []notify.DeadLetter
	notices     []notify.Notice
}

func (i *notices) Inbox(_ context.Context, f notify.InboxFilter) ([]notify.Notice, int64, error) {
	i.record("inbox of %s before %d", f.Person, f.Before)
	return i.notices, 0, nil
}

func (i *notices) Unread(context.Context, string) (int, error) { return len(i.notices), nil }

func (i *notices) record(format string, args ...any) {
	i.calls = append(i.calls, fmt.Sprintf(format, args...))
}

func (i *notices) Mark(_ context.Context, person string, ids []int64, read bool, _ time.Time) error {
	i.record("mark %s %v %v", person, ids, read)
	return nil
}

func (i *notices) MarkAllRead(_ context.Context, person string, upTo int64, _ time.Time) error {
	i.record("mark all %s %d", person, upTo)
	return nil
}

func (i *notices) Requeue(_ context.Context, ids []int64, _ time.Time) (int64, error) {
	i.record("requeue %v, all: %v", ids, ids == nil)
	return int64(len(ids)), nil
}

func (i *notices) Preferences(context.Context, ...string) (map[string]notify.Preferences, error) {
	return map[string]notify.Preferences{"alice": i.preferences}, nil
}

func (i *notices) SetPreferences(_ context.Context, person string, p notify.Preferences, _ time.Time) error {
	i.record("set %s", person)
	i.preferences = p
	return nil
}

func (i *notices) DeadLetters(_ context.Context, f notify.DeadFilter) ([]notify.DeadLetter, int64, error) {
	i.record("dead letters of %q before %d", f.Channel, f.Before)
	return i.letters, 4, nil
}

func newAPI(t *testing.T, i *notices) *API {
	t.Helper()
	return &API{Data: featuretest.Data(t), Inbox: i, Channels: []notify.Channel{notify.ChannelMail}}
}

// TestListInbox checks that a notification is sent as messages, whatever language its reader chose, and that one of another version of ACP
// does not hide the others.
func TestListInbox(t *testing.T) {
	until := featuretest.Now.Add(time.Hour)
	notice := func(id, ticket int64, kind notify.Kind, f notify.Facts) notify.Notice {
		return notify.Notice{ID: id, Message: notify.Message{Person: "alice", At: featuretest.Now, Ticket: ticket, Kind: kind, Facts: f}}
	}
	i := &notices{preferences: notify.Preferences{Language: notify.Chinese, TimeZone: "Asia/Shanghai"}, notices: []notify.Notice{
		notice(3, 7, notify.KindExpires, notify.Facts{Event: "expires-soon", Until: until, Reason: "needed", Items: []notify.About{{Resource: "cache"}}}),
		notice(2, 0, "gossip", notify.Facts{Event: "heard"}),
		notice(1, 0, notify.KindRollout, notify.Facts{Event: notify.EventFlowsLost, Cluster: "m1", Items: []notify.About{{Resource: "cache"}},
			Page: "resources/cache"}),
	}}
	got, err := newAPI(t, i).ListInbox(featuretest.Context(t, approval.Actor{ID: "alice"}), openapi.ListInboxRequestObject{})
	if err != nil {
		t.Fatal(err)
	}
	cache := message.NotificationSubject("cache")
	item := []message.Message{message.NotificationItem("cache")}
	want := []openapi.InboxItem{
		{Id: "3", At: featuretest.Now.UTC(), Kind: "expires-soon", Ticket: new("T-7"), Title: message.NotificationExpiresSoonTitle("T-7", until, cache),
			Body: message.NotificationExpiresSoonBody(until), Items: item, Notes: []message.Message{message.NotificationReason("needed")}},
		{Id: "2", At: featuretest.Now.UTC(), Kind: "gossip", Title: message.NotificationUnknownTitle("gossip"), Body: message.NotificationUnknownBody(),
			Items: []message.Message{}, Notes: []message.Message{}},
		{Id: "1", At: featuretest.Now.UTC(), Kind: "rollout", Resource: new("cache"), Title: message.NotificationFlowsLostTitle(cache, "m1"),
			Body: message.NotificationFlowsLostBody("m1"), Items: item, Notes: []message.Message{}},
	}
	if d := cmp.Diff(want, got.(openapi.ListInbox200JSONResponse).Items); d != "" {
		t.Error(d)
	}
}

// TestMarkInbox checks that people mark notifications of their own inbox, and that an empty or wrong list of them never means all.
func TestMarkInbox(t *testing.T) {
	for name, tc := range map[string]struct {
		body openapi.MarkInboxJSONRequestBody
		want []string
	}{
		"Some":             {openapi.MarkInboxJSONRequestBody{Ids: &[]string{"3", "4"}}, []string{"mark alice [3 4] true"}},
		"Some unread":      {openapi.MarkInboxJSONRequestBody{Ids: &[]string{"3"}, Read: new(false)}, []string{"mark alice [3] false"}},
		"None":             {openapi.MarkInboxJSONRequestBody{Ids: &[]string{}}, []string{"mark alice [] true"}},
		"All":              {openapi.MarkInboxJSONRequestBody{}, []string{"mark all alice 0"}},
		"All unread":       {openapi.MarkInboxJSONRequestBody{Read: new(false)}, nil},
		"Not a number":     {openapi.MarkInboxJSONRequestBody{Ids: &[]string{"3", "x"}}, nil},
		"More than a page": {openapi.MarkInboxJSONRequestBody{Ids: new(slices.Repeat([]string{"3"}, notify.MaxPage+1))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			i := &notices{}
			_, err := newAPI(t, i).MarkInbox(featuretest.Context(t, approval.Actor{ID: "alice"}), openapi.MarkInboxRequestObject{Body: &tc.body})
			var p *core.Problem
			if refused := tc.want == nil; errors.As(err, &p) != refused || !refused && err != nil {
				t.Errorf("the error is %v", err)
			}
			if d := cmp.Diff(tc.want, i.calls); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestRetryUndelivered checks that an empty list retries nothing, while no list retries all.
func TestRetryUndelivered(t *testing.T) {
	for name, tc := range map[string]struct {
		ids  *[]string
		want []string
	}{
		"All":   {nil, []string{"requeue [], all: true"}},
		"None":  {&[]string{}, []string{"requeue [], all: false"}},
		"Some":  {&[]string{"9"}, []string{"requeue [9], all: false"}},
		"Wrong": {&[]string{"nine"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			i := &notices{}
			body := openapi.RetryUndeliveredJSONRequestBody{Ids: tc.ids}
			_, err := newAPI(t, i).RetryUndelivered(featuretest.Context(t, approval.Actor{ID: "dave", Security: true}),
				openapi.RetryUndeliveredRequestObject{Body: &body})
			if (err != nil) != (tc.want == nil) {
				t.Errorf("the error is %v", err)
			}
			if d := cmp.Diff(tc.want, i.calls); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestUndelivered checks the rows and the pages of notifications that could not be delivered.
func TestUndelivered(t *testing.T) {
	at := featuretest.Now
	letter := func(id int64, person string, ticket int64) notify.DeadLetter {
		x := notify.DeadLetter{ID: id, Attempts: 8, Problem: "refused", GivenUp: at}
		x.Person, x.Ticket, x.At, x.Kind, x.Channel = person, ticket, at, notify.KindNeeded, notify.ChannelMail
		return x
	}
	i := &notices{letters: []notify.DeadLetter{letter(6, "bob", 7), letter(5, "", 0)}}
	a := newAPI(t, i)
	ctx := featuretest.Context(t, approval.Actor{ID: "dave", Security: true})
	got, err := a.ListUndelivered(ctx, openapi.ListUndeliveredRequestObject{})
	if err != nil {
		t.Fatal(err)
	}
	page := got.(openapi.ListUndelivered200JSONResponse)
	if x := page.Items[0]; x.Id != "6" || x.Person.DisplayName != "Bob" || *x.Ticket != "T-7" || x.Attempts != 8 || x.Problem != "refused" {
		t.Errorf("the first row is %+v", x)
	}
	if x := page.Items[1]; x.Person != nil || x.Ticket != nil {
		t.Errorf("a shared receiver without a ticket is %+v", x)
	}
	if _, err := a.ListUndelivered(ctx, openapi.ListUndeliveredRequestObject{Params: openapi.ListUndeliveredParams{Cursor: page.NextCursor}}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{`dead letters of "" before 0`, `dead letters of "" before 4`}, i.calls); d != "" {
		t.Error(d)
	}
}

// TestPreferences checks that people without preferences see the defaults, and that nobody can turn the inbox off.
func TestPreferences(t *testing.T) {
	i := &notices{}
	a := newAPI(t, i)
	ctx := featuretest.Context(t, approval.Actor{ID: "alice"})
	got, err := a.GetPreferences(ctx, openapi.GetPreferencesRequestObject{})
	if err != nil {
		t.Fatal(err)
	}
	p := openapi.Preferences(got.(openapi.GetPreferences200JSONResponse))
	if p.Language != "en" || p.TimeZone != "UTC" || *p.DigestHour != notify.DefaultDigestHour || len(p.Channels) != 2 {
		t.Errorf("the defaults are %+v", p)
	}
	off := map[string]openapi.PreferencesChannels{string(notify.KindComment): openapi.PreferencesChannels(notify.Off)}
	body := openapi.PutPreferencesJSONRequestBody{Language: "zh", TimeZone: "Asia/Shanghai", DigestHour: new(8),
		Channels: map[string]map[string]openapi.PreferencesChannels{"inbox": off, "mail": off}}
	if _, err := a.PutPreferences(ctx, openapi.PutPreferencesRequestObject{Body: &body}); err != nil {
		t.Fatal(err)
	}
	want := notify.Preferences{Language: "zh", TimeZone: "Asia/Shanghai", DigestHour: new(8),
		Choices: map[notify.Channel]map[notify.Kind]notify.Timing{notify.ChannelMail: {notify.KindComment: notify.Off}}}
	if d := cmp.Diff(want, i.preferences); d != "" {
		t.Error(d)
	}
	body.TimeZone = "Nowhere/At all"
	if _, err := a.PutPreferences(ctx, openapi.PutPreferencesRequestObject{Body: &body}); err == nil || !cmp.Equal(want, i.preferences) {
		t.Errorf("an unknown time zone was stored: %v", err)
	}
}
