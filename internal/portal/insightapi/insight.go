package insightapi

import (
	"context"
	"maps"
	"strconv"

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
	p, err := insight.Propose(limited, a.Flows, insight.ProposeInput{Snapshot: snap, Resource: e.Name, Since: since, Until: until, Now: a.Now()})
	if err != nil {
		return nil, err
	}
	out := a.proposalOf(p)
	out.CanAdopt = new(rollout.May(a.Catalog(), core.Caller(ctx), e))
	return openapi.GetResourceProposal200JSONResponse(out), nil
}

func (a *API) proposalOf(p insight.Proposal) openapi.Proposal {
	c := a.Catalog()
	out := openapi.Proposal{
		Resource:     views.Ref(c, p.Resource),
		Since:        p.Since.UTC(),
		Until:        p.Until.UTC(),
		Lines:        []openapi.ProposalLine{},
		Unattributed: []openapi.UnattributedLine{},
		UnknownPorts: []openapi.UnknownPortLine{},
		Yaml:         p.YAML(),
	}
	for _, l := range p.Lines {
		x := openapi.ProposalLine{Subject: views.Ref(c, l.Subject), Action: l.Action, State: openapi.ProposalLineState(l.State), Evidence: seenOf(l.Evidence)}
		if app, ok := views.ApplicationNamed(c, l.Subject); ok {
			covered, err := a.Tickets.Host.SubjectCovered(l.Subject)
			x.Grantable = new(err == nil && covered && l.Wanted())
			x.Owners = new(views.Owners(c, app))
		}
		out.Lines = append(out.Lines, x)
	}
	for _, l := range p.Unattributed {
		x := openapi.UnattributedLine{Source: l.Source, Ports: []string{}, Evidence: seenOf(l.Evidence)}
		for _, port := range l.Ports {
			x.Ports = append(x.Ports, strconv.Itoa(int(port.Port))+"/"+string(port.Protocol))
		}
		out.Unattributed = append(out.Unattributed, x)
	}
	for _, u := range p.UnknownPorts {
		for _, client := range u.Clients {
			out.UnknownPorts = append(
				out.UnknownPorts,
				openapi.UnknownPortLine{Port: int(u.Port), Protocol: string(u.Protocol), Source: client, Evidence: seenOf(u.Evidence)},
			)
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
