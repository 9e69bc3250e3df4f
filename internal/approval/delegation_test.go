package approval_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
)

// TestAuditorsCannotDecideThroughDelegates checks that the delegate of a person who became an auditor cannot decide for them.
func TestAuditorsCannotDecideThroughDelegates(t *testing.T) {
	m := quiet(t)
	if _, err := m.svc.Delegate(t.Context(), m.actorOf("bob"), "dan", m.now, m.now.Add(24*time.Hour), "away"); err != nil {
		t.Fatal(err)
	}
	x := m.submit("alice", grant(0))
	m.approve(x.Number, "carol")
	company := strings.NewReplacer("SECURITY", "erin, frank", "OWNER", "user:bob").Replace(modelCompany)
	m.catalog = readCatalog(t, strings.Replace(company, "members: [otto]", "members: [otto, bob]", 1))
	_, err := m.svc.Decide(t.Context(), m.actorOf("dan"), x.Number, 0, m.version(x.Number), true, "")
	if steps := m.get(x.Number).Items[0].Steps; err == nil ||
		slices.ContainsFunc(steps, func(s approval.Step) bool { return s.Name == "owner" && len(s.Votes) > 0 }) {
		t.Errorf("dan decided for an auditor: %v, %+v", err, steps)
	}
}

func TestDelegation(t *testing.T) {
	m := quiet(t)
	day := 24 * time.Hour
	delegate := func(who, to string, from, till time.Duration) (approval.Delegation, error) {
		return m.svc.Delegate(t.Context(), m.actorOf(who), to, m.now.Add(from), m.now.Add(till), "away")
	}
	for reason, tc := range map[string]struct {
		who, to    string
		from, till time.Duration
	}{
		"to themselves": {"bob", "bob", 0, day}, "to nobody": {"bob", "nobody", 0, day},
		"no time": {"bob", "dan", day, day}, "over": {"bob", "dan", -2 * day, -day},
		"too long": {"bob", "dan", 0, 91 * day}, "an auditor": {"otto", "dan", 0, day},
	} {
		if _, err := delegate(tc.who, tc.to, tc.from, tc.till); err == nil {
			t.Errorf("%s: it was accepted", reason)
		}
	}
	for _, d := range [][2]string{{"bob", "dan"}, {"carol", "alice"}, {"alice", "zoe"}, {"erin", "dan"}, {"frank", "otto"}} {
		if _, err := delegate(d[0], d[1], time.Hour, day); err != nil {
			t.Fatal(err)
		}
	}
	x := m.submit("alice", grant(0))
	try := func(who string) approval.Code {
		_, err := m.svc.Decide(t.Context(), m.actorOf(who), x.Number, 0, m.version(x.Number), true, "")
		return approval.CodeOf(err)
	}
	m.approve(x.Number, "carol")
	if got := try("dan"); got != approval.CodeNotFound {
		t.Errorf("the delegate sees a ticket before the delegation begins: %s", got)
	}
	m.now = m.now.Add(2 * time.Hour)
	if got := try("alice"); got != approval.CodeForbidden {
		t.Errorf("a delegation lets a requester decide their own request: %s", got)
	}
	if got := try("zoe"); got != approval.CodeNotFound {
		t.Errorf("nor does one from the requester: %s", got)
	}
	m.approve(x.Number, "dan")
	if s := m.get(x.Number).Items[0].Steps[1]; s.Votes[0].OnBehalfOf != "bob" || s.State != approval.StepApproved {
		t.Errorf("it is said for whom: %+v", s)
	}
	if got := try("dan"); got != approval.CodeForbidden {
		t.Errorf("for erin, too, would be two steps of one person: %s", got)
	}
	if got := try("otto"); got != approval.CodeForbidden {
		t.Errorf("an auditor decides through a delegation: %s", got)
	}
	m.now = m.now.Add(day)
	m.approve(x.Number, "erin")

	y := m.submit("alice", approval.Request{Items: []approval.RequestItem{{Application: "a", Resource: "high", Actions: []string{"x:write"}}}})
	m.approve(y.Number, "carol")
	if _, err := m.svc.Decide(t.Context(), m.actorOf("dan"), y.Number, 0, m.version(y.Number), true, ""); err == nil {
		t.Error("the delegate decides after the end of the delegation")
	}
	d, err := delegate("bob", "dan", 0, day)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.svc.EndDelegation(t.Context(), m.actorOf("zoe"), d.ID); approval.CodeOf(err) != approval.CodeNotFound {
		t.Errorf("not hers: %v", err)
	}
	if _, err := m.svc.EndDelegation(t.Context(), m.actorOf("bob"), d.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := m.svc.Decide(t.Context(), m.actorOf("dan"), y.Number, 0, m.version(y.Number), true, ""); err == nil {
		t.Error("nor after it was ended")
	}
	if mine, err := m.svc.Delegations(t.Context(), m.actorOf("dan"), true, approval.DelegationFilter{}); err != nil || len(mine) != 3 {
		t.Errorf("one sees one's own: %v, %v", mine, err)
	}
	if all, err := m.svc.Delegations(t.Context(), m.actorOf("otto"), true, approval.DelegationFilter{}); err != nil || len(all) != 6 {
		t.Errorf("an auditor sees all: %v, %v", all, err)
	}
}
