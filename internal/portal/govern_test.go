package portal

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestGovernanceRoles checks who may read the governance pages, and who may downgrade and resume.
func TestGovernanceRoles(t *testing.T) {
	x := newSite(t)
	for _, path := range []string{"/fleet", "/access", "/access/graph", "/access/path?from=app-888&to=bobs-cluster", "/policies", "/findings", "/downgrade"} {
		for who, want := range map[string]int{"alice": 403, "bob": 403, "carol": 403, "dave": 200, "grace": 200} {
			if a := x.as(who).Get("/api/v1" + path); a.Status != want {
				t.Errorf("%s %s: %d %s", who, path, a.Status, a.Body)
			}
		}
	}
	body := map[string]any{"scope": "all", "until": time.Now().Add(time.Hour).UTC(), "reason": "an outage"}
	for _, who := range []string{"alice", "bob", "carol", "grace"} {
		if a := x.as(who).Post("/api/v1/downgrade", body); a.Status != http.StatusForbidden {
			t.Errorf("%s downgrades: %d %s", who, a.Status, a.Body)
		}
		if a := remove(x.as(who), "/downgrade", map[string]any{"scope": "all", "reason": "no"}); a.Status != http.StatusForbidden {
			t.Errorf("%s resumes: %d %s", who, a.Status, a.Body)
		}
	}
	if p := x.host.Protection(portaltest.BobsCluster); p.Spec.TemporaryAudit != nil {
		t.Error("a refused call opened a resource")
	}
}

// TestFleet checks the list of members and the findings of the fleet.
func TestFleet(t *testing.T) {
	x := newSite(t)
	since := metav1.NewTime(time.Unix(1_700_000_000, 0))
	x.host.members = []*v1alpha1.MemberCluster{
		{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Status: v1alpha1.MemberClusterStatus{
			State:             v1alpha1.MemberClusterReady,
			Since:             &since,
			Engine:            "direct",
			KubernetesVersion: "v1.34.2",
			Findings: []v1alpha1.MemberFinding{
				{
					Code:          "GuardMissing",
					Severity:      v1alpha1.FindingWarns,
					Message:       "the objects were changed",
					MessageCode:   "guard.changed",
					MessageParams: `{"objects":["a"]}`,
				},
			},
			Identities: &v1alpha1.MemberIdentities{
				Used:       5,
				Limit:      65535,
				Labels:     []v1alpha1.IdentityLabel{{Key: "app", Values: 4}},
				ObservedAt: since,
			},
			Guard: v1alpha1.GuardMissing,
		}},
	}
	held := x.host.input.Resources[0].DeepCopy()
	held.Status.Clusters = []v1alpha1.ClusterState{
		{Name: "m1", State: v1alpha1.MemberRealized, DesiredRevision: "a", ObservedRevision: "a", Mode: v1alpha1.ModeEnforce},
		{Name: "m2", State: v1alpha1.MemberUnreachable, DesiredRevision: "a", Message: "m2 does not answer"},
	}
	x.host.input.Resources = []*v1alpha1.ProtectedResource{held}
	dave := x.as("dave")
	now := x.now()
	if err := x.flows.Append(
		t.Context(),
		&audit.Batch{ID: "watched", Watched: []audit.WatchedSpan{{Source: "m1", From: now.Add(-time.Minute), To: now}}},
	); err != nil {
		t.Fatal(err)
	}
	type member struct {
		Name, State, Guard, Engine string
		Warns, Behind              int
		Identities                 *struct{ Labels []struct{ Key string } }
	}
	var fleet struct {
		Items    []member
		Reported bool
	}
	dave.Get("/api/v1/fleet").Into(t, &fleet)
	if len(fleet.Items) != 2 || !fleet.Reported {
		t.Fatalf("%+v", fleet)
	}
	if m := fleet.Items[0]; m.Name != "m1" || m.State != "Ready" || m.Guard != "Missing" || m.Engine != "direct" || m.Warns != 1 || m.Behind != 0 ||
		m.Identities == nil || len(m.Identities.Labels) != 0 {
		t.Errorf("%+v", m)
	}
	if m := fleet.Items[1]; m.Name != "m2" || m.State != "Unknown" || m.Engine != "" || m.Behind != 1 || m.Warns != 1 {
		t.Errorf("a member without a report: %+v", m)
	}
	var one struct {
		Member   member
		Findings []struct{ Code string }
		Units    []struct{ State struct{ State string } }
	}
	dave.Get("/api/v1/fleet/m1").Into(t, &one)
	if len(one.Findings) != 1 || len(one.Units) != 0 || len(one.Member.Identities.Labels) != 1 {
		t.Errorf("%+v", one)
	}
	dave.Get("/api/v1/fleet/m2").Into(t, &one)
	if len(one.Units) != 1 || one.Units[0].State.State != "Unreachable" || len(one.Findings) != 1 || one.Findings[0].Code != "FlowsUnwatched" {
		t.Errorf("a member whose flows are not watched: %+v", one)
	}
	x.flows.err = audit.ErrUnavailable
	dave.Get("/api/v1/fleet/m1").Into(t, &one)
	if len(one.Findings) != 2 || one.Findings[1].Code != "FlowsUnwatched" {
		t.Errorf("without the flow store: %+v", one)
	}
	x.flows.err = nil
	if a := dave.Get("/api/v1/fleet/m3"); a.Status != http.StatusNotFound {
		t.Errorf("%d", a.Status)
	}
	var found struct {
		Items []struct {
			Kind, Member string
			Message      message.Message
		}
		Kinds map[string]int
	}
	dave.Get("/api/v1/findings").Into(t, &found)
	if d := cmp.Diff(map[string]int{"guard": 1, "unreachable": 1}, found.Kinds); d != "" || len(found.Items) != 2 || found.Items[0].Kind != "unreachable" {
		t.Errorf("not ordered by severity: %+v %s", found, d)
	}
	if m := found.Items[0].Message; m != message.Verbatim("m2 does not answer") {
		t.Errorf("an older adapter wrote no code, and the message is %+v", m)
	}
	if m := found.Items[1].Message; m.Code != "guard.changed" || m.Text != "the objects were changed" || m.Render(message.Chinese) != "保护受管对象的准入策略被改动：a" {
		t.Errorf("the message of the status became %+v", m)
	}
	dave.Get("/api/v1/findings?kind=guard").Into(t, &found)
	if len(found.Items) != 1 || found.Kinds["unreachable"] != 1 {
		t.Errorf("%+v", found)
	}
	if a := dave.Get("/api/v1/findings?kind=gossip"); a.Status != http.StatusBadRequest {
		t.Errorf("%d", a.Status)
	}
}

// wide returns a policy that was written by hand, with statements of each kind.
func wide() *v1alpha1.AccessControlPolicy {
	ends := metav1.NewTime(time.Now().Add(48 * time.Hour))
	say := func(sid, subject, resource string) v1alpha1.Statement {
		return v1alpha1.Statement{
			SID:       sid,
			Effect:    v1alpha1.EffectAllow,
			Subjects:  []v1alpha1.Subject{v1alpha1.Subject(subject)},
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)},
		}
	}
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "wide", Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "policies"}}}
	p.Spec.Statements = []v1alpha1.Statement{
		say("everyone", "*", portaltest.LedgerCache),
		say("tools", portaltest.App888, "trnv1:rsc:trip-com:redis:clusters:*"),
		say("soon", portaltest.App889, portaltest.LedgerCache),
	}
	p.Spec.Statements[2].NotAfter = &ends
	p.Status.Refused = []v1alpha1.RefusedStatement{{SID: "everyone", Reason: "Unsupported", Message: "m1 cannot do this"}}
	return p
}

type edgeList struct {
	Items []struct {
		Subject, Resource struct{ Name string }
		SubjectKind, Sid  string
		Wildcard          bool
		Origin            struct{ Kind, Manager string }
	}
	Total      int
	NextCursor string
}

func (l edgeList) sids() []string {
	out := []string{}
	for _, e := range l.Items {
		out = append(out, e.Sid)
	}
	return out
}

func TestAccessMap(t *testing.T) {
	x := newSite(t)
	x.host.input.Policies = append(x.host.input.Policies, wide())
	dave := x.as("dave")
	for name, tc := range map[string]struct {
		reason, query string
		want          []string
	}{
		"all":       {"by subject and resource", "", []string{"everyone", "tools", "eight", "nine", "soon"}},
		"text":      {"in a title", "?q=app+889", []string{"nine", "soon"}},
		"subject":   {"what covers it counts", "?subject=app-888", []string{"everyone", "tools", "eight"}},
		"resource":  {"wildcards, too", "?resource=bobs-cluster", []string{"tools", "eight", "nine"}},
		"team":      {"of either end", "?team=person:erin", []string{"nine", "soon"}},
		"group":     {"of the resource", "?team=group:storage", []string{"everyone", "soon"}},
		"broad":     {"for more than one", "?broad=true", []string{"everyone", "tools"}},
		"origin":    {"by a tool", "?origin=gitops", []string{"everyone", "tools", "soon"}},
		"mode":      {"of the resource", "?mode=Enforce", []string{"eight", "nine"}},
		"expires":   {"within a week", "?expiresWithinDays=7", []string{"soon"}},
		"effect":    {"none denies", "?effect=Deny", []string{}},
		"and":       {"filters narrow", "?origin=gitops&subject=app-889", []string{"everyone", "soon"}},
		"not there": {"nothing", "?q=nothing-has-this", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var got edgeList
			if a := dave.Get("/api/v1/access" + tc.query); a.Status != http.StatusOK {
				t.Fatalf("%d %s", a.Status, a.Body)
			} else if a.Into(t, &got); got.Total != len(tc.want) {
				t.Errorf("%s: total %d", tc.reason, got.Total)
			}
			if d := cmp.Diff(tc.want, got.sids()); d != "" {
				t.Errorf("%s: %s", tc.reason, d)
			}
		})
	}
	for _, query := range []string{
		"effect=Maybe", "mode=Loud", "origin=heaven", "expiresWithinDays=0", "team=erin", "q=" + strings.Repeat("x", 513), "cursor=zz",
	} {
		if a := dave.Get("/api/v1/access?" + query); a.Status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, a.Status)
		}
	}
	var all []string
	cursor := ""
	for range 5 {
		var got edgeList
		dave.Get("/api/v1/access?limit=2&cursor="+cursor).Into(t, &got)
		all = append(all, got.sids()...)
		if cursor = got.NextCursor; cursor == "" {
			break
		}
	}
	if d := cmp.Diff([]string{"everyone", "tools", "eight", "nine", "soon"}, all); d != "" {
		t.Errorf("the pages together: %s", d)
	}
	var graph struct {
		Nodes []struct{ Name, Kind string }
		Links []struct{ From, To, Statements int }
		Teams []struct{ ID string }
		Total int
		Cut   bool
	}
	dave.Get("/api/v1/access/graph").Into(t, &graph)
	if graph.Total != 5 || graph.Cut || len(graph.Links) != 5 || len(graph.Nodes) != 6 || len(graph.Teams) != 4 {
		t.Errorf("%+v", graph)
	}
	for _, l := range graph.Links {
		if l.From >= len(graph.Nodes) || l.To >= len(graph.Nodes) || l.Statements != 1 {
			t.Errorf("%+v", l)
		}
	}
}

func TestAccessPath(t *testing.T) {
	x := newSite(t)
	x.host.input.Policies = append(x.host.input.Policies, wide())
	dave := x.as("dave")
	var got struct {
		Decisions       []struct{ Action, Decision, Sid string }
		Direct, Against []struct{ Sid string }
		Chains          []any
	}
	dave.Get("/api/v1/access/path?from=app-888&to=bobs-cluster").Into(t, &got)
	if len(got.Direct) != 2 || len(got.Against) != 0 || len(got.Decisions) != 1 || got.Decisions[0].Decision != "allowed" || len(got.Chains) != 0 {
		t.Errorf("%+v", got)
	}
	for _, query := range []string{
		"", "from=app-888", "from=app-888&to=nothing", "from=nobody&to=bobs-cluster", "from=app-888&to=trnv1:rsc:trip-com:redis:clusters:*",
	} {
		if a := dave.Get("/api/v1/access/path?" + query); a.Status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", query, a.Status, a.Body)
		}
	}
}

func TestPolicies(t *testing.T) {
	x := newSite(t)
	x.host.input.Policies = append(x.host.input.Policies, wide())
	dave := x.as("dave")
	type policy struct {
		Name       string
		Origin     struct{ Kind, Manager string }
		Statements int
		Issues     map[string]int
	}
	var list struct {
		Items  []policy
		Issues map[string]int
	}
	dave.Get("/api/v1/policies").Into(t, &list)
	if len(list.Items) != 2 || list.Items[1].Name != "wide" || list.Items[1].Origin.Kind != "gitops" || list.Items[1].Statements != 3 {
		t.Fatalf("%+v", list)
	}
	want := map[string]int{"refused": 1, "expiring": 1, "redundant": 2}
	if d := cmp.Diff(want, list.Issues); d != "" {
		t.Errorf("overlapping statements: %s", d)
	}
	for query, n := range map[string]int{"?issue=refused": 1, "?issue=shadowed": 0, "?origin=gitops": 1, "?origin=portal": 0, "?q=WIDE": 1, "?q=app+889": 2} {
		dave.Get("/api/v1/policies"+query).Into(t, &list)
		if len(list.Items) != n {
			t.Errorf("%s: %+v", query, list.Items)
		}
	}
	for _, query := range []string{"?issue=ugly", "?origin=heaven", "?limit=0"} {
		if a := dave.Get("/api/v1/policies" + query); a.Status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, a.Status)
		}
	}
	var one struct {
		Statements []struct {
			Sid    string
			Issues []struct {
				Kind   string
				Others []struct{ Policy, Sid string }
			}
		}
		Yaml string
	}
	dave.Get("/api/v1/policies/wide").Into(t, &one)
	if len(one.Statements) != 3 || !strings.Contains(one.Yaml, "kind: AccessControlPolicy") || strings.Contains(one.Yaml, "status") {
		t.Fatalf("%+v", one)
	}
	kinds := map[string][]string{}
	for _, s := range one.Statements {
		for _, i := range s.Issues {
			kinds[s.Sid] = append(kinds[s.Sid], i.Kind)
		}
	}
	if d := cmp.Diff(map[string][]string{"everyone": {"refused"}, "soon": {"redundant", "expiring"}}, kinds); d != "" {
		t.Error(d)
	}
	if a := dave.Get("/api/v1/policies/nothing"); a.Status != http.StatusNotFound {
		t.Errorf("%d", a.Status)
	}
}

func TestDowngradeAndResume(t *testing.T) {
	x := newSite(t)
	dave := x.as("dave")
	type extent struct {
		Enforced, Open int
		Active         []struct {
			Resources int
			Reason    string
			By        struct{ ID string }
		}
		Run *struct {
			Total, Done int
			FinishedAt  *time.Time
		}
		CanAct bool
	}
	var got extent
	dave.Get("/api/v1/downgrade").Into(t, &got)
	if got.Enforced != 1 || got.Open != 0 || !got.CanAct || got.Run != nil {
		t.Fatalf("%+v", got)
	}
	var seen extent
	if x.as("grace").Get("/api/v1/downgrade").Into(t, &seen); seen.CanAct {
		t.Error("an auditor may downgrade")
	}
	until := time.Now().Add(time.Hour).UTC()
	for reason, body := range map[string]map[string]any{
		"no reason":     {"scope": "all", "until": until, "reason": " "},
		"the past":      {"scope": "all", "until": until.Add(-2 * time.Hour), "reason": "an outage"},
		"too long":      {"scope": "all", "until": until.Add(8 * 24 * time.Hour), "reason": "an outage"},
		"no class":      {"scope": "class", "until": until, "reason": "an outage"},
		"unknown class": {"scope": "class", "class": "kafka", "until": until, "reason": "an outage"},
		"odd scope":     {"scope": "half", "until": until, "reason": "an outage"},
		"both":          {"scope": "all", "class": "redis", "until": until, "reason": "an outage"},
	} {
		if a := dave.Post("/api/v1/downgrade", body); a.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", reason, a.Status, a.Body)
		}
	}
	if a := remove(dave, "/downgrade", map[string]any{"scope": "all", "reason": "it is over"}); a.Status != http.StatusConflict {
		t.Errorf("without a downgrade: %d %s", a.Status, a.Body)
	}
	for range 2 { // the second time nothing is left to do
		a := dave.Post("/api/v1/downgrade", map[string]any{"scope": "class", "class": "redis", "until": until, "reason": "an outage"})
		var done extent
		if a.Into(
			t, &done,
		); a.Status != http.StatusOK || done.Open != 1 || len(done.Active) != 1 || done.Active[0].By.ID != "dave" || done.Run == nil ||
			done.Run.FinishedAt == nil {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	var closed extent
	if a := remove(dave, "/downgrade", map[string]any{"scope": "all", "reason": "it is over"}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	} else if a.Into(t, &closed); closed.Open != 0 || len(closed.Active) != 0 {
		t.Errorf("%s", a.Body)
	}
	var lines struct{ Items []struct{ Action string } }
	dave.Get("/api/v1/ledger?object=downgrade").Into(t, &lines)
	if len(lines.Items) != 3 {
		t.Errorf("%+v", lines)
	}
	dave.Get("/api/v1/ledger?object=bobs-cluster").Into(t, &lines)
	if len(lines.Items) != 2 {
		t.Errorf("%+v", lines)
	}
}
