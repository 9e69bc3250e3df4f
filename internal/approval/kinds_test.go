package approval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/ledger"
)

// quiet is the model without chance: one company, these approval policies.
func quiet(t *testing.T, policies ...*v1alpha1.ApprovalPolicy) *model {
	m := newModel(t)
	store := &approvaltest.Memory{}
	m.begin(1, store, func() []ledger.Entry { return store.Lines })
	m.catalog, m.host.Policies = m.catalogs[0], policies
	return m
}

func (m *model) submit(who string, r approval.Request) *approval.Ticket {
	m.t.Helper()
	if r.Reason == "" {
		r.Reason = "work"
	}
	x, err := m.svc.Submit(m.t.Context(), m.actorOf(who), r)
	if err != nil {
		m.t.Fatalf("%s asks: %v", who, err)
	}
	return x
}

func (m *model) approve(n int64, who ...string) {
	m.t.Helper()
	for _, p := range who {
		if _, err := m.svc.Decide(m.t.Context(), m.actorOf(p), n, approval.EveryItem, m.version(n), true, ""); err != nil {
			m.t.Fatalf("%s approves: %v", p, err)
		}
	}
}

// settle lets workers, the adapter and the follower do all that there is.
func (m *model) settle() {
	m.t.Helper()
	for range 3 {
		if err := m.worker.Drain(m.t.Context()); err != nil {
			m.t.Fatal(err)
		}
		m.host.Report(true)
		if err := m.follower.Sync(m.t.Context()); err != nil {
			m.t.Fatal(err)
		}
		if err := m.svc.Tick(m.t.Context()); err != nil {
			m.t.Fatal(err)
		}
	}
	if m.fault != "" {
		m.t.Fatal(m.fault)
	}
}

func (m *model) get(n int64) *approval.Ticket {
	m.t.Helper()
	x, err := m.store.Get(m.t.Context(), n)
	if err != nil {
		m.t.Fatal(err)
	}
	return x
}

func (m *model) is(n int64, want approval.State) {
	m.t.Helper()
	if x := m.get(n); x.State() != want {
		m.t.Errorf("%s is %s (%s), want %s", x.ID(), x.State(), x.Items[0].Message, want)
	}
}

func grant(d time.Duration) approval.Request {
	return approval.Request{Items: []approval.RequestItem{{Application: "a", Resource: "high", Actions: []string{"x:read"}, Duration: d}}}
}

// granted is a grant of alice's application on the highly sensitive resource, in force.
func (m *model) granted(d time.Duration) int64 {
	m.t.Helper()
	n := m.submit("alice", grant(d)).Number
	m.approve(n, "carol", "bob", "erin")
	m.settle()
	m.is(n, approval.StateEffective)
	return n
}

func TestRevocationTicket(t *testing.T) {
	m := quiet(t)
	n := m.granted(0)
	ask := approval.Request{Kind: approval.KindRevoke, Items: []approval.RequestItem{{Target: &approval.Target{Ticket: n}}}}
	if _, err := m.svc.Submit(t.Context(), m.actorOf("bob"), approval.Request{Kind: ask.Kind, Items: ask.Items, Reason: "r"}); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("an owner revokes himself: %v", err)
	}
	if _, err := m.svc.Submit(t.Context(), m.actorOf("frank"), approval.Request{Kind: ask.Kind, Items: ask.Items, Reason: "r"}); err == nil {
		t.Error("so does the security team")
	}
	x := m.submit("carol", ask)
	m.settle()
	m.is(n, approval.StateEffective)
	m.approve(x.Number, "bob")
	m.settle()
	m.is(n, approval.StateRevoked)
	m.is(x.Number, approval.StateEffective)
}

func TestExtension(t *testing.T) {
	m := quiet(t)
	n := m.granted(100 * time.Hour)
	end := m.get(n).Items[0].ExpiresAt
	p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), grant(300*time.Hour))
	if err != nil || p.Kind != approval.KindExtend || p.Items[0].Covered == nil || *p.Items[0].Covered != (approval.Target{Ticket: n}) {
		t.Fatalf("a new request for the same access is an extension: %+v, %v", p, err)
	}
	for name, d := range map[string]time.Duration{"shorter": time.Hour, "too short": time.Minute} {
		if p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), grant(d)); err != nil || approval.CodeOf(p.Items[0].Err) != approval.CodeInvalid {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	x := m.submit("alice", approval.Request{Kind: approval.KindExtend, Items: []approval.RequestItem{{Target: &approval.Target{Ticket: n}, Duration: 300 * time.Hour}}})
	m.approve(x.Number, "carol", "bob", "erin")
	m.settle()
	m.is(x.Number, approval.StateEffective)
	if got := m.get(x.Number).Items[0].ExpiresAt; !got.After(end) {
		t.Errorf("it ends at %v, and so did the one before (%v)", got, end)
	}
	again := m.submit("alice", grant(500*time.Hour))
	m.approve(again.Number, "carol", "bob", "erin")
	if _, err := m.svc.Revoke(t.Context(), m.actorOf("bob"), n, approval.EveryItem, "enough"); err != nil {
		t.Fatal(err)
	}
	m.settle()
	for _, n := range []int64{n, x.Number, again.Number} {
		m.is(n, approval.StateRevoked)
	}
}

// TestExtensionOfWhatIsRevoked: what was asked before the revocation does not outlive it.
func TestExtensionOfWhatIsRevoked(t *testing.T) {
	m := quiet(t)
	n := m.granted(100 * time.Hour)
	x := m.submit("alice", grant(300*time.Hour))
	m.approve(x.Number, "carol", "bob")
	if _, err := m.svc.Revoke(t.Context(), m.actorOf("bob"), n, approval.EveryItem, "enough"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.svc.Decide(t.Context(), m.actorOf("erin"), x.Number, 0, m.version(x.Number), true, ""); err == nil {
		m.settle()
	}
	for _, p := range m.host.Names() {
		if got, _ := m.host.Cached(p); len(got.Spec.Statements) > 0 {
			t.Errorf("%s still holds %v", p, got.Spec.Statements)
		}
	}
}

func TestProtection(t *testing.T) {
	m := quiet(t)
	ask := func(kind approval.Kind, mode v1alpha1.Mode) approval.Request {
		return approval.Request{Kind: kind, Items: []approval.RequestItem{{Resource: "low", Mode: mode}}}
	}
	for _, step := range []struct {
		reason string
		r      approval.Request
		asks   string
		chain  []string
	}{
		{"owners onboard", ask(approval.KindOnboard, v1alpha1.ModeAudit), "bob", []string{"dan"}},
		{"to close is the owner's", ask(approval.KindMode, v1alpha1.ModeEnforce), "bob", []string{"dan"}},
		{"to open is the security team's, too", ask(approval.KindMode, v1alpha1.ModeObserve), "erin", []string{"dan", "frank"}},
		{"and so is to let go", ask(approval.KindOffboard, ""), "bob", []string{"dan", "frank"}},
	} {
		x := m.submit(step.asks, step.r)
		if got := len(x.Items[0].Steps); got != len(step.chain) {
			t.Fatalf("%s: %+v", step.reason, x.Items[0].Steps)
		}
		m.settle()
		m.is(x.Number, approval.StatePending)
		m.approve(x.Number, step.chain...)
		m.settle()
		m.is(x.Number, approval.StateEffective)
	}
	for reason, r := range map[string]struct {
		who string
		r   approval.Request
	}{
		"not onboarded":      {"bob", ask(approval.KindMode, v1alpha1.ModeAudit)},
		"not his":            {"zoe", ask(approval.KindOnboard, v1alpha1.ModeAudit)},
		"no such mode":       {"bob", ask(approval.KindOnboard, "Open")},
		"nothing to let go":  {"bob", ask(approval.KindOffboard, "")},
		"no such thing":      {"bob", approval.Request{Kind: approval.KindMode, Items: []approval.RequestItem{{Resource: "x"}}}},
		"an auditor changes": {"otto", ask(approval.KindOnboard, v1alpha1.ModeAudit)},
	} {
		r.r.Reason = "work"
		if _, err := m.svc.Submit(t.Context(), m.actorOf(r.who), r.r); err == nil {
			t.Errorf("%s: it was accepted", reason)
		}
	}
}

func TestOffboardingOfAClosedResource(t *testing.T) {
	m := quiet(t)
	x := m.submit("bob", approval.Request{Kind: approval.KindOnboard, Items: []approval.RequestItem{{Resource: "low", Mode: v1alpha1.ModeEnforce}}})
	m.approve(x.Number, "dan")
	m.settle()
	p, err := m.svc.Plan(t.Context(), m.actorOf("bob"), approval.Request{Kind: approval.KindOffboard, Items: []approval.RequestItem{{Resource: "low"}}})
	if err != nil || approval.CodeOf(p.Items[0].Err) != approval.CodeConflict {
		t.Errorf("nobody opens it by letting it go: %+v, %v", p, err)
	}
}

func classChange(verb, key string) approval.Request {
	spec, err := json.Marshal(v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:o:iam:sa:app/*", LabelKey: v1alpha1.LabelKey(key)})
	if err != nil {
		panic(err)
	}
	return approval.Request{Kind: approval.KindClass, Items: []approval.RequestItem{{Object: &approval.ObjectChange{Kind: approval.ObjectSubjectClass, Name: "apps", Verb: verb, Spec: spec}}}}
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

// TestClassChangedBeforeTheWrite: the object is not written over.
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
		return approval.Request{Kind: approval.KindApprovalPolicy, Reason: "work", Items: []approval.RequestItem{{Object: &approval.ObjectChange{Kind: approval.ObjectApprovalPolicy, Name: "p", Verb: "create", Spec: json.RawMessage(spec)}}}}
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
	ask := approval.Request{Kind: approval.KindApprovalPolicy, Items: []approval.RequestItem{{Object: &approval.ObjectChange{Kind: approval.ObjectApprovalPolicy, Name: "p", Verb: "create",
		Spec: json.RawMessage(`{"priority":1,"steps":[{"name":"s","approvers":["group:security"]}]}`)}}}}
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

func glass(people ...string) *v1alpha1.ApprovalPolicy {
	return &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "glass"}, Spec: v1alpha1.ApprovalPolicySpec{
		Steps:      []v1alpha1.ApprovalStep{{Name: "s", Approvers: []v1alpha1.Approver{"group:security"}}},
		BreakGlass: &v1alpha1.BreakGlass{People: people, MaxDuration: metav1.Duration{Duration: 4 * time.Hour}, Reviewers: []v1alpha1.Approver{"group:security"}}}}
}

func TestBreakGlass(t *testing.T) {
	ask := grant(2 * time.Hour)
	ask.BreakGlass, ask.Reason = true, "the shop is down"
	for name, tc := range map[string]struct {
		reason   string
		policies []*v1alpha1.ApprovalPolicy
		duration time.Duration
		code     approval.Code
	}{
		"no policy": {"with nobody named, nobody can", nil, time.Hour, approval.CodeForbidden},
		"not named": {"others are", []*v1alpha1.ApprovalPolicy{glass("bob")}, time.Hour, approval.CodeForbidden},
		"nobody":    {"an empty list names nobody", []*v1alpha1.ApprovalPolicy{glass()}, time.Hour, approval.CodeForbidden},
		"too long":  {"at most some hours", []*v1alpha1.ApprovalPolicy{glass("alice")}, 5 * time.Hour, approval.CodeInvalid},
		"for ever":  {"at most some hours", []*v1alpha1.ApprovalPolicy{glass("alice")}, 0, approval.CodeInvalid},
	} {
		m := quiet(t, tc.policies...)
		ask.Items[0].Duration = tc.duration
		if _, err := m.svc.Submit(t.Context(), m.actorOf("alice"), ask); approval.CodeOf(err) != tc.code {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
	ask.Items[0].Duration = 2 * time.Hour
	for _, confirm := range []bool{true, false} {
		m := quiet(t, glass("alice"))
		x := m.submit("alice", ask)
		m.settle()
		m.is(x.Number, approval.StateEffective)
		review := func(who, comment string) error {
			_, err := m.svc.Review(t.Context(), m.actorOf(who), x.Number, 0, confirm, comment)
			return err
		}
		if err := review("alice", "fine"); approval.CodeOf(err) != approval.CodeForbidden {
			t.Errorf("nobody reviews himself: %v", err)
		}
		if err := review("erin", ""); approval.CodeOf(err) != approval.CodeInvalid {
			t.Errorf("a review says what it found: %v", err)
		}
		if err := review("erin", "looked at it"); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is(x.Number, map[bool]approval.State{true: approval.StateEffective, false: approval.StateRevoked}[confirm])
		if err := review("frank", "again"); approval.CodeOf(err) != approval.CodeConflict {
			t.Errorf("once: %v", err)
		}
	}
}

// FuzzCanonicalSpec: what somebody sends as a spec is refused, or has one form.
func FuzzCanonicalSpec(f *testing.F) {
	for _, s := range []string{`{}`, `{"pattern":"x","labelKey":"y"}`, `{"priority":1,"steps":[{"name":"s","approvers":["group:security"],"condition":"request.clients > 1"}]}`, `{"resource":"r","mode":"Audit"}`, `[`, `{"a":1}`, `null`, `{} {}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{approval.ObjectProtectedResource, approval.ObjectResourceClass, approval.ObjectSubjectClass, approval.ObjectApprovalPolicy, "Secret"} {
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
