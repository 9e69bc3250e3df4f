package accountapi

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/savedview"
)

// ListSavedViews implements openapi.StrictServerInterface.
func (a *API) ListSavedViews(ctx context.Context, _ openapi.ListSavedViewsRequestObject) (openapi.ListSavedViewsResponseObject, error) {
	all, err := a.Saved.Views(core.RequestContext(ctx), core.Caller(ctx).ID)
	if err != nil {
		return nil, err
	}
	out := openapi.ListSavedViews200JSONResponse{Items: make([]openapi.SavedView, 0, len(all))}
	for _, v := range all {
		out.Items = append(out.Items, savedView(v))
	}
	return out, nil
}

// SaveView implements openapi.StrictServerInterface.
func (a *API) SaveView(ctx context.Context, r openapi.SaveViewRequestObject) (openapi.SaveViewResponseObject, error) {
	v, err := savedview.View{Page: savedview.Page(r.Body.Page), Name: r.Body.Name, Query: r.Body.Query, SavedAt: a.Now().Truncate(time.Microsecond)}.Normalize()
	if err != nil {
		return nil, err
	}
	if v, err = a.Saved.Save(core.RequestContext(ctx), core.Caller(ctx).ID, v); err != nil {
		return nil, err
	}
	return openapi.SaveView200JSONResponse(savedView(v)), nil
}

// DeleteSavedView implements openapi.StrictServerInterface.
func (a *API) DeleteSavedView(ctx context.Context, r openapi.DeleteSavedViewRequestObject) (openapi.DeleteSavedViewResponseObject, error) {
	id, err := savedViewID(r.Id)
	if err != nil {
		return nil, err
	}
	if err := a.Saved.Delete(core.RequestContext(ctx), core.Caller(ctx).ID, id); err != nil {
		return nil, err
	}
	return openapi.DeleteSavedView204Response{}, nil
}

// ShareView implements openapi.StrictServerInterface.
func (a *API) ShareView(ctx context.Context, r openapi.ShareViewRequestObject) (openapi.ShareViewResponseObject, error) {
	id, err := savedViewID(r.Id)
	if err != nil {
		return nil, err
	}
	v, err := a.Saved.Share(core.RequestContext(ctx), core.Caller(ctx).ID, id, rand.Text())
	if err != nil {
		return nil, err
	}
	return openapi.ShareView200JSONResponse(savedView(v)), nil
}

// UnshareView implements openapi.StrictServerInterface.
func (a *API) UnshareView(ctx context.Context, r openapi.UnshareViewRequestObject) (openapi.UnshareViewResponseObject, error) {
	id, err := savedViewID(r.Id)
	if err != nil {
		return nil, err
	}
	if err := a.Saved.Unshare(core.RequestContext(ctx), core.Caller(ctx).ID, id); err != nil {
		return nil, err
	}
	return openapi.UnshareView204Response{}, nil
}

// GetSharedView implements openapi.StrictServerInterface. Everyone who is signed in may open a view with its link, because a view contains no data:
// the page shows the reader only what they may see.
func (a *API) GetSharedView(ctx context.Context, r openapi.GetSharedViewRequestObject) (openapi.GetSharedViewResponseObject, error) {
	v, err := a.Saved.Shared(core.RequestContext(ctx), r.Id)
	if err != nil {
		return nil, err
	}
	return openapi.GetSharedView200JSONResponse{
		Page: openapi.SavedViewPage(v.Page), Name: v.Name, Query: v.Query,
		By: views.Person(a.Catalog(), v.Person), Own: v.Person == core.Caller(ctx).ID,
	}, nil
}

// savedViewID parses the id of a view. An id that is not a number is one that no view has.
func savedViewID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, savedview.ErrUnknown
	}
	return id, nil
}

func savedView(v savedview.View) openapi.SavedView {
	return openapi.SavedView{
		Id: strconv.FormatInt(v.ID, 10), Page: openapi.SavedViewPage(v.Page), Name: v.Name, Query: v.Query, SavedAt: v.SavedAt.UTC(),
		Link: core.Optional(v.Link),
	}
}
