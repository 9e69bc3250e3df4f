package flowapi

import (
	"encoding/csv"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/featuretest"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// granted returns an allow statement between two ends as written.
func granted(subject, resource string, wildcard bool) *governance.Edge {
	return &governance.Edge{Grant: policy.Grant{Ref: policy.Ref{Policy: policy.PolicyNameFor(portaltest.BobsCluster), SID: "t-7-1"}, Effect: policy.Allow,
		Subject: subject, Resource: resource, Wildcard: wildcard}}
}

// TestGrantFilter checks which unused statements a caller sees: those with an own exact name, and wildcards over own resources. A wildcard
// over own applications is about somebody else's resource.
func TestGrantFilter(t *testing.T) {
	const prefix = "trnv1:rsc:trip-com:redis:clusters:*"
	own := &audit.Scope{Subjects: []string{portaltest.App888}, Resources: []string{portaltest.BobsCluster}}
	for name, tc := range map[string]struct {
		filter audit.Filter
		edge   *governance.Edge
		want   bool
	}{
		"all for the security team":     {audit.Filter{}, granted(portaltest.App889, portaltest.LedgerCache, false), true},
		"own application":               {audit.Filter{Within: own}, granted(portaltest.App888, portaltest.LedgerCache, false), true},
		"own application to a wildcard": {audit.Filter{Within: own}, granted(portaltest.App888, prefix, true), true},
		"own resource":                  {audit.Filter{Within: own}, granted("*", portaltest.BobsCluster, false), true},
		"wildcard over an own resource": {audit.Filter{Within: own}, granted(portaltest.App889, prefix, true), true},
		"others":                        {audit.Filter{Within: own}, granted(portaltest.App889, portaltest.LedgerCache, false), false},
		"everybody to others' resource": {audit.Filter{Within: own}, granted("*", portaltest.LedgerCache, false), false},
		"nothing owned":                 {audit.Filter{Within: &audit.Scope{}}, granted("*", prefix, true), false},
		"covers the subject":            {audit.Filter{Subjects: []string{portaltest.App888}}, granted("*", portaltest.LedgerCache, false), true},
		"another subject":               {audit.Filter{Subjects: []string{portaltest.App889}}, granted(portaltest.App888, prefix, true), false},
		"another resource":              {audit.Filter{Resources: []string{portaltest.LedgerCache}}, granted("*", portaltest.BobsCluster, false), false},
		"text":                          {audit.Filter{Text: "BOBS"}, granted("*", portaltest.BobsCluster, false), true},
		"another text":                  {audit.Filter{Text: "ledger"}, granted("*", portaltest.BobsCluster, false), false},
	} {
		if got := grantFilter(tc.filter)(tc.edge); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestDrawTraffic checks the view of a link with its ends, its owner and the ticket of its statement, and its row of the table.
func TestDrawTraffic(t *testing.T) {
	a := newAPI(t, flows{})
	out := openapi.TrafficMap{Until: featuretest.Now}
	a.drawTraffic(&out, policy.NewSnapshot(policy.Input{}), []governance.TrafficLink{
		{Ends: governance.Ends{Subject: portaltest.App888, Resource: portaltest.BobsCluster}, Disagrees: true,
			LastSeen: featuretest.Now, LastUsed: featuretest.Now,
			Seen: map[policy.Verdict]int64{policy.Allowed: 3, policy.Denied: 0}, Grant: granted(portaltest.App888, portaltest.BobsCluster, false)},
		{Ends: governance.Ends{Source: "=10.0.0.0/24", Resource: portaltest.BobsCluster}, Seen: map[policy.Verdict]int64{policy.Audited: 2}},
	})
	if out.Total != 2 || out.Cut || len(out.Nodes) != 3 || len(out.Teams) != 2 {
		t.Fatalf("%+v", out)
	}
	l := out.Links[0]
	if *l.Allowed != 3 || *l.Denied != 0 || l.Audited != nil || !*l.Disagrees || !*l.Granted || *l.Ticket != "T-7" || *l.Sid != "t-7-1" {
		t.Errorf("%+v", l)
	}
	if n := out.Nodes[out.Links[1].From]; n.Kind != openapi.TrafficNodeKindUnnamed || n.Name != "" || n.Id != nil || n.Team != nil {
		t.Errorf("the end without a name is %+v", n)
	}
	if out.Links[1].To != l.To {
		t.Error("a resource has two nodes")
	}
	w := httptest.NewRecorder()
	if err := newTrafficTable(&out).VisitGetTrafficMapResponse(w); err != nil {
		t.Fatal(err)
	}
	table, err := csv.NewReader(w.Body).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"application", "application title", "application team", "resource", "resource title", "resource team", "allowed", "audited", "unmanaged",
			"default denied", "denied", "last seen", "granted", "last used", "until", "policy", "statement", "ticket"},
		{portaltest.App888, "App 888", "Alice", portaltest.BobsCluster, "Bob's cluster", "Bob", "3", "", "", "", "0", "2026-03-01T09:00:00Z", "true",
			"2026-03-01T09:00:00Z", "", policy.PolicyNameFor(portaltest.BobsCluster), "t-7-1", "T-7"},
		{"", "'=10.0.0.0/24", "", portaltest.BobsCluster, "Bob's cluster", "Bob", "", "2", "", "", "", "", "false", "", "", "", "", ""},
	}
	if d := cmp.Diff(want, table); d != "" {
		t.Error(d)
	}
}

// TestDrawTrafficIsBounded checks that a map never has more links than its maximum, and says how many there are.
func TestDrawTrafficIsBounded(t *testing.T) {
	links := make([]governance.TrafficLink, maxTrafficLinks+1)
	for i := range links {
		ends := governance.Ends{Source: fmt.Sprint(i), Resource: portaltest.BobsCluster}
		links[i] = governance.TrafficLink{Ends: ends, Seen: map[policy.Verdict]int64{policy.Allowed: 1}}
	}
	var out openapi.TrafficMap
	newAPI(t, flows{}).drawTraffic(&out, policy.NewSnapshot(policy.Input{}), links)
	if len(out.Links) != maxTrafficLinks || !out.Cut || out.Total != maxTrafficLinks+1 {
		t.Errorf("%d links of %d, cut %v", len(out.Links), out.Total, out.Cut)
	}
}
