package portal

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/rollout"
)

// inspectableResource returns a resource whose connections the caller may see, or an error.
func (a *api) inspectableResource(ctx context.Context, id string) (catalog.Entity, error) {
	c := a.Catalog()
	e, err := found(c.Resource(id))
	if err != nil {
		return e, err
	}
	if !mayInspect(c, core.Caller(ctx), e) {
		return e, &approval.Error{Code: approval.CodeForbidden, Message: message.AccessResourceUsers()}
	}
	return e, nil
}

// GetResourceProposal implements openapi.StrictServerInterface.
func (a *api) GetResourceProposal(ctx context.Context, r openapi.GetResourceProposalRequestObject) (openapi.GetResourceProposalResponseObject, error) {
	e, err := a.inspectableResource(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	since, until, err := a.window(r.Params.Since, r.Params.Until, a.EvidenceWindow)
	if err != nil {
		return nil, err
	}
	snap, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), flowPatience)
	defer cancel()
	p, err := insight.Propose(limited, a.Flows, insight.ProposeInput{Snapshot: snap, Resource: e.Name, Since: since, Until: until, Now: a.Now()})
	if err != nil {
		return nil, err
	}
	out := a.proposalOf(p)
	out.CanAdopt = new(rollout.May(a.Catalog(), core.Caller(ctx), e))
	return openapi.GetResourceProposal200JSONResponse(out), nil
}

func (a *api) proposalOf(p insight.Proposal) openapi.Proposal {
	c := a.Catalog()
	out := openapi.Proposal{Resource: catalogRef(c, p.Resource), Since: p.Since.UTC(), Until: p.Until.UTC(), Lines: []openapi.ProposalLine{}, Unattributed: []openapi.UnattributedLine{},
		UnknownPorts: []openapi.UnknownPortLine{}, Yaml: p.YAML()}
	for _, l := range p.Lines {
		x := openapi.ProposalLine{Subject: catalogRef(c, l.Subject), Action: l.Action, State: openapi.ProposalLineState(l.State), Evidence: seenOf(l.Evidence)}
		if app, ok := a.applicationNamed(c, l.Subject); ok {
			covered, err := a.Tickets.Host.SubjectCovered(l.Subject)
			x.Grantable = new(err == nil && covered && l.Wanted())
			x.Owners = new(ownersOf(c, app))
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
			out.UnknownPorts = append(out.UnknownPorts, openapi.UnknownPortLine{Port: int(u.Port), Protocol: string(u.Protocol), Source: client, Evidence: seenOf(u.Evidence)})
		}
	}
	return out
}

// applicationNamed returns the application with a resource name.
func (a *api) applicationNamed(c *catalog.Catalog, name string) (catalog.Entity, bool) {
	e, ok := c.ByName(name)
	if !ok {
		return e, false
	}
	app, ok := c.Application(e.ID)
	return app, ok && app.Name == name
}

func seenOf(s insight.Seen) openapi.SeenEvidence {
	out := openapi.SeenEvidence{Count: s.Count, FirstSeen: s.First.UTC(), LastSeen: s.Last.UTC(), Days: s.Days, DaysObserved: s.DaysObserved,
		Clusters: append([]string{}, s.Clusters...), Decisions: map[string]int64{}}
	for w, n := range maps.All(s.Decisions) {
		out.Decisions[string(w)] = n
	}
	return out
}

// GetResourceEvidence implements openapi.StrictServerInterface.
func (a *api) GetResourceEvidence(ctx context.Context, r openapi.GetResourceEvidenceRequestObject) (openapi.GetResourceEvidenceResponseObject, error) {
	e, err := a.inspectableResource(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), flowPatience)
	defer cancel()
	if _, err := a.snapshot(); err != nil {
		return nil, err
	}
	score, at, err := a.Insight.Evidence(limited, e.Name)
	if err != nil {
		return nil, err
	}
	return openapi.GetResourceEvidence200JSONResponse(a.scoreOf(score, at)), nil
}

func (a *api) scoreOf(s insight.Score, at time.Time) openapi.EvidenceScore {
	out := openapi.EvidenceScore{Value: s.Value, Threshold: s.Threshold, Enough: s.Enough, WindowSeconds: int64(a.EvidenceWindow.Seconds()), Parts: []openapi.EvidencePart{},
		At: when(at), Since: when(at.Add(-a.EvidenceWindow))}
	for _, p := range s.Parts {
		out.Parts = append(out.Parts, openapi.EvidencePart{Name: string(p.Name), Points: p.Points, Of: p.Of, Missing: core.OptionalMessage(p.Missing)})
	}
	return out
}
