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

// alice requests access for requestingApp, which is her application. carol is her manager, and bob owns ticketResource; both approve.
const (
	requestingApp  = "888"
	ticketResource = "bobs-cluster"
)

// ticket is the ticket in progress.
type ticket struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	State   string `json:"state"`

	// awaited is the state that the ticket must reach next, or "" when it has reached it.
	awaited string
	// outageAtRequest is the outage during which the state was requested, or nil.
	outageAtRequest *outage
}

// portalSessions returns the portal sessions of alice, bob, carol and the auditor. It logs them in on the first call.
func (d *drill) portalSessions(ctx context.Context) (map[string]bench.Session, error) {
	if d.sessionCache != nil {
		return d.sessionCache, nil
	}
	sessions := map[string]bench.Session{}
	for _, name := range []string{"alice", "bob", "carol", auditor} {
		if err := d.retry(ctx, "log in as "+name, func(ctx context.Context) error {
			var err error
			sessions[name], err = bench.Login(ctx, d.PortalURL, name)
			return err
		}); err != nil {
			return nil, err
		}
	}
	d.sessionCache = sessions
	return sessions, nil
}

// ticketStep requests a grant in the portal and approves it, or revokes the grant of the present ticket.
func ticketStep(ctx context.Context, d *drill) (string, error) {
	if d.ticket != nil && d.ticket.awaited != "" {
		return "", nil
	}
	sessions, err := d.portalSessions(ctx)
	if err != nil {
		return "", err
	}
	if d.ticket != nil {
		t := d.ticket
		t.awaited, t.outageAtRequest = "revoked", d.outage
		d.setWanted(d.model.withoutPortalPolicies())
		if err := sessions["bob"].Call(ctx, http.MethodPost, "/tickets/"+t.ID+"/revoke", map[string]any{"reason": "drill"}, nil); err != nil {
			return "", fmt.Errorf("revoke ticket %s: %w", t.ID, err)
		}
		return t.ID + " revoked", d.waitForPortalPolicy(ctx, false)
	}
	// The grant may take effect before the portal's policy is read.
	next := d.model.clone()
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "requested"}}
	p.Spec.Statements = []v1alpha1.Statement{d.statement(target{redisStem + ticketResource, "redis:connect", ticketResource}, requestingApp)}
	next.set(p)
	d.setWanted(next)
	t := &ticket{awaited: "effective", outageAtRequest: d.outage}
	request := map[string]any{
		"items":  []any{map[string]any{"application": "app-888", "resource": ticketResource, "actions": []string{"redis:connect"}}},
		"reason": "drill",
	}
	if err := sessions["alice"].Call(ctx, http.MethodPost, "/tickets", request, t); err != nil {
		return "", fmt.Errorf("create a ticket: %w", err)
	}
	for _, who := range []string{"carol", "bob"} {
		if err := sessions[who].Call(
			ctx,
			http.MethodPost,
			"/tickets/"+t.ID+"/decision",
			map[string]any{"decision": "approve", "version": t.Version},
			t,
		); err != nil {
			return "", fmt.Errorf("approve ticket %s as %s: %w", t.ID, who, err)
		}
	}
	d.ticket = t
	return t.ID + " approved", d.waitForPortalPolicy(ctx, true)
}

// waitForPortalPolicy waits until the portal has written or deleted the policy of the ticket, and updates the wanted model.
func (d *drill) waitForPortalPolicy(ctx context.Context, granted bool) error {
	var found *v1alpha1.AccessControlPolicy
	if err := d.retry(ctx, "wait for the policy of the portal", func(ctx context.Context) error {
		list, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("accesscontrolpolicies")).
			List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelManagedBy + "=" + v1alpha1.ManagedByPortal})
		if err != nil {
			return err
		}
		all := map[string]*v1alpha1.AccessControlPolicy{}
		found = nil
		for i := range list.Items {
			if err := decodeInto(all, &list.Items[i]); err != nil {
				return err
			}
		}
		for _, p := range all {
			if slices.ContainsFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool {
				return slices.Contains(s.Subjects, appStem+requestingApp) && slices.Contains(s.Resources, redisStem+ticketResource)
			}) {
				found = p
			}
		}
		if granted != (found != nil) {
			return fmt.Errorf("one of the %d policies of the portal contains the grant: %t", len(all), found != nil)
		}
		return nil
	}); err != nil {
		return err
	}
	next := d.model.withoutPortalPolicies()
	delete(next.policies, "requested")
	if found != nil {
		next.set(found)
	}
	d.setWanted(next)
	return nil
}

// checkTicket compares the state of the ticket with the verdicts in the members.
func (d *drill) checkTicket(ctx context.Context, wrong map[string]map[string]string) error {
	t := d.ticket
	if t == nil || t.awaited == "" {
		return nil
	}
	if err := d.sessionCache["bob"].Call(ctx, http.MethodGet, "/tickets/"+t.ID, nil, t); err != nil {
		return fmt.Errorf("read ticket %s: %w", t.ID, err)
	}
	reached := t.State == t.awaited
	for _, m := range fleet.Members() {
		if !reached {
			break
		}
		if d.outage != nil && d.outage == t.outageAtRequest && d.outage.unreadable && d.outage.unavailable(m) {
			return fmt.Errorf("ticket %s is reported as %s although %s cannot be read", t.ID, t.State, m)
		}
		for _, s := range d.topology.servers[m] {
			if what, bad := wrong[m][s.pod]; bad && s.labels[redisKey] == ticketResource {
				return fmt.Errorf("ticket %s is reported as %s, but in %s %s", t.ID, t.State, m, what)
			}
		}
	}
	switch {
	case reached:
		if t.awaited = ""; t.State == "revoked" {
			d.ticket = nil
		}
	case d.outage == nil || d.outage.allowsProgress():
		return fmt.Errorf("ticket %s is %s, want %s", t.ID, t.State, t.awaited)
	}
	return nil
}

// withoutPortalPolicies returns a copy of the model without the policies that the portal wrote.
func (m *model) withoutPortalPolicies() *model {
	next := m.clone()
	maps.DeleteFunc(next.policies, func(_ string, p *v1alpha1.AccessControlPolicy) bool {
		return p.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByPortal
	})
	return next
}
