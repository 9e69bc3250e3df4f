package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// HolderRequest is a checked request for the access that a version of a package adds for an application that holds the package.
type HolderRequest struct {
	// Ticket is the ticket that an earlier attempt submitted; nil if the request is still to be submitted.
	Ticket *Ticket
	// Problem is why a part of the access cannot be requested; the zero Message if all can.
	Problem message.Message
	draft   Draft
}

// Empty reports whether nothing is left to submit.
func (g *HolderRequest) Empty() bool { return g.Ticket == nil && len(g.draft.Items) == 0 }

// holderKey is the idempotency key of the ticket that gives a version to an application.
func holderKey(name string, version int, application string) string {
	return fmt.Sprintf("access package %s version %d for %s", name, version, application)
}

// FindHolderRequest returns the ticket that gives a version of a package to an application; nil if none was submitted.
func (s *Service) FindHolderRequest(ctx context.Context, name string, v accesspackage.Version, application string) (*Ticket, error) {
	list, err := s.Store.List(ctx, Filter{Requester: v.PublishedBy, Package: name, Applications: []string{application}, Limit: maxHolderTickets,
		OmitEvents: true})
	if err != nil {
		return nil, err
	}
	key := holderKey(name, v.Number, application)
	if i := slices.IndexFunc(list, func(t *Ticket) bool { return t.IdempotencyKey == key }); i >= 0 {
		return list[i], nil
	}
	return nil, nil
}

// PlanHolderRequest checks the request for what an application is given of a version of a package, and returns the ticket of an earlier attempt, if
// there is one. Access that the application has otherwise is left out. The requester is the person who requested the version.
func (s *Service) PlanHolderRequest(
	ctx context.Context,
	name string,
	v accesspackage.Version,
	application string,
	additions []accesspackage.Addition,
) (*HolderRequest, error) {
	if t, err := s.FindHolderRequest(ctx, name, v, application); err != nil || t != nil {
		return &HolderRequest{Ticket: t}, err
	}
	of, err := s.Store.Get(ctx, v.Ticket)
	if err != nil {
		return nil, err
	}
	g := &HolderRequest{
		draft: Draft{Kind: KindGrant, Requester: v.PublishedBy, Reason: holderReason(of), IdempotencyKey: holderKey(name, v.Number, application)},
	}
	c := s.Catalog()
	a := Actor{ID: v.PublishedBy, Security: c.InGroup(v.PublishedBy, catalog.GroupSecurity), Auditor: c.InGroup(v.PublishedBy, catalog.GroupAuditors)}
	r, problem, err := s.holderItems(ctx, name, v, application, additions)
	if err != nil {
		return nil, err
	}
	g.Problem = problem
	if len(r.Items) == 0 {
		return g, nil
	}
	p, err := s.Plan(ctx, a, r)
	if aboutItem(err) {
		g.Problem = reasonOf(err)
		return g, nil
	}
	if err != nil {
		return nil, err
	}
	for i, it := range p.Items {
		switch {
		case held(it.Err):
		case it.Err != nil:
			g.Problem = cmp.Or(g.Problem, message.AccessPackageHolderResource(r.Items[i].Resource, reasonOf(it.Err)))
		default:
			g.draft.Items = append(g.draft.Items, it.Item)
		}
	}
	return g, nil
}

// reasonOf returns the message of an error for people.
func reasonOf(err error) message.Message {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Message
	}
	return message.Of(err)
}

// holderReason returns the reason of a ticket that gives a version: what the requester of the version wrote, with that ticket.
func holderReason(of *Ticket) string {
	reason := of.ID() + ": " + of.Reason
	for utf8.RuneCountInString(reason) > MaxText {
		_, size := utf8.DecodeLastRuneInString(reason)
		reason = reason[:len(reason)-size]
	}
	return reason
}

// holderItems returns the request for what an application is given, and why a part of it cannot be requested.
func (s *Service) holderItems(ctx context.Context, name string, v accesspackage.Version, application string, additions []accesspackage.Addition) (
	r Request, problem message.Message, err error,
) {
	r = Request{Kind: KindGrant, holderUpdate: true}
	spec, err := v.Spec()
	if err != nil {
		return r, problem, err
	}
	consent, err := s.consentTo(ctx, v)
	if err != nil {
		return r, problem, err
	}
	c := s.Catalog()
	app, ok := c.ByName(application)
	switch {
	case !ok:
		return r, message.RequestUnknownApplication(application), nil
	case !MayPublish(c, v.PublishedBy, spec.Team):
		return r, message.DecideRequesterNotInTeam(displayName(c, v.PublishedBy)), nil
	}
	for _, g := range additions {
		res, ok := c.ByName(g.Resource)
		length := time.Duration(g.DurationSeconds) * time.Second
		switch {
		case !ok:
			problem = cmp.Or(problem, message.AccessPackageResourceGone(g.Resource))
			continue
		case length < MinDuration && (length != 0 || !g.Until.IsZero()):
			problem = cmp.Or(problem, message.AccessPackageHolderEnds(application))
			continue
		case len(r.Items) == MaxItems:
			problem = cmp.Or(problem, message.RequestItemCount(MaxItems))
			continue
		}
		part := &PackageRef{Name: name, Version: v.Number, Digest: v.Digest, Team: spec.Team, HolderUpdate: true, Ticket: v.Ticket, Until: g.Until}
		if consent.owners[g.Resource] {
			part.Owners, part.Security = spec.Resources[g.Resource].Owners, consent.security && slices.Contains(spec.Sensitive, g.Resource)
		}
		r.Items = append(r.Items, RequestItem{Application: app.ID, Resource: res.ID, Actions: g.Actions, Duration: length, Hours: spec.Hours, part: part})
	}
	return r, problem, nil
}

// SubmitHolderRequest submits a request, unless it was submitted before. It returns a CodeDuplicate error while another ticket requests
// the same.
func (s *Service) SubmitHolderRequest(ctx context.Context, g *HolderRequest) (*Ticket, error) {
	if g.Ticket != nil {
		return g.Ticket, nil
	}
	return s.submit(ctx, g.draft)
}

// StopHolderRequest withdraws what waits for a decision in a ticket that gives a version to a holder.
func (s *Service) StopHolderRequest(ctx context.Context, number int64, reason message.Message) error {
	_, err := s.Apply(ctx, number, func(t *Ticket) error {
		for i := range t.Items {
			if it := &t.Items[i]; it.isHolderUpdate() && it.State == StatePending {
				t.end(i, StateWithdrawn)
				t.event(s.Now(), Event{Kind: EventWithdrawn, Item: i, Message: reason})
				t.setMessage(i, s.Now(), reason)
			}
		}
		return nil
	})
	return err
}

// HolderState returns the state of an application to which a ticket gives a version, and the reason if the application does not get all of
// the version. A statement that is written to the host cluster counts as given.
func HolderState(t *Ticket) (accesspackage.HolderState, message.Message) {
	state, why := accesspackage.HolderDone, message.Message{}
	for i := range t.Items {
		it := &t.Items[i]
		switch it.State {
		case StatePending, StateApproved:
			return accesspackage.HolderWaiting, message.Message{}
		case StateApplying:
			if it.WrittenGeneration == 0 {
				return accesspackage.HolderWaiting, message.Message{}
			}
		case StateRejected, StateTimedOut, StateWithdrawn:
			state, why = accesspackage.HolderFailed, message.AccessPackageHolderNotApproved(t.ID())
		case StateFailed:
			state, why = accesspackage.HolderFailed, cmp.Or(why, message.AccessPackageHolderNotInForce(t.ID()))
		case StateRevoking, StateRevoked:
			if it.WrittenGeneration == 0 {
				state, why = accesspackage.HolderFailed, cmp.Or(why, message.AccessPackageHolderNotInForce(t.ID()))
			}
		}
	}
	return state, why
}
