package portal

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestAccessUses checks the last use of each statement: only connections that it decided count, between the two names of its row, and
// nobody sees connections of others.
func TestAccessUses(t *testing.T) {
	x := newSite(t)
	p := x.host.input.Policies[0]
	p.Spec.Statements = append(p.Spec.Statements, v1alpha1.Statement{
		SID:       "any",
		Effect:    v1alpha1.EffectAllow,
		Subjects:  []v1alpha1.Subject{"trnv1:rsc:trip-com:iam:sa:app/*"},
		Actions:   []v1alpha1.Action{"redis:connect"},
		Resources: []v1alpha1.ResourceName{"trnv1:rsc:trip-com:redis:clusters:*"},
	})
	now := time.Now().UTC().Truncate(time.Minute)
	see := func(minutes int, sid, subject, resource string) {
		x.flows.see(
			now.Add(-time.Duration(minutes)*time.Minute),
			audit.Edge{Cluster: "m1", Subject: subject, Resource: resource, Action: "redis:connect", Port: 6379,
				Protocol: "TCP", Decision: policy.Allowed, Verdict: audit.VerdictForwarded, Statement: policy.Ref{Policy: "by-hand", SID: sid}},
			1,
		)
	}
	see(50, "eight", portaltest.App888, portaltest.BobsCluster)
	see(40, "eight", portaltest.App888, portaltest.BobsCluster)
	see(30, "nine", portaltest.App889, portaltest.BobsCluster)
	see(20, "any", portaltest.App888, portaltest.LedgerCache)
	see(10, "any", portaltest.App889, portaltest.BobsCluster)
	ago := func(minutes int) string { return now.Add(-time.Duration(minutes) * time.Minute).Format(time.RFC3339) }

	for name, tc := range map[string]struct {
		who, path string
		want      []string
	}{
		"own application: a wildcard counts only its connections": {
			"alice", "applications/app-888", []string{"any " + ago(20), "eight " + ago(40)},
		},
		"own resource: a wildcard counts only connections to it": {
			"bob", "resources/bobs-cluster", []string{"any " + ago(10), "eight " + ago(40), "nine " + ago(30)},
		},
		"resource of others: only the rows of the own application": {
			"alice", "resources/bobs-cluster", []string{"eight " + ago(40)},
		},
		"resource of others without an own application": {"carol", "resources/bobs-cluster", nil},
		"security": {"dave", "resources/bobs-cluster", []string{"any " + ago(10), "eight " + ago(40), "nine " + ago(30)}},
	} {
		t.Run(name, func(t *testing.T) {
			available, got := x.uses(t, tc.who, tc.path)
			if d := cmp.Diff(tc.want, got); d != "" || !available {
				t.Errorf("available %v, -want +got:\n%s", available, d)
			}
		})
	}

	x.flows.err = errUnavailable
	if available, got := x.uses(t, "bob", "resources/bobs-cluster"); available || got != nil {
		t.Errorf("without flows: available %v, %v", available, got)
	}
}

// uses returns the statements of an access list that were used, each with the time.
func (x *site) uses(t *testing.T, who, path string) (available bool, used []string) {
	t.Helper()
	var list struct {
		Available bool
		Items     []struct {
			Sid, State string
			LastUsed   time.Time
		}
	}
	x.as(who).Get("/api/v1/"+path+"/access/uses").Into(t, &list)
	for _, u := range list.Items {
		if (u.State == "used") == u.LastUsed.IsZero() || u.State != "used" && u.State != "unknown" {
			t.Errorf("%s is %s, last used at %v, while nobody watches", u.Sid, u.State, u.LastUsed)
		}
		if !u.LastUsed.IsZero() {
			used = append(used, u.Sid+" "+u.LastUsed.Format(time.RFC3339))
		}
	}
	slices.Sort(used)
	return list.Available, used
}

// TestUsesOfStatements checks the last use of each statement on the access map and on the page of its policy, and the order by it.
func TestUsesOfStatements(t *testing.T) {
	x := newSite(t)
	dave := x.as("dave")
	now := time.Now().UTC().Truncate(time.Minute)
	for sid, app := range map[string]string{"eight": portaltest.App888, "nine": portaltest.App889} {
		minutes := map[string]int{"eight": 40, "nine": 30}[sid]
		x.flows.see(
			now.Add(-time.Duration(minutes)*time.Minute),
			audit.Edge{Cluster: "m1", Subject: app, Resource: portaltest.BobsCluster, Action: "redis:connect", Port: 6379,
				Protocol: "TCP", Decision: policy.Allowed, Verdict: audit.VerdictForwarded, Statement: policy.Ref{Policy: "by-hand", SID: sid}},
			1,
		)
	}
	p := x.host.input.Policies[0]
	p.Spec.Statements = append(p.Spec.Statements, v1alpha1.Statement{
		SID:       "seven",
		Effect:    v1alpha1.EffectAllow,
		Subjects:  []v1alpha1.Subject{portaltest.App888},
		Actions:   []v1alpha1.Action{"redis:connect"},
		Resources: []v1alpha1.ResourceName{portaltest.LedgerCache},
	})
	type use struct {
		Sid, Use, State string
		LastUsed        *time.Time
	}
	type list struct {
		Items                     []use
		FlowsAvailable, Available bool
	}
	said := func(l list) []string {
		var out []string
		for _, u := range l.Items {
			text := u.Sid + " " + u.Use + u.State
			if u.LastUsed != nil {
				text += " " + u.LastUsed.Format(time.RFC3339)
			}
			out = append(out, text)
		}
		return out
	}
	get := func(path string) (l list) {
		dave.Get("/api/v1"+path).Into(t, &l)
		return l
	}
	ago := func(minutes int) string { return now.Add(-time.Duration(minutes) * time.Minute).Format(time.RFC3339) }
	eight, nine, seven := "eight used "+ago(40), "nine used "+ago(30), "seven unknown"
	for path, want := range map[string][]string{
		"/access?q=by-hand":                       {eight, seven, nine},
		"/access?subject=app-888&sort=used":       {seven, eight},
		"/access?subject=app-888&sort=-used":      {eight, seven},
		"/access?resource=bobs-cluster&sort=used": {eight, nine},
		"/policies/by-hand/uses":                  {eight, nine, seven},
	} {
		l := get(path)
		if d := cmp.Diff(want, said(l)); d != "" || !l.FlowsAvailable && !l.Available {
			t.Errorf("%s: -want +got:\n%s", path, d)
		}
	}
	if a := dave.Get("/api/v1/access?sort=used"); a.Status != http.StatusBadRequest {
		t.Errorf("the order by use of the whole fleet: %d", a.Status)
	}
	if a := dave.Get("/api/v1/policies/nothing/uses"); a.Status != http.StatusNotFound {
		t.Errorf("the uses of no policy: %d", a.Status)
	}
	x.flows.err = errUnavailable
	if l := get("/access?q=by-hand"); l.FlowsAvailable || !slices.Equal(said(l), []string{"eight unknown", "seven unknown", "nine unknown"}) {
		t.Errorf("without flows: %+v", l)
	}
	if l := get("/policies/by-hand/uses"); l.Available || len(l.Items) != 0 {
		t.Errorf("without flows: %+v", l)
	}
}

// TestUsesOfExpiringAccess checks that the home page has the last use of each access that ends soon since it was granted, and none while the
// flows cannot be read.
func TestUsesOfExpiringAccess(t *testing.T) {
	x := newSite(t)
	for _, name := range []string{portaltest.BobsCluster, portaltest.LedgerCache} {
		id := map[string]string{portaltest.BobsCluster: "bobs-cluster", portaltest.LedgerCache: "ledger-db-cache"}[name]
		n := x.grantAccess("alice", "app-888", portaltest.App888, id, name, "the new checkout")
		if _, err := x.Tickets.Apply(t.Context(), n, func(t *approval.Ticket) error {
			t.Written(0, policy.PolicyNameFor(name), approval.Written{Generation: 1, UID: "u"}, x.now())
			it := &t.Items[0]
			it.State, it.Duration, it.ExpiresAt, it.GrantedAt = approval.StateEffective, 48*time.Hour, x.now().Add(24*time.Hour), x.now().Add(-24*time.Hour)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC().Truncate(time.Minute)
	seen := func(resource string, decision policy.Verdict, ago time.Duration) {
		x.flows.see(now.Add(-ago), audit.Edge{Cluster: "m1", Subject: portaltest.App888, Resource: resource, Action: "redis:connect", Port: 6379,
			Protocol: "TCP", Decision: decision, Verdict: audit.VerdictForwarded}, 1)
	}
	seen(portaltest.BobsCluster, policy.Unmanaged, time.Hour)
	seen(portaltest.LedgerCache, policy.Allowed, 48*time.Hour)       // before it was granted
	seen(portaltest.LedgerCache, policy.DefaultDenied, 10*time.Hour) // not let in
	type home struct {
		Expiring     []struct{ ID string }
		ExpiringUses []struct {
			Ticket, State string
			LastUsed      *time.Time
		}
	}
	var got home
	x.as("alice").Get("/api/v1/home").Into(t, &got)
	if len(got.Expiring) != 2 || len(got.ExpiringUses) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, u := range got.ExpiringUses {
		switch {
		case u.Ticket == "T-1" && u.State == "used" && u.LastUsed != nil && u.LastUsed.Equal(now.Add(-time.Hour)):
		case u.Ticket == "T-2" && u.State == "unknown" && u.LastUsed == nil:
		default:
			t.Errorf("%+v", u)
		}
	}
	x.flows.err = errUnavailable
	var without home
	x.as("alice").Get("/api/v1/home").Into(t, &without)
	if len(without.Expiring) != 2 || without.ExpiringUses != nil {
		t.Errorf("without flows: %+v", without)
	}
}
