package insightapi

import (
	"context"
	"maps"
	"strconv"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

// GetResourceProposal implements openapi.StrictServerInterface.
func (a *API) GetResourceProposal(ctx context.Context, r openapi.GetResourceProposalRequestObject) (openapi.GetResourceProposalResponseObject, error) {
	e, err := a.InspectableResource(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	since, until, err := a.Window(r.Params.Since, r.Params.Until, a.EvidenceWindow)
	if err != nil {
		return nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	in := insight.ProposeInput{Snapshot: snap, Resource: e.Name, Since: since, Until: until, Now: a.Now()}
	p, err := insight.Propose(limited, a.Flows, in)
	if err != nil {
		return nil, err
	}
	v := proposalView{Proposal: p, mayChange: rollout.MayChange(a.Catalog(), core.Caller(ctx), e)}
	if v.review, v.notices, err = a.reviewOf(ctx, e.Name); err != nil {
		return nil, err
	}
	if !v.review.At.IsZero() {
		if v.known, err = insight.Known(limited, a.Flows, insight.KnownInput{ProposeInput: in, Before: v.review.SeenUntil}); err != nil {
			return nil, err
		}
	}
	return openapi.GetResourceProposal200JSONResponse(a.proposalOf(core.Caller(ctx), v)), nil
}

// proposalView contains the data of the response about a proposal.
type proposalView struct {
	insight.Proposal
	mayChange bool
	review    rollout.ProposalReview
	notices   map[string]rollout.ClientNotice // by application
	known     *insight.KnownClients           // nil if there was no review
}

func (a *API) proposalOf(who approval.Actor, p proposalView) openapi.Proposal {
	c := a.Catalog()
	out := openapi.Proposal{
		Resource:     views.Ref(c, p.Resource),
		Since:        p.Since.UTC(),
		Until:        p.Until.UTC(),
		Lines:        []openapi.ProposalLine{},
		Unattributed: []openapi.UnattributedLine{},
		UnknownPorts: []openapi.UnknownPortLine{},
		Yaml:         p.YAML(),
		CanAdopt:     &p.mayChange,
	}
	if !p.review.At.IsZero() {
		out.Review = new(a.reviewView(p.review))
	}
	for _, l := range p.Lines {
		x := openapi.ProposalLine{Subject: views.Ref(c, l.Subject), Action: l.Action, State: openapi.ProposalLineState(l.State), Evidence: seenOf(l.Evidence)}
		if app, ok := views.ApplicationNamed(c, l.Subject); ok {
			covered, err := a.Tickets.Host.SubjectCovered(l.Subject)
			x.Grantable = new(err == nil && covered && l.Wanted())
			x.Owners = new(views.Owners(c, app))
			notice, notified := p.notices[app.Name]
			if notified {
				x.Notice = new(a.noticeView(notice))
			}
			x.CanNotify = new(p.mayChange && l.State != insight.StateCovered && !a.Now().Before(notice.RepeatableAt()) && otherOwners(c, app, who.ID))
		}
		if p.known != nil {
			x.NewSinceReview = new(!p.known.Line(l))
		}
		out.Lines = append(out.Lines, x)
	}
	for _, l := range p.Unattributed {
		x := openapi.UnattributedLine{Source: l.Source, Ports: []string{}, Evidence: seenOf(l.Evidence)}
		if p.known != nil {
			x.NewSinceReview = new(!p.known.Source(l))
		}
		for _, port := range l.Ports {
			x.Ports = append(x.Ports, strconv.Itoa(int(port.Port))+"/"+string(port.Protocol))
		}
		out.Unattributed = append(out.Unattributed, x)
	}
	for _, u := range p.UnknownPorts {
		for _, client := range u.Clients {
			x := openapi.UnknownPortLine{Port: int(u.Port), Protocol: string(u.Protocol), Source: client, Evidence: seenOf(u.Evidence)}
			if p.known != nil {
				x.NewSinceReview = new(!p.known.Port(u.Protocol, u.Port, client))
			}
			out.UnknownPorts = append(out.UnknownPorts, x)
		}
	}
	return out
}

func seenOf(s insight.FlowEvidence) openapi.SeenEvidence {
	out := openapi.SeenEvidence{Count: s.Count, FirstSeen: s.First.UTC(), LastSeen: s.Last.UTC(), Days: s.Days, DaysObserved: s.DaysObserved,
		Clusters: append([]string{}, s.Clusters...), Decisions: map[string]int64{}}
	for w, n := range maps.All(s.Decisions) {
		out.Decisions[string(w)] = n
	}
	return out
}

// GetResourceEvidence implements openapi.StrictServerInterface.
func (a *API) GetResourceEvidence(ctx context.Context, r openapi.GetResourceEvidenceRequestObject) (openapi.GetResourceEvidenceResponseObject, error) {
	e, err := a.InspectableResource(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	if _, err := a.Snapshot(); err != nil {
		return nil, err
	}
	score, at, err := a.Insight.Evidence(limited, e.Name)
	if err != nil {
		return nil, err
	}
	return openapi.GetResourceEvidence200JSONResponse(a.Score(score, at)), nil
}
