package portal

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestAccessUses checks the last use of each statement: only connections that it decided count, between the two names of its row, and
// nobody learns about connections of others.
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
			Sid      string
			LastUsed time.Time
		}
	}
	x.as(who).Get("/api/v1/"+path+"/access/uses").Into(t, &list)
	for _, u := range list.Items {
		used = append(used, u.Sid+" "+u.LastUsed.Format(time.RFC3339))
	}
	slices.Sort(used)
	return list.Available, used
}
