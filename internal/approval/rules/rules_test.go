package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

func example() *Request {
	return &Request{
		Kind:        "grant",
		Requester:   Person{ID: "alice", Groups: []string{"payments", "oncall"}},
		Application: Entity{ID: "app", Environment: "prod", Sensitivity: "low", Owners: []string{"group:payments"}},
		Resource: Entity{
			ID:          "db",
			Name:        "trnv1:rsc:o:redis:clusters:db",
			Class:       "redis",
			Environment: "prod",
			Sensitivity: "high",
			Owners:      []string{"user:bob"},
		},
		Actions:   []string{"redis:connect"},
		Duration:  48 * time.Hour,
		Enforcers: []string{"cilium"},
		Clients:   7,
	}
}

func TestExpressions(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         bool
		fails        string // in the error of compiling
		unknown      bool   // evaluating fails
	}{
		"sensitivity": {reason: "a field of the resource", text: `request.resource.sensitivity == "high"`, want: true},
		"group":       {reason: "a group of the requester", text: `"oncall" in request.requester.groups`, want: true},
		"duration":    {reason: "durations compare", text: `request.duration > duration("24h")`, want: true},
		"permanent":   {reason: "a flag", text: `request.permanent || request.opens || request.closes`, want: false},
		"clients":     {reason: "a number", text: `request.clients >= 7 && "cilium" in request.enforcers`, want: true},
		"exists":      {reason: "a walk over a list", text: `request.actions.exists(a, a.startsWith("redis:"))`, want: true},
		"all":         {reason: "another", text: `request.resource.owners.all(o, o.startsWith("group:"))`, want: false},
		"regex":       {reason: "RE2", text: `request.resource.name.matches("^trnv1:rsc:[a-z]+:redis:")`, want: true},
		"syntax":      {reason: "says where", text: "request.kind ==\n  &&", fails: "line 2, column 3"},
		"no such field": {
			reason: "checked when it is compiled", text: `request.resource.colour == "red"`,
			fails: "line 1, column 17: undefined field 'colour'",
		},
		"wrong type":   {reason: "checked when it is compiled", text: `request.clients == "7"`, fails: "line 1, column 17"},
		"not a bool":   {reason: "must decide", text: `request.clients`, fails: "must be true or false"},
		"no map":       {reason: "a macro that builds lists", text: `request.actions.map(a, a + a).size() > 1`, fails: "line 1"},
		"no filter":    {reason: "a macro that builds lists", text: `request.actions.filter(a, true).size() > 1`, fails: "line 1"},
		"total":        {reason: "from the first grant on", text: `request.total > request.duration`, want: false},
		"no wildcard":  {reason: "it says what replaces it", text: `request.wildcard`, fails: `request.kind == "class"`},
		"another name": {reason: "there is one variable", text: `self.kind == "grant"`, fails: "undeclared reference to 'self'"},
		"long":         {reason: "bounded", text: `request.kind == "` + strings.Repeat("x", 3000) + `"`, fails: "may have 2048"},
		"deep":         {reason: "bounded", text: strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200), fails: "recursion"},
		"out of range": {reason: "known only when it is evaluated", text: `request.actions[3] == "x"`, unknown: true},
		"division":     {reason: "known only when it is evaluated", text: `1 / (request.clients - 7) > 0`, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := compile(tc.text)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Fatalf("%s: want an error with %q, got %v", tc.reason, tc.fails, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Eval(example())
			if got != tc.want || (err != nil) != tc.unknown {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
		})
	}
}

func TestCostIsBounded(t *testing.T) {
	r := example()
	r.Requester.Groups = make([]string, 500)
	dear := "request.requester.groups.all(a, request.requester.groups.all(b, request.requester.groups.all(c, a == b || b == c)))"
	e, err := compile(dear)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Eval(r); err == nil || !strings.Contains(err.Error(), "cost limit") {
		t.Errorf("an evaluation ends at its bound, got %v", err)
	}
}

func object(match string, steps ...v1alpha1.ApprovalStep) *v1alpha1.ApprovalPolicy {
	return &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ApprovalPolicySpec{Match: match, Steps: steps}}
}

func TestDoubtDenies(t *testing.T) {
	broken := `request.actions[9] == "x"`
	p, problems := Compile(object(broken, v1alpha1.ApprovalStep{Name: "s", Condition: broken, AutoApprove: broken}))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if yes, err := p.Matches(example()); yes || err == nil {
		t.Error("a policy whose match cannot be evaluated does not report it")
	}
	if yes, err := p.Needed(0, example()); !yes || err == nil {
		t.Error("a step whose condition cannot be evaluated is not needed")
	}
	if yes, err := p.Auto(0, example()); yes || err == nil {
		t.Error("a step whose autoApprove cannot be evaluated approves automatically")
	}
	p, problems = Compile(object("", v1alpha1.ApprovalStep{Name: "s"}))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	yes, err := p.Matches(example())
	needed, err2 := p.Needed(0, example())
	auto, err3 := p.Auto(0, example())
	if !yes || !needed || auto || err != nil || err2 != nil || err3 != nil {
		t.Error("what is absent matches, is needed, and approves nothing by itself")
	}
}

func TestProblemsNameTheirField(t *testing.T) {
	o := object(
		"request.knd == 'x'",
		v1alpha1.ApprovalStep{Name: "a"},
		v1alpha1.ApprovalStep{Name: "b", Condition: "1", AutoApprove: "(", Timeout: &v1alpha1.StepTimeout{}},
	)
	o.Spec.MaxDuration = &metav1.Duration{Duration: -time.Hour}
	p, problems := Compile(o)
	var fields []string
	for _, x := range problems {
		fields = append(fields, x.Field)
	}
	want := []string{"spec.match", "spec.steps[1].condition", "spec.steps[1].autoApprove", "spec.steps[1].timeout.after", "spec.maxDuration"}
	if d := cmp.Diff(want, fields); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if yes, err := p.Matches(example()); yes || err == nil {
		t.Error("a policy whose expression does not compile says so")
	}
	if yes, err := p.Needed(1, example()); !yes || err == nil {
		t.Error("a step whose condition does not compile is needed")
	}
	if yes, err := p.Auto(1, example()); yes || err == nil {
		t.Error("a step whose condition does not compile approves nothing by itself")
	}
}

func TestWarnings(t *testing.T) {
	two := int32(2)
	by := func(a ...v1alpha1.Approver) v1alpha1.ApprovalStep {
		return v1alpha1.ApprovalStep{Name: "s", Approvers: a}
	}
	with := func(s v1alpha1.ApprovalStep, f func(*v1alpha1.ApprovalStep)) v1alpha1.ApprovalStep { f(&s); return s }
	for name, tc := range map[string]struct {
		reason string
		o      *v1alpha1.ApprovalPolicy
		want   string
	}{
		"fine":           {"nothing odd", object(`request.kind == "grant"`, by("resource.owner")), ""},
		"everything":     {"some kinds have an owner", object("", by("resource.owner")), ""},
		"never":          {"no kind is called so", object(`request.kind == "grants"`, by("group:g")), "never counts"},
		"constant":       {"false", object(`false && request.clients > 1`, by("group:g")), "never counts"},
		"maybe":          {"depends on the request", object(`request.clients > 1`, by("group:g")), ""},
		"no owner":       {"a class has none", object(`request.kind == "class"`, by("resource.owner", "application.owner")), "nobody can fill it"},
		"else a group":   {"the group can", object(`request.kind == "class"`, by("resource.owner", "group:g")), ""},
		"no application": {"a mode is about none", object(`request.kind in ["mode", "onboard"]`, by("application.owner")), "kind mode, onboard"},
		"condition": {
			"it is never asked",
			object(`request.kind == "mode"`, with(by("group:g"), func(s *v1alpha1.ApprovalStep) { s.Condition = `request.kind == "grant"` })),
			"never needed",
		},
		"too few": {
			"two of one", object("", with(by("person:a"), func(s *v1alpha1.ApprovalStep) { s.Quorum, s.Count = "Count", &two })),
			"needs 2 approvals and names 1",
		},
		"enough, a group": {
			"its members are not known here",
			object("", with(by("group:a"), func(s *v1alpha1.ApprovalStep) { s.Quorum, s.Count = "Count", &two })), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, problems := Compile(tc.o)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got := message.Parts(p.Warnings()).Text
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// FuzzExpression: whatever is written compiles or is refused, and ends.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{"", "true", `request.kind == "grant"`, `request.actions.exists(a, a.matches("(x+)+$"))`, `request.duration > duration("1h")`,
		"request.requester.groups.all(a, a in request.actions)", "((((", "\"\\u0000\" + b'x'",
		"has(request.application.id)", "timestamp('2026-01-01T00:00:00Z').getFullYear() > 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := compile(text)
		if err != nil || e.Absent() {
			return
		}
		first, err1 := e.Eval(example())
		second, err2 := e.Eval(example())
		if first != second || (err1 == nil) != (err2 == nil) {
			t.Errorf("%q is %v (%v) and then %v (%v)", text, first, err1, second, err2)
		}
		if e.neverFor("grant") && first {
			t.Errorf("%q is true, and was said never to be", text)
		}
	})
}
