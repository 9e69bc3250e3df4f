package gormstore

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	sessions "github.com/acp-io/acp/internal/credential/gormstore"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/message"
)

// A database of the previous version is migrated with all of its content, and can then be used.
func TestTicketsOfEarlierVersionsAreMigrated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "old.db")
	text, err := os.ReadFile("testdata/before-items.sql")
	if err != nil {
		t.Fatal(err)
	}
	old, err := sql.Open("sqlite", file) // the driver that package database registers
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Exec(string(text)); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	db := databasetest.Open(t, "sqlite:"+file)
	s := New(db)
	at := func(minutes int) time.Time { return approvaltest.Start.Add(time.Duration(minutes) * time.Minute) }
	leader := approval.Step{
		Name:      "leader",
		State:     approval.StepApproved,
		Approvers: []string{"carol"},
		From:      []v1alpha1.Approver{"requester.leader"},
		Quorum:    1,
		Votes:     []approval.Vote{{Person: "carol", Approve: true, At: at(1), Comment: "ok"}},
	}
	owner := approval.Step{
		Name:      "owner",
		State:     approval.StepCurrent,
		Approvers: []string{"bob", "dan"},
		From:      []v1alpha1.Approver{"resource.owner", "group:security"},
		Quorum:    1,
		Note:      message.Verbatim("n"),
	}
	want := &approval.Ticket{Number: 1, Kind: approval.KindGrant, Version: 2, Requester: "alice", Reason: "because", IdempotencyKey: "key-12345",
		Items: []approval.Item{{State: approval.StatePending, Application: "a1", ApplicationName: "name:a1", Resource: "r1", ResourceName: "name:r1",
			Actions: []string{"redis:connect", "redis:info"}, SID: "t-1-1", Duration: time.Hour, Steps: []approval.Step{leader, owner}}},
		Events: []approval.Event{{At: at(0), Kind: approval.EventSubmitted, Item: -1, Actor: "alice", Comment: "because", Saved: true},
			{At: at(1), Kind: approval.EventStepApproved, Actor: "carol", Step: "leader", Comment: "ok", Saved: true}},
		CreatedAt: at(0), UpdatedAt: at(1)}
	got, err := s.Get(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(approval.Ticket{}), cmpopts.EquateApproxTime(0), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("the ticket that waits: (-want +got)\n%s", d)
	}
	for name, tc := range map[string]struct {
		reason string
		f      approval.Filter
		want   []int64
	}{
		"states": {
			"in force, rejected, being written",
			approval.Filter{States: []approval.State{approval.StateEffective, approval.StateRejected, approval.StateApproved}},
			[]int64{4, 3, 2},
		},
		"waits":   {"the owner's step is current", approval.Filter{WaitsFor: &approval.Waits{Person: "dan"}}, []int64{1}},
		"decided": {"carol has decided everywhere", approval.Filter{DecidedBy: "carol"}, []int64{4, 3, 2, 1}},
		"named":   {"who is named sees it", approval.Filter{VisibleTo: &approval.Visible{Person: "bob"}}, []int64{4, 3, 2, 1}},
		"due":     {"the grant for an hour ends", approval.Filter{DueBy: at(61)}, []int64{2}},
		"policy":  {"where the grant is", approval.Filter{Policy: "p-r2"}, []int64{2}},
		"words":   {"what it is about", approval.Filter{Text: "BECAUSE r2"}, []int64{2}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := s.List(t.Context(), tc.f)
			if err != nil {
				t.Fatal(err)
			}
			var numbers []int64
			for _, x := range list {
				numbers = append(numbers, x.Number)
			}
			if d := cmp.Diff(tc.want, numbers); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
		})
	}
	inForce, err := s.Get(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if it := inForce.Items[0]; !it.ExpiresAt.Equal(at(61).Truncate(time.Second)) || it.Policy != "p-r2" || it.PolicyUID != "uid-2" ||
		it.WrittenGeneration != 4 ||
		!it.Due().Equal(it.ExpiresAt) {
		t.Errorf("the grant keeps its place and its end: %+v", it)
	}
	if x, err := s.Update(t.Context(), 1, func(x *approval.Ticket) error { return approve(x, "dan") }); err != nil || x.State() != approval.StateApproved {
		t.Errorf("what was half approved is approved: %v", err)
	}
	for _, number := range []int64{4, 1} {
		j, err := s.Lease(t.Context(), "w", at(100), time.Hour)
		if err != nil || j.Ticket != number {
			t.Errorf("the work goes on with T-%d: %+v, %v", number, j, err)
		}
	}
	if _, ok, err := sessions.New(db, nil).Manager().FindCtx(t.Context(), "token"); err != nil || !ok {
		t.Errorf("who is logged in stays so: %v, %v", ok, err)
	}
}

// Tickets from before the table of words are found by their words.
func TestTicketsOfEarlierVersionsAreFound(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		var long strings.Builder // has more words than one SQL statement inserts
		for i := range approval.MaxText {
			long.WriteRune('一' + rune(i))
		}
		for i, reason := range []string{"it's for $1 and ?", long.String()} {
			x := approvaltest.Ticket(fmt.Sprint("a", i), "r", "")
			x.Reason = reason
			if _, err := New(db).Create(t.Context(), x); err != nil {
				t.Fatal(err)
			}
		}
		had := rowsOf(t, db, "ticket_words")
		for _, sql := range []string{"DELETE FROM ticket_words", "DELETE FROM goose_db_version WHERE version_id = 202611210756"} {
			if err := exec(t, db, sql); err != nil {
				t.Fatal(err)
			}
		}
		again := databasetest.Open(t, dsn)
		if n := rowsOf(t, again, "ticket_words"); n != had || n < approval.MaxText {
			t.Errorf("%d words, want %d", n, had)
		}
		for typed, want := range map[string]int64{"its for": 0, "it s for 1": 1, "一丁": 2} {
			list, err := New(again).List(t.Context(), approval.Filter{Text: typed})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) > 1 || len(list) == 1 && list[0].Number != want || len(list) == 0 && want > 0 {
				t.Errorf("%q: %d tickets, want ticket %d", typed, len(list), want)
			}
		}
	})
}
