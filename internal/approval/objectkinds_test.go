package approval_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

func classChange(verb, key string) approval.Request {
	spec, err := json.Marshal(v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:o:iam:sa:app/*", LabelKey: v1alpha1.LabelKey(key)})
	if err != nil {
		panic(err)
	}
	return approval.Request{
		Kind:  approval.KindClass,
		Items: []approval.RequestItem{{Object: &approval.ObjectChange{Kind: approval.ObjectSubjectClass, Name: "apps", Verb: verb, Spec: spec}}},
	}
}

func TestClassChange(t *testing.T) {
	m := quiet(t)
	x := m.submit("erin", classChange("update", "app"))
	if got := strings.Join(x.Items[0].Shown.Lines, "\n"); !strings.Contains(got, `spec.labelKey: "" -> "app"`) {
		t.Errorf("what is shown is the difference: %s", got)
	}
	if _, err := m.svc.Decide(t.Context(), m.actorOf("erin"), x.Number, 0, x.Version, true, ""); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("not her own: %v", err)
	}
	m.approve(x.Number, "frank")
	m.settle()
	m.is(x.Number, approval.StateEffective)

	stale := m.submit("erin", classChange("update", "other"))
	m.host.SetObject(approval.ObjectSubjectClass, "apps", json.RawMessage(`{"pattern":"x","labelKey":"y"}`))
	if _, err := m.svc.Decide(t.Context(), m.actorOf("frank"), stale.Number, 0, stale.Version, true, ""); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("it is not what the change was based on: %v", err)
	}
}

// Approvals of objects are for what they are compiled to, too: growth between two steps, or before the write, makes them void.
func TestGrowthOfChanges(t *testing.T) {
	mode := func(m v1alpha1.Mode) approval.Request {
		return approval.Request{Kind: approval.KindMode, Items: []approval.RequestItem{{Resource: "low", Mode: m}}}
	}
	for name, r := range map[string]approval.Request{
		"a mode that opens":  mode(v1alpha1.ModeObserve),
		"a mode that closes": mode(v1alpha1.ModeEnforce), "a class": classChange("update", "app"),
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t)
			on := m.submit("bob", approval.Request{Kind: approval.KindOnboard, Items: []approval.RequestItem{{Resource: "low", Mode: v1alpha1.ModeAudit}}})
			m.approve(on.Number, "dan")
			m.settle()
			asks, first, last := "bob", "", "dan"
			switch name {
			case "a class":
				asks, last = "erin", "frank"
			case "a mode that opens":
				first, last = "dan", "frank"
			}
			x := m.submit(asks, r)
			if first != "" {
				m.approve(x.Number, first)
			}
			m.host.Grow("+ allow pods with app=9 to pods with redis=r on 22/TCP")
			if _, err := m.svc.Decide(t.Context(), m.actorOf(last), x.Number, 0, m.version(x.Number), true, ""); approval.CodeOf(err) != approval.CodeStale {
				t.Errorf("it would bring more than was shown: %v", err)
			}
			if got := m.get(x.Number).Items[0].Shown.Lines; !slices.Contains(got, "+ allow pods with app=9 to pods with redis=r on 22/TCP") {
				t.Errorf("and that is shown now: %q", got)
			}
			for _, who := range []string{first, last} {
				if who != "" {
					m.approve(x.Number, who)
				}
			}
			m.host.Grow("+ allow anyone to pods with redis=r on 22/TCP")
			m.settle()
			m.is(x.Number, approval.StatePending)
		})
	}
}

// A revocation only takes away: it is never held up, whatever else it turns out to end.
func TestRevocationsDoNotGrow(t *testing.T) {
	m := quiet(t)
	n := m.granted(0)
	x := m.submit("carol", approval.Request{Kind: approval.KindRevoke, Items: []approval.RequestItem{{Target: &approval.Target{Ticket: n}}}})
	if got := strings.Join(
		x.Items[0].Shown.Lines, "\n",
	); !strings.Contains(got, "takes away: allow trnv1:rsc:o:iam:sa:app/a to trnv1:rsc:o:redis:clusters:high") {
		t.Errorf("it is shown what goes: %s", got)
	}
	m.host.Grow("allow port 22")
	m.approve(x.Number, "bob")
	m.settle()
	m.is(n, approval.StateRevoked)
}

// TestClassChangedBeforeTheWrite checks that an object that was changed meanwhile is not overwritten.
func TestClassChangedBeforeTheWrite(t *testing.T) {
	m := quiet(t)
	x := m.submit("erin", classChange("update", "app"))
	m.approve(x.Number, "frank")
	m.host.SetObject(approval.ObjectSubjectClass, "apps", json.RawMessage(`{"pattern":"x","labelKey":"y"}`))
	m.settle()
	m.is(x.Number, approval.StateFailed)
	if o, _, _ := m.host.Object(approval.ObjectSubjectClass, "apps"); !strings.Contains(string(o.Spec), `"y"`) {
		t.Errorf("what somebody else did was lost: %s", o.Spec)
	}
}

func TestApprovalPolicyChange(t *testing.T) {
	m := quiet(t)
	ask := func(spec string) approval.Request {
		return approval.Request{
			Kind:   approval.KindApprovalPolicy,
			Reason: "work",
			Items: []approval.RequestItem{
				{Object: &approval.ObjectChange{Kind: approval.ObjectApprovalPolicy, Name: "p", Verb: "create", Spec: json.RawMessage(spec)}},
			},
		}
	}
	for reason, spec := range map[string]string{
		"does not compile": `{"priority":1,"match":"request.knd","steps":[{"name":"s","approvers":["group:security"]}]}`,
		"unknown field":    `{"priority":1,"stepps":[]}`,
		"not JSON":         `{`,
		"two":              `{"priority":1} {}`,
		"a list":           `[]`,
		"empty":            ``,
	} {
		if _, err := m.svc.Submit(t.Context(), m.actorOf("erin"), ask(spec)); approval.CodeOf(err) != approval.CodeInvalid {
			t.Errorf("%s: %v", reason, err)
		}
	}
	good := `{"priority":1,"steps":[{"name":"s","approvers":["group:security"]}]}`
	if _, err := m.svc.Submit(t.Context(), m.actorOf("alice"), ask(good)); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("only the security team: %v", err)
	}
	x := m.submit("erin", ask(good))
	m.approve(x.Number, "frank")
	m.settle()
	m.is(x.Number, approval.StateEffective)
}

// TestApprovalPoliciesNeedTheSecurityTeam: whatever policy matches.
func TestApprovalPoliciesNeedTheSecurityTeam(t *testing.T) {
	ask := approval.Request{
		Kind: approval.KindApprovalPolicy,
		Items: []approval.RequestItem{{Object: &approval.ObjectChange{Kind: approval.ObjectApprovalPolicy, Name: "p", Verb: "create",
			Spec: json.RawMessage(`{"priority":1,"steps":[{"name":"s","approvers":["group:security"]}]}`)}}},
	}
	auto := asked("security", "group:security")
	auto.AutoApprove = "true"
	for name, tc := range map[string]struct {
		steps []v1alpha1.ApprovalStep
		want  string
	}{
		"another step":    {[]v1alpha1.ApprovalStep{asked("lead", "person:zoe")}, "x: lead(zoe), security(frank)"},
		"the team itself": {[]v1alpha1.ApprovalStep{asked("sec", "group:security")}, "x: sec(frank)"},
		"by itself":       {[]v1alpha1.ApprovalStep{auto}, "x: security(frank) auto, security-always(frank)"},
		"or others":       {[]v1alpha1.ApprovalStep{asked("any", "group:security", "person:zoe")}, "x: any(frank zoe), security(frank)"},
	} {
		m := quiet(t, policyOf("x", 1, "", tc.steps...))
		p, err := m.svc.Plan(t.Context(), m.actorOf("erin"), ask)
		if err != nil || p.Items[0].Err != nil {
			t.Fatal(err, p.Items[0].Err)
		}
		if got := chainOf(p.Items[0].Item); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

// FuzzCanonicalSpec checks that a spec of a caller is refused, or has one form.
func FuzzCanonicalSpec(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"pattern":"x","labelKey":"y"}`,
		`{"priority":1,"steps":[{"name":"s","approvers":["group:security"],"condition":"request.clients > 1"}]}`,
		`{"resource":"r","mode":"Audit"}`, `[`, `{"a":1}`, `null`, `{} {}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{
			approval.ObjectProtectedResource, approval.ObjectResourceClass,
			approval.ObjectSubjectClass, approval.ObjectApprovalPolicy, "Secret",
		} {
			once, err := approval.CanonicalSpec(kind, json.RawMessage(text))
			if err != nil {
				continue
			}
			if twice, err := approval.CanonicalSpec(kind, once); err != nil || string(twice) != string(once) {
				t.Errorf("%s: %q became %q and then %q (%v)", kind, text, once, twice, err)
			}
		}
	})
}
