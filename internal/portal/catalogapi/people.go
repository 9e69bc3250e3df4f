package catalogapi

import (
	"context"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	listPeople = "people"
	listGroups = "groups"
	// maxOwned is the maximum number of entities of each kind on a person's page. The lists of applications and resources can be filtered
	// by owner and have pages.
	maxOwned = 200
)

// ListPeople implements openapi.StrictServerInterface.
func (a *API) ListPeople(_ context.Context, r openapi.ListPeopleRequestObject) (openapi.ListPeopleResponseObject, error) {
	c := a.Catalog()
	found, next, err := core.Page(listPeople, c.People(), personID, func(p catalog.Listed[catalog.Person], part string) bool {
		return strings.Contains(p.Names, part) || strings.Contains(p.Email, part)
	}, r.Params.Q, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	out := openapi.ListPeople200JSONResponse{Items: make([]openapi.Person, 0, len(found)), NextCursor: next}
	for _, p := range found {
		out.Items = append(out.Items, views.Person(c, p.Of.ID))
	}
	return out, nil
}

// GetPerson implements openapi.StrictServerInterface.
func (a *API) GetPerson(_ context.Context, r openapi.GetPersonRequestObject) (openapi.GetPersonResponseObject, error) {
	c := a.Catalog()
	p, ok := c.Person(r.Id)
	if !ok {
		return nil, views.NotInCatalog()
	}
	out := openapi.GetPerson200JSONResponse{Person: views.Person(c, p.ID), Groups: []openapi.OwnerRef{}, Owns: []openapi.SearchHit{}}
	if l, ok := c.Leader(p.ID); ok {
		out.Leader = new(views.Person(c, l))
	}
	for _, g := range p.Groups {
		out.Groups = append(
			out.Groups,
			openapi.OwnerRef{Kind: openapi.OwnerRefKindGroup, Id: g, DisplayName: c.OwnerName(catalog.Owner{Kind: catalog.OwnerGroup, ID: g})},
		)
	}
	applications, resources := c.Owned(p.ID)
	for kind, all := range map[openapi.SearchHitKind][]catalog.Entity{
		openapi.SearchHitKindApplication: applications, openapi.SearchHitKindResource: resources,
	} {
		for _, e := range all[:min(len(all), maxOwned)] {
			out.Owns = append(out.Owns, entityHit(kind, e))
		}
	}
	slices.SortFunc(out.Owns, func(x, y openapi.SearchHit) int { return strings.Compare(string(x.Kind)+x.Id, string(y.Kind)+y.Id) })
	return out, nil
}

// ListGroups implements openapi.StrictServerInterface.
func (a *API) ListGroups(_ context.Context, r openapi.ListGroupsRequestObject) (openapi.ListGroupsResponseObject, error) {
	c := a.Catalog()
	found, next, err := core.Page(listGroups, c.Groups(), groupID, groupHas, r.Params.Q, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	out := openapi.ListGroups200JSONResponse{Items: make([]openapi.Group, 0, len(found)), NextCursor: next}
	for _, l := range found {
		out.Items = append(out.Items, group(c, *l.Of))
	}
	return out, nil
}

// GetGroup implements openapi.StrictServerInterface.
func (a *API) GetGroup(_ context.Context, r openapi.GetGroupRequestObject) (openapi.GetGroupResponseObject, error) {
	c := a.Catalog()
	g, ok := c.Group(r.Id)
	if !ok {
		return nil, views.NotInCatalog()
	}
	return openapi.GetGroup200JSONResponse(group(c, g)), nil
}

func group(c *catalog.Catalog, g catalog.Group) openapi.Group {
	out := openapi.Group{
		Id:          g.ID,
		DisplayName: c.OwnerName(catalog.Owner{Kind: catalog.OwnerGroup, ID: g.ID}),
		Members:     len(g.Members),
		Parent:      core.Optional(g.Parent),
	}
	if g.Lead != "" {
		out.Lead = new(views.Person(c, g.Lead))
	}
	return out
}

func personID(p catalog.Listed[catalog.Person]) string { return p.Of.ID }

func groupID(g catalog.Listed[catalog.Group]) string { return g.Of.ID }

func groupHas(g catalog.Listed[catalog.Group], part string) bool {
	return strings.Contains(g.Names, part)
}
