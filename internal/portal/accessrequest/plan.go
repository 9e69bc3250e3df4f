package accessrequest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// keyOf returns the idempotency key of one generation of an object. It contains the UID, so that an object that is deleted and
// created again makes a new request.
func keyOf(o *v1alpha1.AccessRequest) string { return fmt.Sprintf("%s/%d", o.UID, o.Generation) }

// generationOf returns the generation for which a ticket was submitted, and false if the ticket belongs to another object.
func generationOf(t *approval.Ticket, o *v1alpha1.AccessRequest) (int64, bool) {
	text, ok := strings.CutPrefix(t.IdempotencyKey, string(o.UID)+"/")
	if !ok || o.UID == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0
}

// own returns the tickets of an object, those of the highest generation first. Others of the same name belong to objects that were
// deleted.
func own(tickets []*approval.Ticket, o *v1alpha1.AccessRequest) (mine, others []*approval.Ticket) {
	for _, t := range tickets {
		if _, ok := generationOf(t, o); ok {
			mine = append(mine, t)
		} else {
			others = append(others, t)
		}
	}
	slices.SortStableFunc(mine, func(a, b *approval.Ticket) int {
		ga, _ := generationOf(a, o)
		gb, _ := generationOf(b, o)
		return int(gb - ga)
	})
	return mine, others
}

// requestOf returns the request of an object for an application. The message says why there is none.
func requestOf(c *catalog.Catalog, o *v1alpha1.AccessRequest, application catalog.Entity) (approval.Request, message.Message) {
	r := approval.Request{Kind: approval.KindGrant, Reason: strings.TrimSpace(o.Spec.Reason), IdempotencyKey: keyOf(o)}
	for _, a := range o.Spec.Access {
		named, _ := c.ByName(string(a.Resource))
		resource, ok := c.Resource(named.ID)
		if !ok || resource.Name != string(a.Resource) { // an application may have the same id
			return r, message.AccessRequestUnknownResource(string(a.Resource))
		}
		it := approval.RequestItem{Application: application.ID, Resource: resource.ID}
		for _, x := range a.Actions {
			it.Actions = append(it.Actions, string(x))
		}
		slices.Sort(it.Actions)
		it.Actions = slices.Compact(it.Actions)
		if o.Spec.Duration != nil {
			it.Duration = o.Spec.Duration.Duration
		}
		if o.Spec.Hours != nil {
			it.Hours = o.Spec.Hours.Normal()
		}
		r.Items = append(r.Items, it)
	}
	return r, message.Message{}
}

// asks reports whether a ticket asks for exactly what a request does, so that the object needs no other ticket.
func asks(t *approval.Ticket, r approval.Request) bool {
	return t.Kind.Access() && t.Reason == r.Reason && slices.EqualFunc(t.Items, r.Items, func(a approval.Item, b approval.RequestItem) bool {
		return a.Application == b.Application && a.Resource == b.Resource && slices.Equal(a.Actions, b.Actions) && a.Duration == b.Duration &&
			equality.Semantic.DeepEqual(a.Hours, b.Hours)
	})
}

// authorOf returns the id of the person in the catalog whom spec.requestedBy names, by id or e-mail address; empty if none is.
func authorOf(c *catalog.Catalog, requestedBy string) string {
	if requestedBy == "" {
		return ""
	}
	if _, ok := c.Person(requestedBy); ok {
		return requestedBy
	}
	mail := strings.ToLower(requestedBy)
	for _, p := range c.People() {
		if p.Email != "" && p.Email == mail {
			return p.Of.ID
		}
	}
	return ""
}

// open reports whether an item of a ticket waits for a decision.
func open(t *approval.Ticket) bool {
	return slices.ContainsFunc(t.Items, func(it approval.Item) bool { return it.State == approval.StatePending })
}

// granted reports whether the host cluster may have something of a ticket.
func granted(t *approval.Ticket) bool {
	return slices.ContainsFunc(t.Items, func(it approval.Item) bool { return it.State.MayBeOnHost() })
}

// effective reports whether everything that a ticket asks for is in force.
func effective(t *approval.Ticket) bool {
	return !slices.ContainsFunc(t.Items, func(it approval.Item) bool { return it.State != approval.StateEffective })
}

// extends reports whether an item of a ticket extends a grant of another one.
func extends(t, earlier *approval.Ticket) bool {
	return slices.ContainsFunc(t.Items, func(it approval.Item) bool { return it.Target != nil && it.Target.Ticket == earlier.Number })
}
