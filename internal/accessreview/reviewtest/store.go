// Package reviewtest contains the conformance suite of accessreview.Store.
package reviewtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
)

// Start is the time of the suite.
var Start = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// Backend is an empty store, with the number of lines of its ledger.
type Backend struct {
	accessreview.Store
	LedgerLines func() int64
}

// Run runs the suite. Each test gets an empty store.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	for name, f := range map[string]func(*testing.T, Backend){"campaigns": campaigns, "build": build, "change lines": changeLines, "lists": lists,
		"counts": counts, "lead": lead} {
		t.Run(name, func(t *testing.T) { f(t, open(t)) })
	}
}

// Campaign returns a new campaign.
func Campaign(name string) accessreview.Campaign {
	return accessreview.Campaign{
		State:      accessreview.StatePreparing,
		CreatedAt:  Start,
		Name:       name,
		CreatedBy:  "sam",
		Rules:      []accessreview.Rule{accessreview.RuleResourceOwner},
		Silence:    accessreview.SilenceShorten,
		Grace:      24 * time.Hour,
		Deadline:   Start.Add(72 * time.Hour),
		WindowDays: 90,
	}
}

// Line returns the line of a ticket's grant.
func Line(number int, reviewers ...string) accessreview.Line {
	return accessreview.Line{Number: number, Version: 1, State: accessreview.LineOpen, Target: approval.Target{Ticket: int64(100 + number)},
		Application: fmt.Sprintf("app%d", number), ApplicationName: fmt.Sprintf("name:app%d", number), Resource: "r", ResourceName: "name:r",
		Actions: []string{"redis:connect"}, Since: Start.Add(-time.Hour), Grant: "v", Reviewers: reviewers, Rule: accessreview.RuleResourceOwner,
		Recommendation: []accessreview.Decision{accessreview.Keep, accessreview.Revoke}[number%2]}
}

func news(c accessreview.Campaign) accessreview.News {
	return accessreview.News{Entries: []ledger.Entry{{At: Start, Actor: "sam", Action: "review.created", Object: accessreview.FormatID(c.ID)}}}
}

// Open creates an open campaign with lines.
func Open(t *testing.T, s accessreview.Store, name string, lines ...accessreview.Line) accessreview.Campaign {
	t.Helper()
	ctx := t.Context()
	c, err := s.Create(ctx, Campaign(name), news)
	if err == nil {
		err = s.Rebuild(ctx, c.ID, "b")
	}
	if err == nil {
		err = s.AddLines(ctx, c.ID, "b", lines)
	}
	if err == nil {
		c, err = s.Change(ctx, c.ID, func(c *accessreview.Campaign) (accessreview.News, error) {
			c.State = accessreview.StateOpen
			return accessreview.News{}, nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func campaigns(t *testing.T, s Backend) {
	ctx := t.Context()
	want := Campaign("first")
	made, err := s.Create(ctx, want, news)
	if err != nil || made.ID == 0 || s.LedgerLines() != 1 {
		t.Fatalf("%+v, %v, %d ledger lines", made, err, s.LedgerLines())
	}
	got, err := s.Campaign(ctx, made.ID)
	if diff := cmp.Diff(made, got); err != nil || diff != "" {
		t.Errorf("read back: %v %s", err, diff)
	}
	no := errors.New("no")
	if _, err := s.Change(ctx, made.ID, func(c *accessreview.Campaign) (accessreview.News, error) { c.Name = "x"; return news(*c), no }); !errors.Is(err, no) {
		t.Errorf("an error is returned unchanged: %v", err)
	}
	changed, err := s.Change(ctx, made.ID, func(c *accessreview.Campaign) (accessreview.News, error) {
		c.Final = &accessreview.Counts{Total: 3}
		c.State = accessreview.StateClosed
		return news(*c), nil
	})
	got, err2 := s.Campaign(ctx, made.ID)
	if diff := cmp.Diff(changed, got); errors.Join(err, err2) != nil || diff != "" || got.Name != "first" || got.Version != 2 || s.LedgerLines() != 2 {
		t.Errorf("what failed left nothing: %+v, %v %v, %d ledger lines %s", got, err, err2, s.LedgerLines(), diff)
	}
	if _, err := s.Campaign(ctx, 99); !errors.Is(err, accessreview.ErrNotFound) {
		t.Errorf("Campaign: %v", err)
	}
	if _, err := s.Change(ctx, 99, nil); !errors.Is(err, accessreview.ErrNotFound) {
		t.Errorf("Change: %v", err)
	}
	second := Open(t, s, "second", Line(1, "bob"))
	for name, tc := range map[string]struct {
		f    accessreview.CampaignFilter
		want []int64
	}{
		"all":      {accessreview.CampaignFilter{}, []int64{second.ID, made.ID}},
		"state":    {accessreview.CampaignFilter{States: []accessreview.State{accessreview.StateOpen, accessreview.StatePreparing}}, []int64{second.ID}},
		"reviewer": {accessreview.CampaignFilter{Reviewers: []string{"x", "bob"}}, []int64{second.ID}},
		"nobody's": {accessreview.CampaignFilter{Reviewers: []string{"x"}}, nil},
		"page":     {accessreview.CampaignFilter{Limit: 1}, []int64{second.ID}},
		"next":     {accessreview.CampaignFilter{Before: second.ID, Limit: 1}, []int64{made.ID}},
	} {
		list, err := s.Campaigns(ctx, tc.f)
		var ids []int64
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		if diff := cmp.Diff(tc.want, ids); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// build checks that only the last attempt adds lines, and only while the campaign is being prepared.
func build(t *testing.T, s Backend) {
	ctx := t.Context()
	c, err := s.Create(ctx, Campaign("first"), news)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddLines(ctx, c.ID, "a", nil); !errors.Is(err, accessreview.ErrNotBuilding) {
		t.Errorf("without an attempt: %v", err)
	}
	for _, attempt := range []string{"a", "b"} {
		err := s.Rebuild(ctx, c.ID, attempt)
		if err == nil {
			err = s.AddLines(ctx, c.ID, attempt, []accessreview.Line{Line(1, "bob"), Line(2)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddLines(ctx, c.ID, "a", []accessreview.Line{Line(3)}); !errors.Is(err, accessreview.ErrNotBuilding) {
		t.Errorf("an earlier attempt: %v", err)
	}
	if err := s.AddLines(ctx, c.ID, "b", []accessreview.Line{Line(1)}); err == nil {
		t.Error("a line is added twice")
	}
	lines, err := s.Lines(ctx, accessreview.LineFilter{Campaign: c.ID})
	want := []accessreview.Line{Line(1, "bob"), Line(2)}
	want[0].Campaign, want[1].Campaign = c.ID, c.ID
	if diff := cmp.Diff(want, lines); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := s.Change(ctx, c.ID, func(c *accessreview.Campaign) (accessreview.News, error) {
		c.State = accessreview.StateOpen
		return accessreview.News{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Rebuild(ctx, c.ID, "c"); !errors.Is(err, accessreview.ErrNotBuilding) {
		t.Errorf("an open campaign is built again: %v", err)
	}
	if err := s.AddLines(ctx, c.ID, "b", []accessreview.Line{Line(3)}); !errors.Is(err, accessreview.ErrNotBuilding) {
		t.Errorf("lines are added to an open campaign: %v", err)
	}
}

func changeLines(t *testing.T, s Backend) {
	ctx := t.Context()
	c := Open(t, s, "first", Line(1, "bob"), Line(2, "bob", "dan"), Line(3, "dan"))
	before := s.LedgerLines()
	no := errors.New("no")
	lines, failed, err := s.ChangeLines(ctx, c.ID, []int{3, 1, 2, 9}, func(x accessreview.Campaign, l *accessreview.Line) (bool, accessreview.News, error) {
		if x.ID != c.ID || x.State != accessreview.StateOpen {
			t.Errorf("the campaign is %+v", x)
		}
		e := accessreview.News{Entries: []ledger.Entry{{At: Start, Action: "review.decided", Object: "R-1"}}}
		switch l.Number {
		case 1:
			l.State, l.Outcome, l.Comment, l.Silent = accessreview.LineDone, accessreview.OutcomeKept, "ok", true
			return true, e, nil
		case 2:
			l.Comment = "not stored"
			return true, e, no
		}
		return false, e, nil
	})
	if err != nil || len(failed) != 2 || !errors.Is(failed[2], no) || !errors.Is(failed[9], accessreview.ErrNotFound) || len(lines) != 3 ||
		lines[0].Number != 3 {
		t.Fatalf("%v, %v, %+v", err, failed, lines)
	}
	got, err := s.Lines(ctx, accessreview.LineFilter{Campaign: c.ID})
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	if got[0].Version != 2 || got[0].Outcome != accessreview.OutcomeKept || got[0].Comment != "ok" || got[1].Version != 1 || got[1].Comment != "" ||
		got[2].Version != 1 {
		t.Errorf("%+v", got)
	}
	if n := s.LedgerLines() - before; n != 1 {
		t.Errorf("%d ledger lines, want the one of the changed line", n)
	}
	waiting, err := s.Waiting(ctx, c.ID)
	if diff := cmp.Diff(map[string]int{"bob": 1, "dan": 2}, waiting); err != nil || diff != "" {
		t.Errorf("waiting: %v %s", err, diff)
	}
	if _, _, err := s.ChangeLines(ctx, 99, []int{1}, nil); !errors.Is(err, accessreview.ErrNotFound) {
		t.Errorf("no campaign: %v", err)
	}
}

func lists(t *testing.T, s Backend) {
	ctx := t.Context()
	a := Open(t, s, "first", Line(1, "bob"), Line(2, "bob", "dan"), Line(3, "dan"))
	statement := Line(3, "eve")
	scope := &approval.StatementScope{Effect: v1alpha1.EffectAllow, Subjects: []string{"net:10.0.0.0/8"}, Resources: []string{"name:r*"}}
	statement.Application, statement.ApplicationName, statement.Resource, statement.ResourceName, statement.Scope = "", "", "", "", scope
	for i := range approval.MaxScopeNames {
		statement.Scope.Resources = append(statement.Scope.Resources, fmt.Sprintf("name:%d:%s", i, strings.Repeat("é", 240)))
	}
	b := Open(t, s, "second", Line(1, "dan"), Line(2, "eve"), statement)
	if _, _, err := s.ChangeLines(ctx, a.ID, []int{3}, func(_ accessreview.Campaign, l *accessreview.Line) (bool, accessreview.News, error) {
		l.State, l.Outcome = accessreview.LineDone, accessreview.OutcomeRevoked
		return true, accessreview.News{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	at := func(id int64, n int) accessreview.Position { return accessreview.Position{Campaign: id, Number: n} }
	for name, tc := range map[string]struct {
		f    accessreview.LineFilter
		want []accessreview.Position
	}{
		"campaign":         {accessreview.LineFilter{Campaign: a.ID}, []accessreview.Position{at(a.ID, 1), at(a.ID, 2), at(a.ID, 3)}},
		"page":             {accessreview.LineFilter{Campaign: a.ID, After: at(a.ID, 1), Limit: 1}, []accessreview.Position{at(a.ID, 2)}},
		"descending":       {accessreview.LineFilter{Campaign: a.ID, Descending: true, Limit: 2}, []accessreview.Position{at(a.ID, 3), at(a.ID, 2)}},
		"descending, page": {accessreview.LineFilter{Campaign: a.ID, Descending: true, After: at(a.ID, 2)}, []accessreview.Position{at(a.ID, 1)}},
		"descending of a person": {accessreview.LineFilter{Campaign: a.ID, Reviewers: []string{"dan"}, Descending: true},
			[]accessreview.Position{at(a.ID, 3), at(a.ID, 2)}},
		"reviewer": {accessreview.LineFilter{Reviewers: []string{"dan"}}, []accessreview.Position{at(b.ID, 1), at(a.ID, 2), at(a.ID, 3)}},
		"two people": {accessreview.LineFilter{Reviewers: []string{"dan", "bob"}, Campaign: a.ID},
			[]accessreview.Position{at(a.ID, 1), at(a.ID, 2), at(a.ID, 3)}},
		"next of person": {accessreview.LineFilter{Reviewers: []string{"dan"}, After: at(b.ID, 1)}, []accessreview.Position{at(a.ID, 2), at(a.ID, 3)}},
		"open of person": {accessreview.LineFilter{Reviewers: []string{"dan"}, States: []accessreview.LineState{accessreview.LineOpen}},
			[]accessreview.Position{at(b.ID, 1), at(a.ID, 2)}},
		"outcome": {accessreview.LineFilter{Campaign: a.ID, Outcomes: []accessreview.Outcome{accessreview.OutcomeRevoked}},
			[]accessreview.Position{at(a.ID, 3)}},
		"recommendation": {accessreview.LineFilter{Campaign: a.ID, Recommendations: []accessreview.Decision{accessreview.Keep}},
			[]accessreview.Position{at(a.ID, 2)}},
		"text":     {accessreview.LineFilter{Campaign: a.ID, Text: "APP2"}, []accessreview.Position{at(a.ID, 2)}},
		"wildcard": {accessreview.LineFilter{Campaign: a.ID, Text: "a%2"}, nil},
		"pair": {accessreview.LineFilter{Campaign: b.ID, Pair: approval.GrantPair{ApplicationName: "name:app2", ResourceName: "name:r"}},
			[]accessreview.Position{at(b.ID, 2)}},
		"scope of a statement": {accessreview.LineFilter{Pair: approval.PairOf("", "", scope)}, []accessreview.Position{at(b.ID, 3)}},
		"subject":              {accessreview.LineFilter{Campaign: b.ID, Text: "10.0.0.0/8"}, []accessreview.Position{at(b.ID, 3)}},
	} {
		lines, err := s.Lines(ctx, tc.f)
		var got []accessreview.Position
		for _, l := range lines {
			got = append(got, at(l.Campaign, l.Number))
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	for people, want := range map[string]bool{"bob": true, "eve": false} {
		if got, err := s.Reviews(ctx, a.ID, []string{people, "x"}); err != nil || got != want {
			t.Errorf("Reviews of %s: %v, %v", people, got, err)
		}
	}
}

func counts(t *testing.T, s Backend) {
	ctx := t.Context()
	a := Open(t, s, "first", Line(1, "bob"), Line(2, "bob", "dan"), Line(3, "dan"), Line(4, "dan"))
	b := Open(t, s, "second", Line(1, "dan"))
	if _, _, err := s.ChangeLines(ctx, a.ID, []int{3, 4}, func(_ accessreview.Campaign, l *accessreview.Line) (bool, accessreview.News, error) {
		l.State = accessreview.LineDecided
		if l.Number == 3 {
			l.State, l.Outcome, l.Silent = accessreview.LineDone, accessreview.OutcomeShortened, true
		}
		return true, accessreview.News{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Count(ctx, nil, a.ID, b.ID)
	want := map[int64]accessreview.Counts{a.ID: {Total: 4, Open: 2, Applying: 1, Shortened: 1, Silent: 1, RecommendKeep: 1, RecommendRevoke: 1},
		b.ID: {Total: 1, Open: 1, RecommendRevoke: 1}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	got, err = s.Count(ctx, []string{"bob", "dan"}, a.ID)
	if err != nil || got[a.ID].Total != 4 || got[a.ID].Open != 2 {
		t.Errorf("a line of two people counts once: %+v %v", got, err)
	}
	got, err = s.Count(ctx, []string{"bob"}, a.ID, b.ID)
	if diff := cmp.Diff(map[int64]accessreview.Counts{a.ID: {Total: 2, Open: 2, RecommendKeep: 1, RecommendRevoke: 1}}, got); err != nil || diff != "" {
		t.Errorf("of a person: %v %s", err, diff)
	}
}

func lead(t *testing.T, s Backend) {
	for _, tc := range []struct {
		who   string
		after time.Duration
		want  bool
	}{{"a", 0, true}, {"b", time.Second, false}, {"a", 2 * time.Second, true}, {"b", 6 * time.Second, true}} {
		if got, err := s.Lead(t.Context(), tc.who, Start.Add(tc.after), 3*time.Second); err != nil || got != tc.want {
			t.Errorf("%+v: %v, %v", tc, got, err)
		}
	}
}
