package accessreview_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

const tenRange = "trnv1:rsc:o:net:cidr:10.0.0.0/8"

func scope(subject string, resources ...string) approval.StatementScope {
	return approval.StatementScope{Subjects: []string{subject}, Resources: resources}
}

// TestStatementsAreReviewed checks who reviews statements, what their lines say, and that a deny is no line.
func TestStatementsAreReviewed(t *testing.T) {
	w := newWorld(t)
	every := name("", "*")
	w.statement("sam", approval.StatementScope{Effect: v1alpha1.EffectDeny, Subjects: []string{"*"}, Resources: []string{every}}, 0)
	c := accessreview.Campaign{}
	leaders := []accessreview.Rule{accessreview.RuleApplicationLeader}
	for _, tc := range []struct {
		reason    string
		requester string
		scope     approval.StatementScope
		rules     []accessreview.Rule
		rule      accessreview.Rule
		want      []string
	}{
		{"bob owns both resources", "sam", scope("*", every), nil, accessreview.RuleResourceOwner, []string{"bob"}},
		{"bob owns an application that is covered", "sam", scope(name("app", "*"), every), nil, accessreview.RuleFallback, []string{"sue"}},
		{"bob requested it", "bob", scope(tenRange, every), nil, accessreview.RuleFallback, []string{"sam", "sue"}},
		{"the owners of one resource", "sam", scope(tenRange, name("", "stock")), nil, accessreview.RuleResourceOwner, []string{"bob", "dan"}},
		{"it covers no resource", "alice", scope(tenRange, name("", "none-*")), nil, accessreview.RuleFallback, []string{"sam", "sue"}},
		{"anyone has no leader", "alice", scope("*", every), leaders, accessreview.RuleFallback, []string{"sam", "sue"}},
		{"no leader is known, and sam requested it", "sam", scope(name("app", "*"), every), leaders, accessreview.RuleFallback, []string{"sue"}},
	} {
		n := w.statement(tc.requester, tc.scope, 0)
		in := w.input()
		in.Rules = tc.rules
		c = w.open(in)
		l := w.line(c.ID, n)
		if l.Rule != tc.rule || !slices.Equal(l.Reviewers, tc.want) {
			t.Errorf("%s: %s %v, want %s %v", tc.reason, l.Rule, l.Reviewers, tc.rule, tc.want)
		}
		if l.Scope == nil || l.Scope.Effect != v1alpha1.EffectAllow || l.Class != "redis" || l.ApplicationName != "" || l.Evidence.At.IsZero() {
			t.Errorf("%s: %+v", tc.reason, l)
		}
		if tc.scope.Resources[0] == every && l.Sensitivity != catalog.SensitivityHigh {
			t.Errorf("%s: the sensitivity is %q, want that of the resource orders", tc.reason, l.Sensitivity)
		}
		w.revoke(n)
		if _, err := w.End(t.Context(), sam, c.ID, "done"); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := w.store.Lines(t.Context(), accessreview.LineFilter{Campaign: c.ID})
	if err != nil || len(lines) != 1 {
		t.Errorf("%d lines, %v, want the statement without the deny", len(lines), err)
	}
}

// TestReviewersOfWideStatements checks that owners of one of many resources do not review a statement about all of them, and that owners of all do.
func TestReviewersOfWideStatements(t *testing.T) {
	w := newWorld(t)
	records := []catalog.Record{{Kind: catalog.KindGroup, ID: catalog.GroupSecurity, Members: []string{"sam"}}, {Kind: catalog.KindPerson, ID: "sam"},
		{Kind: catalog.KindPerson, ID: "bob"}, {Kind: catalog.KindPerson, ID: "dan"}}
	resource := func(i int, owners ...string) {
		r := catalog.Record{Kind: catalog.KindResource, ID: fmt.Sprint("r", i), Name: name("", fmt.Sprint("r", i))}
		for _, o := range owners {
			r.Owners = append(r.Owners, catalog.Owner{Kind: catalog.OwnerPerson, ID: o})
		}
		records = append(records, r)
	}
	reviewers := func() []string {
		w.catalog = catalog.Build(records)
		p, err := w.Preview(t.Context(), sam, w.input())
		if err != nil || len(p.Examples) != 1 || p.Examples[0].Scope == nil {
			t.Fatalf("%+v, %v", p, err)
		}
		return p.Examples[0].Reviewers
	}
	w.statement("alice", scope(tenRange, name("", "r*")), 0)
	resource(0, "bob")
	resource(1, "dan")
	if got := reviewers(); !slices.Equal(got, []string{"sam"}) {
		t.Errorf("the reviewers of the resources of two people are %v, want the security team", got)
	}
	for i := range records {
		if records[i].ID == "r0" {
			records[i].Owners = append(records[i].Owners, catalog.Owner{Kind: catalog.OwnerPerson, ID: "dan"})
		}
	}
	if got := reviewers(); !slices.Equal(got, []string{"dan"}) {
		t.Errorf("the reviewers are %v, want the owner of both resources", got)
	}
}

// TestNobodyLeadsARange checks that the leader of an application does not review a statement that is also about addresses or anyone.
func TestNobodyLeadsARange(t *testing.T) {
	for _, tc := range []struct {
		subjects, want []string
	}{
		{[]string{name("app", "reports")}, []string{"bob"}},
		{[]string{name("app", "reports"), tenRange}, []string{"sam"}},
		{[]string{name("app", "reports"), "*"}, []string{"sam"}},
	} {
		w := newWorld(t)
		w.statement("alice", approval.StatementScope{Subjects: tc.subjects, Resources: []string{name("", "r0")}}, 0)
		w.catalog = catalog.Build([]catalog.Record{{Kind: catalog.KindPerson, ID: "sam"}, {Kind: catalog.KindPerson, ID: "bob"},
			{Kind: catalog.KindGroup, ID: catalog.GroupSecurity, Members: []string{"sam"}}, {Kind: catalog.KindGroup, ID: "team", Lead: "bob"},
			{Kind: catalog.KindApplication, ID: "reports", Name: name("app", "reports"), Owners: []catalog.Owner{{Kind: catalog.OwnerGroup, ID: "team"}}}})
		in := w.input()
		in.Rules = []accessreview.Rule{accessreview.RuleApplicationLeader}
		p, err := w.Preview(t.Context(), sam, in)
		if err != nil || len(p.Examples) != 1 || !slices.Equal(p.Examples[0].Reviewers, tc.want) {
			t.Errorf("%v: %+v, %v, want the reviewers %v", tc.subjects, p, err, tc.want)
		}
	}
}

// TestScopeOfStatements checks which statements the scope of a campaign selects.
func TestScopeOfStatements(t *testing.T) {
	w := newWorld(t)
	w.statement("sam", scope(tenRange, name("", "orders"), name("", "stock")), 0) // high and low, of bob and of the team data
	w.statement("sam", scope(name("app", "cart"), "trnv1:rsc:o:mq:topics:*"), 0)  // covers no resource, and an application of the team shop
	for reason, tc := range map[string]struct {
		scope accessreview.Scope
		want  int
	}{
		"everything":                    {accessreview.Scope{}, 2},
		"the class of the resources":    {accessreview.Scope{Classes: []string{"redis"}}, 1},
		"the class of a prefix":         {accessreview.Scope{Classes: []string{"mq"}}, 1},
		"a team of one resource":        {accessreview.Scope{Teams: []string{"data"}}, 1},
		"a team of an application":      {accessreview.Scope{Teams: []string{"shop"}}, 1},
		"the class and the team":        {accessreview.Scope{Teams: []string{"shop"}, Classes: []string{"mq"}}, 1},
		"the class of another team":     {accessreview.Scope{Teams: []string{"data"}, Classes: []string{"mq"}}, 0},
		"the sensitivity of one":        {accessreview.Scope{Sensitivities: []catalog.Sensitivity{catalog.SensitivityHigh}}, 1},
		"another resource of the team":  {accessreview.Scope{Sensitivities: []catalog.Sensitivity{catalog.SensitivityHigh}, Teams: []string{"data"}}, 0},
		"no resource is of sensitivity": {accessreview.Scope{Sensitivities: []catalog.Sensitivity{catalog.SensitivityMedium}}, 0},
		"age":                           {accessreview.Scope{OlderThan: time.Hour}, 0},
	} {
		in := w.input()
		in.Scope = tc.scope
		p, err := w.Preview(t.Context(), sam, in)
		if err != nil || p.Accesses != tc.want {
			t.Errorf("%s: %d, %v, want %d", reason, p.Accesses, err, tc.want)
		}
	}
}

// TestDecisionsAboutStatements checks that keep, shorten, revoke and the silence work for statements, and that the ledger names what they are about.
func TestDecisionsAboutStatements(t *testing.T) {
	w := newWorld(t)
	kept := w.statement("sam", scope("*", name("", "orders")), 0)
	shortened := w.statement("sam", scope(tenRange, name("", "orders")), 0)
	revoked := w.statement("sam", scope(tenRange, name("", "orders"), name("", "stock")), 0)
	silent := w.statement("sam", scope("*", name("", "stock")), 0)
	ended := w.statement("sam", scope(tenRange, name("", "stock")), 0)
	extended := w.statement("sam", scope("*", name("", "*")), 240*time.Hour)
	c := w.open(w.input())
	for n, d := range map[int64]accessreview.Decision{kept: accessreview.Keep, shortened: accessreview.Shorten, revoked: accessreview.Revoke} {
		if err := w.decide(bob, c.ID, n, d); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
	if err := w.decide(dan, c.ID, kept, accessreview.Keep); approval.CodeOf(err) != approval.CodeNotFound {
		t.Errorf("dan owns no resource of the statement: %v", err)
	}
	w.revoke(ended)
	w.statement("sam", scope("*", name("", "*")), 480*time.Hour, extended)
	w.work()
	if l := w.line(c.ID, ended); l.Outcome != accessreview.OutcomeEnded {
		t.Errorf("the line of the statement that ended is %s %s", l.State, l.Outcome)
	}
	if l := w.line(c.ID, extended); l.State != accessreview.LineOpen || l.Changed.IsZero() || len(l.SIDs) != 2 {
		t.Errorf("the line does not follow its statement: %+v", l)
	}
	if l := w.line(c.ID, shortened); l.Outcome != accessreview.OutcomeShortened || !w.ticket(shortened).Items[0].End().Equal(l.Until) || l.Until.IsZero() {
		t.Errorf("the line is %s %s until %s, the statement ends at %s", l.State, l.Outcome, l.Until, w.ticket(shortened).Items[0].End())
	}
	if l := w.line(c.ID, revoked); l.Outcome != accessreview.OutcomeRevoked || w.ticket(revoked).Items[0].State != approval.StateRevoking {
		t.Errorf("the line is %s %s, the statement is %s", l.State, l.Outcome, w.ticket(revoked).Items[0].State)
	}
	w.now = c.Deadline
	w.work()
	if end, want := w.ticket(silent).Items[0].End(), c.Deadline.Add(c.Grace).Truncate(time.Second); !end.Equal(want) {
		t.Errorf("the statement that nobody decided ends at %s, want %s", end, want)
	}
	if end := w.ticket(kept).Items[0].End(); !end.IsZero() {
		t.Errorf("the kept statement ends at %s", end)
	}
	if got := w.campaign(c.ID); got.State != accessreview.StateClosed || got.Final.Total != 6 || got.Final.Silent != 2 {
		t.Errorf("the campaign is %s with %+v", got.State, got.Final)
	}
	for _, e := range w.entries(c.ID) {
		if e.Action == "review.decided" && e.Details["decision"] == string(accessreview.Revoke) {
			want := map[string]string{"subjects": tenRange, "resources": name("", "orders") + ", " + name("", "stock")}
			got := map[string]string{"subjects": e.Details["subjects"], "resources": e.Details["resources"]}
			if d := cmp.Diff(want, got); d != "" || e.Details["application"] != "" {
				t.Errorf("the ledger names the statement as %+v: %s", e.Details, d)
			}
		}
	}
}
