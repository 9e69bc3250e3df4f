package governance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

const (
	apps  = "trnv1:rsc:o:iam:sa:app/"
	redis = "trnv1:rsc:o:redis:clusters:"
	web   = "trnv1:rsc:o:http:services:"
)

var at = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// statementOf returns a statement; acp sets its action.
func statementOf(sid string, effect policy.Effect, subject, resource string) v1alpha1.Statement {
	return v1alpha1.Statement{
		SID:       sid,
		Effect:    effect,
		Subjects:  []v1alpha1.Subject{v1alpha1.Subject(subject)},
		Actions:   []v1alpha1.Action{"x:use"},
		Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)},
	}
}

func acp(name string, statements ...v1alpha1.Statement) *v1alpha1.AccessControlPolicy {
	for i := range statements {
		service := strings.Split(string(statements[i].Resources[0]), ":")[3]
		statements[i].Actions = []v1alpha1.Action{v1alpha1.Action(service + ":use")}
	}
	return &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AccessControlPolicySpec{Statements: statements}}
}

func world(policies ...*v1alpha1.AccessControlPolicy) policy.Input {
	in := policy.Input{Policies: policies}
	for _, c := range []struct{ name, pattern, key, action string }{{"redis", redis + "*", "redis", "redis:use"}, {"web", web + "*", "web", "http:use"}} {
		in.ResourceClasses = append(
			in.ResourceClasses,
			&v1alpha1.ResourceClass{
				ObjectMeta: metav1.ObjectMeta{Name: c.name},
				Spec: v1alpha1.ResourceClassSpec{Pattern: v1alpha1.NamePattern(c.pattern), LabelKey: v1alpha1.LabelKey(c.key),
					Actions: []v1alpha1.ClassAction{{Name: c.action, Ports: []v1alpha1.Port{{Port: 80, Protocol: v1alpha1.ProtocolTCP}}}}},
			},
		)
	}
	for _, c := range []struct{ name, pattern, key string }{{"app", apps + "*", "app"}, {"service", web + "*", "service"}} {
		in.SubjectClasses = append(
			in.SubjectClasses,
			&v1alpha1.SubjectClass{
				ObjectMeta: metav1.ObjectMeta{Name: c.name},
				Spec:       v1alpha1.SubjectClassSpec{Pattern: v1alpha1.NamePattern(c.pattern), LabelKey: v1alpha1.LabelKey(c.key)},
			},
		)
	}
	for _, name := range []string{redis + "a", redis + "b", web + "one", web + "two"} {
		in.Resources = append(
			in.Resources,
			&v1alpha1.ProtectedResource{
				ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(name, ":", "-")},
				Spec:       v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(name), Mode: v1alpha1.ModeEnforce},
			},
		)
	}
	return in
}

func names(chains [][]Edge) []string {
	out := []string{}
	for _, c := range chains {
		text := ""
		for _, e := range c {
			text += e.Ref.SID + " "
		}
		out = append(out, strings.TrimSpace(text))
	}
	return out
}

func TestFindPath(t *testing.T) {
	in := world(
		acp(
			"p",
			statementOf("in", policy.Allow, apps+"1", web+"one"),
			statementOf("over", policy.Allow, web+"one", web+"two"),
			statementOf("out", policy.Allow, web+"two", redis+"a"),
			statementOf("short", policy.Allow, web+"one", redis+"a"),
			statementOf(
				"back",
				policy.Allow,
				web+"two",
				web+"one",
			),
			statementOf("broad", policy.Allow, apps+"*", redis+"b"),
			statementOf("no", policy.Deny, apps+"1", redis+"b"),
			statementOf("net", policy.Allow, "trnv1:rsc:o:net:cidr:10.0.0.0/8", redis+"b"),
		),
	)
	in.Resources[1].Spec.ClusterModes = []v1alpha1.ClusterMode{{Cluster: "m2", Mode: v1alpha1.ModeAudit}}
	s := policy.NewSnapshot(in)
	for name, tc := range map[string]struct {
		reason, from, to       string
		direct, against, words string
		chains                 []string
	}{
		"over others": {
			"the shortest way first, and never in a circle", apps + "1", redis + "a",
			"", "", "default-denied", []string{"in short", "in over out"},
		},
		"directly":  {"what covers the name counts, and so does what denies", apps + "1", redis + "b", "broad", "no", "denied m2:audited", []string{}},
		"one step":  {"a way over nobody is no chain", web + "two", redis + "a", "out", "", "allowed", []string{"back short"}},
		"addresses": {"have no names to go over", "trnv1:rsc:o:net:cidr:10.0.0.0/8", redis + "b", "net", "", "allowed m2:allowed", []string{}},
		"nobody":    {"no way at all", apps + "2", redis + "a", "", "", "default-denied", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var clusters []string
			if tc.to == redis+"b" {
				clusters = []string{"m2"}
			}
			p, err := FindPath(s, tc.from, tc.to, clusters, at)
			if err != nil || p.Cut {
				t.Fatalf("%+v %v", p, err)
			}
			words := ""
			for _, d := range p.Decisions {
				if d.Cluster != "" {
					words += " " + d.Cluster + ":"
				}
				words += string(d.Verdict)
			}
			got := []string{strings.Join(names([][]Edge{p.Direct}), ""), strings.Join(names([][]Edge{p.Against}), ""), words}
			if d := cmp.Diff([]string{tc.direct, tc.against, tc.words}, got); d != "" {
				t.Errorf("%s: %s", tc.reason, d)
			}
			if d := cmp.Diff(tc.chains, names(p.Chains)); d != "" {
				t.Errorf("%s: %s", tc.reason, d)
			}
		})
	}
	for _, ends := range [][2]string{
		{"x", redis + "a"}, {apps + "1", "x"}, {apps + "*", redis + "a"},
		{apps + "1", redis + "*"}, {apps + "1", "trnv1:rsc:o:net:cidr:10.0.0.0/8"},
	} {
		if _, err := FindPath(s, ends[0], ends[1], nil, at); err == nil {
			t.Errorf("%v is no question", ends)
		}
	}
}

// TestLargeMeshIsCut checks that the search in a full mesh ends, and reports that the result is incomplete.
func TestLargeMeshIsCut(t *testing.T) {
	var statements []v1alpha1.Statement
	for i := range 40 {
		for j := range 40 {
			if i != j {
				statements = append(statements, statementOf(fmt.Sprintf("s-%d-%d", i, j), policy.Allow, fmt.Sprint(web, i), fmt.Sprint(web, j)))
			}
		}
	}
	in := world(acp("p", statements[:500]...), acp("q", statements[500:1000]...), acp("r", statements[1000:]...))
	for i := range 40 {
		in.Resources = append(
			in.Resources,
			&v1alpha1.ProtectedResource{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)},
				Spec:       v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(fmt.Sprint(web, i)), Mode: v1alpha1.ModeEnforce},
			},
		)
	}
	p, err := FindPath(policy.NewSnapshot(in), web+"0", web+"39", nil, at)
	if err != nil || !p.Cut || len(p.Chains) != mostChains || len(p.Chains[0]) != 2 {
		t.Errorf("%d ways, cut %v, %v", len(p.Chains), p.Cut, err)
	}
}

func TestEdgesAndLinks(t *testing.T) {
	over := statementOf("over", policy.Allow, apps+"1", redis+"a")
	over.NotAfter = &metav1.Time{Time: at}
	in := world(
		acp(
			"p",
			statementOf("b", policy.Allow, apps+"1", redis+"a"),
			statementOf("a", policy.Deny, apps+"1", redis+"a"),
			statementOf("all", policy.Allow, "*", redis+"*"),
			over,
		),
	)
	s := policy.NewSnapshot(in)
	edges, cut := Edges(s, at, func(*Edge) bool { return true })
	if cut || len(edges) != 3 {
		t.Fatalf("what has expired is left out: %+v", edges)
	}
	if e := edges[0]; e.Subject != "*" || e.SubjectKind != Anyone || !e.Wildcard || e.Class != "redis" || e.Mode != "" || !e.Broad() {
		t.Errorf("%+v", e)
	}
	if e := edges[1]; e.Ref.SID != "a" || e.SubjectKind != Application || e.Mode != v1alpha1.ModeEnforce || e.Broad() {
		t.Errorf("%+v", e)
	}
	want := []Link{
		{From: "*", To: redis + "*", Statements: 1, Allow: true, Counting: true, Broad: true},
		{From: apps + "1", To: redis + "a", Statements: 2, Allow: true, Deny: true, Counting: true},
	}
	if d := cmp.Diff(want, Links(edges)); d != "" {
		t.Error(d)
	}
	for subject, kind := range map[string]Kind{
		"*": Anyone, "trnv1:rsc:o:net:cidr:10.0.0.0/8": CIDR, apps + "*": Wildcard,
		apps + "1": Application, "trnv1:rsc:o:other:things:x": Other,
	} {
		if got := KindOfSubject(s, subject); got != kind {
			t.Errorf("%s: %s", subject, got)
		}
	}
}

// TestManyPairs checks the bound on the pairs, of which a few statements may have millions.
func TestManyPairs(t *testing.T) {
	p := acp("p", statementOf("s", policy.Allow, apps+"0", redis+"0"))
	st := &p.Spec.Statements[0]
	for i := 1; i < 256; i++ {
		st.Subjects = append(st.Subjects, v1alpha1.Subject(fmt.Sprint(apps, i)))
		st.Resources = append(st.Resources, v1alpha1.ResourceName(fmt.Sprint(redis, i)))
	}
	for i := range 4 {
		more := *st.DeepCopy()
		more.SID = fmt.Sprint("s", i)
		p.Spec.Statements = append(p.Spec.Statements, more)
	}
	edges, cut := Edges(policy.NewSnapshot(world(p)), at, func(*Edge) bool { return true })
	if !cut || len(edges) != MaxEdges {
		t.Errorf("%d edges, cut %v", len(edges), cut)
	}
}

func TestOriginOf(t *testing.T) {
	wrote := func(manager string, minute int, fields string) metav1.ManagedFieldsEntry {
		when := metav1.NewTime(at.Add(time.Duration(minute) * time.Minute))
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", Time: &when, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const statements, labels = `{"f:spec":{"f:statements":{}}}`, `{"f:metadata":{"f:labels":{}}}`
	status := wrote("acp-adapter", 9, statements)
	status.Subresource = "status"
	for name, tc := range map[string]struct {
		reason string
		object metav1.ObjectMeta
		kind   OriginKind
		by     string
	}{
		"portal": {
			"its label",
			metav1.ObjectMeta{
				Labels:        map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByPortal},
				ManagedFields: []metav1.ManagedFieldsEntry{wrote("portal", 0, statements)},
			},
			FromPortal, "portal",
		},
		"kubectl": {
			"the last who wrote statements",
			metav1.ObjectMeta{
				ManagedFields: []metav1.ManagedFieldsEntry{
					wrote("portal", 0, statements), wrote("kubectl-edit", 1, statements), wrote("labeller", 2, labels), status,
				},
			},
			FromKubectl, "kubectl-edit",
		},
		"Argo CD": {
			"its tracking annotation",
			metav1.ObjectMeta{
				Annotations:   map[string]string{"argocd.argoproj.io/tracking-id": "x"},
				ManagedFields: []metav1.ManagedFieldsEntry{wrote("kubectl-edit", 0, statements)},
			},
			FromGitOps, "Argo CD",
		},
		"Flux": {
			"its field manager",
			metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{wrote("kustomize-controller", 0, statements)}},
			FromGitOps, "kustomize-controller",
		},
		"something": {"any other program", metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{wrote("robot", 0, statements)}}, FromOther, "robot"},
		"nothing":   {"not recorded", metav1.ObjectMeta{}, FromOther, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OriginOf(&v1alpha1.AccessControlPolicy{ObjectMeta: tc.object}); got.Kind != tc.kind || got.Manager != tc.by {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
}

func TestIssues(t *testing.T) {
	soon, gone, late := statementOf(
		"soon",
		policy.Allow,
		apps+"1",
		redis+"a",
	), statementOf(
		"gone",
		policy.Allow,
		apps+"2",
		redis+"a",
	), statementOf(
		"late",
		policy.Allow,
		apps+"3",
		redis+"a",
	)
	soon.NotAfter, gone.NotAfter, late.NotAfter = &metav1.Time{
		Time: at.Add(ExpiresSoon),
	}, &metav1.Time{
		Time: at,
	}, &metav1.Time{
		Time: at.Add(ExpiresSoon + time.Second),
	}
	p := acp(
		"p",
		soon,
		gone,
		late,
		statementOf("twice", policy.Allow, apps+"9", redis+"b"),
		statementOf("shut", policy.Allow, apps+"8", redis+"b"),
		statementOf("no", policy.Deny, apps+"8", redis+"b"),
	)
	p.Status.Refused = []v1alpha1.RefusedStatement{{SID: "late", Message: "m1 cannot"}, {SID: "removed", Message: "it is not there any more"}}
	kinds := map[string][]IssueKind{}
	for ref, list := range Issues(policy.NewSnapshot(world(p, acp("o", statementOf("first", policy.Allow, apps+"9", redis+"b")))), at) {
		for _, i := range list {
			if i.Message.IsZero() {
				t.Errorf("%s says nothing", ref)
			}
			kinds[ref.SID] = append(kinds[ref.SID], i.Kind)
		}
	}
	want := map[string][]IssueKind{"soon": {Expiring}, "gone": {Expired}, "late": {Refused}, "twice": {Redundant}, "shut": {Shadowed}}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Error(d)
	}
}

func TestUses(t *testing.T) {
	s := policy.NewSnapshot(
		world(
			acp(
				"p",
				statementOf("exact", policy.Allow, apps+"1", redis+"a"),
				statementOf("wide", policy.Allow, apps+"1", redis+"*"),
				statementOf("all", policy.Allow, "*", redis+"*"),
				statementOf("net", policy.Allow, "trnv1:rsc:o:net:cidr:10.0.0.0/8", redis+"a"),
			),
		),
	)
	edges, _ := Edges(s, at, func(*Edge) bool { return true })
	if d := cmp.Diff(edges[0].SubjectKind, UseEdge(s, edges[0].Grant).SubjectKind); d != "" {
		t.Error(d)
	}
	u := NewUses(edges)
	filters := u.Filters()
	if len(filters) != 3 || filters[0].Resources[0] != redis+"a" || filters[1].Subjects[0] != apps+"1" || filters[2].SID != "all" {
		t.Errorf("%+v", filters)
	}
	ref := func(sid string) policy.Ref { return policy.Ref{Policy: "p", SID: sid} }
	u.Add(apps+"1", redis+"a", ref("exact"), at)
	u.Add(apps+"1", redis+"a", ref("exact"), at.Add(-time.Hour))
	u.Add(apps+"2", redis+"a", ref("exact"), at.Add(time.Hour)) // not its subject
	u.Add(apps+"1", redis+"b", ref("wide"), at.Add(time.Minute))
	u.Add("", redis+"a", ref("net"), at.Add(2*time.Minute))
	got := map[string]time.Time{}
	for use, when := range u.Last() {
		got[use.Statement.SID] = when
	}
	if d := cmp.Diff(map[string]time.Time{"exact": at, "wide": at.Add(time.Minute), "net": at.Add(2 * time.Minute)}, got); d != "" {
		t.Error(d)
	}
}

// TestUsesAreComplete checks of which edges the queries of a page find every use: not of allows that only their statement selects, because no
// statement decides in Observe, and not of statements beyond the bound of a page.
func TestUsesAreComplete(t *testing.T) {
	var list []v1alpha1.Statement
	for i := range mostStatements + 2 {
		list = append(list, statementOf(fmt.Sprintf("deny-%02d", i), policy.Deny, "*", redis+"*"))
	}
	list = append(
		list,
		statementOf("allow", policy.Allow, "*", redis+"*"),
		statementOf("exact", policy.Allow, "*", redis+"a"),
		statementOf("app", policy.Allow, apps+"1", redis+"*"),
	)
	edges, _ := Edges(policy.NewSnapshot(world(acp("p", list...))), at, func(*Edge) bool { return true })
	u := NewUses(edges)
	filters := u.Filters()
	if len(filters) != 2+mostStatements {
		t.Errorf("%d queries", len(filters))
	}
	var incomplete []string
	for i := range edges {
		if !u.Complete(&edges[i]) {
			incomplete = append(incomplete, edges[i].Ref.SID)
		}
	}
	if d := cmp.Diff([]string{"allow", "deny-19", "deny-20", "deny-21"}, incomplete); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
