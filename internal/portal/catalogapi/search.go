package catalogapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// hitsPerKind is the maximum number of hits of each kind, unless the search is for one kind only.
const hitsPerKind = 8

var searchKinds = []openapi.SearchParamsKind{openapi.SearchParamsKindApplication, openapi.SearchParamsKindResource, openapi.SearchParamsKindPerson,
	openapi.SearchParamsKindGroup, openapi.SearchParamsKindTicket}

// Search implements openapi.StrictServerInterface.
func (a *API) Search(ctx context.Context, r openapi.SearchRequestObject) (openapi.SearchResponseObject, error) {
	n, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(r.Params.Q)
	if text == "" || len(text) > 200 {
		return nil, core.NewProblem(http.StatusBadRequest, "invalid", message.CallParameterLength("q", 200))
	}
	kinds := core.Value(r.Params.Kind)
	if len(kinds) == 0 {
		kinds = searchKinds
	}
	each := hitsPerKind
	if len(kinds) == 1 {
		each = n
	}
	out := openapi.Search200JSONResponse{Items: []openapi.SearchHit{}}
	for _, kind := range searchKinds {
		if !slices.Contains(kinds, kind) {
			continue
		}
		hits, err := a.hits(ctx, kind, text, each)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, hits...)
	}
	for _, kind := range kinds {
		if !kind.Valid() {
			return nil, core.NewProblem(
				http.StatusBadRequest,
				"invalid",
				message.CallParameterOneOf("kind", []string{"application", "resource", "person", "group", "ticket"}),
			)
		}
	}
	out.Items = out.Items[:min(n, len(out.Items))]
	return out, nil
}

func (a *API) hits(ctx context.Context, kind openapi.SearchParamsKind, text string, most int) (out []openapi.SearchHit, err error) {
	c := a.Catalog()
	switch kind {
	case openapi.SearchParamsKindApplication, openapi.SearchParamsKindResource:
		p, err := a.Directory.Index().Search(catalog.Query{Kind: catalog.Kind(kind), Text: text, Limit: most})
		if err != nil {
			return nil, err
		}
		for _, e := range p.Entities {
			out = append(out, entityHit(openapi.SearchHitKind(kind), e))
		}
	case openapi.SearchParamsKindPerson:
		people, _, err := core.Page(
			listPeople,
			c.People(),
			personID,
			func(p catalog.Listed[catalog.Person], part string) bool { return strings.Contains(p.Names, part) },
			&text,
			nil,
			&most,
		)
		if err != nil {
			return nil, err
		}
		for _, p := range people {
			out = append(out, openapi.SearchHit{Kind: openapi.SearchHitKindPerson, Id: p.Of.ID, Title: p.Of.DisplayName, Subtitle: core.Optional(p.Of.Title)})
		}
	case openapi.SearchParamsKindGroup:
		groups, _, err := core.Page(listGroups, c.Groups(), groupID, groupHas, &text, nil, &most)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			out = append(
				out,
				openapi.SearchHit{Kind: openapi.SearchHitKindGroup, Id: g.Of.ID, Title: c.OwnerName(catalog.Owner{Kind: catalog.OwnerGroup, ID: g.Of.ID})},
			)
		}
	case openapi.SearchParamsKindTicket:
		return a.ticketHit(ctx, text)
	}
	return out, nil
}

// ticketHit finds a ticket by its id. Words are searched in the list of tickets only, which may read all of them; here every typed
// letter is a search.
func (a *API) ticketHit(ctx context.Context, text string) ([]openapi.SearchHit, error) {
	n, ok := approval.ParseID(strings.ToUpper(text))
	if !ok {
		return nil, nil
	}
	t, err := a.Tickets.Get(core.RequestContext(ctx), core.Caller(ctx), n)
	if approval.CodeOf(err) == approval.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []openapi.SearchHit{{Kind: openapi.SearchHitKindTicket, Id: t.ID(), Title: t.ID(), Subtitle: core.Optional(t.Reason)}}, nil
}

func entityHit(kind openapi.SearchHitKind, e catalog.Entity) openapi.SearchHit {
	return openapi.SearchHit{Kind: kind, Id: e.ID, Title: e.Title, Subtitle: core.Optional(e.Environment), Name: core.Optional(e.Name)}
}

// entityQuery contains the parameters that the lists of applications and resources share.
func (a *API) entityQuery(kind catalog.Kind, who approval.Actor, q, owner, environment *string, mine *bool, limit *int) (catalog.Query, error) {
	n, err := core.PageSize(limit)
	out := catalog.Query{Kind: kind, Text: core.Value(q), Environment: core.Value(environment), Limit: n}
	if core.Value(mine) {
		out.Mine = who.ID
	}
	if o := core.Value(owner); o != "" {
		out.Owner = a.owner(o)
	}
	return out, err
}

// owner returns the owner with an id. A person comes before a group with the same id.
func (a *API) owner(id string) catalog.Owner {
	if kind, rest, ok := strings.Cut(id, ":"); ok {
		switch kind {
		case "user":
			return catalog.Owner{Kind: catalog.OwnerPerson, ID: rest}
		case "group":
			return catalog.Owner{Kind: catalog.OwnerGroup, ID: rest}
		}
	}
	if _, ok := a.Catalog().Person(id); ok {
		return catalog.Owner{Kind: catalog.OwnerPerson, ID: id}
	}
	return catalog.Owner{Kind: catalog.OwnerGroup, ID: id}
}

// entityOrders are the orders of applications and resources.
var entityOrders = []string{orderRelevance, "title", "-title", "environment", "-environment"}

const orderRelevance = "relevance"

// entities returns a page of a search in an order, and the cursor of the next page.
func (a *API) entities(q catalog.Query, sort core.Sort, cursor *string) (catalog.Page, *string, error) {
	list := sort.List(string(q.Kind))
	var err error
	if q.Cursor, err = core.DecodeCursor(list, cursor); err != nil {
		return catalog.Page{}, nil, err
	}
	if sort.Column != orderRelevance {
		q.Order = catalog.Order{Column: catalog.OrderColumn(sort.Column), Descending: sort.Descending}
	}
	p, err := a.Directory.Index().Search(q)
	if errors.Is(err, catalog.ErrCursor) {
		return p, nil, core.InvalidCursor()
	}
	if err != nil || p.Next == "" {
		return p, nil, err
	}
	return p, core.EncodeCursor(list, p.Next), nil
}
