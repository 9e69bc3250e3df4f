package governanceapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// GetAccessGraph implements openapi.StrictServerInterface.
func (a *API) GetAccessGraph(ctx context.Context, r openapi.GetAccessGraphRequestObject) (openapi.GetAccessGraphResponseObject, error) {
	edges, cut, err := a.edges(ctx, r.Params)
	if err != nil {
		return nil, err
	}
	links := governance.Links(edges)
	g := grapher{
		c:     a.Catalog(),
		nodes: map[string]int{},
		teams: map[catalog.Owner]int{},
		out: openapi.AccessGraph{
			Nodes: []openapi.AccessNode{},
			Links: []openapi.AccessLink{},
			Teams: []openapi.OwnerRef{},
			Total: len(links),
			Cut:   cut || len(links) > maxLinks,
		},
	}
	subjects, resources := map[string]*governance.Edge{}, map[string]*governance.Edge{}
	for i := range edges {
		subjects[edges[i].Subject], resources[edges[i].Resource] = &edges[i], &edges[i]
	}
	for _, l := range links[:min(len(links), maxLinks)] {
		x := openapi.AccessLink{From: g.subject(subjects[l.From]), To: g.resource(resources[l.To]), Statements: l.Statements}
		for flag, to := range map[**bool]bool{&x.Deny: l.Deny, &x.Allow: l.Allow, &x.Wildcard: l.Broad, &x.Counting: l.Counting} {
			if to {
				*flag = new(true) // absent is shorter, and there are many
			}
		}
		g.out.Links = append(g.out.Links, x)
	}
	return openapi.GetAccessGraph200JSONResponse(g.out), nil
}

// grapher collects the nodes and edges of an access graph.
type grapher struct {
	c     *catalog.Catalog
	nodes map[string]int
	teams map[catalog.Owner]int
	out   openapi.AccessGraph
}

func (g *grapher) subject(e *governance.Edge) int {
	return g.node("s"+e.Subject, e.Subject, openapi.AccessNodeKind(e.SubjectKind), func(*openapi.AccessNode) {})
}

func (g *grapher) resource(e *governance.Edge) int {
	kind := openapi.AccessNodeKindResource
	if e.Wildcard {
		kind = openapi.AccessNodeKindWildcard
	}
	return g.node("r"+e.Resource, e.Resource, kind, func(n *openapi.AccessNode) {
		n.Class = core.Optional(e.Class)
		if e.Mode != "" {
			n.Mode = new(openapi.Mode(e.Mode))
		}
	})
}

// node returns the node of a key. A name that is both a client and a server has two nodes, so that the graph has one direction.
func (g *grapher) node(key, name string, kind openapi.AccessNodeKind, add func(*openapi.AccessNode)) int {
	if i, ok := g.nodes[key]; ok {
		return i
	}
	ref := views.Ref(g.c, name)
	n := openapi.AccessNode{Name: name, Title: ref.Title, Id: ref.Id, Kind: kind}
	if e, ok := g.c.ByName(name); ok && len(e.Owners) > 0 {
		teams := make([]int, 0, len(e.Owners))
		for _, o := range e.Owners {
			i, ok := g.teams[o]
			if !ok {
				i = len(g.out.Teams)
				g.teams[o] = i
				g.out.Teams = append(g.out.Teams, openapi.OwnerRef{Kind: openapi.OwnerRefKind(o.Kind), Id: o.ID, DisplayName: g.c.OwnerName(o)})
			}
			teams = append(teams, i)
		}
		n.Teams = &teams
	}
	add(&n)
	i := len(g.out.Nodes)
	g.nodes[key] = i
	g.out.Nodes = append(g.out.Nodes, n)
	return i
}

// GetAccessPath implements openapi.StrictServerInterface.
func (a *API) GetAccessPath(ctx context.Context, r openapi.GetAccessPathRequestObject) (openapi.GetAccessPathResponseObject, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	from, to := nameOf(strings.TrimSpace(r.Params.From), c.Application), nameOf(strings.TrimSpace(r.Params.To), c.Resource)
	for field, name := range map[string]string{"from": from, "to": to} {
		if n, err := policy.ParseName(name); err != nil || n.Wildcard {
			return nil, core.InvalidParameter(field, message.FieldResourceID())
		}
	}
	found, err := governance.FindPath(snap, from, to, a.ownModes(to), a.Now())
	if err != nil {
		return nil, &core.Problem{
			Status:  http.StatusBadRequest,
			Code:    "invalid",
			Message: message.GraphTargetInvalid(),
			Fields:  []approval.Field{{Path: "to", Code: "invalid", Message: message.FieldExactResource()}},
		}
	}
	out := openapi.AccessPath{
		From:      views.Ref(c, from),
		To:        views.Ref(c, to),
		Decisions: []openapi.PathDecision{},
		Chains:    []openapi.AccessChain{},
		Cut:       found.Cut,
	}
	for _, d := range found.Decisions {
		x := openapi.PathDecision{Cluster: d.Cluster, Action: d.Action, Mode: new(openapi.Mode(d.Mode)), Decision: openapi.Decision(d.Verdict)}
		if len(d.Statements) > 0 {
			x.Policy, x.Sid = core.Optional(d.Statements[0].Policy), core.Optional(d.Statements[0].SID)
		}
		out.Decisions = append(out.Decisions, x)
	}
	used, err := a.lastUses(ctx, slices.Concat(append([][]governance.Edge{found.Direct, found.Against}, found.Chains...)...))
	if err != nil {
		return nil, err
	}
	out.FlowsAvailable = used.last != nil
	out.Direct, out.Against = a.edgeViews(found.Direct, used), a.edgeViews(found.Against, used)
	for _, chain := range found.Chains {
		out.Chains = append(out.Chains, openapi.AccessChain{Steps: a.edgeViews(chain, used)})
	}
	return openapi.GetAccessPath200JSONResponse(out), nil
}

// ownModes returns the modes of the members that override the mode of a resource.
func (a *API) ownModes(resource string) []string {
	var out []string
	if p := a.Host.Protection(resource); p != nil {
		for _, m := range p.Spec.ClusterModes {
			out = append(out, string(m.Cluster))
		}
	}
	return out
}
