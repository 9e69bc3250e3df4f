package approval

import (
	"context"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// Actor is the person who calls, with the roles that do not come from ownership. StandsFor are the people for whom the
// actor may decide now as their delegate; Service.Actor looks them up.
type Actor struct {
	ID        string
	Security  bool
	Auditor   bool
	StandsFor []string
	// OnCall looks up who is on call for steps that are limited to these people; Service.Actor sets it. If it is nil, nobody
	// is known to be on call.
	OnCall OnCall
	// Through is the channel by which the actor decides: empty in the portal, ThroughSlack, or ThroughWebhook with a name.
	Through string
	// LoggedIn is when the actor authenticated for the session in which they act; zero if that is not known.
	LoggedIn time.Time
	// Token reports whether the actor acts with an API token, which no login precedes. Service.CheckLogin does not apply to it.
	Token bool

	// application and author are set by Program, and empty for people.
	application, author string
}

// May lists what an actor may do with a ticket or with one of its items.
type May struct{ See, Comment, Approve, Reject, Review, Withdraw, Revoke bool }

// MayDo returns what an actor may do with a ticket. It is the only place that decides about access to tickets. An action
// that is permitted for one item is permitted for the ticket. Auditors see everything and change nothing, regardless of their
// other roles.
func MayDo(c *catalog.Catalog, a Actor, t *Ticket) May {
	m := May{See: sees(c, a, t)}
	if a.Auditor || !m.See {
		return m
	}
	m.Comment = true
	for i := range t.Items {
		x := mayItem(c, a, t, i)
		m.Approve, m.Reject, m.Review = m.Approve || x.Approve, m.Reject || x.Reject, m.Review || x.Review
		m.Withdraw, m.Revoke = m.Withdraw || x.Withdraw, m.Revoke || x.Revoke
	}
	return m
}

func sees(c *catalog.Catalog, a Actor, t *Ticket) bool {
	return a.Security || a.Auditor || involved(c, a, t)
}

// MayDoItem is MayDo for one item.
func MayDoItem(c *catalog.Catalog, a Actor, t *Ticket, i int) May {
	see := sees(c, a, t)
	if a.Auditor || !see {
		return May{See: see}
	}
	m := mayItem(c, a, t, i)
	m.See, m.Comment = true, true
	return m
}

func mayItem(c *catalog.Catalog, a Actor, t *Ticket, i int) May {
	var m May
	it := &t.Items[i]
	if onBehalfOf, err := onWhoseBehalf(a, t, i); err == nil {
		m.Review = it.Reviewing()
		m.Reject = !m.Review
		if m.Reject {
			_, stranded := it.blockedStep(deciders(a.ID, onBehalfOf)...)
			m.Approve = !stranded && checkAgainstCatalog(c, t, i, deciders(a.ID, onBehalfOf)[0]) == nil
		}
	}
	m.Withdraw = t.Requester == a.ID && it.State == StatePending
	// A program may end what it requested itself, as the owners of its application may.
	own := IsProgram(a.ID) && a.application != "" && t.Requester == a.ID
	m.Revoke = t.Kind.Access() && it.State.MayBeOnHost() && (a.Security || own || ownsItem(c, a.ID, it))
	if it.Scope != nil {
		m.Revoke = t.Kind.Access() && it.State.MayBeOnHost() && it.Scope.mayBeEndedBy(c, a)
	}
	return m
}

// involved reports whether a ticket concerns an actor: as requester, approver, owner of what it is about, a person who has
// decided, or delegate of an approver.
func involved(c *catalog.Catalog, a Actor, t *Ticket) bool {
	if t.Requester == a.ID {
		return true
	}
	for i := range t.Items {
		if ownsItem(c, a.ID, &t.Items[i]) {
			return true
		}
	}
	// The security team may decide a statement in the place of its owners, who then are no approvers.
	if ownsStatement(c, a.ID, t) {
		return true
	}
	return slices.ContainsFunc(t.Concerns(), func(x Concern) bool {
		return x.Person == a.ID || x.Role == RoleNamed && slices.Contains(a.StandsFor, x.Person)
	})
}

// undecided reports whether the item still waits for a decision or for its review. A review that has begun is the current step of its item.
func (it *Item) undecided() bool {
	return it.State == StatePending || it.Review != nil && (it.Review.State == StepWaiting || it.Review.State == StepCurrent)
}

// DecidesItem reports whether an actor is an approver in the chain of an item that still waits for a decision or its review, or the
// delegate of one. What it permits does not extend to other items, because people who decide one item of a ticket need not know the others.
func DecidesItem(a Actor, t *Ticket, i int) bool {
	it := &t.Items[i]
	return it.undecided() && t.Requester != a.ID && slices.ContainsFunc(it.allSteps(), func(s Step) bool {
		return slices.ContainsFunc(s.Approvers, func(p string) bool {
			return p != t.Requester && (p == a.ID || slices.Contains(a.StandsFor, p))
		})
	})
}

// onWhoseBehalf returns on whose behalf an actor may decide a pending item: "" if in their own name, otherwise the ID of the first person
// for whom they stand and who may decide it. The error is the reason why they may not.
func onWhoseBehalf(a Actor, t *Ticket, i int) (onBehalfOf string, err error) {
	if err = t.CanVote(i, a.ID, ""); err == nil {
		if err = a.checkOnCall(t, i, a.ID); err == nil {
			return "", nil
		}
	}
	for _, p := range a.StandsFor {
		if t.CanVote(i, a.ID, p) == nil && a.checkOnCall(t, i, p) == nil {
			return p, nil
		}
	}
	return "", err
}

// deciders returns the people whose approval a decision counts as: the represented person, if any, before the actor.
func deciders(person, onBehalfOf string) []string {
	if onBehalfOf == "" {
		return []string{person}
	}
	return []string{onBehalfOf, person}
}

// checkAgainstCatalog checks an approval against the current catalog, because days may have passed since the submission: the
// requester must still be permitted to ask, and the approver must still fill the waiting step. Rejections are not
// checked, because they open nothing.
func checkAgainstCatalog(c *catalog.Catalog, t *Ticket, i int, approver string) error {
	it := &t.Items[i]
	resource, ok := c.ByName(it.ResourceName)
	if !ok && it.ResourceName != "" {
		return fail(CodeConflict, message.DecideEntityUnknown(it.Resource))
	}
	if err := mayAsk(c, t, it, resource); err != nil {
		return err
	}
	s := it.waiting()
	for _, from := range s.roles() {
		if slices.Contains(approversOfItem(c, from, t, it), approver) {
			return nil
		}
	}
	return fail(CodeForbidden, message.DecideNotApprover(StepName(s.Name)))
}

// mayAsk checks whether the requester could ask for an item today. Everybody who can see a grant may ask for its end.
func mayAsk(c *catalog.Catalog, t *Ticket, it *Item, resource catalog.Entity) error {
	security := c.InGroup(t.Requester, catalog.GroupSecurity)
	switch {
	case t.Kind == KindRevoke:
	case it.Adopt:
		if !security && !c.Owns(t.Requester, resource) {
			return fail(CodeConflict, message.DecideRequesterNotOwner(displayName(c, t.Requester), it.Resource))
		}
	case it.Scope != nil:
		if !security && !it.Scope.OwnedInPart(c, t.Requester) {
			return fail(CodeConflict, message.RequestStatementNotOwner())
		}
	case t.Kind == KindGrant && IsProgram(t.Requester), t.Kind == KindExtend && IsProgram(t.Requester):
		// The program asks for the application of its namespace. If the namespace no longer stands for it, the request is
		// withdrawn; here the application must still exist.
		if _, ok := c.ByName(it.ApplicationName); !ok {
			return fail(CodeConflict, message.DecideEntityUnknown(it.Application))
		}
	case it.isHolderUpdate():
		if !MayPublish(c, t.Requester, it.Package.Team) {
			return fail(CodeConflict, message.DecideRequesterNotInTeam(displayName(c, t.Requester)))
		}
	case t.Kind.Access(), t.Kind == KindWorkload:
		if app, ok := c.ByName(it.ApplicationName); !ok || !c.Owns(t.Requester, app) {
			return fail(CodeConflict, message.DecideRequesterNotOwner(displayName(c, t.Requester), it.Application))
		}
	case t.Kind == KindPackage:
		if teams := it.Change.packageTeams(); len(teams) == 0 || !MayPublish(c, t.Requester, teams...) {
			return fail(CodeConflict, message.DecideRequesterNotInTeam(displayName(c, t.Requester)))
		}
	case it.ResourceName != "":
		if !security && !c.Owns(t.Requester, resource) {
			return fail(CodeConflict, message.DecideRequesterNotOwner(displayName(c, t.Requester), it.Resource))
		}
	case !security && owningOrganization(it.Change) == "": // Service.checkOrganization checks who administers it
		return fail(CodeConflict, message.DecideRequesterNotSecurity(displayName(c, t.Requester)))
	}
	return nil
}

type approver = v1alpha1.Approver

// approversOfItem returns the people whom an approver expression selects now for an item, without those who may not decide.
func approversOfItem(c *catalog.Catalog, from approver, t *Ticket, it *Item) []string {
	to := about{c: c, requester: t.Requester, author: it.Author}
	to.application, _ = c.ByName(it.ApplicationName)
	to.resource, _ = c.ByName(it.ResourceName)
	return slices.DeleteFunc(approversOf(c, from, to.requester, to.application, to.resource), func(p string) bool { return !to.may(p) })
}

// approversOf returns the people whom an approver expression selects now. For a leader these are all leaders above the
// requester, because the chain may have been resolved to a higher one.
func approversOf(c *catalog.Catalog, from v1alpha1.Approver, requester string, application, resource catalog.Entity) []string {
	kind, name := splitApprover(from)
	switch kind {
	case FromLeader:
		return c.Leaders(requester)
	case FromResourceOwner:
		return c.OwnerPeople(resource)
	case FromApplicationOwner:
		return c.OwnerPeople(application)
	case FromOwnerOf:
		if e, ok := c.ByName(name); ok {
			return c.OwnerPeople(e)
		}
	case FromGroup:
		return c.Members(name)
	case FromPerson:
		if _, ok := c.Person(name); ok {
			return []string{name}
		}
	}
	return nil
}

func ownsItem(c *catalog.Catalog, person string, it *Item) bool {
	if app, ok := c.Application(it.Application); ok && app.Name == it.ApplicationName && c.Owns(person, app) {
		return true
	}
	res, ok := c.Resource(it.Resource)
	return ok && res.Name == it.ResourceName && c.Owns(person, res)
}

// maxOwnedStatements is how many of the newest statements are compared with what an actor owns. Older ones are in the lists of their owners
// only if these are approvers or requested them; each can be opened.
const maxOwnedStatements = 500

// VisibleTo returns the filter for the tickets that MayDo lets an actor see; nil selects all.
func (s *Service) VisibleTo(ctx context.Context, a Actor) (*Visible, error) {
	c := s.Catalog()
	v := visibleTo(c, a)
	if v == nil || len(v.Applications)+len(v.Resources) == 0 {
		return v, nil
	}
	list, err := s.Store.List(ctx, Filter{Kinds: []Kind{KindStatement}, Limit: maxOwnedStatements, OmitEvents: true})
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		if ownsStatement(c, a.ID, t) {
			v.Statements = append(v.Statements, t.Number)
		}
	}
	return v, nil
}

// visibleTo is VisibleTo without statements that the actor neither decides nor requested.
func visibleTo(c *catalog.Catalog, a Actor) *Visible {
	if a.Security || a.Auditor {
		return nil
	}
	v := &Visible{Person: a.ID, StandsFor: a.StandsFor}
	applications, resources := c.Owned(a.ID)
	for _, e := range applications {
		v.Applications = append(v.Applications, e.Name)
	}
	for _, e := range resources {
		v.Resources = append(v.Resources, e.Name)
	}
	return v
}
