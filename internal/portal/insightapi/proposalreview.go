package insightapi

import (
	"context"
	"slices"
	"strconv"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

// maxNoticeActions bounds the actions and ports that a notice to the owners of a client lists.
const maxNoticeActions = 20

// reviewOf returns the review of a resource's clients, and the notices about them by application.
func (a *API) reviewOf(ctx context.Context, resource string) (rollout.ProposalReview, map[string]rollout.ClientNotice, error) {
	reviews, err := a.Rollout.Store.ProposalReviews(core.RequestContext(ctx), resource)
	if err != nil {
		return rollout.ProposalReview{}, nil, err
	}
	notices, err := a.Rollout.Store.ClientNotices(core.RequestContext(ctx), resource)
	return reviews[resource], notices, err
}

func (a *API) reviewView(r rollout.ProposalReview) openapi.ProposalReview {
	out := openapi.ProposalReview{At: r.At, By: views.Person(a.Catalog(), r.By), SeenUntil: r.SeenUntil, Due: r.Due(a.Now())}
	if !r.NextReview.IsZero() {
		out.NextReview = &r.NextReview
	}
	return out
}

func (a *API) noticeView(n rollout.ClientNotice) openapi.ClientNotice {
	return openapi.ClientNotice{At: n.At, By: views.Person(a.Catalog(), n.By), Reason: n.Reason, Recipients: n.Recipients, RepeatableAt: n.RepeatableAt()}
}

// otherOwners reports whether an application has an owner other than a person.
func otherOwners(c *catalog.Catalog, app catalog.Entity, person string) bool {
	return slices.ContainsFunc(c.OwnerPeople(app), func(p string) bool { return p != person })
}

// changeableResource returns a resource whose proposal the caller may review.
func (a *API) changeableResource(ctx context.Context, id string) (catalog.Entity, error) {
	e, err := views.EntityOrNotFound(a.Catalog().Resource(id))
	if err != nil {
		return e, err
	}
	if !rollout.MayChange(a.Catalog(), core.Caller(ctx), e) {
		return e, &approval.Error{Code: approval.CodeForbidden, Message: message.RolloutOwnerOrSecurity(e.Title)}
	}
	return e, nil
}

// PutProposalReview implements openapi.StrictServerInterface.
func (a *API) PutProposalReview(ctx context.Context, r openapi.PutProposalReviewRequestObject) (openapi.PutProposalReviewResponseObject, error) {
	e, err := a.changeableResource(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	if !r.Body.Reviewed {
		return nil, core.InvalidField("reviewed", message.ProposalReviewReviewed())
	}
	in := rollout.ReviewInput{SeenUntil: core.Value(r.Body.Until), NextReview: core.Value(r.Body.NextReview)}
	review, err := a.Rollout.ReviewProposal(core.RequestContext(ctx), core.Caller(ctx), e, in)
	if err != nil {
		return nil, err
	}
	return openapi.PutProposalReview200JSONResponse(a.reviewView(review)), nil
}

// NotifyClient implements openapi.StrictServerInterface.
func (a *API) NotifyClient(ctx context.Context, r openapi.NotifyClientRequestObject) (openapi.NotifyClientResponseObject, error) {
	e, err := a.changeableResource(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	since, until, err := a.Window(r.Body.Since, nil, a.EvidenceWindow)
	if err != nil {
		return nil, err
	}
	// An application that does not exist has the same answer as one that was not seen.
	app, ok := a.Catalog().Application(r.Body.Application)
	if !ok {
		return nil, notSeen(r.Body.Application)
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	p, err := insight.Propose(limited, a.Flows, insight.ProposeInput{Snapshot: snap, Resource: e.Name, Since: since, Until: until, Now: a.Now()})
	if err != nil {
		return nil, err
	}
	seen, ok := seenClient(p, app.Name)
	if !ok {
		return nil, notSeen(app.Title)
	}
	notice, err := a.Rollout.NotifyClient(core.RequestContext(ctx), core.Caller(ctx), e, app, r.Body.Reason, seen)
	if err != nil {
		return nil, err
	}
	return openapi.NotifyClient201JSONResponse(a.noticeView(notice)), nil
}

func notSeen(application string) error {
	return &approval.Error{Code: approval.CodeConflict, Message: message.ClientNoticeNotSeen(application)}
}

// seenClient sums up what a proposal shows of a client without a grant; false if it shows nothing. Ports that no action has are included
// only beside actions, because their numbers are those of all clients.
func seenClient(p insight.Proposal, subject string) (rollout.SeenClient, bool) {
	var out rollout.SeenClient
	for _, l := range p.Lines {
		if l.Subject != subject || l.State == insight.StateCovered {
			continue
		}
		out.Actions = append(out.Actions, l.Action)
		out.Count += l.Evidence.Count
		out.LastSeen = audit.Later(out.LastSeen, l.Evidence.Last)
	}
	if len(out.Actions) == 0 {
		return out, false
	}
	for _, u := range p.UnknownPorts {
		if !u.Open && slices.Contains(u.Clients, subject) {
			out.Actions = append(out.Actions, strconv.Itoa(int(u.Port))+"/"+string(u.Protocol))
		}
	}
	out.Actions = out.Actions[:min(len(out.Actions), maxNoticeActions)]
	return out, true
}
