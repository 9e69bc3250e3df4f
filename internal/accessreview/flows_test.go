package accessreview_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/audit/insight/insighttest"
	"github.com/acp-io/acp/internal/policy"
)

// TestEvidence checks what the flows of a member say about accesses. What cannot be judged is unknown, and never unused.
func TestEvidence(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	orders, every := name("", "orders"), name("", "*")
	in := policy.Input{
		SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "app"},
			Spec: v1alpha1.SubjectClassSpec{Pattern: v1alpha1.NamePattern(name("app", "*")), LabelKey: "app"}}},
		ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "redis"},
			Spec: v1alpha1.ResourceClassSpec{Pattern: v1alpha1.NamePattern(every), LabelKey: "redis",
				Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}}}},
	}
	allow := func(sid, app, resource string) {
		in.Policies = append(in.Policies, &v1alpha1.AccessControlPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyShard(policy.PolicyNameFor(resource), len(in.Policies)+1)},
			Spec: v1alpha1.AccessControlPolicySpec{
				Statements: []v1alpha1.Statement{{SID: sid, Effect: v1alpha1.EffectAllow, Actions: []v1alpha1.Action{"redis:connect"},
					Subjects: []v1alpha1.Subject{v1alpha1.Subject(name("app", app))}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)}}},
			},
		})
	}
	allow("t-1-1", "cart", orders)
	allow("t-2-1", "search", orders)
	allow("t-4-1", "cart", every)
	seen := now.Add(-10 * day)
	flows := &audit.Batch{Rollups: []audit.Rollup{{Bucket: seen, Count: 7, FirstSeen: seen, LastSeen: seen.Add(time.Second),
		Edge: audit.Edge{
			Cluster:       "m1",
			SourceCluster: "m1",
			Subject: name(
				"app",
				"cart",
			),
			Resource: orders,
			Port:     6379,
			Protocol: v1alpha1.ProtocolTCP,
			Decision: policy.Allowed,
			Verdict:  audit.VerdictForwarded,
		}}}}
	snap := policy.NewSnapshot(in)
	began := now.Add(-400 * day)
	read := func(watchedDays int, members ...string) map[int64]accessreview.Evidence {
		t.Helper()
		watched := &audit.Batch{Watched: []audit.WatchedSpan{{Source: "m1", From: now.Add(-time.Duration(watchedDays) * day), To: now}}}
		f := accessreview.Flows{Reader: insighttest.NewModel(flows, watched), Snapshot: func() (*policy.Snapshot, bool) { return snap, true },
			Fleet: func() insight.Fleet { return insight.Fleet{Everywhere: members} }}
		var grants []approval.StandingGrant
		for i, resource := range []string{orders, orders, orders, every} {
			n := int64(i + 1)
			grants = append(grants, approval.StandingGrant{Target: approval.Target{Ticket: n}, ResourceName: resource,
				Since: began, SIDs: []string{approval.SID(n, 0)}})
		}
		got, err := f.Evidence(t.Context(), grants, 90, now)
		if err != nil {
			t.Fatal(err)
		}
		out := map[int64]accessreview.Evidence{}
		for of, e := range got {
			out[of.Ticket] = e
		}
		return out
	}
	got := read(91, "m1")
	if e := got[1]; e.Count != 7 || !e.LastUsed.Equal(seen.Add(time.Second)) || !e.Watched || e.Days != 90 {
		t.Errorf("used: %+v", e)
	}
	if e := got[2]; e.Count != 0 || !e.LastUsed.IsZero() || !e.Watched || e.At.IsZero() {
		t.Errorf("not used, and watched: %+v", e)
	}
	if e := got[3]; !e.At.IsZero() || e.Watched {
		t.Errorf("no policy has the statement, so its use is not known: %+v", e)
	}
	if e := got[4]; e.Count != 7 {
		t.Errorf("a wildcard is used through any resource: %+v", e)
	}
	if e := read(30, "m1")[2]; e.Watched || e.WatchedPercent > 34 {
		t.Errorf("watched for a third of the window, for example because roll-ups are kept for 30 days: %+v", e)
	}
	if e := read(91, "m1", "m2")[2]; e.Watched || e.Member != "m2" {
		t.Errorf("the resource is also placed in a member that was not watched: %+v", e)
	}
	began = now.Add(-5 * day)
	if e := read(91, "m1")[1]; e.Count != 0 || !e.LastUsed.IsZero() || e.Days != 5 {
		t.Errorf("what was seen before the access began is no use of it: %+v", e)
	}
}

// TestEvidenceOfStatements checks that a connection is a use of the statements of tickets that allow it, and that a statement about several resources,
// or about a prefix, is unused only if all of the members that it concerns were watched.
func TestEvidenceOfStatements(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	orders, stock, every := name("", "orders"), name("", "stock"), name("", "*")
	in := policy.Input{
		SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "app"},
			Spec: v1alpha1.SubjectClassSpec{Pattern: v1alpha1.NamePattern(name("app", "*")), LabelKey: "app"}}},
		ResourceClasses: []*v1alpha1.ResourceClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "stock"}, Spec: v1alpha1.ResourceClassSpec{Pattern: v1alpha1.NamePattern(name("", "s*")), LabelKey: "redis",
				Placement: v1alpha1.Placement{Clusters: &[]v1alpha1.ClusterName{"m2"}},
				Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{Pattern: v1alpha1.NamePattern(name("", "o*")), LabelKey: "redis",
				Placement: v1alpha1.Placement{Clusters: &[]v1alpha1.ClusterName{"m1"}},
				Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}}},
		},
		Policies: []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyShard(policy.StatementsPolicy, 2)}}},
	}
	scopes := []approval.StatementScope{scope(name("app", "*"), orders), scope(name("app", "search"), orders), scope(name("app", "search"), orders, stock),
		scope(name("app", "*"), name("", "o*")), scope(tenRange, orders), scope("*", stock)}
	var grants []approval.StandingGrant
	for i, x := range scopes {
		sid := approval.SID(int64(i+1), 0)
		g := approval.StandingGrant{Target: approval.Target{Ticket: int64(i + 1)}, Scope: &x, Since: now.Add(-400 * day), SIDs: []string{sid}}
		grants = append(grants, g)
		st := approval.Statement(approval.Item{SID: sid, Actions: []string{"redis:connect"}, Scope: &x})
		st.Effect = v1alpha1.EffectAllow
		in.Policies[0].Spec.Statements = append(in.Policies[0].Spec.Statements, st)
	}
	unwritten := scope("*", every)
	grants = append(grants, approval.StandingGrant{Target: approval.Target{Ticket: 7}, Scope: &unwritten, Since: now.Add(-400 * day), SIDs: []string{"t-7-1"}})
	seen := now.Add(-10 * day)
	rollup := func(e audit.Edge) audit.Rollup {
		e.Cluster, e.Resource, e.Port, e.Protocol = "m1", orders, 6379, v1alpha1.ProtocolTCP
		e.Decision, e.Verdict = policy.Allowed, audit.VerdictForwarded
		return audit.Rollup{Bucket: seen, Count: 7, FirstSeen: seen, LastSeen: seen.Add(time.Second), Edge: e}
	}
	flows := &audit.Batch{Rollups: []audit.Rollup{rollup(audit.Edge{SourceCluster: "m1", Subject: name("app", "cart")}),
		rollup(audit.Edge{Source: "10.1.2.0/24"})}}
	snap := policy.NewSnapshot(in)
	read := func(members ...string) map[int64]accessreview.Evidence {
		t.Helper()
		batches := []*audit.Batch{flows}
		fleet := insight.Fleet{Known: true}
		for _, m := range []string{"m1", "m2", "m3"} {
			fleet.Members = append(fleet.Members, insight.Member{Name: m})
		}
		for _, m := range members {
			batches = append(batches, &audit.Batch{Watched: []audit.WatchedSpan{{Source: m, From: now.Add(-91 * day), To: now}}})
		}
		f := accessreview.Flows{Reader: insighttest.NewModel(batches...), Snapshot: func() (*policy.Snapshot, bool) { return snap, true },
			Fleet: func() insight.Fleet { return fleet }}
		got, err := f.Evidence(t.Context(), grants, 90, now)
		if err != nil {
			t.Fatal(err)
		}
		out := map[int64]accessreview.Evidence{}
		for of, e := range got {
			out[of.Ticket] = e
		}
		return out
	}
	got := read("m1", "m2")
	for n, want := range map[int64]struct {
		reason  string
		count   int64
		watched bool
	}{
		1: {"the subject is covered by a prefix", 7, true},
		2: {"not used, and watched", 0, true},
		3: {"not used, and watched at each resource", 0, true},
		4: {"used, but a prefix of resources concerns a member that was not watched", 7, false},
		5: {"an address of the range connected", 7, true},
		6: {"the resource of the other member was not used", 0, true},
	} {
		if e := got[n]; e.At.IsZero() || e.Count != want.count || e.LastUsed.IsZero() != (want.count == 0) || e.Watched != want.watched {
			t.Errorf("%s: %+v", want.reason, e)
		}
	}
	if e := got[7]; !e.At.IsZero() || e.Watched {
		t.Errorf("no policy has the statement, so its use is not known: %+v", e)
	}
	if e := read("m1", "m2", "m3")[4]; !e.Watched {
		t.Errorf("every member was watched: %+v", e)
	}
	flows.Rollups = []audit.Rollup{rollup(audit.Edge{Source: "outside"})}
	got = read("m1", "m2")
	if e := got[5]; !e.Uncertain || e.Count != 0 || !e.LastUsed.IsZero() {
		t.Errorf("a connection from an unknown address may be a use of the range: %+v", e)
	}
	if e := got[2]; e.Uncertain {
		t.Errorf("a connection from an unknown address is no use of an application: %+v", e)
	}
	got = read("m1")
	if e := got[3]; e.Watched || e.Member != "m2" {
		t.Errorf("one of the resources is placed in a member that was not watched: %+v", e)
	}
	if e := got[2]; !e.Watched {
		t.Errorf("the resource is placed in the member that was watched: %+v", e)
	}
}
