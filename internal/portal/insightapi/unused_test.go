package insightapi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/featuretest"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/portal/views"
)

// TestCovers checks which resources of statements cover one of a person's resources. A prefix that is no wildcard covers nothing else.
func TestCovers(t *testing.T) {
	own := []string{"a:b:cache-1", "a:b:cache-2", "a:c"}
	for pattern, want := range map[string]bool{
		"a:b:cache-1": true, "a:b:cache": false, "a:b:cache-3": false, "a:b:*": true, "a:d*": false, "*": true, "a:b:cache-2*": true, "b*": false, "": false,
	} {
		if got := covers(pattern, own); got != want {
			t.Errorf("%q covers one of them: %v, want %v", pattern, got, want)
		}
	}
	if covers("*", nil) {
		t.Error("a wildcard covers a resource of a person who has none")
	}
}

// TestUnusedOf checks the row of an unused statement.
func TestUnusedOf(t *testing.T) {
	c := featuretest.Data(t).Catalog()
	used := time.Date(2026, 2, 1, 0, 0, 0, 0, time.FixedZone("+8", 8*3600))
	u := insight.UnusedStatement{Ref: policy.Ref{Policy: "p", SID: "s"}, DaysObserved: 14, LastUsed: &used, Statement: v1alpha1.Statement{
		Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{portaltest.App888}, Actions: []v1alpha1.Action{"redis:connect"},
		Resources: []v1alpha1.ResourceName{portaltest.BobsCluster},
	}}
	got := unusedOf(c, u, views.Origins{}, policy.Grant{})
	if got.Policy != "p" || got.Sid != "s" || got.Effect != "Allow" || got.DaysObserved != 14 || got.Subjects[0].Title != "App 888" ||
		got.Resources[0].Title != "Bob's cluster" || got.Actions[0] != "redis:connect" || !got.LastUsed.Equal(used) || got.LastUsed.Location() != time.UTC {
		t.Errorf("the row is %+v", got)
	}
	if got.Ticket != nil || got.CanRevoke != nil {
		t.Errorf("a statement without a ticket has %v, %v", got.Ticket, got.CanRevoke)
	}
}

// TestRevocationsOfUnused checks that a row of an unused statement names the ticket that requests its revocation while that ticket is under
// way, and whether the reader may see it.
func TestRevocationsOfUnused(t *testing.T) {
	store := &approvaltest.Memory{}
	a := &API{Data: featuretest.Data(t)}
	a.Tickets = &approval.Service{Config: approval.Config{Store: store, Delegations: store, Now: a.Now}}
	revoke := approvaltest.Ticket("app-888", "bobs-cluster", "")
	revoke.Kind, revoke.Items[0].Target = approval.KindRevoke, &approval.Target{Ticket: 7, Item: 1}
	created, err := store.Create(t.Context(), revoke)
	if err != nil {
		t.Fatal(err)
	}
	read := func(who string) (tickets []string, visible bool) {
		t.Helper()
		rows := []openapi.Unused{{Sid: "by-hand"}, {Ticket: new("T-7"), TicketItem: new(0)}, {Ticket: new("T-7"), TicketItem: new(1)}}
		if err := a.addRevocations(featuretest.Context(t, approval.Actor{ID: who}), approval.Actor{ID: who}, rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row.RevocationTicket != nil {
				tickets, visible = append(tickets, *row.RevocationTicket), *row.RevocationVisible
			}
		}
		return tickets, visible
	}
	for who, sees := range map[string]bool{revoke.Requester: true, "erin": false} {
		tickets, visible := read(who)
		if d := cmp.Diff([]string{created.ID()}, tickets); d != "" || visible != sees {
			t.Errorf("%s sees %v, want %v; (-want +got)\n%s", who, visible, sees, d)
		}
	}
	if _, err := store.Update(t.Context(), created.Number, func(x *approval.Ticket) error { return x.Withdraw(revoke.Requester, "no", a.Now()) }); err != nil {
		t.Fatal(err)
	}
	if tickets, _ := read(revoke.Requester); len(tickets) != 0 {
		t.Errorf("a withdrawn request is named: %v", tickets)
	}
}

// TestSeenOf checks that the evidence of a line is copied with all its counts.
func TestSeenOf(t *testing.T) {
	at := featuretest.Now
	got := seenOf(insight.FlowEvidence{Count: 5, First: at, Last: at.Add(time.Hour), Days: 2, DaysObserved: 3, Clusters: []string{"m1"},
		Decisions: map[policy.Verdict]int64{policy.Denied: 4, policy.Allowed: 1}})
	want := openapi.SeenEvidence{Count: 5, FirstSeen: at, LastSeen: at.Add(time.Hour), Days: 2, DaysObserved: 3, Clusters: []string{"m1"},
		Decisions: map[string]int64{"denied": 4, "allowed": 1}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := seenOf(insight.FlowEvidence{}); got.Clusters == nil || got.Decisions == nil {
		t.Error("lists without elements are null in JSON")
	}
}

// TestQuietDaysAreBounded checks the bounds of the period before a statement counts as unused.
func TestQuietDaysAreBounded(t *testing.T) {
	a := &API{Data: featuretest.Data(t)}
	for _, days := range []int{0, -1, maxQuietDays + 1} {
		if _, _, err := a.unused(featuretest.Context(t, approval.Actor{ID: "alice"}), &days, nil, nil); err == nil {
			t.Errorf("%d days are accepted", days)
		}
	}
}

// TestReached checks that the page of an application names what its own statements are about, each once and without those of others.
func TestReached(t *testing.T) {
	statement := func(sid, subject, resource string) v1alpha1.Statement {
		return v1alpha1.Statement{SID: sid, Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{v1alpha1.Subject(subject)},
			Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)}}
	}
	p := &v1alpha1.AccessControlPolicy{}
	p.Name = "by-hand"
	p.Spec.Statements = []v1alpha1.Statement{
		statement("a", portaltest.App888, portaltest.LedgerCache), statement("b", portaltest.App888, portaltest.BobsCluster),
		statement("c", portaltest.App888, portaltest.BobsCluster), statement("d", portaltest.App889, portaltest.LedgerCache)}
	class := &v1alpha1.ResourceClass{Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:redis:clusters:*", LabelKey: "com.trip/redis-cluster",
		Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}}}}}
	class.Name = "redis"
	subjects := &v1alpha1.SubjectClass{Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"}}
	subjects.Name = "application"
	snap := policy.NewSnapshot(policy.Input{Policies: []*v1alpha1.AccessControlPolicy{p}, ResourceClasses: []*v1alpha1.ResourceClass{class},
		SubjectClasses: []*v1alpha1.SubjectClass{subjects}})
	if d := cmp.Diff([]string{portaltest.BobsCluster, portaltest.LedgerCache}, reached(snap, portaltest.App888, featuretest.Now)); d != "" {
		t.Error(d)
	}
}
