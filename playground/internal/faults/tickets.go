package faults

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/bench"
	"github.com/acp-io/acp/playground/internal/fleet"
)

// What the story's people ask for: alice for her application 888, carol leads her, bob owns the resource.
const (
	asked888 = "888"
	bobs     = "bobs-cluster"
)

// ticket is the one that the people are at.
type ticket struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	State   string `json:"state"`

	// want is the state that it has to reach; "": it was reached.
	want string
	// since is the outage in which it was asked for.
	since *outage
}

// people has alice, bob, carol and an auditor in the portal.
func (d *drill) people(ctx context.Context) (map[string]bench.Session, error) {
	if d.sessions != nil {
		return d.sessions, nil
	}
	sessions := map[string]bench.Session{}
	for _, name := range []string{"alice", "bob", "carol", auditor} {
		if err := d.patiently(ctx, "log in as "+name, func(ctx context.Context) error {
			var err error
			sessions[name], err = bench.Login(ctx, d.PortalURL, name)
			return err
		}); err != nil {
			return nil, err
		}
	}
	d.sessions = sessions
	return sessions, nil
}

// byTicket has a grant requested and approved in the portal, or revoked.
func byTicket(ctx context.Context, d *drill) (string, error) {
	if d.ticket != nil && d.ticket.want != "" {
		return "", nil
	}
	people, err := d.people(ctx)
	if err != nil {
		return "", err
	}
	if d.ticket != nil {
		t := d.ticket
		t.want, t.since = "revoked", d.outage
		d.want(d.world.withoutPortal())
		if err := people["bob"].Call(ctx, http.MethodPost, "/tickets/"+t.ID+"/revoke", map[string]any{"reason": "drill"}, nil); err != nil {
			return "", fmt.Errorf("revoke ticket %s: %w", t.ID, err)
		}
		return t.ID + " is revoked", d.learn(ctx, false)
	}
	// What it will bring may be there before it is known.
	next := d.world.clone()
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "asked-for"}}
	p.Spec.Statements = []v1alpha1.Statement{d.statement(target{redisStem + bobs, "redis:connect", bobs}, asked888)}
	next.set(p)
	d.want(next)
	t := &ticket{want: "effective", since: d.outage}
	request := map[string]any{"items": []any{map[string]any{"application": "app-888", "resource": bobs, "actions": []string{"redis:connect"}}}, "reason": "drill"}
	if err := people["alice"].Call(ctx, http.MethodPost, "/tickets", request, t); err != nil {
		return "", fmt.Errorf("request: %w", err)
	}
	for _, who := range []string{"carol", "bob"} {
		if err := people[who].Call(ctx, http.MethodPost, "/tickets/"+t.ID+"/decision", map[string]any{"decision": "approve", "version": t.Version}, t); err != nil {
			return "", fmt.Errorf("approve ticket %s as %s: %w", t.ID, who, err)
		}
	}
	d.ticket = t
	return t.ID + " is approved", d.learn(ctx, true)
}

// learn waits until the portal has written what the ticket says, and takes it into the world.
func (d *drill) learn(ctx context.Context, granted bool) error {
	var found *v1alpha1.AccessControlPolicy
	if err := d.patiently(ctx, "the portal writes", func(ctx context.Context) error {
		list, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("accesscontrolpolicies")).
			List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelManagedBy + "=" + v1alpha1.ManagedByPortal})
		if err != nil {
			return err
		}
		all := map[string]*v1alpha1.AccessControlPolicy{}
		found = nil
		for i := range list.Items {
			if err := take(all, &list.Items[i]); err != nil {
				return err
			}
		}
		for _, p := range all {
			if slices.ContainsFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool {
				return slices.Contains(s.Subjects, appStem+asked888) && slices.Contains(s.Resources, redisStem+bobs)
			}) {
				found = p
			}
		}
		if granted != (found != nil) {
			return fmt.Errorf("of %d policies of the portal one says so: %t", len(all), found != nil)
		}
		return nil
	}); err != nil {
		return err
	}
	next := d.world.withoutPortal()
	delete(next.policies, "asked-for")
	if found != nil {
		next.set(found)
	}
	d.want(next)
	return nil
}

// ticketHonest compares what the ticket says with what is in force.
func (d *drill) ticketHonest(ctx context.Context, wrong map[string]map[string]string) error {
	t := d.ticket
	if t == nil || t.want == "" {
		return nil
	}
	if err := d.sessions["bob"].Call(ctx, http.MethodGet, "/tickets/"+t.ID, nil, t); err != nil {
		return fmt.Errorf("read ticket %s: %w", t.ID, err)
	}
	reached := t.State == t.want
	for _, m := range fleet.Members() {
		if !reached {
			break
		}
		if d.outage != nil && d.outage == t.since && d.outage.unreadable && d.outage.away(m) {
			return fmt.Errorf("ticket %s is said to be %s, though %s cannot be read", t.ID, t.State, m)
		}
		for _, s := range d.scene.servers[m] {
			if what, bad := wrong[m][s.pod]; bad && s.labels[redisKey] == bobs {
				return fmt.Errorf("ticket %s is said to be %s, but in %s %s", t.ID, t.State, m, what)
			}
		}
	}
	switch {
	case reached:
		if t.want = ""; t.State == "revoked" {
			d.ticket = nil
		}
	case d.outage == nil || d.outage.harmless():
		return fmt.Errorf("ticket %s is %s, and not %s", t.ID, t.State, t.want)
	}
	return nil
}

// withoutPortal is the world without what the portal wrote.
func (w *world) withoutPortal() *world {
	next := w.clone()
	maps.DeleteFunc(next.policies, func(_ string, p *v1alpha1.AccessControlPolicy) bool {
		return p.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByPortal
	})
	return next
}
