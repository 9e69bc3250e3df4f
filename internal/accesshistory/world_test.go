package accesshistory

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/policy"
)

const (
	bobs   = "trnv1:rsc:trip-com:redis:clusters:bobs-cluster"
	alices = "trnv1:rsc:trip-com:redis:clusters:alices-cluster"
)

var (
	start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	ours  = policy.PolicyNameFor(bobs)
)

func app(n int) string { return fmt.Sprintf("trnv1:rsc:trip-com:iam:sa:app/%d", n) }

// world is a host cluster with the records of what was done to it. Each action takes an hour.
type world struct {
	t        *testing.T
	now      time.Time
	input    policy.Input
	tickets  []*approval.Ticket
	lines    []ledger.Entry
	restored []time.Time
	recorder *recorder // nil if the changes outside of the portal are recorded without content
}

func newWorld(t *testing.T) *world {
	return &world{t: t, now: start, lines: []ledger.Entry{{At: start, Action: "token.created"}}, input: policy.Input{
		Members: 1,
		ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
			Pattern: "trnv1:rsc:trip-com:redis:clusters:*", LabelKey: "com.trip/redis-cluster",
			Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}},
				{Name: "redis:admin", Ports: []v1alpha1.Port{{Port: 6380}}}}}}},
		SubjectClasses: []*v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "application"}, Spec: v1alpha1.SubjectClassSpec{
			Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"}}},
	}}
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

func (w *world) hour() { w.pass(time.Hour) }

// at returns a metav1 time of the world.
func (w *world) at() metav1.Time { return metav1.NewTime(w.now) }

func (w *world) policy(name string) *v1alpha1.AccessControlPolicy {
	i := slices.IndexFunc(w.input.Policies, func(p *v1alpha1.AccessControlPolicy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return w.input.Policies[i]
}

// edit replaces a policy by a changed copy, as the host cluster does; it is created if there is none.
func (w *world) edit(name string, change func(*v1alpha1.AccessControlPolicy)) {
	old := w.policy(name)
	next := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: w.at()}}
	if old != nil {
		next = old.DeepCopy()
		w.remove(name)
	}
	change(next)
	w.input.Policies = append(slices.Clone(w.input.Policies), next)
}

func (w *world) remove(name string) {
	w.input.Policies = slices.DeleteFunc(slices.Clone(w.input.Policies), func(p *v1alpha1.AccessControlPolicy) bool { return p.Name == name })
}

func (w *world) ticket(kind approval.Kind, it approval.Item) *approval.Ticket {
	t := &approval.Ticket{Kind: kind, Requester: "alice", CreatedAt: w.now, Items: []approval.Item{it}}
	t.Numbered(int64(len(w.tickets) + 1))
	w.tickets = append(w.tickets, t)
	return t
}

func (w *world) event(t *approval.Ticket, kind approval.EventKind) {
	t.Events = append(t.Events, approval.Event{At: w.now, Kind: kind})
}

// grant gives an application access by a ticket; an hour later it is effective.
func (w *world) grant(n int, duration time.Duration) *approval.Ticket {
	it := approval.Item{Application: fmt.Sprint("app-", n), ApplicationName: app(n), Resource: "bobs-cluster", ResourceName: bobs,
		Actions: []string{"redis:connect"}, Duration: duration, State: approval.StateApplying, Policy: ours, WrittenGeneration: 1}
	if duration > 0 {
		it.ExpiresAt = w.now.Add(duration)
	}
	t := w.ticket(approval.KindGrant, it)
	w.edit(ours, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = append(p.Spec.Statements, approval.Statement(t.Items[0]))
	})
	w.event(t, approval.EventWritten)
	w.hour()
	t.Items[0].State = approval.StateEffective
	w.event(t, approval.EventEffective)
	w.hour()
	return t
}

// revoke removes the statement of a ticket.
func (w *world) revoke(t *approval.Ticket) {
	w.event(t, approval.EventRevokeRequested)
	w.edit(ours, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = slices.DeleteFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return s.SID == t.Items[0].SID })
	})
	w.event(t, approval.EventRevokeWritten)
	t.Items[0].State = approval.StateRevoked
	w.event(t, approval.EventRevoked)
	w.hour()
}

func marshal(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (w *world) protection() *v1alpha1.ProtectedResource {
	for _, p := range w.input.Resources {
		if string(p.Spec.Resource) == bobs {
			return p
		}
	}
	return nil
}

func (w *world) protect(p *v1alpha1.ProtectedResource) {
	w.input.Resources = nil
	if p != nil {
		w.input.Resources = []*v1alpha1.ProtectedResource{p}
	}
}

// mode changes the mode by a ticket, which onboards the resource if necessary, or offboards it if the mode is empty.
func (w *world) mode(mode v1alpha1.Mode) *approval.Ticket {
	c := &approval.Change{Kind: approval.ObjectProtectedResource, Name: ours, Verb: approval.VerbUpdate, ToMode: mode}
	kind, old := approval.KindMode, w.protection()
	next := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: ours, CreationTimestamp: w.at()}}
	next.Spec.Resource = bobs
	if old == nil {
		c.Verb, kind = approval.VerbCreate, approval.KindOnboard
	} else {
		next = old.DeepCopy()
		before := old.Spec
		before.TemporaryAudit = nil
		c.Before, c.FromMode = marshal(w.t, before), old.Spec.Mode
	}
	next.Spec.Mode = mode
	after := next.Spec
	after.TemporaryAudit = nil
	c.After = marshal(w.t, after)
	if mode == "" {
		c.Verb, c.After, kind, next = approval.VerbDelete, nil, approval.KindOffboard, nil
	}
	t := w.ticket(kind, approval.Item{Resource: "bobs-cluster", ResourceName: bobs, Change: c, State: approval.StateApplying, WrittenGeneration: 1})
	w.protect(next)
	w.event(t, approval.EventWritten)
	w.hour()
	t.Items[0].State = approval.StateEffective
	w.event(t, approval.EventEffective)
	w.hour()
	return t
}

// audit begins a temporary audit, or ends it if it has no duration.
func (w *world) audit(d time.Duration) {
	p := w.protection().DeepCopy()
	e := ledger.Entry{At: w.now, Actor: "bob", Action: "resource.temporary-audit-ended", Object: "bobs-cluster", Details: map[string]string{"reason": "over"}}
	p.Spec.TemporaryAudit = nil
	if d > 0 {
		until := w.now.Add(d)
		p.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: metav1.NewTime(until), Reason: "incident", By: "bob"}
		e.Action, e.Details = "resource.temporary-audit", map[string]string{"reason": "incident", "until": until.Format(time.RFC3339)}
	}
	w.lines = append(w.lines, e)
	w.protect(p)
	w.hour()
}

// class changes the class by a ticket: the action redis:admin is removed or added.
func (w *world) class() {
	old := w.input.ResourceClasses[0]
	next := old.DeepCopy()
	if next.Spec.Actions = next.Spec.Actions[:1]; len(old.Spec.Actions) == 1 {
		next.Spec.Actions = append(next.Spec.Actions, v1alpha1.ClassAction{Name: "redis:admin", Ports: []v1alpha1.Port{{Port: 6380}}})
	}
	t := w.ticket(approval.KindClass, approval.Item{State: approval.StateEffective, WrittenGeneration: 2, Change: &approval.Change{
		Kind: approval.ObjectResourceClass, Name: old.Name, Verb: approval.VerbUpdate, Before: marshal(w.t, old.Spec), After: marshal(w.t, next.Spec)}})
	w.event(t, approval.EventWritten)
	w.event(t, approval.EventEffective)
	w.input.ResourceClasses = []*v1alpha1.ResourceClass{next}
	w.hour()
}

// outside records a change outside of the portal.
func (w *world) outside(action, kind, name string) {
	w.lines = append(w.lines, ledger.Entry{At: w.now, Actor: "kubernetes:mallory", Action: "object." + action, Object: key(kind, name)})
	w.hour()
}

// kubectl writes a policy outside of the portal with one statement; without subjects it deletes the policy.
func (w *world) kubectl(name, resource string, subjects ...v1alpha1.Subject) {
	if len(subjects) == 0 {
		w.remove(name)
		w.outside("deleted", kindPolicy, name)
		return
	}
	action := "updated"
	if w.policy(name) == nil {
		action = "created"
	}
	w.edit(name, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = []v1alpha1.Statement{{SID: "by-hand", Effect: v1alpha1.EffectAllow, Subjects: subjects,
			Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)}}}
	})
	w.outside(action, kindPolicy, name)
}

// records returns everything that was recorded, as read now.
func (w *world) records() *Records {
	return &Records{Resource: bobs, Now: w.now, Present: w.input, Snapshot: policy.NewSnapshot(w.input), Tickets: w.tickets, Lines: w.lines,
		Begin: start, Restored: w.restored}
}

// truth is what the host cluster said at an instant.
type truth struct {
	at     time.Time
	grants []policy.Grant
	mode   v1alpha1.Mode
}

func (w *world) truth() truth {
	s := policy.NewSnapshot(w.input)
	return truth{w.now, s.WhoCanReach(bobs, w.now), s.EffectiveMode(bobs, "", w.now)}
}
