package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

var start = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// company implements People. The display name of a person is the ID in upper case.
type company struct {
	delegates map[string][]string
	onCall    approval.OnCall
	answer    *approval.Answerable
}

func (company) Name(p string) string { return strings.ToUpper(p) }

// Title knows the names of the organization o.
func (company) Title(name string) string {
	if id, ok := strings.CutPrefix(name, "trnv1:rsc:o:"); ok {
		return "the " + id
	}
	return name
}

func (company) Owners(approval.Item) (application, resource []string) {
	return []string{"app-owner", "requester"}, []string{"owner"}
}
func (c company) Answerable(*approval.Ticket) (approval.Answerable, bool) {
	if c.answer == nil {
		return approval.Answerable{}, false
	}
	return *c.answer, true
}

func (company) Security() []string            { return []string{"sec1", "sec2"} }
func (c company) Delegates(p string) []string { return c.delegates[p] }
func (c company) OnCall() approval.OnCall     { return c.onCall }

func chain() []approval.Step {
	return []approval.Step{
		{Name: "leader", Approvers: []string{"leader"}, Quorum: 1},
		{
			Name:       "owner",
			Approvers:  []string{"owner", "owner2", "owner3"},
			Quorum:     2,
			Timeout:    time.Hour,
			OnTimeout:  v1alpha1.TimeoutEscalate,
			EscalateTo: []string{"boss"},
		},
		{Name: "security", Approvers: []string{"sec1", "sec2"}, Quorum: 1, Timeout: time.Hour, OnTimeout: v1alpha1.TimeoutDeny},
	}
}

func item(resource string) approval.Item {
	return approval.Item{Application: "orders", Resource: resource, Actions: []string{"redis:connect"}, Duration: 8 * time.Hour, Steps: chain()}
}

func ticket(resources ...string) *approval.Ticket {
	d := approval.Draft{Kind: approval.KindGrant, Requester: "requester", Reason: "orders needs its cache"}
	for _, r := range resources {
		d.Items = append(d.Items, item(r))
	}
	t := approval.NewTicket(d, start)
	t.Numbered(7)
	return t
}

// limitedTicket is a ticket whose owners decide while they are on call.
func limitedTicket() *approval.Ticket {
	t := ticket("cache")
	t.Items[0].Steps[1].OnCall = approval.OnCallLimit{Schedule: "shop", Tier: 1}
	return t
}

// remindedTicket is a ticket whose owners are reminded once, after 40 days.
func remindedTicket() *approval.Ticket {
	it := item("cache")
	it.Steps = []approval.Step{{Name: "owner", Approvers: []string{"owner", "owner2"}, Quorum: 1, Remind: 960 * time.Hour}}
	t := approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: "requester", Reason: "orders needs its cache",
		Items: []approval.Item{it}}, start)
	t.Numbered(7)
	return t
}

func shift(people ...string) approval.OnCall {
	return func(string, int) approval.Duty { return approval.Duty{Known: true, People: people} }
}

// act is a step of a story: an action, and the expected messages after it.
type act struct {
	do   func(*approval.Ticket) error
	want map[string]string // person to kind/event, with "for NAME" for delegates
}

func vote(person string, approve bool, items ...int) func(*approval.Ticket) error {
	return func(t *approval.Ticket) error {
		for _, i := range items {
			if err := t.Vote(i, approval.Vote{Person: person, Approve: approve, At: start, Comment: "so be it"}); err != nil {
				return err
			}
		}
		return nil
	}
}

func tick(after time.Duration) func(*approval.Ticket) error {
	return func(t *approval.Ticket) error { t.Tick(start.Add(after)); return nil }
}

func nothing(*approval.Ticket) error { return nil }

func TestMessagesForTicket(t *testing.T) {
	asks := func(p string) map[string]string { return map[string]string{p: "approval-needed/submitted"} }
	first := act{nothing, asks("leader")}
	second := act{vote("leader", true, 0), map[string]string{"requester": "decided/step-approved",
		"owner": "approval-needed/submitted", "owner2": "approval-needed/submitted", "owner3": "approval-needed/submitted"}}
	third := act{vote("owner", true, 0), map[string]string{"requester": "decided/step-approved"}}
	fourth := act{
		vote("owner3", true, 0),
		map[string]string{
			"requester": "decided/step-approved",
			"owner":     "decided-by-colleague/step-approved",
			"owner2":    "decided-by-colleague/step-approved",
			"sec1":      "approval-needed/submitted",
			"sec2":      "approval-needed/submitted",
		},
	}
	for name, tc := range map[string]struct {
		reason string
		make   func() *approval.Ticket
		people company
		story  []act
	}{
		"the whole way": {"each in their turn, and colleagues when a step is closed", func() *approval.Ticket { return ticket("cache") }, company{}, []act{
			first, second, third, fourth,
			{vote("sec1", true, 0), map[string]string{"requester": "decided/approved", "sec2": "decided-by-colleague/step-approved"}},
			{
				func(t *approval.Ticket) error { t.Fail(0, message.Verbatim("refused"), start); return nil },
				map[string]string{"requester": "failed/failed", "app-owner": "failed/failed"},
			},
			{tick(8*time.Hour - 2*time.Minute), map[string]string{"requester": "expires-soon/expires-soon", "app-owner": "expires-soon/expires-soon"}},
			{tick(8 * time.Hour), map[string]string{"requester": "revoked/expired", "app-owner": "revoked/expired"}},
		}},
		"rejected": {"the requester, and those who need not decide", func() *approval.Ticket { return ticket("cache") }, company{}, []act{
			first, second,
			{
				vote("owner2", false, 0),
				map[string]string{
					"requester": "decided/step-rejected", "owner": "decided-by-colleague/step-rejected",
					"owner3": "decided-by-colleague/step-rejected",
				},
			},
		}},
		"withdrawn": {"those who had been asked", func() *approval.Ticket { return ticket("cache") }, company{}, []act{
			first, second, {func(t *approval.Ticket) error { return t.Withdraw("requester", "not needed", start) },
				map[string]string{
					"owner": "decided-by-colleague/withdrawn", "owner2": "decided-by-colleague/withdrawn",
					"owner3": "decided-by-colleague/withdrawn",
				}},
		}},
		"escalated, then denied": {"time alone", func() *approval.Ticket { return ticket("cache") }, company{}, []act{
			first, second,
			{
				tick(time.Hour),
				map[string]string{
					"boss": "escalated/escalated", "owner": "approval-needed/escalated",
					"owner2": "approval-needed/escalated", "owner3": "approval-needed/escalated",
				},
			},
			{vote("owner", true, 0), map[string]string{"requester": "decided/step-approved"}},
			{vote("boss", true, 0), map[string]string{"requester": "decided/step-approved",
				"owner": "decided-by-colleague/step-approved", "owner2": "decided-by-colleague/step-approved",
				"owner3": "decided-by-colleague/step-approved", "sec1": "approval-needed/submitted", "sec2": "approval-needed/submitted"}},
			{
				tick(2 * time.Hour),
				map[string]string{"requester": "decided/timed-out", "sec1": "decided-by-colleague/timed-out", "sec2": "decided-by-colleague/timed-out"},
			},
		}},
		"nobody decides": {"the approvers once more, and the requester", remindedTicket, company{}, []act{
			{nothing, map[string]string{"owner": "approval-needed/submitted", "owner2": "approval-needed/submitted"}},
			{tick(960 * time.Hour), map[string]string{"owner": "approval-needed/last-reminder", "owner2": "approval-needed/last-reminder",
				"requester": "undecided/last-reminder"}},
		}},
		"decided before the last reminder was sent": {"nobody is told that nobody decides", remindedTicket, company{}, []act{
			{nothing, map[string]string{"owner": "approval-needed/submitted", "owner2": "approval-needed/submitted"}},
			{func(t *approval.Ticket) error { t.Tick(start.Add(960 * time.Hour)); return vote("owner", true, 0)(t) },
				map[string]string{"requester": "decided/approved", "owner2": "decided-by-colleague/step-approved"}},
		}},
		"nobody can decide": {"the requester and the security team", func() *approval.Ticket {
			t := remindedTicket()
			t.Items[0].Steps[0].OnCall = approval.OnCallLimit{Schedule: "shop", Tier: 1}
			return t
		}, company{}, []act{
			{nothing, map[string]string{"owner": "approval-needed/submitted", "owner2": "approval-needed/submitted"}},
			{func(t *approval.Ticket) error { t.CheckSchedule(0, nil, start); return nil },
				map[string]string{"requester": "undecided/schedule-missing", "sec1": "undecided/schedule-missing", "sec2": "undecided/schedule-missing"}},
			{func(t *approval.Ticket) error {
				t.CheckSchedule(0, nil, start.Add(approval.MissingScheduleGrace))
				return nil
			},
				map[string]string{"requester": "decided/timed-out", "owner": "decided-by-colleague/timed-out", "owner2": "decided-by-colleague/timed-out"}},
		}},
		"delegation": {"a delegate is asked for somebody; never the requester", func() *approval.Ticket { return ticket("cache") },
			company{delegates: map[string][]string{"leader": {"deputy", "requester"}}}, []act{
				{nothing, map[string]string{"leader": "approval-needed/submitted", "deputy": "approval-needed/submitted for LEADER"}},
			}},
		"on call": {"of the owners only who is on call is asked, and their delegates", func() *approval.Ticket { return limitedTicket() },
			company{delegates: map[string][]string{"owner2": {"deputy"}}, onCall: shift("owner2", "sec1")}, []act{first,
				{vote("leader", true, 0), map[string]string{"requester": "decided/step-approved", "owner2": "approval-needed/submitted",
					"deputy": "approval-needed/submitted for OWNER2"}}}},
		"nobody on call":  {"everybody learns it", func() *approval.Ticket { return limitedTicket() }, company{onCall: shift("sec1")}, []act{first, second}},
		"unknown on call": {"everybody learns that it waits", func() *approval.Ticket { return limitedTicket() }, company{}, []act{first, second}},
		"many items": {"one message about all of them", func() *approval.Ticket { return ticket("cache", "db") }, company{}, []act{
			first, {vote("leader", true, 0, 1), second.want}, {vote("owner", true, 0, 1), third.want}, {vote("owner2", true, 0), map[string]string{
				"requester": "decided/step-approved", "owner": "decided-by-colleague/step-approved",
				"owner3": "decided-by-colleague/step-approved", "sec1": "approval-needed/submitted", "sec2": "approval-needed/submitted"}},
			// The owners still have to decide the second item but not the first, so they are not notified again.
			{vote("sec1", false, 0), map[string]string{"requester": "decided/step-rejected", "sec2": "decided-by-colleague/step-rejected"}},
		}},
		"comment": {"the requester, and who decided or has to", func() *approval.Ticket { return ticket("cache") }, company{}, []act{
			first, second, {func(t *approval.Ticket) error { return t.Comment("owner", "why?", start) },
				map[string]string{"requester": "comment/comment", "leader": "comment/comment", "owner2": "comment/comment", "owner3": "comment/comment"}},
			{func(t *approval.Ticket) error { return t.Comment("requester", "because", start) },
				map[string]string{"leader": "comment/comment", "owner": "comment/comment", "owner2": "comment/comment", "owner3": "comment/comment"}},
		}},
		"break-glass": {"reviewers and all other people concerned are notified, except the requester", func() *approval.Ticket {
			it := item("cache")
			it.Steps, it.Review = nil, &approval.Step{Name: "review", Approvers: []string{"sec1", "leader"}, Quorum: 1}
			t := approval.NewTicket(approval.Draft{
				Kind: approval.KindGrant, Requester: "requester", Reason: "outage", BreakGlass: true, Items: []approval.Item{it},
			},
				start)
			t.Numbered(7)
			return t
		}, company{}, []act{
			{nothing, map[string]string{"sec1": "approval-needed/break-glass", "leader": "approval-needed/break-glass", "sec2": "break-glass/break-glass",
				"owner": "break-glass/break-glass", "app-owner": "break-glass/break-glass"}},
			{func(t *approval.Ticket) error {
				return t.Confirm(0, approval.Vote{Person: "sec1", Approve: false, Comment: "no", At: start})
			},
				map[string]string{"requester": "decided/reviewed", "leader": "decided-by-colleague/reviewed", "app-owner": "revoked/revoke-requested"}},
		}},
		"nobody reviews break-glass": {"the reviewers once more, the requester and the security team", func() *approval.Ticket {
			it := item("cache")
			it.Steps, it.Review = nil, &approval.Step{Name: "review", Approvers: []string{"sec1", "leader"}, Quorum: 1, Timeout: 960 * time.Hour,
				OnTimeout: v1alpha1.TimeoutRemind}
			t := approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: "requester", Reason: "outage", BreakGlass: true,
				Items: []approval.Item{it}}, start)
			t.Numbered(7)
			t.Expire(0, start.Add(8*time.Hour))
			return t
		}, company{}, []act{
			{nothing, map[string]string{"sec1": "approval-needed/break-glass", "leader": "approval-needed/break-glass", "sec2": "break-glass/break-glass",
				"owner": "break-glass/break-glass", "app-owner": "break-glass/break-glass", "requester": "revoked/expired"}},
			{tick(960 * time.Hour), map[string]string{"sec1": "approval-needed/last-reminder", "leader": "approval-needed/last-reminder",
				"sec2": "undecided/review-undecided", "requester": "undecided/review-undecided"}},
		}},
		"grown": {"the approvals are void: those who had approved are informed, and the other approvers are notified again",
			func() *approval.Ticket { return ticket("cache") }, company{}, []act{
				first, second, third, {func(t *approval.Ticket) error { t.Void(0, approval.NewShown([]string{"more"}), start); return nil },
					map[string]string{"requester": "voided/voided", "leader": "voided/voided", "owner": "voided/voided"}},
			}},
		"revoked by the requester's colleague": {"the owners know, too", func() *approval.Ticket { return ticket("cache") }, company{}, []act{
			first, second, third, fourth,
			{vote("sec2", true, 0), map[string]string{"requester": "decided/approved", "sec1": "decided-by-colleague/step-approved"}},
			{func(t *approval.Ticket) error { return t.Revoke(0, "app-owner", "unused", start) }, map[string]string{"requester": "revoked/revoke-requested"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := tc.make()
			before := 0
			for i, a := range tc.story {
				if err := a.do(x); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				messages := MessagesForTicket(x, before, len(x.Events), tc.people)
				got := map[string]string{}
				for k, m := range messages {
					if (k == 0) != (m.Person == "") {
						t.Errorf("step %d: only the first message must have no person: %+v", i, m)
					}
					if m.Event != fmt.Sprintf("T-7/%d", before) || m.Ticket != 7 || m.At.IsZero() {
						t.Errorf("step %d: got %+v", i, m)
					}
					if k == 0 {
						if d := cmp.Diff(slices.Sorted(maps.Keys(a.want)), slices.Sorted(maps.Keys(m.Facts.Recipients))); d != "" {
							t.Errorf("step %d: recipients (-want +got):\n%s", i, d)
						}
						continue
					}
					got[m.Person] = string(m.Kind) + "/" + m.Facts.Event
					if m.Facts.For != "" {
						got[m.Person] += " for " + m.Facts.For
					}
					if len(m.Facts.Items) == 0 {
						t.Errorf("step %d: the message to %s has no items", i, m.Person)
					}
				}
				if d := cmp.Diff(a.want, got); d != "" {
					t.Errorf("%s: step %d (-want +got):\n%s", tc.reason, i, d)
				}
				before = len(x.Events)
			}
			if got := MessagesForTicket(x, before, before+5, tc.people); got != nil {
				t.Errorf("got %+v without events, want none", got)
			}
		})
	}
}

// TestNotesOfVoidedApprovals checks that what voided the approvals of a request is said in the recipient's language, up to a bound.
func TestNotesOfVoidedApprovals(t *testing.T) {
	x := ticket("cache")
	var lines []string
	for i := range 12 {
		lines = append(lines, fmt.Sprintf("in member m%02d", i))
	}
	before := len(x.Events)
	if !x.Void(0, approval.NewShown(lines), start) {
		t.Fatal("the approvals are still valid")
	}
	messages := MessagesForTicket(x, before, len(x.Events), company{})
	if len(messages) == 0 {
		t.Fatal("nobody is notified")
	}
	notes := ContentOf(messages[0]).Notes
	if len(notes) != 1 {
		t.Fatalf("the notes are %+v", notes)
	}
	zh := notes[0].Render(message.Chinese)
	for _, want := range []string{"在成员集群 m00 中；", "在成员集群 m09 中；以及另外 2 行"} {
		if !strings.Contains(zh, want) {
			t.Errorf("the note %q does not have %q", zh, want)
		}
	}
	if strings.Contains(zh, "m10") {
		t.Errorf("the note has too many lines: %q", zh)
	}
}

func TestDecidedStepsCauseNoFurtherNotifications(t *testing.T) {
	x := ticket("cache")
	if err := x.Vote(0, approval.Vote{Person: "leader", Approve: false, At: start, Comment: "no"}); err != nil {
		t.Fatal(err)
	}
	if got := MessagesForTicket(x, 0, 1, company{}); got != nil {
		t.Errorf("got %+v, want nobody asked for a decided step", got)
	}
}

func TestItemsOfOneChangeAreInOneMessage(t *testing.T) {
	var many []string
	for i := range 14 {
		many = append(many, fmt.Sprint("r", i))
	}
	x := ticket(many...)
	got := MessagesForTicket(x, 0, len(x.Events), company{})
	for _, m := range got {
		if len(m.Facts.Items) != MaxItems || m.Facts.More != 4 || m.Facts.Reason == "" {
			t.Errorf("got %+v", m)
		}
	}
	if len(got) != 2 {
		t.Errorf("got %d messages, want one for the leader and one for receivers", len(got))
	}
}

// TestAnswersAreForApprovers checks that only messages that ask for a decision, and the one for webhooks, can be answered.
func TestAnswersAreForApprovers(t *testing.T) {
	x := approval.NewTicket(
		approval.Draft{Kind: approval.KindGrant, Requester: "requester", Reason: "r", Items: []approval.Item{{Steps: chain()}}},
		time.Unix(0, 0),
	)
	if err := x.Vote(0, approval.Vote{Person: "leader", Approve: true, At: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	answer := approval.Answerable{Version: 7, Digest: "d"}
	got := map[string]bool{}
	for _, m := range MessagesForTicket(x, 1, len(x.Events), company{answer: &answer}) {
		got[m.Person] = m.Facts.Answer != nil && m.Facts.Answer.Version == 7
	}
	want := map[string]bool{"": true, "requester": false, "owner": true, "owner2": true, "owner3": true}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, m := range MessagesForTicket(x, 1, len(x.Events), company{}) {
		if m.Facts.Answer != nil {
			t.Errorf("a ticket that is decided only in the portal can be answered by %q", m.Person)
		}
	}
}

func TestMessagesForDelegation(t *testing.T) {
	d := approval.Delegation{ID: 3, From: "owner", To: "deputy", Start: start, End: start.Add(time.Hour), CreatedBy: "owner", CreatedAt: start}
	got := MessagesForDelegation(d, company{})
	if len(got) != 2 || got[1].Person != "deputy" || got[1].Event != "D-3/begun" || got[1].Facts.Event != "begun" {
		t.Errorf("got %+v, want a message to the other side", got)
	}
	d.EndedAt, d.EndedBy = start.Add(time.Minute), "sec1"
	got = MessagesForDelegation(d, company{})
	if len(got) != 3 || got[0].Person != "" || len(got[0].Facts.Recipients) != 2 || got[2].Event != "D-3/ended" || got[2].Facts.Event != "ended" {
		t.Errorf("got %+v, want messages to both sides", got)
	}
}

// TestOwnersOfHolders checks that the owners of an application that is given a version of an access package are notified, also if nobody has to
// decide it.
func TestOwnersOfHolders(t *testing.T) {
	for _, auto := range []bool{false, true} {
		it := item("cache")
		it.Package = &approval.PackageRef{Name: "pay", Version: 2, HolderUpdate: true}
		for i := range it.Steps {
			it.Steps[i].Auto = auto
		}
		x := approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: "requester", Reason: "T-3: more", Items: []approval.Item{it}}, start)
		x.Numbered(7)
		i := slices.IndexFunc(MessagesForTicket(x, 0, len(x.Events), company{}), func(m Message) bool {
			return m.Person == "app-owner" && m.Kind == KindRollout && m.Facts.Event == eventHolderUpdate && len(m.Facts.Items) == 1
		})
		if i < 0 {
			t.Errorf("decided by nobody %v: the application's owner is not notified: %+v", auto, MessagesForTicket(x, 0, len(x.Events), company{}))
		}
	}
}

// TestAboutStatements checks that the subject of a message about an allow statement names what it lets reach what, in a bounded length.
func TestAboutStatements(t *testing.T) {
	scope := &approval.StatementScope{Effect: v1alpha1.EffectAllow, Subjects: []string{"*"}, Resources: []string{"a", "b", "c", "d", "e"}}
	if got, want := about(approval.Item{Scope: scope, Actions: []string{"redis:connect"}}, company{}).String(), "* → a, b, c +2 (redis:connect)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	scope.Subjects, scope.Resources = []string{"trnv1:rsc:o:app", "trnv1:rsc:x:*"}, []string{"trnv1:rsc:o:cache"}
	got := about(approval.Item{Scope: scope}, company{})
	if want := "the app, trnv1:rsc:x:* → the cache"; got.String() != want {
		t.Errorf("people read %q, want %q", got, want)
	}
	if got.Application != "trnv1:rsc:o:app, trnv1:rsc:x:*" || got.Resource != "trnv1:rsc:o:cache" {
		t.Errorf("programs get %q and %q in place of the names", got.Application, got.Resource)
	}
}
