package approval_test

import (
	"testing"
	"time"

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
	m.catalog, m.host.Policies, m.host.Affects, m.svc.Builtin = m.catalogs[0], policies, nil, approval.BuiltinTimeout{}
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
	if _, err := m.svc.Submit(
		t.Context(), m.actorOf("bob"), approval.Request{Kind: ask.Kind, Items: ask.Items, Reason: "r"},
	); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("an owner revokes directly: %v", err)
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
	m.now = m.now.Add(20 * time.Hour)
	p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), grant(90*time.Hour))
	if err != nil || p.Kind != approval.KindExtend || p.Items[0].Covered == nil || *p.Items[0].Covered != (approval.Target{Ticket: n}) {
		t.Fatalf("a new request for the same access is an extension: %+v, %v", p, err)
	}
	for name, d := range map[string]time.Duration{
		"shorter": time.Hour, "too short": time.Minute, "longer than the grant": 101 * time.Hour, "until revoked": 0,
	} {
		if p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), grant(d)); err != nil || approval.CodeOf(p.Items[0].Err) != approval.CodeInvalid {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	x := m.submit(
		"alice",
		approval.Request{Kind: approval.KindExtend, Items: []approval.RequestItem{{Target: &approval.Target{Ticket: n}, Duration: 100 * time.Hour}}},
	)
	m.approve(x.Number, "carol", "bob", "erin")
	m.settle()
	m.is(x.Number, approval.StateEffective)
	if got := m.get(x.Number).Items[0].ExpiresAt; !got.After(end) {
		t.Errorf("it ends at %v, and so did the one before (%v)", got, end)
	}
	m.now = m.now.Add(20 * time.Hour)
	again := m.submit("alice", grant(100*time.Hour))
	m.approve(again.Number, "carol", "bob", "erin")
	if _, err := m.svc.Revoke(t.Context(), m.actorOf("bob"), n, approval.EveryItem, "enough"); err != nil {
		t.Fatal(err)
	}
	m.settle()
	for _, n := range []int64{n, x.Number, again.Number} {
		m.is(n, approval.StateRevoked)
	}
}

// TestExtensionOfWhatIsRevoked checks that an extension requested before the revocation does not outlive it.
func TestExtensionOfWhatIsRevoked(t *testing.T) {
	m := quiet(t)
	n := m.granted(100 * time.Hour)
	m.now = m.now.Add(time.Hour)
	x := m.submit("alice", grant(100*time.Hour))
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
		"not the owner":      {"zoe", ask(approval.KindOnboard, v1alpha1.ModeAudit)},
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
