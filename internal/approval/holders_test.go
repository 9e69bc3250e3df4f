package approval_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

const (
	nameApp   = "trnv1:rsc:o:iam:sa:app/a"
	midOwner  = `clusters:mid"}}, spec: {owner: "user:mia"}`
	bySomeone = `clusters:mid"}}, spec: {owner: "user:zoe"}`
	sensitive = `clusters:mid", acp.io/sensitivity: high}}, spec: {owner: "user:mia"}`
)

// givesHolders returns a request to publish a version of pay with resources, which existing holders are given.
func givesHolders(resources ...string) approval.Request {
	r := publishes(accesspackage.ChainOwners, resources...)
	r.Items[0].Package.ToHolders = true
	return r
}

// published submits a version, lets these people approve it, and returns it.
func (m *model) published(p *packages, r approval.Request, approvers ...string) accesspackage.Version {
	m.t.Helper()
	x := m.submit("pat", r)
	m.approve(x.Number, approvers...)
	m.settle()
	m.is(x.Number, approval.StateEffective)
	return p.all["pay"].Current
}

// withHolder has version 1 of pay with low, which application a holds until a day after the request.
func withHolder(t *testing.T, policies ...*v1alpha1.ApprovalPolicy) (*model, *packages, *approval.Ticket) {
	t.Helper()
	m, p := withPackages(t)
	m.published(p, publishes(accesspackage.ChainOwners, "low"), "lee", "dan")
	x := m.submit("alice", wantsPackage(1))
	m.approve(x.Number, "carol", "dan")
	m.settle()
	m.is(x.Number, approval.StateEffective)
	m.host.Policies = policies
	return m, p, x
}

// holderRequest plans, and submits, what an application is given of a version.
func (m *model) holderRequest(v accesspackage.Version, application string) *approval.Ticket {
	m.t.Helper()
	ctx := m.t.Context()
	plan, held, err := m.svc.PlanHolderUpdate(ctx, "pay", v, application)
	if err != nil || !held {
		m.t.Fatalf("plan: %v, %v", held, err)
	}
	g, err := m.svc.PlanHolderRequest(ctx, "pay", v, application, plan.Give)
	if err != nil || !g.Problem.IsZero() {
		m.t.Fatalf("plan the ticket: %q, %v", g.Problem.Text, err)
	}
	t, err := m.svc.SubmitHolderRequest(ctx, g)
	if err != nil {
		m.t.Fatal(err)
	}
	return t
}

// TestVersionListsHolders checks that approvers see, and are bound to, what each holder gets and loses.
func TestVersionListsHolders(t *testing.T) {
	m, p, _ := withHolder(t)
	x := m.submit("pat", givesHolders("mid"))
	want := []string{"give " + nameApp + ": x:read on " + nameMid, "take from " + nameApp + ": x:read on " + nameLow}
	for _, line := range want {
		if !slices.Contains(x.Items[0].Shown.Lines, line) {
			t.Errorf("the approvers do not see %q: %q", line, x.Items[0].Shown.Lines)
		}
		if got := approval.LineMessage(line); got.Text != line || got.Code == message.Verbatim("").Code {
			t.Errorf("%q has no translation: %+v", line, got)
		}
	}
	if slices.ContainsFunc(x.Items[0].Shown.Lines, func(l string) bool { return strings.Contains(l, "spec.holders") }) {
		t.Errorf("values of the list are shown twice: %q", x.Items[0].Shown.Lines)
	}
	spec, err := accesspackage.ParseSpec(x.Items[0].Change.After)
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) map[string][]string { return map[string][]string{name: {"x:read"}} }
	if d := cmp.Diff(map[string]accesspackage.HolderChange{nameApp: {Gets: read(nameMid), Loses: read(nameLow)}}, spec.Holders); d != "" {
		t.Errorf("the list (-want +got):\n%s", d)
	}
	m.approve(x.Number, "lee", "mia")
	m.settle()
	if !strings.Contains(string(p.all["pay"].Current.Content), `"holders"`) {
		t.Error("the published version has no list")
	}
}

// TestManyHolderLines checks that the lines are bounded, and that the digest covers the others.
func TestManyHolderLines(t *testing.T) {
	lines := func(change func(map[string]accesspackage.HolderChange)) []string {
		t.Helper()
		spec := accesspackage.Spec{Title: "T", Team: "pub", Chain: accesspackage.ChainOwners, Holders: map[string]accesspackage.HolderChange{}}
		for i := range 100 {
			gets := map[string][]string{}
			for k := range 3 {
				gets[string(rune('a'+k))] = []string{"x:read"}
			}
			spec.Holders[string(rune('A'+i/10))+string(rune('0'+i%10))] = accesspackage.HolderChange{Gets: gets}
		}
		change(spec.Holders)
		after, err := spec.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return approval.HolderLines(approval.Change{Kind: approval.ObjectAccessPackage, Name: "pay", After: after})
	}
	all := lines(func(map[string]accesspackage.HolderChange) {})
	last := all[len(all)-1]
	if len(all) != 201 || !strings.HasPrefix(last, "and 100 more: ") {
		t.Errorf("%d lines, the last one is %q", len(all), last)
	}
	other := lines(func(h map[string]accesspackage.HolderChange) { delete(h["J9"].Gets, "c") })
	if other[len(other)-1] == last {
		t.Error("a difference that is not shown does not change the digest")
	}
}

// TestWhoHasToBeAHolder checks what is refused if a version is to be given to holders, and that nothing else changes its content.
func TestWhoHasToBeAHolder(t *testing.T) {
	m, p := withPackages(t)
	plan := func(r approval.Request) error {
		t.Helper()
		x, err := m.svc.Plan(t.Context(), m.actorOf("pat"), r)
		if err == nil {
			err = x.Items[0].Err
		}
		return err
	}
	if err := plan(givesHolders("low")); approval.CodeOf(err) != approval.CodeInvalid {
		t.Errorf("nobody can hold a package that does not exist: %v", err)
	}
	v := m.published(p, publishes(accesspackage.ChainOwners, "low"), "lee", "dan")
	if err := plan(givesHolders("low", "mid")); approval.CodeOf(err) != approval.CodeInvalid {
		t.Errorf("nobody holds it: %v", err)
	}
	if strings.Contains(string(v.Content), "holders") {
		t.Errorf("the digest of a version without holders depends on them: %s", v.Content)
	}
	x := m.submit("alice", wantsPackage(1))
	m.approve(x.Number, "carol", "dan")
	m.settle()
	if err := plan(givesHolders("low")); approval.CodeOf(err) != approval.CodeInvalid {
		t.Errorf("nothing changes for anybody: %v", err)
	}
	if err := plan(givesHolders("low", "mid")); err != nil {
		t.Error(err)
	}
	m.published(p, publishes(accesspackage.ChainOwners, "low", "mid"), "lee", "dan", "mia")
	if err := plan(givesHolders("low", "mid")); err != nil {
		t.Errorf("the content of the current version, for those who hold an earlier one: %v", err)
	}
}

// TestHolderRequestChain checks when nobody has to decide what a holder is given, and who decides otherwise.
func TestHolderRequestChain(t *testing.T) {
	const nobody, people = ": owner(mia) auto", ": leader(lee), owner(mia)"
	catalogOf := func(change ...string) func(*testing.T, *model) {
		return func(t *testing.T, m *model) { t.Helper(); m.catalog = readCatalog(t, packageCatalog(change...)) }
	}
	policies := func(all ...*v1alpha1.ApprovalPolicy) func(*testing.T, *model) {
		return func(_ *testing.T, m *model) { m.host.Policies = all }
	}
	owners := []string{"dan", "mia"}
	auto := asked("own", "resource.owner")
	auto.AutoApprove = "true"
	for name, tc := range map[string]struct {
		before, after func(*testing.T, *model)
		with          []string // further resources of the version
		approvers     []string // of the version, after lee
		want          string
		state         approval.State
	}{
		"consent":       {approvers: owners, want: nobody, state: approval.StateApproved},
		"another owner": {approvers: owners, after: catalogOf(midOwner, bySomeone), want: ": leader(lee), owner(zoe)", state: approval.StatePending},
		"highly sensitive now": {approvers: owners, after: catalogOf(midOwner, sensitive), want: people + ", security(erin frank)",
			state: approval.StatePending},
		"highly sensitive since, and security approved another resource": {with: []string{"high"}, approvers: []string{"bob", "mia", "erin"},
			after: catalogOf(midOwner, sensitive), want: people + ", security(erin frank)", state: approval.StatePending},
		"security approved it": {before: catalogOf(midOwner, sensitive), approvers: []string{"dan", "mia", "erin"}, want: nobody,
			state: approval.StateApproved},
		"a policy": {approvers: owners, after: policies(policyOf("p", 1, "", asked("own", "resource.owner"))), want: "p: own(mia)",
			state: approval.StatePending},
		"a policy's condition": {approvers: owners, after: policies(policyOf("p", 1, "", auto)), want: "p: own(mia)", state: approval.StatePending},
		"an owner by the security team": {before: catalogOf(midOwner, `clusters:mid"}}, spec: {owner: "user:pat"}`), approvers: []string{"dan", "erin"},
			want: ": leader(lee), owner(erin frank)", state: approval.StatePending},
	} {
		t.Run(name, func(t *testing.T) {
			m, p, x := withHolder(t)
			if tc.before != nil {
				tc.before(t, m)
			}
			v := m.published(p, givesHolders(append([]string{"low", "mid"}, tc.with...)...), append([]string{"lee"}, tc.approvers...)...)
			if tc.after != nil {
				tc.after(t, m)
			}
			g := m.holderRequest(v, nameApp)
			it := g.Items[len(g.Items)-1]
			if got := chainOf(it); got != tc.want || it.State != tc.state || it.ResourceName != nameMid {
				t.Errorf("%s %s, want %s %s", got, it.State, tc.want, tc.state)
			}
			if g.Requester != "pat" || it.Package == nil || !it.Package.HolderUpdate || it.Package.Ticket != v.Ticket {
				t.Errorf("the ticket: %s %+v", g.Requester, it.Package)
			}
			if line := "given to a holder of the access package by " + approval.FormatID(v.Ticket); !slices.Contains(it.Shown.Lines, line) {
				t.Errorf("the approvers do not see %q: %q", line, it.Shown.Lines)
			}
			if end := x.Items[0].ExpiresAt; !it.Package.Until.Equal(m.get(x.Number).Items[0].ExpiresAt) || tc.state == approval.StateApproved &&
				it.ExpiresAt.After(m.get(x.Number).Items[0].ExpiresAt) {
				t.Errorf("it ends at %s, after what the application has: %s", it.ExpiresAt, end)
			}
			if tc.state != approval.StateApproved {
				return
			}
			i := slices.IndexFunc(g.Events, func(e approval.Event) bool { return e.Kind == approval.EventStepApproved })
			if i < 0 || g.Events[i].Actor != "" || !strings.Contains(g.Events[i].Message.Text, approval.FormatID(v.Ticket)) {
				t.Errorf("no event names the ticket of the version: %+v", g.Events)
			}
			m.settle()
			m.is(g.Number, approval.StateEffective)
		})
	}
}

// TestHolderRequestChainIsCheckedAgain checks that the consent is compared again when people decide, and before a write is repeated.
func TestHolderRequestChainIsCheckedAgain(t *testing.T) {
	m, p, _ := withHolder(t)
	v := m.published(p, givesHolders("low", "mid"), "lee", "dan", "mia")
	down := true
	m.host.Down = func() error {
		if down {
			return context.DeadlineExceeded
		}
		return nil
	}
	g := m.holderRequest(v, nameApp)
	if err := m.worker.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.catalog = readCatalog(t, packageCatalog(midOwner, bySomeone))
	down, m.now = false, m.now.Add(time.Minute)
	if err := m.worker.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x := m.get(g.Number); x.State() != approval.StatePending || chainOf(x.Items[0]) != ": leader(lee), owner(zoe)" {
		t.Fatalf("zoe consented to nothing: %s %s", x.State(), chainOf(x.Items[0]))
	}
	m.approve(g.Number, "lee", "zoe")
	m.settle()
	m.is(g.Number, approval.StateEffective)
}

// TestHolderRequestStops checks that nothing is given to an application that is not listed, by an archived package, or by an earlier version: neither
// at the request nor after its approval.
func TestHolderRequestStops(t *testing.T) {
	for name, change := range map[string]func(*packages, *accesspackage.Package){
		"archived":      func(_ *packages, x *accesspackage.Package) { x.ArchivedAt = time.Unix(1, 0) },
		"later version": func(_ *packages, x *accesspackage.Package) { x.Current.Number++ },
		"not listed": func(_ *packages, x *accesspackage.Package) {
			x.Current.Content = []byte(strings.ReplaceAll(string(x.Current.Content), nameApp+`":{"gets"`, nameApp+`2":{"gets"`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, p, _ := withHolder(t)
			v := m.published(p, givesHolders("low", "mid"), "lee", "dan", "mia")
			if reason, err := m.svc.HolderUpdateRefusal(t.Context(), "pay", v.Number, nameApp); err != nil || !reason.IsZero() {
				t.Fatalf("it may be given: %q, %v", reason.Text, err)
			}
			g := m.holderRequest(v, nameApp)
			x := p.all["pay"]
			change(p, &x)
			p.all["pay"] = x
			if reason, err := m.svc.HolderUpdateRefusal(t.Context(), "pay", v.Number, nameApp); err != nil || reason.IsZero() {
				t.Errorf("it may still be given: %v", err)
			}
			m.settle()
			it := m.get(g.Number).Items[0]
			if it.State != approval.StateRevoked || it.WrittenGeneration != 0 {
				t.Errorf("it is %s, generation %d", it.State, it.WrittenGeneration)
			}
			state, why := approval.HolderState(m.get(g.Number))
			if state != accesspackage.HolderFailed || why.IsZero() {
				t.Errorf("the application is %s: %q", state, why.Text)
			}
		})
	}
	m, p, _ := withHolder(t)
	v := m.published(p, givesHolders("low", "mid"), "lee", "dan", "mia")
	if _, _, err := m.svc.PlanHolderUpdate(t.Context(), "pay", v, "trnv1:rsc:o:iam:sa:app/b"); err == nil {
		t.Error("an application that is not listed has a plan")
	}
}

// TestRevokedAccessIsNotGivenAgain checks that what was revoked after the version was requested stays revoked, and what was revoked before,
// and shown to the approvers, is given.
func TestRevokedAccessIsNotGivenAgain(t *testing.T) {
	for name, after := range map[string]bool{"before the request": false, "after the request": true} {
		m, p := withPackages(t)
		m.publish(accesspackage.ChainOwners)
		x := m.submit("alice", wantsPackage(1))
		m.approve(x.Number, "carol", "dan", "mia")
		m.settle()
		revoke := func() {
			t.Helper()
			m.now = m.now.Add(time.Hour)
			if _, err := m.svc.Revoke(t.Context(), m.actorOf("mia"), x.Number, 1, "no longer needed"); err != nil {
				t.Fatal(err)
			}
			m.settle()
		}
		if !after {
			revoke()
		}
		m.now = m.now.Add(time.Minute)
		r := givesHolders("mid", "low", "high")
		y := m.submit("pat", r)
		if after {
			revoke()
		}
		m.approve(y.Number, "lee", "bob", "mia", "erin")
		m.settle()
		plan, held, err := m.svc.PlanHolderUpdate(t.Context(), "pay", p.all["pay"].Current, nameApp)
		if err != nil || !held {
			t.Fatal(held, err)
		}
		var got []string
		for _, g := range plan.Give {
			got = append(got, strings.TrimPrefix(g.Resource, "trnv1:rsc:o:redis:clusters:"))
		}
		want := []string{"high", "mid"}
		if after {
			want = []string{"high"}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("revoked %s (-want +got):\n%s", name, d)
		}
	}
}

// TestRevokePackageAccess checks that the access and its extension end with the version's ticket as the reason, and nobody as the actor.
func TestRevokePackageAccess(t *testing.T) {
	m, p, x := withHolder(t)
	m.now = m.now.Add(time.Hour)
	e := m.submit("alice", approval.Request{Kind: approval.KindExtend, Reason: "longer",
		Items: []approval.RequestItem{{Target: &approval.Target{Ticket: x.Number}, Duration: 24 * time.Hour}}})
	m.approve(e.Number, "carol", "dan")
	m.settle()
	v := m.published(p, givesHolders("mid"), "lee", "mia")
	for range 2 { // the second time changes nothing
		if err := m.svc.RevokePackageAccess(t.Context(), accesspackage.Access{Ticket: x.Number}, "pay", v); err != nil {
			t.Fatal(err)
		}
		m.settle()
	}
	for _, n := range []int64{x.Number, e.Number} {
		y := m.get(n)
		m.is(n, approval.StateRevoked)
		var found []approval.Event
		for _, ev := range y.Events {
			if ev.Kind == approval.EventRevokeRequested {
				found = append(found, ev)
			}
		}
		if len(found) != 1 || found[0].Actor != "" || !strings.Contains(found[0].Message.Text, approval.FormatID(v.Ticket)) {
			t.Errorf("T-%d: the revocations: %+v", n, found)
		}
	}
}

// TestHolderRequestOfAPersonWhoLeft checks that nothing is requested for a requester who is no longer in the team, and that people cannot approve it.
func TestHolderRequestOfAPersonWhoLeft(t *testing.T) {
	m, p, _ := withHolder(t)
	v := m.published(p, givesHolders("low", "mid"), "lee", "dan", "mia")
	m.host.Policies = []*v1alpha1.ApprovalPolicy{policyOf("p", 1, "", asked("own", "resource.owner"))}
	g := m.holderRequest(v, nameApp)
	m.catalog = readCatalog(t, packageCatalog("members: [pat, quinn, ray]", "members: [quinn, ray]"))
	if _, err := m.svc.Decide(t.Context(), m.actorOf("mia"), g.Number, 0, m.version(g.Number), true, ""); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("it is approved for a person who left the team: %v", err)
	}
	plan, err := m.svc.PlanHolderRequest(
		t.Context(),
		"pay",
		accesspackage.Version{Number: 3, Ticket: v.Ticket, Content: v.Content, PublishedBy: "pat"},
		nameApp,
		[]accesspackage.Addition{{Resource: nameMid, Actions: []string{"x:read"}}},
	)
	if err != nil || plan.Problem.IsZero() || !plan.Empty() {
		t.Errorf("it is requested for them: %+v, %v", plan, err)
	}
}
