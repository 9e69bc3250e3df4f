package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
)

// The companies of the model: alice asks for her applications, and leads, owns and secures in some of them, too.
const modelCompany = `
{kind: Group, metadata: {name: team, annotations: {acp.io/lead: carol}}, spec: {members: [alice, bob, carol, dan]}}
---
{kind: Group, metadata: {name: security}, spec: {members: [SECURITY]}}
---
{kind: Group, metadata: {name: auditors}, spec: {members: [otto]}}
---
{kind: User, metadata: {name: alice}}
---
{kind: User, metadata: {name: bob}}
---
{kind: User, metadata: {name: carol, annotations: {acp.io/leader: zoe}}}
---
{kind: User, metadata: {name: dan}}
---
{kind: User, metadata: {name: erin}}
---
{kind: User, metadata: {name: frank}}
---
{kind: User, metadata: {name: otto}}
---
{kind: User, metadata: {name: zoe}}
---
{kind: Component, metadata: {name: a, annotations: {acp.io/resource-name: "trnv1:rsc:o:iam:sa:app/a"}}, spec: {owner: "user:alice"}}
---
{kind: Component, metadata: {name: b, annotations: {acp.io/resource-name: "trnv1:rsc:o:iam:sa:app/b"}}, spec: {owner: "group:team"}}
---
kind: Resource
metadata: {name: high, annotations: {acp.io/resource-name: "trnv1:rsc:o:redis:clusters:high", acp.io/sensitivity: high}}
spec: {owner: "OWNER"}
---
{kind: Resource, metadata: {name: low, annotations: {acp.io/resource-name: "trnv1:rsc:o:redis:clusters:low"}}, spec: {owner: "group:team"}}
`

var modelPeople = []string{"alice", "bob", "carol", "dan", "erin", "frank", "otto", "zoe"}

func modelCatalogs(t *testing.T) []*catalog.Catalog {
	var out []*catalog.Catalog
	for _, c := range []struct{ security, owner string }{
		{"erin, frank", "user:bob"}, {"alice, erin, frank", "user:alice"}, {"erin, bob", "group:team"}, {"dan, carol, zoe", "user:erin"},
	} {
		out = append(out, readCatalog(t, strings.NewReplacer("SECURITY", c.security, "OWNER", c.owner).Replace(modelCompany)))
	}
	return out
}

// modelPolicies are the approval policies of the model, in sets.
func modelPolicies() [][]*v1alpha1.ApprovalPolicy {
	two := int32(2)
	hour := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Hour} }
	by := func(name string, who ...v1alpha1.Approver) v1alpha1.ApprovalStep {
		return v1alpha1.ApprovalStep{Name: name, Approvers: who}
	}
	with := func(s v1alpha1.ApprovalStep, f func(*v1alpha1.ApprovalStep)) v1alpha1.ApprovalStep { f(&s); return s }
	policy := func(name string, priority int32, match string, steps ...v1alpha1.ApprovalStep) *v1alpha1.ApprovalPolicy {
		return &v1alpha1.ApprovalPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: name},
			Spec:       v1alpha1.ApprovalPolicySpec{Priority: priority, Match: match, Steps: steps},
		}
	}
	glass := policy("glass", 1, `request.breakGlass`, by("never", "group:security"))
	glass.Spec.BreakGlass = &v1alpha1.BreakGlass{
		People:      []string{"alice", "bob"},
		MaxDuration: hour(4),
		Reviewers:   []v1alpha1.Approver{"group:security", "requester.leader"},
	}
	quorum := policy("quorum", 5, `request.kind in ["grant", "extend"]`,
		with(by("owners", "resource.owner", "application.owner"), func(s *v1alpha1.ApprovalStep) { s.Quorum, s.Count = "Count", &two }),
		with(by("security", "group:security"), func(s *v1alpha1.ApprovalStep) {
			s.Condition = `request.resource.sensitivity == "high"`
			s.Timeout = &v1alpha1.StepTimeout{After: hour(24), Action: v1alpha1.TimeoutDeny}
		}))
	quorum.Spec.MaxDuration = &metav1.Duration{Duration: 400 * time.Hour}
	patient := policy("patient", 7, "",
		with(by("owner", "resource.owner", "application.owner", "group:security"), func(s *v1alpha1.ApprovalStep) {
			s.Timeout = &v1alpha1.StepTimeout{
				After:      hour(6),
				Action:     v1alpha1.TimeoutEscalate,
				EscalateTo: []v1alpha1.Approver{"person:zoe", "requester.leader", "person:alice"},
			}
		}),
		with(by("second", "group:team", "group:security"), func(s *v1alpha1.ApprovalStep) {
			s.Timeout = &v1alpha1.StepTimeout{After: hour(12), Action: v1alpha1.TimeoutRemind}
		}))
	easy := policy("easy", 3, `request.resource.sensitivity == "low" && !request.permanent`,
		with(by("auto", "resource.owner"), func(s *v1alpha1.ApprovalStep) { s.AutoApprove = `request.duration < duration("48h")` }))
	same := policy("same", 4, `request.kind != "class"`, by("owner", "resource.owner", "group:security"), by("again", "resource.owner", "group:security"),
		with(by("all", "group:security"), func(s *v1alpha1.ApprovalStep) { s.Quorum = "All" }))
	same.Spec.SamePersonManySteps = true
	broken := policy("broken", 6, `request.kind == "extend" && request.actions[7] == "x"`, by("owner", "group:team"))
	team := policy("team", 8, "", by("owner", "group:team"))
	for _, p := range []*v1alpha1.ApprovalPolicy{patient, easy, same, team} {
		p.Spec.MaxDuration = &metav1.Duration{Duration: 3000 * time.Hour}
	}
	limited := policy("limited", 9, "",
		with(by("owner", "resource.owner", "application.owner", "group:security"), func(s *v1alpha1.ApprovalStep) {
			s.LimitTo = `onCall("shop", 1)`
			s.Timeout = &v1alpha1.StepTimeout{
				After:       hour(6),
				Action:      v1alpha1.TimeoutEscalate,
				EscalateTo:  []v1alpha1.Approver{"requester.leader", "person:alice"},
				RemindEvery: &metav1.Duration{Duration: 2 * time.Hour},
			}
		}),
		with(by("second", "group:team", "group:security"), func(s *v1alpha1.ApprovalStep) {
			s.LimitTo, s.LimitFallback = `onCall("shop", 2)`, v1alpha1.LimitApprovers
		}))
	careful := policy("careful", 10, `request.kind == "grant"`, by("owner", "resource.owner", "group:security"))
	careful.Spec.DenyAutoApprove = []string{`request.requester.id == "alice"`, `"x:write" in request.actions`}
	return [][]*v1alpha1.ApprovalPolicy{
		nil,
		{limited, glass},
		{easy, careful, glass},
		{glass},
		{glass, quorum},
		{glass, patient},
		{easy, glass},
		{easy, glass}, // extensions take many steps, unless they are approved automatically
		{same, glass},
		{broken, team, glass},
		{easy, quorum, patient, glass},
	}
}

// model is one walk.
type model struct {
	t        *testing.T
	r        *rand.Rand
	svc      *approval.Service
	worker   *approval.Worker
	follower *approval.Follower
	store    approvaltest.Store
	ledger   func() []ledger.Entry
	host     *approvaltest.Host
	now      time.Time
	catalogs []*catalog.Catalog
	catalog  *catalog.Catalog
	policies [][]*v1alpha1.ApprovalPolicy
	onCall   approval.Duty

	log     strings.Builder
	before  map[int64]*approval.Ticket // as they were looked at last, and the same in the store's order
	all     []*approval.Ticket
	op      string
	actor   string
	fault   string
	changed bool
}

// newModel makes the Service once; a walk begins with begin.
func newModel(t *testing.T) *model {
	m := &model{t: t, catalogs: modelCatalogs(t), policies: modelPolicies()}
	m.catalog = m.catalogs[0]
	var err error
	memory := &approvaltest.Memory{}
	m.svc, err = approval.NewService(
		approval.Config{
			Store:       memory,
			Delegations: memory,
			Host:        &approvaltest.Host{},
			Now:         func() time.Time { return m.now },
			Catalog:     func() *catalog.Catalog { return m.catalog },
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *model) begin(seed uint64, store approvaltest.Store, lines func() []ledger.Entry) {
	m.r = rand.New(rand.NewPCG(seed, 7))
	m.store, m.ledger, m.now = store, lines, approvaltest.Start
	m.catalog = m.catalogs[m.r.IntN(len(m.catalogs))]
	m.host = &approvaltest.Host{Actions: []string{"x:read", "x:write"}, Policies: m.policies[m.r.IntN(len(m.policies))]}
	class, _ := json.Marshal(v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:o:iam:sa:app/*"})
	m.host.SetObject(approval.ObjectSubjectClass, "apps", class)
	m.host.Affects = []map[string][]string{nil, {"SubjectClass/apps": {"trnv1:rsc:o:redis:clusters:low"}},
		{"SubjectClass/apps": {"trnv1:rsc:o:redis:clusters:high", "trnv1:rsc:o:redis:clusters:low"}}}[seed%3]
	m.onCall = approval.Duty{Known: true, People: []string{"bob", "erin"}}
	m.svc.OnCall = func(string, int) approval.Duty { return m.onCall }
	m.svc.Builtin = pickOf(m.r,
		approval.BuiltinTimeout{},
		approval.BuiltinTimeout{RemindEvery: 5 * time.Hour, After: 20 * time.Hour, Action: v1alpha1.TimeoutEscalate},
		approval.BuiltinTimeout{After: 100 * time.Hour, Action: v1alpha1.TimeoutDeny},
	)
	m.svc.Store, m.svc.Config.Delegations, m.svc.Host, m.svc.Workloads = store, store, m.host, m.host
	log := slog.New(slog.DiscardHandler)
	m.worker = approval.NewWorker(
		approval.WorkerConfig{
			Name:       "w",
			Service:    m.svc,
			Outbox:     store,
			Writer:     &guard{m.host, m},
			Objects:    &guard{m.host, m},
			Log:        log,
			Lease:      time.Minute,
			Poll:       time.Second,
			PolicyName: func(r string) string { return "p-" + r },
		},
	)
	m.follower = approval.NewFollower(m.svc, m.host, nil, time.Minute, log)
	m.log.Reset()
	m.before, m.all, m.fault = map[int64]*approval.Ticket{}, nil, ""
}

// guard is the host cluster, which looks at everything that is about to be written.
type guard struct {
	*approvaltest.Host
	m *model
}

// Put looks at the item after the check, that is at what is written and by what right.
func (g *guard) Put(ctx context.Context, policy, resource string, statements []v1alpha1.Statement, check approval.Check) (approval.Written, error) {
	return g.Host.Put(ctx, policy, resource, statements, func(ctx context.Context, present bool) error {
		g.m.interfere(ctx)
		if err := check(ctx, present); err != nil {
			return err
		}
		for _, s := range statements {
			g.m.mayBeWritten(s.SID)
		}
		return nil
	})
}

// Replace looks at the item after the check, as Put does.
func (g *guard) Replace(ctx context.Context, policy, resource string, statement v1alpha1.Statement, current func(v1alpha1.Statement) bool,
	check approval.Check) (approval.Written, error) {
	return g.Host.Replace(ctx, policy, resource, statement, current, func(ctx context.Context, present bool) error {
		g.m.interfere(ctx)
		if err := check(ctx, present); err != nil {
			return err
		}
		g.m.mayBeWritten(statement.SID)
		return nil
	})
}

// interfere revokes something between the reading of a policy and its writing.
func (m *model) interfere(ctx context.Context) {
	security := m.catalog.Members(catalog.GroupSecurity)
	if all := m.tickets(); m.r.IntN(5) == 0 && len(all) > 0 {
		n := pickOf(m.r, all...).Number
		_, err := m.svc.Revoke(ctx, m.actorOf(security[0]), n, approval.EveryItem, "meanwhile")
		fmt.Fprintf(&m.log, "revoke %d in the middle of a write -> %v\n", n, err)
	}
}

func (g *guard) Apply(ctx context.Context, c approval.Change, check approval.Check) (approval.Written, error) {
	return g.Host.Apply(ctx, c, func(ctx context.Context, present bool) error {
		if err := check(ctx, present); err != nil {
			return err
		}
		for _, t := range g.m.tickets() {
			for i, it := range t.Items {
				if it.Change != nil && it.Change.Kind == c.Kind && it.Change.Name == c.Name && it.State.MayBeOnHost() &&
					string(it.Change.After) == string(c.After) &&
					it.Change.Verb == c.Verb {
					if why := fullChain(t, i); why == "" {
						g.m.ownersAgreed(t, i)
						return nil
					}
				}
			}
		}
		g.m.fail("%s %s is written without an approval", c.Kind, c.Name)
		return nil
	})
}

// ownersAgreed checks that of each resource which the clients of an item reach, or which a change of a class affects, an owner or the security
// team decided.
func (m *model) ownersAgreed(t *approval.Ticket, i int) {
	it := t.Items[i]
	if it.WrittenGeneration > 0 {
		return
	}
	var reached approval.Reached
	var err error
	switch t.Kind {
	case approval.KindWorkload:
		reached, err = m.host.Reached(it.ApplicationName)
	case approval.KindClass:
		reached.Resources, err = m.host.Affected(*it.Change)
	default:
		return
	}
	if err != nil {
		m.fail("reached: %v", err)
	}
	for _, r := range reached.Resources {
		if !slices.ContainsFunc(it.Steps, func(s approval.Step) bool {
			return slices.Contains(s.From, v1alpha1.Approver("owner-of:"+r)) || slices.Equal(s.From, []v1alpha1.Approver{"group:security"})
		}) {
			m.fail("%s is written without an approval for %s", it.SID, r)
		}
	}
}

func (m *model) fail(format string, args ...any) {
	if m.fault == "" {
		m.fault = fmt.Sprintf(format, args...)
	}
}

func (m *model) tickets() []*approval.Ticket {
	list, err := m.store.List(context.Background(), approval.Filter{})
	if err != nil {
		m.fail("list: %v", err)
	}
	return list
}

// actorOf returns a person with their roles in the catalog, as a session contains them.
func (m *model) actorOf(id string) approval.Actor {
	return approval.Actor{ID: id, Security: m.catalog.InGroup(id, catalog.GroupSecurity), Auditor: m.catalog.InGroup(id, catalog.GroupAuditors)}
}

func pickOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }
