package approval_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

var errAway = errors.New("connection refused")

// step does one operation, and says whether a person's was accepted.
func (m *model) step() (accepted bool, err error) {
	r, ctx := m.r, m.t.Context()
	m.actor = pickOf(r, modelPeople...)
	who := m.actorOf(m.actor)
	n, item := m.someTicket()
	requester := m.requester(n)
	if k := m.someoneWaitedFor(n); k.Person != "" && r.IntN(3) > 0 { // else a walk seldom comes far
		who, item, m.actor = m.actorOf(k.Person), k.Item, k.Person
		if r.IntN(4) == 0 { // and requesters seldom try to decide
			who, m.actor = m.actorOf(requester), requester
		}
	}
	said := pickOf(r, "", "because", "because")
	name := func(op string, args ...any) {
		m.op = fmt.Sprint(append([]any{op + " by " + m.actor + ": "}, args...)...)
	}
	switch k := r.IntN(32); {
	case k < 6:
		req := m.request(n, item)
		name("submit", req.Kind, " ", describe(req))
		_, err = m.svc.Submit(ctx, who, req)
		return err == nil, err
	case k < 15:
		approve := r.IntN(10) > 0
		version := m.version(n)
		if r.IntN(12) == 0 {
			version--
		}
		name("decide", n, "/", item, " ", approve)
		_, err = m.svc.Decide(ctx, who, n, item, version, approve, said)
		return err == nil, err
	case k == 15 && r.IntN(2) == 0:
		name("decide many")
		var choices []approval.Choice
		for _, t := range m.all {
			choices = append(choices, approval.Choice{Ticket: t.Number, Item: approval.EveryItem, Version: t.Version})
		}
		_, err = m.svc.DecideMany(ctx, who, choices, r.IntN(4) > 0, said)
		return err == nil, err
	case k == 16:
		name("review", n)
		_, err = m.svc.Review(ctx, who, n, max(item, 0), r.IntN(2) == 0, said)
		return err == nil, err
	case k == 17:
		name("withdraw", n)
		_, err = m.svc.Withdraw(ctx, who, n, said)
		return err == nil, err
	case k == 18:
		name("revoke", n, "/", item)
		_, err = m.svc.Revoke(ctx, who, n, item, said)
		return err == nil, err
	case k == 19:
		name("comment", n)
		_, err = m.svc.Comment(ctx, who, n, said)
		return err == nil, err
	case k == 20, k == 15:
		to := pickOf(r, pickOf(r, modelPeople...), requester)
		start := m.now.Add(time.Duration(r.IntN(48)-24) * time.Hour)
		name("delegate to ", to)
		_, err = m.svc.Delegate(ctx, who, to, start, start.Add(time.Duration(r.IntN(72))*time.Hour), said)
		return err == nil, err
	case k == 21:
		name("end delegation")
		_, err = m.svc.EndDelegation(ctx, who, int64(r.IntN(4)))
		return err == nil, err
	}
	m.actor = ""
	return false, m.nature()
}

// nature is what happens without a person.
func (m *model) nature() error {
	r, ctx := m.r, m.t.Context()
	switch k := r.IntN(11); {
	case k == 10:
		m.onCall = approval.Duty{
			Known:  r.IntN(4) > 0,
			People: []string{pickOf(r, modelPeople...), pickOf(r, modelPeople...)},
			Reason: message.OnCallNoAnswer("shop"),
		}
		if !m.onCall.Known && r.IntN(2) == 0 {
			m.onCall = approval.Duty{Missing: true, Reason: message.OnCallNotConfigured("shop")}
		}
		m.op = fmt.Sprint("another shift: ", m.onCall.Known, m.onCall.People)
		return nil
	case k < 3:
		m.op = "work"
		m.host.Down = nil
		if r.IntN(6) == 0 {
			m.host.Down = func() error { return errAway }
			m.op = "work in vain"
		}
		return m.worker.Drain(ctx)
	case k < 5:
		m.op = "report"
		m.host.Report(r.IntN(4) > 0)
		return m.follower.Sync(ctx)
	case k < 8:
		d := pickOf(r, time.Minute, time.Hour, 7*time.Hour, 26*time.Hour, 200*time.Hour)
		m.op = "time passes: " + d.String()
		m.now = m.now.Add(d)
		return m.svc.Tick(ctx)
	case k == 8:
		m.op = "the classes change"
		if r.IntN(3) == 0 {
			m.host.Shrink()
		} else {
			m.host.Grow(fmt.Sprint("allow port ", r.IntN(5)))
		}
		return nil
	}
	if r.IntN(2) == 0 {
		m.op = "people move"
		m.catalog = pickOf(r, m.catalogs...)
		return nil
	}
	m.op = "tamper"
	return m.tamper()
}

// tamper changes policies by hand: removes, alters or puts back a statement.
func (m *model) tamper() error {
	for _, name := range m.host.Names() {
		m.host.Edit(name, func(p *v1alpha1.AccessControlPolicy) {
			if len(p.Spec.Statements) > 0 {
				if m.r.IntN(2) == 0 {
					p.Spec.Statements = p.Spec.Statements[1:]
				} else {
					s := p.Spec.Statements[0].DeepCopy()
					s.Subjects = append(s.Subjects, "trnv1:rsc:o:iam:sa:app/other")
					p.Spec.Statements = append(p.Spec.Statements[1:], *s)
				}
				return
			}
			for _, t := range m.tickets() {
				for _, it := range t.Items {
					if it.Policy == name && it.State == approval.StateRevoked {
						p.Spec.Statements = append(p.Spec.Statements, approval.Statement(it))
						return
					}
				}
			}
		})
	}
	m.host.Report(true)
	for _, name := range m.host.Names() {
		if err := m.follower.Follow(m.t.Context(), name); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) someTicket() (int64, int) {
	if len(m.all) == 0 {
		return 1, approval.EveryItem
	}
	t := pickOf(m.r, m.all...)
	return t.Number, m.r.IntN(len(t.Items)+2) - 1 // every item, and one that there is not
}

func (m *model) requester(n int64) string {
	if t := m.before[n]; t != nil {
		return t.Requester
	}
	return "alice"
}

// someoneWaitedFor is one of those who could decide an item of a ticket.
func (m *model) someoneWaitedFor(n int64) approval.Concern {
	t := m.before[n]
	if t == nil {
		return approval.Concern{}
	}
	waits := slices.DeleteFunc(t.Concerns(), func(c approval.Concern) bool { return c.Role != approval.RoleWaits })
	if len(waits) == 0 {
		return approval.Concern{}
	}
	return pickOf(m.r, waits...)
}

func (m *model) version(n int64) int64 {
	t, err := m.store.Get(m.t.Context(), n)
	if err != nil {
		return 0
	}
	return t.Version
}

func (m *model) request(n int64, item int) approval.Request {
	r := m.r
	hours := func() time.Duration { return time.Duration(pickOf(r, 0, 1, 3, 30, 100, 1000)) * time.Hour }
	access := func() approval.RequestItem {
		return approval.RequestItem{
			Application: pickOf(r, "a", "b"),
			Resource:    pickOf(r, "high", "low"),
			Actions:     pickOf(r, []string{"x:read"}, []string{"x:read", "x:write"}),
			Duration:    hours(),
		}
	}
	req := approval.Request{Kind: approval.KindGrant, Reason: "work", BreakGlass: r.IntN(6) == 0, Items: []approval.RequestItem{access()}}
	if r.IntN(4) == 0 {
		req.IdempotencyKey = pickOf(r, "key-1", "key-2")
	}
	target := &approval.Target{Ticket: n, Item: max(item, 0)}
	for _, t := range m.all {
		for i, it := range t.Items {
			if it.State == approval.StateEffective && t.Kind.Access() && r.IntN(2) == 0 {
				target = &approval.Target{Ticket: t.Number, Item: i}
			}
		}
	}
	switch k := r.IntN(22); {
	case k < 4:
	case k < 6:
		req.Items = append(req.Items, access())
	case k < 11:
		req.Kind, req.BreakGlass, req.Items = approval.KindExtend, false, []approval.RequestItem{
			{Target: target, Duration: pickOf(r, 300*time.Hour, 1000*time.Hour, hours())},
		}
	case k < 13:
		req.Kind, req.BreakGlass, req.Items = approval.KindRevoke, false, []approval.RequestItem{{Target: target}}
	case k < 17:
		req.Kind = pickOf(r, approval.KindMode, approval.KindOnboard, approval.KindOffboard)
		req.BreakGlass = false
		req.Items = []approval.RequestItem{
			{Resource: pickOf(r, "high", "low"), Mode: pickOf(r, v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce)},
		}
	case k == 17:
		req.Kind, req.BreakGlass = approval.KindClass, false
		spec, _ := json.Marshal(v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:o:iam:sa:app/*", LabelKey: v1alpha1.LabelKey(pickOf(r, "x", "y", "z"))})
		req.Items = []approval.RequestItem{
			{Object: &approval.ObjectChange{Kind: approval.ObjectSubjectClass, Name: "apps", Verb: pickOf(r, "create", "update", "update"), Spec: spec}},
		}
	case k == 18:
		req.Kind, req.BreakGlass = approval.KindWorkload, false
		req.Items = []approval.RequestItem{
			{
				Application: pickOf(r, "a", "b"),
				Workload:    &approval.Registration{ID: pickOf(r, "vm-1", "vm-2"), Addresses: []string{pickOf(r, "192.0.2.0/24", "192.0.2.7")}},
			},
		}
	case k > 19:
		req.Kind, req.BreakGlass = approval.KindStatement, false
		req.Items = []approval.RequestItem{{Duration: hours(), Actions: []string{"x:read"}, Scope: &approval.StatementScope{
			Effect:    pickOf(r, v1alpha1.EffectAllow, v1alpha1.EffectDeny),
			Subjects:  pickOf(r, []string{"*"}, []string{"a", "trnv1:rsc:org:net:cidr:10.0.0.0/8"}, []string{"trnv1:rsc:o:iam:sa:app/*"}),
			Resources: pickOf(r, []string{"low"}, []string{"high", "low"}, []string{redisPrefix}),
		}}}
	default:
		req.Kind, req.BreakGlass = approval.KindApprovalPolicy, false
		spec, _ := json.Marshal(v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{{Name: "s", Approvers: []v1alpha1.Approver{"group:security"}}}})
		req.Items = []approval.RequestItem{
			{Object: &approval.ObjectChange{Kind: approval.ObjectApprovalPolicy, Name: "new", Verb: pickOf(r, "create", "delete"), Spec: spec}},
		}
	}
	return req
}

func describe(r approval.Request) string {
	text := ""
	for _, it := range r.Items {
		text += fmt.Sprintf("[%s %s %v %v %v %s] ", it.Application, it.Resource, it.Actions, it.Duration, it.Target, it.Mode)
	}
	if r.BreakGlass {
		text += "breaking the glass"
	}
	return text
}
