package approval_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// during returns a request like grant, for hours of some days.
func during(d time.Duration, from, to string, days ...v1alpha1.Weekday) approval.Request {
	r := grant(d)
	r.Items[0].Hours = &v1alpha1.WeeklyHours{TimeZone: "Europe/Berlin", Periods: []v1alpha1.DailyPeriod{{Days: days, From: from, To: to}}}
	return r
}

func TestHoursOfARequest(t *testing.T) {
	m := quiet(t)
	plan := func(r approval.Request) approval.Plan {
		t.Helper()
		p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), r)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, r := range []approval.Request{during(0, "09:00", "09:00", "Mon"), during(0, "09:00", "18:00"), during(0, "09:00", "18:00", "Someday")} {
		p, problem := plan(r), new(approval.Error)
		if !errors.As(p.Items[0].Err, &problem) || problem.Code != approval.CodeInvalid || len(problem.Fields) != 1 ||
			problem.Fields[0].Path != "items[0].hours" {
			t.Errorf("%+v: got error %+v", r.Items[0].Hours, p.Items[0].Err)
		}
	}

	week := v1alpha1.Weekdays()
	today := slices.Index(week, v1alpha1.Weekday(m.now.In(berlin(t)).Format("Mon")))
	day := func(after int) v1alpha1.Weekday { return week[(today+after)%len(week)] }
	n := m.submit("alice", during(100*time.Hour, "00:00", "24:00", day(0), day(1), day(0))).Number
	it := m.get(n).Items[0]
	text := it.Hours.String()
	if len(it.Hours.Periods[0].Days) != 2 || !slices.Contains(it.Shown.Lines, "only during "+text) {
		t.Errorf("got hours %s and lines %q", it.Hours, it.Shown.Lines)
	}
	m.approve(n, "carol", "bob", "erin")
	m.settle()
	m.is(n, approval.StateEffective)
	if s := approval.Statement(m.get(n).Items[0]); s.Hours.String() != text {
		t.Errorf("got the statement %+v", s)
	}

	if p := plan(grant(50 * time.Hour)); p.Kind != approval.KindGrant || p.Items[0].Covered != nil || p.Items[0].Err != nil {
		t.Errorf("access at any hour is taken for what exists: %+v", p)
	}
	if p := plan(during(50*time.Hour, "09:00", "18:00", day(2))); p.Kind != approval.KindGrant || p.Items[0].Covered != nil {
		t.Errorf("access at other hours is taken for what exists: %+v", p)
	}
	if p := plan(during(50*time.Hour, "10:00", "11:00", day(1))); approval.CodeOf(p.Items[0].Err) != approval.CodeInvalid {
		t.Errorf("access for a shorter time, within the hours, is not known to exist: %+v", p)
	}

	m.now = m.now.Add(20 * time.Hour)
	x := m.submit("alice",
		approval.Request{Kind: approval.KindExtend, Items: []approval.RequestItem{{Target: &approval.Target{Ticket: n}, Duration: 100 * time.Hour}}})
	if got := x.Items[0].Hours; got.String() != text {
		t.Errorf("the extension has the hours %s", got)
	}
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestAccessOutsideOfItsHours checks that an access outside of its hours does not wait for them.
func TestAccessOutsideOfItsHours(t *testing.T) {
	m := quiet(t)
	local := m.now.In(berlin(t))
	tomorrow := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, local.Location())
	n := m.submit("alice", during(0, "00:00", "24:00", v1alpha1.Weekday(tomorrow.Format("Mon")))).Number
	m.approve(n, "carol", "bob", "erin")
	m.settle()
	m.is(n, approval.StateEffective)
	it := m.get(n).Items[0]
	if begin, outside := it.HoursBegin(m.now); !outside || !begin.Equal(tomorrow) {
		t.Errorf("got %s, %t, want that they begin at %s", begin, outside, tomorrow)
	}
	if begin, outside := it.HoursBegin(tomorrow); outside {
		t.Errorf("the hours have begun, and are said to begin at %s", begin)
	}
	if p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), grant(50*time.Hour)); err != nil || p.Items[0].Err != nil || p.Items[0].Duplicate != 0 {
		t.Errorf("access at any hour cannot be requested: %+v, %v", p, err)
	}
}
